"""What surrounds the operator for its users: chart, kustomize, rules, dashboards, GitOps, pages.

No cluster is needed: the programs that users run (helm, kubectl kustomize, promtool) render and
check files. Needed: python3-yaml, and Debian's package prometheus for what it tests.
"""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from support import render


def pytest_configure(config):
    config.addinivalue_line(
        "markers", "long: its tool takes minutes to build, so it is left out of the gate"
    )


@pytest.fixture(scope="session")
def chart():
    """The chart's objects with its default values, as `helm install` would make them."""
    return render.chart()


@pytest.fixture(scope="session")
def base():
    """The objects of deploy/base; the CRD is not among them."""
    return render.kustomize("deploy/base")
