"""`parallelrun compare` and `rerun`: the same run again, and how its rows differ."""

import json

import pytest

SCRIPT = """
import sys

def run(mini_batch):
    rows = []
    for path in mini_batch:
        value = int(open(path).read())
        if value == 13 and "--strict" in sys.argv:
            raise ValueError("13")
        if value == 5:
            value += int(sys.argv[1])
        rows.append(f"row {value}")
    return rows
"""


@pytest.fixture
def first(work):
    """A run of 20 files, two in a mini-batch."""
    (work.root / "score.py").write_text(SCRIPT)
    for index in range(20):
        (work.data / f"{index:03}.txt").write_text(str(index))
    words = ["run", "score.py", "--input", "data", "--output", "a", "--mini-batch-size", "2"]
    assert work.call(*words, "--", "0").code == 0
    return work


def run(work, out, *words, size="2", code=0):
    flags = ["--input", "data", "--output", out, "--mini-batch-size", size]
    flags += ["--set", "spec.runMaxTry=1", "spec.isolateFailures=true"]
    result = work.call("run", "score.py", *flags, "--", *words)
    assert result.code == code, result


def test_the_same(first):
    run(first, "b", "0")
    result = first.call("compare", "a", "b")
    assert result.code == 0, result
    assert result.output == "mini-batches: 10 the same, 0 changed, 0 only in A, 0 only in B\n"


def test_another_row(first):
    run(first, "b", "100")
    result = first.call("compare", "a", "b/parallel_run_step.txt")
    assert result.code == 1, result
    assert result.output == (
        "mini-batches: 9 the same, 1 changed, 0 only in A, 0 only in B\n"
        f"mini-batch 2 ({first.data}/004.txt): 1 row changed\n"
        "  - row 5\n"
        "  + row 105\n"
    )


def test_failed_items_that_were_isolated(first):
    run(first, "b", "0", "--strict", code=3)
    result = first.call("compare", "a", "b", "--json")
    assert result.code == 1, result
    found = json.loads(result.output)
    assert (found["same"], found["changed"]) == (9, 1)
    (one,) = found["first"]
    assert (one["miniBatchA"], one["rowsA"], one["rowsB"], one["removed"]) == (6, 2, 1, 1)


def test_files_that_came_and_mini_batches_of_another_size(first):
    (first.data / "100.txt").write_text("100")
    run(first, "b", "0")
    result = first.call("compare", "a", "b")
    assert "10 the same, 0 changed, 0 only in A, 1 only in B" in result.output
    assert result.code == 1
    run(first, "c", "0", size="3")
    result = first.call("compare", "a", "c")
    assert result.code == 1, result
    assert "no mini-batch of A has the items of one of B" in result.output


def test_what_cannot_be_compared(first):
    result = first.call("compare", "a", "nowhere")
    assert result.code == 2, result
    assert "nowhere does not exist here" in result.output


def test_rerun_with_other_flags(first):
    elsewhere = first.root / "elsewhere"
    elsewhere.mkdir()
    first.root, root = elsewhere, first.root  # from another folder
    result = first.call("rerun", root / "a", "--output", "b", "--set", "spec.runMaxTry=1")
    assert result.code == 0, result
    told = "run score.py --input data --mini-batch-size 2 --output b --set spec.runMaxTry=1 -- 0"
    assert result.output.startswith(f"in {root}: ")
    assert f"{told}\n" in result.output
    assert (root / "b/parallel_run_step.txt").read_text() == (
        root / "a/parallel_run_step.txt"
    ).read_text()
    first.root = root


def test_rerun_with_other_arguments(first):
    assert first.call("rerun", "a", "--output", "b", "--", "100").code == 0
    result = first.call("compare", "a", "b")
    assert result.code == 1, result
    assert "  - row 5\n  + row 105\n" in result.output


def test_rerun_does_not_replace_by_itself(first):
    result = first.call("rerun", "a")
    assert result.code == 2, result
    assert "exists: start over with --overwrite" in result.output
    assert first.call("rerun", "a", "--overwrite").code == 0
    result = first.call("rerun", "a", "--no-such-flag")
    assert result.code == 2, result
    assert "--no-such-flag is not a flag of run" in result.output
