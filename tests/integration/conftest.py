import os
import re
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


@pytest.fixture(autouse=True)
def findings(tmp_path):
    """What a sanitizer found in a process fails the test, also if that was killed or replaced."""
    yield
    folder = os.environ.get("SANITIZER_FINDINGS")
    if not folder:
        return
    found = []
    for path in sorted(Path(folder).iterdir()):
        found.append(path.read_text(errors="replace"))
        path.unlink()
    # g++'s undefined behaviour sanitizer writes to stderr only, if it is not the only one.
    for path in [*tmp_path.glob("command-*.txt"), *tmp_path.rglob("sys/**/*.txt")]:
        found += re.findall(r".*: runtime error: .*", path.read_text(errors="replace"))
    if found:
        pytest.fail("\n".join(found), pytrace=False)


@pytest.fixture
def work(tmp_path):
    """A Workspace; at the end nothing of it runs, and its temporary folder is empty."""
    workspace = Workspace(tmp_path)
    yield workspace
    assert workspace.close() == []
    assert list(workspace.temporary.iterdir()) == []
