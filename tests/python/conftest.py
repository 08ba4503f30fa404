import os
import shutil
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parents[1] / "worker-image" / "python"))

# script/bootstrap test puts pyarrow here for the system's Python: Debian 12 has no package of it.
PYARROW = HERE.parents[1] / "build" / "tools" / f"pyarrow-{sys.implementation.cache_tag}"
if PYARROW.is_dir() and "WORKER_PYTHON" not in os.environ:
    sys.path.append(str(PYARROW))
    known = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = f"{known}{os.pathsep}{PYARROW}" if known else str(PYARROW)

from fake_agent import FakeAgent  # noqa: E402 - the path must be set first


@pytest.fixture
def launch(tmp_path):
    """launch("script.py", *arguments, files={name: text}, **start) -> FakeAgent.

    The code folder is a copy of tests/python/scripts plus `files`. launch.folder is where all of it
    lies, and launch.write(name, text) puts a file there.
    """
    agents = []

    def start(script, *arguments, files=None, **options):
        code = tmp_path / "code"
        shutil.copytree(HERE / "scripts", code, dirs_exist_ok=True)
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
