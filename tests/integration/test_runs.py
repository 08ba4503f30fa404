"""Runs that go on: ps, attach, stop, and run --detach."""

import json
import os
import signal
import stat

import pytest
from support import processes
from support.command import PROGRAM
from support.processes import expect_nothing_running
from support.terminal import Terminal
from support.workspace import drains
from waits import wait_until

# Each mini-batch waits for the test, but for the first.
HOLDS = """
import os
import time

def wait_for(name):
    while not os.path.exists(os.path.join(os.environ["TEST_FOLDER"], name)):
        time.sleep(0.005)

def run(mini_batch):
    open(os.environ["TEST_FOLDER"] + "/begun", "a").close()
    if not mini_batch[0].endswith("000000.txt"):
        wait_for("go")
    return [open(path).read() for path in mini_batch]
"""


@pytest.fixture
def words(work):
    (work.root / "score.py").write_text(HOLDS)
    work.files(6)
    words = ["run", "score.py", "--input", "data", "--output", "out", "--mini-batch-size", "1"]
    return [*words, "--processes", "1"]


def only(work, *words):
    """Calls a command beside a run that goes on; returns it ended."""
    return work.start(*words).wait_only(60)


def runs(work):
    result = only(work, "ps", "--json")
    assert result.code == 0, result
    return json.loads(result.output)["runs"]


def rows(work):
    return (work.root / "out/parallel_run_step.txt").read_text().splitlines()


def detached(work, words):
    result = only(work, *words, "--detach")
    assert result.code == 0, result
    assert "the run goes on in the background, as process " in result.output
    return result


def test_a_run_in_the_background_is_found_attached_to_and_left(work, words):
    result = detached(work, words)
    assert "6 input files" in result.output
    (run,) = runs(work)
    assert run["output"] == str(work.root / "out")
    assert f"as process {run['pid']}\n" in result.output
    assert os.getsid(run["pid"]) == run["pid"]
    assert run["command"][1:] == words
    listed = only(work, "ps")
    assert str(run["pid"]) in listed.output
    assert str(work.root / "out") in listed.output

    attached = work.start("attach", "out")
    attached.wait_for_text(" of 6 mini-batches")
    attached.send(signal.SIGINT)
    attached.wait_only(60)
    assert len(runs(work)) == 1

    attached = work.start("attach", "out")
    attached.wait_for_text(" of 6 mini-batches")
    work.make("go")
    result = attached.wait_only(60)
    assert result.code == 0, result
    assert "Succeeded (Complete): all 6 mini-batches succeeded" in result.output
    expect_nothing_running()
    assert rows(work) == [f"row {index}" for index in range(6)]
    assert runs(work) == []
    said = (work.root / "out/state/said.txt").read_text()
    assert "6 input files" in said
    assert "Succeeded (Complete)" in said


def test_what_cannot_start_is_told_and_is_not_there(work, words):
    (work.root / "score.py").write_text("import not_there\n\ndef run(b):\n    return b\n")
    result = work.call(*words, "--detach")
    assert result.code == 2, result
    assert "nothing was started" in result.output
    assert "No module named 'not_there'" in result.output
    assert "background" not in result.output
    assert not (work.root / "out").exists()


def test_stop_lets_the_running_mini_batch_finish(work, words):
    # The first one waits too: after a quick one several are given to a process at once.
    held = HOLDS.replace('not mini_batch[0].endswith("000000.txt")', "True")
    assert held != HOLDS
    (work.root / "score.py").write_text(held)
    detached(work, words)
    wait_until(lambda: (work.root / "begun").exists(), "run() begins")
    stop = work.start("stop", "out")
    wait_until(lambda: drains(work.root / "out/logs") > 0, "the node hears of it")
    assert runs(work)[0]["stopping"]
    work.make("go")
    result = stop.wait_only(60)
    assert result.code == 0, result
    assert "Stopped before the end" in result.output
    assert "--resume" in result.output
    expect_nothing_running()
    assert work.call(*words, "--resume").code == 0
    assert rows(work) == [f"row {index}" for index in range(6)]


def test_stop_has_a_limit_and_now_does_not_wait(work, words):
    command = work.start(*words)
    wait_until(lambda: (work.root / "begun").exists(), "run() begins")
    wait_until(lambda: runs(work) and "of 6" in runs(work)[0]["line"], "it is found")
    result = only(work, "stop", "out", "--wait", "1")
    assert result.code == 1, result
    assert "parallelrun stop --now out ends it at once" in result.output
    assert not command.ended
    result = only(work, "stop", "out", "--now")
    assert result.code == 0, result
    assert command.wait().code == 143
    assert runs(work) == []


def test_a_run_that_was_killed_is_no_run(work, words):
    command = work.start(*words)
    wait_until(lambda: (work.root / "begun").exists(), "run() begins")
    (run,) = runs(work)
    attached = work.start("attach", "out")
    attached.wait_for_text("Ctrl-C leaves the run alone")
    os.kill(run["pid"], signal.SIGKILL)
    command.wait_only()
    result = attached.wait_only(60)
    assert result.code == 1, result
    assert "it was killed" in result.output
    expect_nothing_running()
    folder = work.runtime / "parallelrun"
    assert len(os.listdir(folder)) == 1
    assert runs(work) == []
    assert os.listdir(folder) == []
    work.make("go")
    assert work.call(*words, "--resume").code == 0


def test_a_run_whose_output_is_one_file_is_found_by_it(work, words):
    words[words.index("out")] = "rows.txt"
    result = detached(work, words)
    assert f"parallelrun stop {work.root}/rows.txt\n" in result.output
    assert runs(work)[0]["output"] == str(work.root / "rows.txt")
    result = only(work, "stop", "rows.txt", "--now")
    assert result.code == 0, result
    expect_nothing_running()


def test_nobody_works_there(work, words):
    work.make("go")
    assert work.call(*words).code == 0
    for command in ("attach", "stop"):
        result = work.call(command, "out")
        assert result.code == 2, result
        assert "no run of this user works on out now" in result.output
        result = work.call(command, "elsewhere")
        assert result.code == 2, result
        assert "elsewhere does not exist here" in result.output


def test_the_sockets_are_this_users_alone(work, words):
    command = work.start(*words)
    wait_until(lambda: (work.root / "begun").exists(), "run() begins")
    folder = work.runtime / "parallelrun"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert len(os.listdir(folder)) == 1
    work.make("go")
    assert command.wait().code == 0
    assert os.listdir(folder) == []


def test_a_folder_that_others_may_enter_is_not_used(work, words):
    folder = work.runtime / "parallelrun"
    folder.mkdir()
    folder.chmod(0o777)
    work.make("go")
    result = work.call(*words)
    assert result.code == 0, result
    assert "is not a folder of this user alone" in result.output
    assert os.listdir(folder) == []


def test_the_terminal_that_started_it_may_be_closed(work, words):
    session = Terminal([PROGRAM, *words, "--detach"], work.root, work.environment)
    session.expect("the run goes on in the background")
    assert session.wait() == 0
    session.close()
    assert len(processes.running("command")) == 1
    work.make("go")
    expect_nothing_running(60)
    assert rows(work) == [f"row {index}" for index in range(6)]
