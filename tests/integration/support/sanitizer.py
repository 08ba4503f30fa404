"""The sanitizer that the programs under test are built with, and what it finds."""

import os
import re
import subprocess

from support.command import PATIENCE, PROGRAM

_LIBRARIES = {"asan": "libasan.so", "tsan": "libtsan.so"}


def sanitizer():
    """Its name, or None."""
    done = subprocess.run(
        ["ldd", PROGRAM], check=True, capture_output=True, text=True, timeout=PATIENCE
    )
    return next((name for name, library in _LIBRARIES.items() if library in done.stdout), None)


def options(name, folder):
    """(variable, value) that add to what is set already: findings go to files in the folder, for
    who kills a process could kill its words."""
    variable = f"{name.upper()}_OPTIONS"
    return variable, f"{os.environ.get(variable, '')}:log_path={folder / name}"


def findings(folder, root):
    """The texts of those that are in the folder, and in what the programs of the test have said."""
    found = [path.read_text(errors="replace") for path in sorted(folder.iterdir())]
    # g++'s undefined behaviour sanitizer writes to stderr only, if it is not the only one.
    for path in [*root.glob("command-*.txt"), *root.rglob("sys/**/*.txt")]:
        found += re.findall(r".*: runtime error: .*", path.read_text(errors="replace"))
    return found
