"""The command `parallelrun`, for what calls it from Python."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

# How long a command that was told to stop may take, with its nodes, before it is killed.
STOP_S = 20


def command() -> list[str]:
    """The words that start the command.

    That of the wheel, which lies beside this package; else that in the folder PARALLELRUN_BIN, as
    in a source tree; else that of PATH. Raises RuntimeError if there is none.
    """
    package = Path(__file__).resolve().parent
    if (package / "bundle").is_dir():
        return [sys.executable, str(package / "__main__.py")]
    built = os.environ.get("PARALLELRUN_BIN")
    if built:
        return [os.path.abspath(os.path.join(built, "parallelrun"))]
    found = shutil.which("parallelrun")
    if found is None:
        raise RuntimeError("the command parallelrun is not there: pip install parallelrun")
    return [found]


def stop(process: subprocess.Popen[bytes]) -> None:
    """Ends the command, whose nodes end with it: in order, if it obeys, with stacks in the log.

    The command must be the leader of a process group.
    """
    for _ in range(STOP_S * 4):
        if process.poll() is not None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(0.25)
        except subprocess.TimeoutExpired:
            continue
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
