"""A job ends only when its processes have run shutdown(): a script may write its results there."""

import re

import pytest

SCRIPT = """
from steps import note, there

gathered = []

def run(mini_batch):
    note("calls")
    gathered.extend(open(path).read() for path in mini_batch)
    return mini_batch

def shutdown():
    if not there("mended"):
        raise OSError("no such table")
    note("written", *gathered)
"""


def test_a_shutdown_that_raises_fails_a_job_whose_script_writes_the_results(work):
    summary_only = ["--set", "spec.output.action=SummaryOnly"]
    work.files(4)
    work.script(SCRIPT)
    work.job(processCountPerNode=1)
    result = work.run(*summary_only)
    assert result.code == 1, result
    assert "Failed (ShutdownFailed): shutdown() did not end well in 1 process" in result.output
    assert "OSError: no such table (score.py:13)" in result.output
    assert not work.noted("written")
    calls = len(work.noted("calls"))
    work.make("mended")
    result = work.run("--retry-failed", *summary_only)
    assert result.code == 0, result
    assert len(work.noted("calls")) == 2 * calls  # all that this process had gathered
    (written,) = work.noted("written")
    assert all(f"row {index}" in written for index in range(4))


def test_with_an_appended_file_all_rows_are_there(work):
    work.files(4)
    work.script(SCRIPT)
    work.job(processCountPerNode=1)
    result = work.run()
    assert result.code == 0, result
    assert "Succeeded (ShutdownFailed)" in result.output
    assert len(work.rows()) == 4


def test_a_shutdown_that_hangs_is_cut_off(work):
    work.files(2)
    work.script("import time\ndef run(b): return b\ndef shutdown(): time.sleep(3600)\n")
    work.job(processCountPerNode=1, shutdownTimeoutSeconds=1)
    result = work.run("--set", "spec.output.action=SummaryOnly")
    assert result.code == 1, result
    assert re.search(r"shutdown\(\) was cut off after \d", result.output)
    assert "raise spec.shutdownTimeoutSeconds" in result.output


AT_EXIT = """
import atexit
from steps import note, there

gathered = []

def run(mini_batch):
    gathered.extend(open(path).read() for path in mini_batch)
    return mini_batch

@atexit.register
def write():
    if there("hangs"):
        atexit.no_such_name if there("raises") else __import__("signal").pause()
    note("written", *gathered)
"""
LATE = AT_EXIT.replace("@atexit.register\n", "").replace(
    "    return", "    if len(gathered) == 1:\n        atexit.register(write)\n    return"
)


@pytest.mark.parametrize("script", [AT_EXIT, LATE], ids=["as it is imported", "in run()"])
def test_what_is_written_at_exit_is_there_at_the_end(work, script):
    summary_only = ["--set", "spec.output.action=SummaryOnly"]
    work.files(4)
    work.script(script)
    work.job(processCountPerNode=1, shutdownTimeoutSeconds=1)
    work.make("hangs")
    result = work.run(*summary_only)
    assert result.code == 1, result
    assert "shutdown() was cut off" in result.output
    assert "what the script gave to atexit" in result.output
    work.make("raises")
    result = work.run("--retry-failed", *summary_only)
    assert result.code == 1, result
    assert "ShutdownFailed" in result.output
    assert "no_such_name" in result.output
    (work.root / "hangs").unlink()
    result = work.run("--retry-failed", *summary_only)
    assert result.code == 0, result
    (written,) = work.noted("written")
    assert all(f"row {index}" in written for index in range(4))
