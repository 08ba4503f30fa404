"""Inputs in stores: data and scripts whose output is that of a folder's run."""

import json
import sys

import pytest

from support import arrow

TEXTS = """
from pathlib import Path

def run(mini_batch):
    paths = [Path(path) for path in mini_batch]
    return [f"{path.parent.name} {path.name} {path.read_text()}" for path in paths]
"""

ROWS = """
def run(frame):
    return [f"{row.name_} {row.value}" for row in frame.itertuples()]
"""

LINES = """
def run(lines):
    return [f"{line['x']}" for line in lines]
"""

HELD = """
from steps import note, wait_for

def run(mini_batch):
    note("runs", "run")
    wait_for("open")
    return [open(path).read() for path in mini_batch]
"""


def copy(server, bucket, folder, prefix="in"):
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            server.put(bucket, f"{prefix}/{path.relative_to(folder)}", path.read_bytes())


def rows_of(work, *words):
    python = ["--python", sys.executable]
    result = work.call("run", "code/score.py", *words, "--output", "out", "--overwrite", *python)
    assert result.code == 0, result
    return (work.out / "parallel_run_step.txt").read_bytes()


def labelled_files(work):
    """60 files in folders of three labels, and the script that reads them."""
    for index in range(60):
        path = work.data / f"label-{index % 3}" / f"{index:02} ü.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"text {index}")
    work.script(TEXTS)


def table(work, kind):
    """A table of 2,000 rows, its script, and the words that cut it into many mini-batches."""
    work.script(LINES if kind == "jsonl" else ROWS)
    path = work.data / f"t.{kind}"
    if kind == "jsonl":
        path.write_text("".join(json.dumps({"x": n}) + "\n" for n in range(2000)))
        return ["--mini-batch-size", "100"]
    import pandas

    frame = pandas.DataFrame({"name_": [f"n{n}" for n in range(2000)], "value": range(2000)})
    if kind == "csv":
        frame.to_csv(path, index=False)
    else:
        pytest.importorskip("pyarrow")
        work.environment["PYTHONPATH"] = arrow.python_path()
        frame.to_parquet(path, row_group_size=300)
    return ["--mini-batch-size", "2KB"]
