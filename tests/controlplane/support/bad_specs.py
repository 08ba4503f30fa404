"""The table of jobs that must be refused: tests/unit/data/bad_specs.yaml."""

import copy

import yaml

from support.coordinator import ROOT

_TABLE = yaml.safe_load((ROOT / "tests/unit/data/bad_specs.yaml").read_text())
BASE = _TABLE["base"]


def merged(base, patch):
    """RFC 7386."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    result = dict(base) if isinstance(base, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def cases(kind):
    return [case for case in _TABLE["cases"] if case["class"] == kind]


def job_of(case):
    return merged(BASE, case["patch"])
