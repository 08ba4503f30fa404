"""`parallelrun demo`: a small job from its data to a failure that is found and repaired.

Every command that it runs is printed, and can be given again in the folder that it leaves.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

from parallelrun.command import command

_STORES = 120
_DAYS = 365
# Two of them have a gap in their figures, as real data does.
_GAPS = (17, 85)

_SCRIPT = '''\
"""Sums up the sales of each store: one file, one figure a day."""
from pathlib import Path


def run(mini_batch):
    rows = []
    for path in mini_batch:
        figures = [{figure} for line in open(path)]
        rows.append(f"{{Path(path).stem}} {{sum(figures):.2f}}")
    return rows
'''
_FRAGILE = "float(line)"
_REPAIRED = 'float(line) if line.strip() != "n/a" else 0.0'

_RUN = ["run", "sales.py", "--input", "sales", "--output", "out", "--mini-batch-size", "1"]


def main(words: list[str]) -> int:
    """Runs it in a new folder; returns the exit status."""
    if len(words) > 1 or words in (["-h"], ["--help"]):
        print("parallelrun demo [FOLDER]: a small job, with a failure that is found and repaired")
        return 0 if len(words) == 1 else 2
    folder = Path(words[0] if words else "parallelrun-demo")
    if folder.exists():
        print(f"{folder} is there already: remove it, or name another folder", file=sys.stderr)
        return 2
    _say(f"Sales of {_STORES} stores, a file each, go to {folder}/sales. This script sums them up:")
    _make_data(folder / "sales")
    script = folder / "sales.py"
    script.write_text(_SCRIPT.format(figure=_FRAGILE))
    print(script.read_text())
    _say("Run it, in as many processes as there are cores:")
    if _call(folder, *_RUN) != 3:
        return _unexpected()
    _say("Two items have no row. Why?")
    if _call(folder, "failures", "out") != 0:
        return _unexpected()
    _say(f"For a day that has no figure they say n/a. Repair the script, in {script}:")
    script.write_text(_SCRIPT.format(figure=_REPAIRED))
    print(f"-        figures = [{_FRAGILE} for line in open(path)]")
    print(f"+        figures = [{_REPAIRED} for line in open(path)]\n")
    _say("Run only what has failed again:")
    if _call(folder, *_RUN, "--retry-failed") != 0:
        return _unexpected()
    with open(folder / "out/parallel_run_step.txt", encoding="utf-8") as rows:
        lines = rows.read().splitlines()
    if len(lines) != _STORES:
        return _unexpected()
    _say(f"All {len(lines)} rows, in the order of the input:")
    print("\n".join([*lines[:3], "...", lines[-1], ""]))
    _say(f"All of it is in {folder}; the logs are in {folder}/out/logs.")
    return 0


def _make_data(folder: Path) -> None:
    folder.mkdir(parents=True)
    random.seed(1)
    for store in range(_STORES):
        figures = [f"{random.uniform(10, 5000):.2f}" for _ in range(_DAYS)]  # noqa: S311
        if store in _GAPS:
            figures[100] = "n/a"
        (folder / f"store-{store:03}.txt").write_text("\n".join(figures) + "\n")


def _say(text: str) -> None:
    bold = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    print(f"\x1b[1m{text}\x1b[0m" if bold else text, flush=True)


def _call(folder: Path, *words: str) -> int:
    print("$ parallelrun " + " ".join(words), flush=True)
    status = subprocess.call([*command(), *words], cwd=folder, stderr=subprocess.STDOUT)
    print(flush=True)
    return status


def _unexpected() -> int:
    print("the demo did not go as it should: what is above says why", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
