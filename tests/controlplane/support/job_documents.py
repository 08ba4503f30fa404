"""Random jobs: those of tests/unit/data/good_jobs.yaml with a few things changed."""

import copy

import yaml

from support.coordinator import ROOT

JOBS = yaml.safe_load((ROOT / "tests/unit/data/good_jobs.yaml").read_text())["jobs"]

_TEXTS = [
    "", " ", "a", "A", "-a", "a-", "a.b", "a..b", "a/b", "/a", "../a", "a/../b", "a//", ".", "..",
    "a b", "a\n", "\t", "\0", "\x7f", "\u0085", "\u00e4", "\u2028", "\U0001f600", "a" * 32,
    "a" * 33, "a" * 63, "a" * 64, "b" * 253, "b" * 254, "\u00e4" * 101, "c" * 4096, "c" * 4097, "1",
    "-1", "0", "1.5", "1e3", "1Ki", "10 MB", "100m", "1E", "1e99", "9223372036854775807",
    "9223372036854775808", "0x10", "+5", "true", "null", "None", "utf-16", "UTF_8", "latin-1",
    ";", "\"", "$(inputs.rows)", "$(output)/x", "$${{x}}", "${{inputs.x}}", "--error_threshold",
    "--error_threshold=x", "{user}", "{a}/{b}", "{}", "{a", "*.png", "**", "[", "a:b", "a=b",
    "nvidia.com/gpu", "worker", "Always", "TSV", "Parquet", "ReadWriteOnce", "metadata.name",
    "1Ti",
]  # fmt: skip
_NUMBERS = [
    0, 1, -1, 2, 7, 255, 256, 511, 512, 1000, 1001, 65535, 777600, 777601, 2**31 - 1, 2**31,
    -(2**31), 2**32, 2**53, 2**63 - 1, 2**63, -(2**63), 2**64, 0.0, 1.0, 1.5, 99.99, 100.0, 100.5,
    1e3, 1e20, 1e300, -0.0,
]  # fmt: skip
_OTHERS = [None, True, False, [], {}, [None], [[]], {"a": 1}, {"": ""}, ["a"], [1], {"name": "x"}]


def _places(value, at=()):
    """Every container and key of a document."""
    if isinstance(value, dict):
        keys = list(value)
    elif isinstance(value, list):
        keys = range(len(value))
    else:
        return
    for key in keys:
        yield value, key, at
        yield from _places(value[key], (*at, key))


def _by_name():
    """Values of the good jobs under the names of their fields."""
    found = {}
    for job in JOBS:
        for holder, key, _ in _places(job):
            if isinstance(key, str):
                found.setdefault(key, []).append(holder[key])
    return found


_VALUES = _by_name()
_NAMES = sorted(_VALUES)


def _edited(text, draw):
    at = draw.randrange(len(text) + 1)
    some = draw.choice(
        [
            "",
            "a",
            "A",
            "-",
            ".",
            "/",
            "..",
            "\n",
            " ",
            "$",
            "(",
            "{",
            "}",
            "%",
            ":",
            "\u00e9",
            "\0",
            "9",
        ]
    )
    return text[:at] + some + text[at + draw.randrange(2) :]


def _other(value, draw):
    """Something in place of `value`, most often of its type."""
    if isinstance(value, str) and draw.random() < 0.4:
        return _edited(value, draw)
    if isinstance(value, int) and not isinstance(value, bool) and draw.random() < 0.4:
        return value + draw.choice([-1, 1, 10])
    if isinstance(value, list) and value and draw.random() < 0.6:
        return value + [copy.deepcopy(draw.choice(value))] * draw.choice([1, 1, 2, 100])
    same = (
        _TEXTS
        if isinstance(value, str)
        else _NUMBERS
        if isinstance(value, (int, float))
        else _OTHERS
    )
    return copy.deepcopy(draw.choice(same if draw.random() < 0.6 else _TEXTS + _NUMBERS + _OTHERS))


def _change(job, draw):
    places = list(_places(job))
    holder, key, _ = draw.choice(places)
    way = draw.random()
    if way < 0.2:
        del holder[key]
    elif way < 0.7:
        holder[key] = _other(holder[key], draw)
    elif way < 0.8 and isinstance(holder, dict):  # a field that stands elsewhere
        name = draw.choice(_NAMES)
        holder[name] = copy.deepcopy(draw.choice(_VALUES[name]))
    elif way < 0.95 and key in _VALUES:  # as it is in another place
        holder[key] = copy.deepcopy(draw.choice(_VALUES[key]))
    elif isinstance(holder, dict) and isinstance(key, str):
        holder[_edited(key, draw)] = holder.pop(key)


def as_sent(value):
    """As clients of Kubernetes write numbers: 1.0 as 1."""
    if isinstance(value, dict):
        return {key: as_sent(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [as_sent(inner) for inner in value]
    whole = isinstance(value, float) and value.is_integer() and abs(value) < 2**63
    return int(value) if whole else value


def random_job(draw):
    job = copy.deepcopy(draw.choice(JOBS))
    for _ in range(draw.choice([1, 1, 1, 2, 3])):
        _change(job, draw)
    return job
