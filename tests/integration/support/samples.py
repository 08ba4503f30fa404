"""The samples of deploy/samples, with data that is made once."""

import subprocess
import sys
from pathlib import Path

from support.command import PATIENCE, ROOT

SAMPLES = ROOT / "deploy" / "samples"


def make_data(name, folder):
    command = [sys.executable, SAMPLES / name / "make_data.py", folder]
    subprocess.run(command, check=True, timeout=2 * PATIENCE)
    return Path(folder)


def words_to_run(name, data, out, *more):
    """The words after `parallelrun` that run a sample as its README says."""
    return [
        "run",
        SAMPLES / name / "job.yaml",
        "--volume",
        f"data={data}",
        "--volume",
        f"out={out}",
        "--set",
        f"spec.environment.python={sys.executable}",
        *more,
    ]
