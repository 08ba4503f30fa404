"""Bad items, nodes that die, failed mini-batches of a finished run, and stragglers."""

import json

from support import processes
from support.workspace import rows_without
from waits import wait_until

# Raises for mini-batches that hold a bad item, unless they are mended.
BAD = """
from steps import note, there

def run(mini_batch, context):
    note("calls", context.minibatch_index)
    rows = [open(path).read() for path in mini_batch]
    if not there("mended"):
        for row in rows:
            if row in ("row 3", "row 17"):
                raise ValueError(f"{row} is bad")
    return rows
"""

TABLE = """
def run(mini_batch):
    if (mini_batch["x"] == 13).any():
        raise ValueError("thirteen")
    return mini_batch
"""

INTEGERS = """
def run(mini_batch):
    assert mini_batch["x"].dtype == "int64"
    return mini_batch
"""

LINES = """
def run(mini_batch):
    return [line["x"] for line in mini_batch]
"""


def letters(work):
    return [json.loads(line) for line in work.log_text("dead-letter.jsonl").splitlines()]


def test_bad_files_are_isolated_and_tried_again(work):
    work.files(20)
    work.script(BAD)
    work.job(miniBatchSize="10", isolateFailures=True, runMaxTry=2, errorThreshold=2)
    result = work.run()
    assert result.code == 0, result
    assert "CompletedWithFailures" in result.output
    assert work.rows() == rows_without(20, 3, 17)
    found = sorted(letters(work), key=lambda letter: letter["path"])
    assert [letter["path"] for letter in found] == [
        str(work.data / "000003.txt"),
        str(work.data / "000017.txt"),
    ]
    for letter, row in zip(found, ("row 3", "row 17"), strict=True):
        assert letter["items"] == 1
        assert letter["attempts"] == 2
        assert f"{row} is bad" in letter["message"]
        assert letter["traceback"].startswith("Traceback (most recent call last)")
        assert f"ValueError: {row} is bad" in letter["traceback"]

    # What failed, and nothing else, is run again; the output is replaced by a complete one.
    calls = len(work.noted("calls"))
    work.make("mended")
    result = work.run("--retry-failed")
    assert result.code == 0, result
    assert work.rows() == rows_without(20)
    assert len(work.noted("calls")) - calls == 2
    assert letters(work) == []
    assert work.beside_index() == [work.output.name]


def test_retry_that_fails_leaves_the_output_as_it_was(work):
    work.files(20)
    work.script(BAD)
    work.job(runMaxTry=1)
    assert work.run().code == 3
    before = work.output.read_bytes()
    result = work.run("--retry-failed", "--set", "spec.errorThreshold=0")
    assert result.code == 1, result
    assert work.output.read_bytes() == before
    work.make("mended")
    result = work.run("--retry-failed", "--set", "spec.errorThreshold=0")
    assert result.code == 0, result
    assert work.rows() == rows_without(20)


def test_retry_with_nothing_to_retry(work):
    work.files(4)
    work.script()
    work.job()
    assert work.run().code == 0
    before = work.output.stat()
    result = work.run("--retry-failed")
    assert result.code == 0, result
    assert len(work.noted("calls")) == 4
    assert work.output.stat().st_ino == before.st_ino


def test_a_bad_row_is_isolated(work):
    (work.data / "a.csv").write_text("x,y\n" + "".join(f"{i},r{i}\n" for i in range(40)))
    work.script(TABLE)
    work.job(
        inputs=[{"name": "rows", "tabular": {"volume": "data"}}],
        miniBatchSize="1kb",
        isolateFailures=True,
        runMaxTry=1,
    )
    result = work.run()
    assert result.code == 3, result
    assert f"{work.data / 'a.csv'}: 1 row, from item 13 of the input on" in result.output
    assert f"less {work.logs / 'dead-letter.jsonl'}" in result.output
    assert work.rows() == [f"{i} r{i}" for i in range(40) if i != 13]
    (letter,) = letters(work)
    assert letter["path"] == str(work.data / "a.csv")
    assert (letter["firstItem"], letter["firstRow"], letter["items"]) == (13, 13, 1)


def test_a_row_that_does_not_fit_is_isolated_without_a_second_try(work):
    rows = [f"{i},r{i}\n" for i in range(40)]
    rows[13] = "thirteen,r13\n"
    (work.data / "a.csv").write_text("x,y\n" + "".join(rows))
    work.script(INTEGERS)
    work.job(
        inputs=[{"name": "rows", "tabular": {"volume": "data", "dtypes": {"x": "integer"}}}],
        miniBatchSize="1kb",
        isolateFailures=True,
        runMaxTry=3,
    )
    result = work.run()
    assert work.rows() == [f"{i} r{i}" for i in range(40) if i != 13], result
    (letter,) = letters(work)
    assert (letter["kind"], letter["attempts"]) == ("Misfit", 1)
    assert (letter["firstItem"], letter["items"]) == (13, 1)
    assert (
        f'{work.data}/a.csv:15: column "x" is integer, and the value is "thirteen"'
        in (letter["message"])
    )


def test_a_line_that_is_no_json_is_isolated(work):
    lines = ['{"x": %d}' % i for i in range(9)]
    lines[4] = "{"
    (work.data / "a.jsonl").write_text("\n".join(lines) + "\n")
    work.script(LINES)
    work.job(
        inputs=[{"name": "rows", "jsonLines": {"volume": "data"}}],
        miniBatchSize="9",
        isolateFailures=True,
        runMaxTry=1,
    )
    result = work.run()
    assert result.code == 3, result
    assert work.rows() == [str(i) for i in range(9) if i != 4]
    assert [letter["firstItem"] for letter in letters(work)] == [4]


# Two items of sixteen: one raises, one takes its process with it, each time.
DEADLY = """
import os
from steps import note

def run(mini_batch):
    rows = [open(path).read() for path in mini_batch]
    for bad in ("row 3", "row 11"):
        if bad in rows:
            note(bad, len(rows))
    if "row 3" in rows:
        os._exit(3)
    if "row 11" in rows:
        raise ValueError("row 11 is bad")
    return rows
"""


def test_an_item_that_ends_its_process_each_time_is_isolated_in_few_runs(work):
    work.files(16)
    work.script(DEADLY)
    work.job(miniBatchSize="8", isolateFailures=True, runMaxTry=2, speculation=False)
    result = work.run()
    assert result.code == 3, result
    assert work.rows() == rows_without(16, 3, 11)
    assert "14 succeeded, 2 failed" in result.output
    dead, raised = sorted(letters(work), key=lambda letter: letter["firstItem"])
    assert (dead["path"], dead["kind"]) == (str(work.data / "000003.txt"), "ProcessEnded")
    assert "exited with status 3" in dead["message"]
    assert (raised["path"], raised["kind"]) == (str(work.data / "000011.txt"), "Exception")
    # Of eight items, the tries of the whole, then one run for each half, then the tries of the one.
    for bad in ("row 3", "row 11"):
        assert work.noted(bad) == ["8", "8", "4", "2", "1", "1"]


HELD = """
from steps import note, wait_for

def run(mini_batch):
    if len(mini_batch) < 8:
        note("held", len(mini_batch))
        wait_for("go")
    rows = [open(path).read() for path in mini_batch]
    if "row 3" in rows:
        raise ValueError("row 3 is bad")
    return rows
"""


def test_the_coordinator_dies_while_pieces_run(work):
    work.files(16)
    work.script(HELD)
    work.job(miniBatchSize="16", isolateFailures=True, runMaxTry=1)
    command = work.start_job()
    command.wait_for(lambda: work.noted("held"), "a piece is held")
    (killed,) = processes.running("coordinator")
    killed.kill()
    command.wait_for(
        lambda: [p for p in processes.running("coordinator") if p.pid != killed.pid],
        "the next coordinator runs",
    )
    work.make("go")
    result = command.wait()
    assert result.code == 3, result
    assert work.rows() == rows_without(16, 3)


# Mini-batch 2 ends its agent, each time it is run, once the test says so; 3 runs beside it as long
# as it may.
POISON = """
import os, signal
from steps import note, wait_for

def run(mini_batch, context):
    index = context.minibatch_index
    note("calls", index)
    if index == 2:
        note("ready", os.getppid())
        wait_for(f"strike {os.getppid()}")
        os.kill(os.getppid(), signal.SIGKILL)
        wait_for("never")
    if index == 3:
        wait_for("two deaths")
    return [open(path).read() for path in mini_batch]
"""


def slowest(work):
    """The mini-batch that is in run() for longest, as the coordinator knows and the command."""
    listed = work.start("ps", "--json").wait_only()
    assert listed.code == 0, listed
    progress = [run["progress"] for run in json.loads(listed.output)["runs"]]
    return progress[0]["slowest"] if progress and progress[0] else None


def test_what_ends_its_node_runs_alone_and_takes_no_others_with_it(work):
    work.files(8)
    work.script(POISON)
    work.job(nodeRestartLimit=200)
    command = work.start_job()
    deaths = 0

    def strike():
        """A death counts only if the coordinator has heard that run() began."""
        nonlocal deaths
        ready = work.noted("ready")
        if len(ready) > deaths and slowest(work):
            deaths = len(ready)
            work.make(f"strike {ready[-1]}")
            if deaths == 2:
                work.make("two deaths")
        return command.ended

    wait_until(strike, lambda: f"the job ends\n{command.output}", 400.0)
    result = command.wait()
    assert result.code == 3, result
    assert "LostTooOften" in result.output
    assert "7 succeeded, 1 failed, of 8" in result.output
    assert work.rows() == rows_without(8, 2)
    calls = [int(line) for line in work.noted("calls")]
    assert calls.count(2) >= 10
    # The last deaths were its own: everything else had been run by then, what was lost beside it
    # too, for of what is run alone that with the fewest losses comes first.
    assert calls[-5:] == [2] * 5


# One of the files ends its node at once, long before a heartbeat could tell that run() had begun.
QUICK_POISON = """
import os, signal
from steps import note, wait_for

def run(mini_batch):
    rows = [open(path).read() for path in mini_batch]
    if "row 17" in rows:
        note("deaths", os.getppid())
        os.kill(os.getppid(), signal.SIGKILL)
        wait_for("never")
    return rows
"""


def test_what_ends_its_node_at_once_is_found_within_the_default_limits(work):
    work.files(30)
    work.script(QUICK_POISON)
    work.job(miniBatchSize="1")
    result = work.run(limit=300)
    assert result.code == 3, result
    assert work.rows() == rows_without(30, 17)
    assert "29 succeeded, 1 failed, of 30" in result.output
    assert "LostTooOften" in result.output
    assert f"mini-batch 17 ({work.data}/000017.txt) ends its node" in result.output
    # Ten losses. How many halvings come before them tests/traces says, where time is simulated.
    assert len(work.noted("deaths")) >= 10


# The first call with mini-batch 5 does not come back.
SLOW = """
from steps import note, there, wait_for

def run(mini_batch, context):
    index = context.minibatch_index
    if index == 5:
        first = not there("stuck")
        note("stuck", index)
        if first:
            wait_for("never")
    return [open(path).read() for path in mini_batch]
"""


def test_a_straggler_is_tried_elsewhere(work):
    work.files(40)
    work.script(SLOW)
    work.job(processCountPerNode=1, runInvocationTimeoutSeconds=1000)
    result = work.run("--nodes", "2")
    assert result.code == 0, result
    assert work.rows() == rows_without(40)
    assert len(work.noted("stuck")) >= 2


def test_a_corrected_command_starts_over_when_nothing_had_succeeded(work):
    rows = work.files(3)
    work.script()
    work.job(inputs=[{"name": "files", "files": {"volume": "data", "path": "mistyped"}}])
    result = work.run()
    assert result.code == 2, result
    work.job()
    result = work.run()
    assert result.code == 0, result
    assert work.rows() == rows
    # What has succeeded is never thrown away unasked.
    result = work.run()
    assert result.code == 2, result
    assert "--overwrite" in result.output
