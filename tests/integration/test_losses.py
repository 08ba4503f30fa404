"""Results that lack items: what is kept, what counts as failed, and how the command says so."""

import csv
import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from support.command import PATIENCE, PROGRAM
from support.refusal import expect_no_output
from support.workspace import rows_without

# Two of the files cannot be read; the script leaves them out.
SKIPS = """
from steps import note

def run(mini_batch, context):
    note("calls", context.minibatch_index)
    rows = [open(path).read() for path in mini_batch]
    return [row for row in rows if row not in ("row 3", "row 17")]
"""

RAISES = """
from steps import there

def run(mini_batch, context):
    if context.minibatch_index in (1, 2) and not there("mended"):
        raise ValueError("bad")
    return [open(path).read() for path in mini_batch]
"""


def skipping(work, **fields):
    work.files(100)
    work.script(SKIPS)
    work.job(miniBatchSize="10", processCountPerNode=1, **fields)
    return work.run()


def report(work):
    lines = work.log_text("sys/job_report/processed_mini-batches.csv").splitlines()
    rows = sorted(csv.DictReader(lines), key=lambda row: int(row["Mini-batch Id"]))
    return [(row["Total"], row["Succeeded"], row["Failed"]) for row in rows]


def test_what_run_returned_is_kept_and_the_missing_items_count(work):
    result = skipping(work, errorThreshold=10)
    assert result.code == 0, result
    assert work.rows() == rows_without(100, 3, 17)
    assert len(work.noted("calls")) == 10  # nothing was tried again
    assert "Finished with losses: 2 of 100 items have no row" in result.output
    assert "CompletedWithFailures" in result.output
    assert "98 succeeded, 2 failed" in result.output
    assert report(work)[:3] == [("10", "9", "1"), ("10", "9", "1"), ("10", "10", "0")]


def test_missing_items_above_the_threshold_fail_the_job(work):
    result = skipping(work, errorThreshold=1)
    assert result.code == 1, result
    assert "ErrorThresholdExceeded" in result.output
    assert "2 of them got no element from run()" in result.output
    expect_no_output(work)


@pytest.mark.parametrize("fields", [{}, {"errorThreshold": -1}], ids=["unwritten", "any"])
def test_without_a_threshold_missing_items_are_reported_and_no_loss(work, fields):
    result = skipping(work, **fields)
    assert result.code == 0, result
    assert "Succeeded (Complete)" in result.output
    assert "98 succeeded, 0 failed, 2 without an element" in result.output
    assert work.rows() == rows_without(100, 3, 17)
    assert report(work)[:3] == [("10", "9", "0"), ("10", "9", "0"), ("10", "10", "0")]
    assert "2 without an element" in work.log_text("job_result.txt")


def test_short_return_fail_is_strict_and_tries_again(work):
    result = skipping(work, shortReturn="Fail", runMaxTry=2, allowedFailedCount=2)
    assert result.code == 0, result
    assert "ShortReturn" in result.output
    assert len(work.noted("calls")) == 12
    assert work.rows() == [row for row in rows_without(100) if int(row[4:]) >= 20]
    result = work.run("--overwrite", "--set", "spec.allowedFailedCount=1")
    assert result.code == 1, result
    assert "AllowedFailedCountExceeded" in result.output


def test_short_returns_of_a_script_that_writes_its_own_results_are_no_loss(work):
    result = skipping(work, errorThreshold=0, output={"volume": "out", "action": "SummaryOnly"})
    assert result.code == 0, result
    assert "98 succeeded, 0 failed, 2 without an element" in result.output


def test_pieces_may_lack_items_too(work):
    """A mini-batch that was split, of which a piece returned too little."""
    work.files(8)
    work.script(
        """
def run(mini_batch):
    rows = [open(path).read() for path in mini_batch]
    if "row 1" in rows:
        raise ValueError("bad")
    return [row for row in rows if row != "row 6"]
"""
    )
    work.job(miniBatchSize="8", isolateFailures=True, runMaxTry=1, errorThreshold=2)
    result = work.run()
    assert result.code == 0, result
    assert work.rows() == rows_without(8, 1, 6)
    assert "2 of 8 items have no row" in result.output
    assert f"\n  {work.data / '000001.txt'}\n" in result.output
    first = work.data / "000004.txt"
    assert f"1 of the 4 items of mini-batch 0/3, the first of which is {first}" in result.output
    letters = [json.loads(line) for line in work.log_text("dead-letter.jsonl").splitlines()]
    assert [letter["items"] for letter in letters if letter["kind"] == "Exception"] == [1]
    short = [letter for letter in letters if letter["kind"] == "ShortReturn"]
    assert [(letter["items"], letter["withoutElement"]) for letter in short] == [(4, 1)]


def raising(work, *flags, **fields):
    work.files(120)
    work.script(RAISES)
    work.job(miniBatchSize="10", runMaxTry=1, **fields)
    return work.run(*flags)


def test_losses_that_nobody_allowed_have_a_status_of_their_own(work):
    result = raising(work)
    assert result.code == 3, result
    assert "Finished with losses: 20 of 120 items have no row" in result.output
    assert f"\n  {work.data / '000010.txt'}\n" in result.output
    assert f"To see them: less {work.logs / 'failures.jsonl'}" in result.output
    assert f"Grouped by error: parallelrun failures {work.logs}\n" in result.output
    lines = list(map(json.loads, work.log_text("failures.jsonl").splitlines()))
    # Two mini-batches that run at the same time fail in any order.
    failures = sorted(lines, key=lambda failure: failure["item"])
    assert [failure["item"] for failure in failures] == [
        str(work.data / f"{index:06}.txt") for index in range(10, 30)
    ]
    first = failures[0]
    assert (first["type"], first["message"], first["location"]) == (
        "ValueError",
        "bad",
        "score.py:6",
    )
    assert (first["miniBatch"], first["attempt"], first["node"]) == (1, 1, 0)
    assert (work.logs / first["log"]).exists()
    assert first["process"] in first["log"]
    told = work.call("failures", work.out / "job", "--traceback")
    assert told.code == 0, told
    assert "20 items failed" in told.output
    assert "20      1  score.py:6  ValueError: bad\n" in told.output
    assert "\n    Traceback (most recent call last)" in told.output
    again = next(line for line in result.output.splitlines() if line.startswith("To retry them: "))
    assert again.endswith(" --retry-failed")
    ledger = work.call("ledger", work.out / "job" / "state")
    assert ledger.code == 0, ledger
    assert "CompletedWithFailures: 20 of 120 items have no row" in ledger.output

    # A finished run that is continued says the same.
    result = work.run("--resume")
    assert result.code == 3, result
    assert "Finished with losses: 20 of 120 items have no row" in result.output
    assert str(work.data / "000010.txt") in result.output

    work.make("mended")
    result = work.run("--retry-failed")
    assert result.code == 0, result
    assert "Succeeded (Complete)" in result.output
    assert work.rows() == rows_without(120)
    assert not (work.logs / "failures.jsonl").exists()
    assert "no item has failed" in work.call("failures", work.out).output


def test_the_paths_of_what_failed_are_bytes(work):
    names = [b"plain", b"of \xff bytes", b"of two\nlines", b"-0 $(touch oops)"]
    for name in names:
        Path(os.fsdecode(os.fsencode(work.data) + b"/" + name)).write_text("x")
    work.script("def run(mini_batch):\n    raise ValueError('bad')\n")
    work.job(miniBatchSize="1", runMaxTry=1)
    assert work.run().code == 1
    command = [PROGRAM, "failures", work.out, "--paths"]
    wanted = sorted(os.fsencode(work.data) + b"/" + name for name in names)

    told = subprocess.run([*command, "-0"], capture_output=True, timeout=PATIENCE)
    assert told.returncode == 0, told
    assert sorted(told.stdout.split(b"\0")[:-1]) == wanted

    told = subprocess.run(command, capture_output=True, timeout=PATIENCE)
    assert told.returncode == 1, told
    assert sorted(told.stdout.splitlines()) == [path for path in wanted if b"\n" not in path]
    assert b"1 path was left out" in told.stderr


def test_failures_says_what_it_cannot_tell(work):
    told = work.call("failures", work.out / "nowhere")
    assert told.code == 2
    assert "--namespace NAMESPACE" in told.output
    told = work.call("failures", work.data)
    assert told.code == 2
    assert "holds no logs of a run" in told.output

    logs = work.out / "job/logs"
    (logs / "sys").mkdir(parents=True)
    told = work.call("failures", work.out)
    assert told.code == 2
    assert "no verdict yet" in told.output

    # Whoever may write to the logs may write anything, and may not lead elsewhere.
    (logs / "failures.jsonl").write_text('{"type":"\\u001b[1m","item":"/a"}\nnonsense\n')
    told = work.call("failures", logs)
    assert told.code == 1
    assert "\\x1b[1m\n" in told.output and "\x1b" not in told.output
    assert "1 line of" in told.output
    (logs / "failures.jsonl").unlink()
    (logs / "failures.jsonl").symlink_to("/etc/passwd")
    told = work.call("failures", logs)
    assert told.code == 1
    assert "a link is in the way" in told.output


def test_a_job_that_fails_names_its_items(work):
    result = raising(work, errorThreshold=5)
    assert result.code == 1, result
    # Either of the two mini-batches may have been the one too many, or both: the file has them as
    # they failed, the summary as they lie in the input.
    first = min(json.loads(line)["item"] for line in work.log_text("failures.jsonl").splitlines())
    assert "Failed, to begin with:\n  " + first in result.output
    headline = result.output[result.output.index("Failed (") :].splitlines()[0]
    assert re.search(r"\(mini-batch [12], \S+/0000[12]0.txt and 9 more, node 0, log ", headline)
    assert re.search(r"first in mini-batch [12] \(\S+.txt and 9 more\), node 0", result.output)
    progress = work.log_text("job_error.txt")
    assert re.search(r"first in mini-batch [12] \(\S+.txt and 9 more\), node 0", progress)


@pytest.mark.parametrize(
    "fields",
    [
        {"errorThreshold": -1},
        {"allowedFailedCount": 2},
        {"allowedFailedPercent": 100},
        {"arguments": ["--error_threshold", "-1"]},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_losses_within_a_threshold_that_was_written_are_no_failure(work, fields):
    result = raising(work, **fields)
    assert result.code == 0, result
    assert "Finished with losses: 20 of 120 items have no row" in result.output


def test_allow_failures(work):
    result = raising(work, "--allow-failures")
    assert result.code == 0, result
    assert "Finished with losses: 20 of 120 items have no row" in result.output
