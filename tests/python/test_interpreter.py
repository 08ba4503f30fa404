"""An interpreter that is too old says so itself, in a frame as of a failed init()."""

import json
import os
import struct
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "worker-image" / "python"


def test_an_old_interpreter_names_itself_and_the_mend():
    # What `-m` does to sys.argv while the package is imported, with an older version number.
    script = "import sys; sys.version_info = (3, 6, 9); sys.argv = ['-m']\n"
    script += "import parallelrun.worker"
    ours, theirs = os.pipe()
    words = [sys.executable, "-c", f"import os; os.dup2({theirs}, 3); {script}"]
    environment = {"PYTHONPATH": str(PACKAGE), "PATH": os.environ["PATH"]}
    done = subprocess.run(words, env=environment, pass_fds=[theirs], timeout=30)
    os.close(theirs)
    with open(ours, "rb") as pipe:
        frame = pipe.read()
    size, kind = struct.unpack_from("<IB", frame)
    failure = json.loads(frame[5:])
    assert (done.returncode, size, kind) == (1, len(frame) - 5, 17)
    assert failure["fatal"] is True
    assert "Python 3.6" in failure["message"]
    assert "spec.environment.python" in failure["message"]
