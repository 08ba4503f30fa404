"""Folders and processes that go away, or stand still, while a job runs: it ends with its cause."""

import shutil
import signal

import pytest
from support import processes
from support.workspace import ECHO

# Beside the first three, each waits for the test.
HELD = ECHO.replace("from steps import note", "from steps import note, wait_for").replace(
    "    return", '    if context.minibatch_index >= 3:\n        wait_for("go")\n    return'
)


def start(work, **fields):
    rows = work.files(8)
    work.script(HELD)
    work.job(**fields)
    command = work.start_job()
    command.wait_for(lambda: len(work.noted("calls")) >= 5, "the job runs")
    return rows, command


def test_a_folder_that_was_moved_away_and_is_put_back(work):
    rows, command = start(work)
    elsewhere = work.root / "elsewhere"
    work.out.rename(elsewhere)
    result = command.wait()
    assert result.code == 1, result
    assert result.output.count("epochs/000001.log is not there any more") == 1, result
    assert not (work.out / "job" / "state").exists()  # nothing was begun anew
    shutil.rmtree(work.out, ignore_errors=True)
    elsewhere.rename(work.out)
    work.make("go")
    result = work.run("--resume")
    assert result.code == 0, result
    assert work.rows() == rows


@pytest.mark.parametrize("what", ["state", "state/epochs/000001.log"])
def test_a_ledger_that_is_removed_under_way(work, what):
    _, command = start(work)
    path = work.out / "job" / what
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    result = command.wait()
    assert result.code == 1, result
    assert "epochs/000001.log is not there any more" in result.output
    assert not work.output.exists()


def test_a_state_folder_that_goes_with_the_coordinator(work):
    """Its successor would find nothing, and begin an empty run."""
    _, command = start(work)
    work.out.rename(work.root / "elsewhere")
    processes.running("coordinator")[0].kill()
    result = command.wait()
    assert result.code == 1, result
    assert f"the state folder {work.out}/job/state was removed or moved" in result.output


@pytest.mark.parametrize("flags", [(), ("--resume",), ("--overwrite",)])
def test_a_ledger_that_is_removed_between_runs(work, flags):
    _, command = start(work)
    command.send(signal.SIGKILL)
    assert command.wait().code == -signal.SIGKILL
    work.make("go")
    calls = len(work.noted("calls"))
    (work.out / "job/state/epochs/000001.log").unlink()
    result = work.run(*flags)
    assert result.code == 2, result
    assert "epochs/000001.log is missing" in result.output
    assert "remove the state folder" in result.output
    assert len(work.noted("calls")) == calls


def test_a_summary_whose_folder_is_removed(work):
    _, command = start(work, output={"volume": "out", "action": "SummaryOnly"})
    shutil.rmtree(work.output.parent)
    work.make("go")
    result = command.wait()
    assert result.code == 1, result
    assert f"the output folder {work.output.parent} is not there any more" in result.output


def test_the_only_agent_is_stopped(work):
    rows, command = start(work, progressUpdateTimeoutSeconds=20)
    processes.running("agent")[0].kill(signal.SIGSTOP)
    result = command.wait()
    assert result.code == 1, result
    assert "NoProgress" in result.output
    assert "node 0 has said nothing" in result.output
    work.make("go")
    result = work.run("--resume")
    assert result.code == 0, result
    assert work.rows() == rows
