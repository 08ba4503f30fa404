"""pyarrow for the tests and their jobs, and readers of outputs for the tests alone.

Debian 12 has no packages of them; script/bootstrap test puts them here for the system's Python.
"""

import os
import sys
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[3] / "build/tools"
FOLDER = TOOLS / f"pyarrow-{sys.implementation.cache_tag}"


def _add(folder):
    if folder.is_dir() and str(folder) not in sys.path:
        sys.path.append(str(folder))


# With the readers.
FOLDERS = [
    FOLDER,
    *(TOOLS / f"{name}-{sys.implementation.cache_tag}" for name in ("duckdb", "polars")),
]
for folder in FOLDERS:
    _add(folder)


def python_path():
    """PYTHONPATH of a job that reads Parquet."""
    known = os.environ.get("PYTHONPATH")
    return f"{known}{os.pathsep}{FOLDER}" if known else str(FOLDER)
