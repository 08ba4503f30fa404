import signal
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from support import processes, sanitizer
from support.command import PROGRAM
from support.workspace import Workspace


def pytest_sessionstart():
    if not PROGRAM.exists():
        pytest.exit(f"{PROGRAM} is not built: run script/build, or set PARALLELRUN_BIN", 2)
    # A shell starts what it runs in the background with SIGINT ignored, and so would be all that
    # the tests start, some of which they press Ctrl-C for.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


# The files that take longest begin first, one on each worker. A worker whose file holds one test,
# as chaos does, gets a second file at once: the sixth, which takes a second.
FIRST = ["chaos", "isolation", "faults_network", "digits", "contract_job", "render"]


def pytest_collection_modifyitems(items):
    def place(item):
        name = item.path.stem.removeprefix("test_")
        return FIRST.index(name) if name in FIRST else len(FIRST)

    items.sort(key=place)


@pytest.fixture(scope="session", autouse=True)
def adopted():
    """What a test's processes leave behind becomes a child of this process, and is seen."""
    processes.adopt_orphans()


@pytest.fixture(scope="session")
def sanitized():
    """The name of the sanitizer that the programs are built with, or None."""
    return sanitizer.sanitizer()


@pytest.fixture(autouse=True)
def findings(sanitized, tmp_path, monkeypatch):
    """What a sanitizer found in a process fails the test, also if that was killed or replaced."""
    if sanitized is None:
        yield
        return
    folder = tmp_path / "findings"
    folder.mkdir()
    monkeypatch.setenv(*sanitizer.options(sanitized, folder))
    yield
    found = "\n".join(sanitizer.findings(folder, tmp_path))
    if found:
        print(found)  # pytest tells the first failure of an end only, and what is printed
        pytest.fail(found, pytrace=False)


@pytest.fixture
def work(tmp_path):
    """A Workspace; at the end nothing of it runs, and its temporary folder is empty."""
    workspace = Workspace(tmp_path)
    yield workspace
    assert workspace.close() == []
    # The thread sanitizer's own files stay when a process is killed while it starts.
    left = [path.name for path in workspace.temporary.iterdir()]
    assert [name for name in left if not name.startswith("tsan.rodata.")] == []
