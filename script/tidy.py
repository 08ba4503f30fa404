"""Runs clang-tidy on C++ sources and shows what it finds; called by script/lint.

    script/tidy.py BUILD_FOLDER SETTINGS SOURCE...

BUILD_FOLDER has the compile commands. Most of clang-tidy's time goes into headers, so many sources
of one folder are read as one translation unit that includes them. Where that finds something, or
does not compile because two sources use one name for different things, each half is read again.

A source that was found clean is not read again until it, a header of ours that it includes, or
SETTINGS (a digest of what else counts) changes: that is remembered outside the tree, for all clones
of this machine.
"""

import functools
import hashlib
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

GROUP = 8  # sources in a translation unit: more need gigabytes
ALONE = 12  # so few are read one by one, and so are held to include what they use
FOLDER = Path("build/lint")
NOTES = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "parallelrun/lint"


@functools.cache
def included(path):
    """The headers of ours that a file includes itself."""
    found = []
    for name in re.findall(r'^#include "([^"]+)"', path.read_text(), re.MULTILINE):
        places = [folder / name for folder in (Path("src"), Path(), path.parent)]
        found += [place for place in places if place.is_file()][:1]
    return found


def stamp(source, settings):
    """The note that this source, with its headers as they are, is clean."""
    files = {}  # in the order in which they are met
    waiting = [Path(source)]
    while waiting:
        path = waiting.pop()
        if path not in files:
            files[path] = path.read_bytes()
            waiting += included(path)
    digest = hashlib.sha256(settings.encode())
    for path, content in files.items():
        digest.update(f"{path} {len(content)}\n".encode() + content)
    return NOTES / digest.hexdigest()[:40]


def groups(sources):
    folders = {}
    for source in sources:
        folders.setdefault(str(Path(source).parent), []).append(source)
    for members in folders.values():
        for first in range(0, len(members), GROUP):
            yield members[first : first + GROUP]


def clang_tidy(folder, source):
    done = subprocess.run(
        ["clang-tidy-14", "-p", folder, "--quiet", "--extra-arg=-Wno-unknown-warning-option"]
        + [source],
        capture_output=True,
        text=True,
    )
    return done.returncode == 0, done.stdout


def together(entry, members):
    """Whether the sources are clean when read as one; False also when they do not go together.

    `entry` is the compile command of one of them.
    """
    folder = FOLDER / ("unit-" + hashlib.sha256("\n".join(members).encode()).hexdigest()[:16])
    folder.mkdir(parents=True, exist_ok=True)
    unit = folder.resolve() / "unit.cc"
    unit.write_text(
        "".join(
            f'#include "{Path(member).resolve()}"  // NOLINT(bugprone-suspicious-include)\n'
            for member in members
        )
    )
    command = re.sub(r" -o \S+| -MD| -M[TF] \S+| -c \S+", "", entry["command"]) + f" -c {unit}"
    (folder / "compile_commands.json").write_text(
        json.dumps([{"directory": entry["directory"], "command": command, "file": str(unit)}])
    )
    return clang_tidy(str(folder), str(unit))[0]


def main():
    folder, settings, *sources = sys.argv[1:]
    database = json.loads((Path(folder) / "compile_commands.json").read_text())
    commands = {os.path.relpath(entry["file"]): entry for entry in database}
    # A source that this build leaves out has no compile command.
    todo = [s for s in sources if s in commands and not stamp(s, settings).exists()]
    NOTES.mkdir(parents=True, exist_ok=True)
    failed = False

    def check(members):
        nonlocal failed
        if len(members) == 1:
            clean, found = clang_tidy(folder, members[0])
            if not clean:
                failed = True
                print(found, flush=True)
        else:
            clean = together(commands[members[0]], members)
            if not clean:
                check(members[: len(members) // 2])
                check(members[len(members) // 2 :])
        if clean:
            for source in members:
                stamp(source, settings).touch()

    work = list(groups(todo)) if len(todo) > ALONE else [[source] for source in todo]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(check, work))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
