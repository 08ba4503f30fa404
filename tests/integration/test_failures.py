"""Scripts that fail while they run: retries, thresholds, time-outs, processes that die."""

import re

import pytest
from support.refusal import expect_no_output
from support.workspace import ECHO, rows_without

# What every test's run() does with the mini-batches that it does not spoil.
HEAD = """
import os, signal, subprocess, sys, time, ctypes
from steps import FOLDER, note, there, wait_for

def first_time(index):
    if there(f"spoilt {index}"):
        return False
    note(f"spoilt {index}", "once")
    return True

def run(mini_batch, context):
    index = context.minibatch_index
    note("calls", index, os.getpid())
    SPOIL
    return [f"row {index}"]
"""


def run_job(work, spoil, count=40, **fields):
    work.files(count)
    work.script(HEAD.replace("SPOIL", spoil))
    work.job(**fields)
    return work.run()


def test_within_the_thresholds(work):
    result = run_job(
        work, "if index in (3, 17): raise ValueError(f'item {index} is odd')", errorThreshold=2
    )
    assert result.code == 0, result
    assert "CompletedWithFailures" in result.output
    assert "2 of 40 items have no row" in result.output
    assert "38 succeeded, 2 failed, of 40" in result.output
    assert re.search(r"item (3|17) is odd", result.output)  # the same error, told as it was first
    assert work.rows() == rows_without(40, 3, 17)
    tried = [line.split()[0] for line in work.noted("calls")]
    assert tried.count("3") == tried.count("17") == 3
    log = re.search(r"see (\S+)", result.output).group(1)
    with open(log) as text:
        assert "ValueError: item" in text.read()


def test_error_threshold_exceeded(work):
    result = run_job(
        work, "if index in (3, 17): raise ValueError('this one is odd')", errorThreshold=1
    )
    assert result.code == 1, result
    assert "Failed (" in result.output
    assert "this one is odd" in result.output
    assert "score.py:" in result.output
    expect_no_output(work)


def test_allowed_failed_count(work):
    spoil = "if index in (3, 17): raise ValueError('odd')"
    assert run_job(work, spoil, allowedFailedCount=2).code == 0
    before = work.output.read_bytes()
    result = work.run("--overwrite", "--set", "spec.allowedFailedCount=1")
    assert result.code == 1, result
    # What was there is replaced by a whole output, or not at all.
    assert work.output.read_bytes() == before
    assert work.beside_index() == [work.output.name]


def test_nothing_succeeds(work):
    result = run_job(work, "raise ValueError('never')", count=5)
    assert result.code == 1, result
    assert "NothingSucceeded" in result.output
    assert "never" in result.output
    expect_no_output(work)


def test_resume_tries_the_failed_ones_again(work):
    spoil = "if index % 4 == 1 and not there('mended'): raise ValueError('odd')"
    result = run_job(work, spoil, errorThreshold=5, processCountPerNode=1)
    assert result.code == 1, result
    kept = int(re.search(r"(\d+) succeeded, ", result.output).group(1))
    before = len(work.noted("calls"))
    work.make("mended")
    result = work.run("--resume")
    assert result.code == 0, result
    assert work.rows() == rows_without(40)
    # What had succeeded is not run again; what was on its way when the job failed may be.
    assert len(work.noted("calls")) - before == 40 - kept


@pytest.mark.parametrize("value", ["None", "7", "'text'"])
def test_return_value_that_is_no_list(work, value):
    result = run_job(work, f"return {value}", count=3, runMaxTry=1)
    assert result.code == 1, result
    assert "BadReturn" in result.output
    assert "score.py:" in result.output


def test_too_few_rows(work):
    result = run_job(work, "if index == 2: return []", count=6, errorThreshold=0)
    assert result.code == 1, result
    assert "1 item has failed (1 of them got no element from run())" in result.output
    tried = [line.split()[0] for line in work.noted("calls")]
    assert tried.count("2") == 1  # what it returned is kept
    result = work.run("--overwrite", "--set", "spec.errorThreshold=-1")
    assert result.code == 0, result
    assert work.rows() == rows_without(6, 2)


def test_time_out_of_run(work):
    # The other ones have many tries: a machine that is busy may take a second for one, too.
    result = run_job(
        work,
        "if index == 5 and first_time(index): time.sleep(1000)",
        runInvocationTimeoutSeconds=1,
        runMaxTry=100,
    )
    assert result.code == 0, result
    assert work.rows() == rows_without(40)
    tried = [line.split()[1] for line in work.noted("calls") if line.startswith("5 ")]
    assert len(tried) == len(set(tried)) >= 2  # another process


def test_time_out_of_every_try(work):
    spoil = "if index == 0: time.sleep(1000)"
    limits = {"runInvocationTimeoutSeconds": 1, "runMaxTry": 5, "errorThreshold": 0}
    result = run_job(work, spoil, count=1, **limits)
    assert result.code == 1, result
    assert "runInvocationTimeoutSeconds" in result.output
    assert len(work.noted("calls")) == 5
    # Where it hung is said, and the log that is named is there and has all stacks. A process that
    # has to wait for a processor when it is asked may miss that, but not each time.
    line = 1 + HEAD.replace("SPOIL", spoil).splitlines().index("    " + spoil)
    stack = re.escape(f"Its Python stack: run score.py:{line} (score.py:{line})")
    log = re.search(stack + r".*?see (\S+)", result.output, re.S)
    assert log, result
    with open(log[1]) as text:
        # The node's copy of the code is gone.
        assert f'  File "score.py", line {line} in run' in text.read()
    expect_no_output(work)


@pytest.mark.parametrize("spoil", ["return undefined", "import no_such_module", "return None"])
def test_an_error_of_the_program_ends_the_job_early(work, spoil):
    # It takes an error in each process, so both begin before one of them goes on; and what comes
    # after half of the 300 calls would never end.
    held = """def calls():
        return open(os.path.join(FOLDER, "calls")).readlines()
    while len({line.split()[1] for line in calls()}) < 2:
        time.sleep(0.01)
    if len(calls()) > 150:
        wait_for("never")
    """
    result = run_job(work, held + spoil, count=100)
    assert result.code == 1, result
    assert "Failed (ScriptUnusable)" in result.output
    assert re.search(r"undefined|no_such_module|run\(\) returned None", result.output)


def test_an_error_of_the_program_that_few_items_reach_loses_no_others(work):
    result = run_job(work, "if index == 7: import no_such_module", errorThreshold=1)
    assert result.code == 0, result
    assert work.rows() == rows_without(40, 7)
    assert [line.split()[0] for line in work.noted("calls")].count("7") == 3


def test_a_module_that_is_missing_is_looked_for_once_by_each_process(work):
    work.files(3)
    # An import that can be seen is told before anything is started.
    hidden = "from importlib import import_module\nimport_module('no_such_module')\n"
    work.script("from steps import note\nnote('imports', 1)\n" + hidden + ECHO)
    work.job()
    result = work.run()
    assert result.code == 1, result
    assert "No module named 'no_such_module'" in result.output
    assert "InitFailed" in result.output
    assert 1 <= len(work.noted("imports")) <= 2


def test_a_process_that_fails_to_start_is_told_of(work):
    work.files(8)
    script = """
from steps import there, note

def init():
    if not there("failed once"):
        note("failed once", 1)
        raise OSError("no GPU is left")
"""
    work.script(script + ECHO)
    work.job(processCountPerNode=1)
    result = work.run()
    assert result.code == 0, result
    assert (
        "1 worker process failed to start; the last one: OSError: no GPU is left" in result.output
    )


@pytest.mark.parametrize(
    ("way", "words"),
    [
        ("os._exit(3)", "exited with status 3"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "signal 9 (SIGKILL). The"),
        ("ctypes.string_at(0)", "signal 11"),
        ("sys.exit(5)", "SystemExit"),
    ],
    ids=["exit", "kill", "segfault", "sys.exit"],
)
def test_process_that_ends_in_run(work, way, words):
    result = run_job(work, f"if index in (5, 6) and first_time(index): {way}")
    assert result.code == 0, result
    assert work.rows() == rows_without(40)
    assert words in result.output


def test_process_that_ends_at_every_try(work):
    result = run_job(work, "if index == 5: os._exit(3)", errorThreshold=1)
    assert result.code == 0, result
    assert "CompletedWithFailures" in result.output
    assert work.rows() == rows_without(40, 5)
    assert [line.split()[0] for line in work.noted("calls")].count("5") == 3


def test_grandchildren_are_ended(work):
    spoil = """if index in (0, 1, 2):
        command = [sys.executable, "-c", "import time; time.sleep(300)"]
        for session in (True, False):
            child = subprocess.Popen(command, start_new_session=session)
            note("children", child.pid)
        # One without a parent, as daemons are.
        subprocess.run(["sh", "-c", "setsid sleep 300 & echo $! >&2"])"""
    result = run_job(work, spoil)
    assert result.code == 0, result  # work.run checks that nothing runs
    assert len(work.noted("children")) == 6


def test_script_that_forks_and_closes_nothing(work):
    """A child that outlives run() holds no descriptor of ours that keeps the job from ending."""
    result = run_job(work, "if index == 3 and os.fork() == 0: time.sleep(300)")
    assert result.code == 0, result
    assert work.rows() == rows_without(40)
