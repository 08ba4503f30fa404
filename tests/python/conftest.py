import os
import shutil
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parents[1] / "worker-image" / "python"))
sys.path.append(str(HERE.parent / "support"))

# script/bootstrap test puts pyarrow here for the system's Python: Debian 12 has no package of it.
PYARROW = HERE.parents[1] / "build" / "tools" / f"pyarrow-{sys.implementation.cache_tag}"
if PYARROW.is_dir() and "WORKER_PYTHON" not in os.environ:
    sys.path.append(str(PYARROW))
    known = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = f"{known}{os.pathsep}{PYARROW}" if known else str(PYARROW)

from fake_agent import FakeAgent  # noqa: E402 - the path must be set first


def code_in(folder):
    """A copy of the entry scripts as the code of a process in `folder`."""
    return shutil.copytree(HERE / "scripts", folder / "code", dirs_exist_ok=True)


@pytest.fixture
def launch(tmp_path):
    """launch("script.py", *arguments, files={name: text}, **start) -> FakeAgent.

    The code folder is a copy of tests/python/scripts plus `files`. launch.folder is where all of it
    lies, and launch.write(name, text) puts a file there.
    """
    agents = []

    def start(script, *arguments, files=None, **options):
        code = code_in(tmp_path)
        for name, content in (files or {}).items():
            (code / name).parent.mkdir(parents=True, exist_ok=True)
            (code / name).write_text(content)
        agent = FakeAgent(tmp_path, entryScript=script, arguments=list(arguments), **options)
        agents.append(agent)
        return agent

    def write(name, content):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        return path

    start.folder = tmp_path
    start.write = write
    yield start
    for agent in agents:
        agent.close()


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    """reader() -> a FakeAgent that is ready, whose script returns the table that it gets.

    One process for all tests of a file, which ask it for a result or a failure: most of the time of
    such a test was a start of Python that imports pandas. A new one where the last has ended.
    """
    agents = []

    def ready():
        if not agents or agents[-1].process.poll() is not None:
            folder = tmp_path_factory.mktemp("reader")
            code_in(folder)
            agents.append(FakeAgent(folder, entryScript="table.py", arguments=[]))
            agents[-1].ready()
        return agents[-1]

    yield ready
    for agent in agents:
        agent.close()
