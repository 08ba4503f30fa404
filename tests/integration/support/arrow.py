"""pyarrow for the tests and their jobs: Debian 12 has no package of it."""

import os
import sys
from pathlib import Path

# script/bootstrap test puts it here for the system's Python.
FOLDER = (
    Path(__file__).resolve().parents[3] / "build/tools" / f"pyarrow-{sys.implementation.cache_tag}"
)
if FOLDER.is_dir() and str(FOLDER) not in sys.path:
    sys.path.append(str(FOLDER))


def python_path():
    """PYTHONPATH of a job that reads Parquet."""
    known = os.environ.get("PYTHONPATH")
    return f"{known}{os.pathsep}{FOLDER}" if known else str(FOLDER)
