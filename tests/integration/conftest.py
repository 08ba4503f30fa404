import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from support import processes
from support.command import PROGRAM
from support.workspace import Workspace


@pytest.fixture(scope="session", autouse=True)
def built():
    if not PROGRAM.exists():
        pytest.exit(f"{PROGRAM} is not built: run script/build, or set PARALLELRUN_BIN", 2)
    processes.adopt_orphans()


@pytest.fixture
def work(tmp_path):
    """A Workspace; at the end nothing of it runs, and its temporary folder is empty."""
    workspace = Workspace(tmp_path)
    yield workspace
    assert workspace.close() == []
    assert list(workspace.temporary.iterdir()) == []
