"""Ctrl-C and its kin; two commands on one state folder."""

import os
import signal
import sys

import pytest
from support import processes
from support.command import PROGRAM
from support.workspace import drains

# More than two processes can have been given when a drain begins: what they have, they finish.
COUNT = 600

SCRIPT = """
from steps import note, wait_for

def run(mini_batch, context):
    note("started", context.minibatch_index)
    if context.minibatch_index >= 20:
        note("held", context.minibatch_index)
        wait_for("go")
    note("returned", context.minibatch_index)
    return [open(path).read() for path in mini_batch]
"""


@pytest.fixture
def held(work):
    """A job in the middle, held there until the test says go."""
    work.expected = work.files(COUNT)
    work.script(SCRIPT)
    work.job()
    work.command = work.start_job()
    work.command.wait_for(lambda: work.noted("held"), "a process is held")
    return work


def wait_for_drain(held):
    held.command.wait_for_text("Ctrl-C again stops at once")
    held.command.wait_for(lambda: drains(held.logs), "the node has heard of it")


@pytest.mark.parametrize("signo", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_drain_and_resume(held, signo):
    held.command.send(signo)
    wait_for_drain(held)
    held.make("go")
    result = held.command.wait()
    assert result.code == 128 + signo, result  # as a shell says it
    assert "To continue: " in result.output
    finished = held.noted("returned")
    assert f"{len(finished)} succeeded" in result.output
    result = held.run("--resume")
    assert result.code == 0, result
    assert held.rows() == held.expected
    assert sorted(map(int, held.noted("started"))) == list(range(COUNT))


@pytest.mark.parametrize("signo", [signal.SIGHUP, signal.SIGINT, signal.SIGTERM])
def test_what_is_ignored_for_it_does_not_end_it(work, signo):
    """As nohup has SIGHUP ignored, and a shell SIGINT of what runs in a script's background."""
    rows = work.files(COUNT)
    work.script(SCRIPT)
    work.job()
    ignoring = "import os, signal, sys; signal.signal(int(sys.argv[1]), signal.SIG_IGN); "
    ignoring += "os.execv(sys.argv[2], sys.argv[2:])"
    words = ["-c", ignoring, int(signo), PROGRAM, "run", work.job_file.name]
    command = work.start(*words, program=sys.executable)
    command.wait_for(lambda: work.noted("held"), "a process is held")
    command.send(signo)
    work.make("go")
    result = command.wait()
    assert result.code == 0, result
    assert work.rows() == rows


def test_ctrl_c_on_a_terminal_reaches_every_process(held):
    """A terminal sends SIGINT to the whole foreground group."""
    os.killpg(held.command.pid, signal.SIGINT)
    wait_for_drain(held)
    held.make("go")
    result = held.command.wait()
    assert result.code == 130, result
    assert held.run("--resume").code == 0
    assert held.rows() == held.expected
    assert sorted(map(int, held.noted("started"))) == list(range(COUNT))


def test_second_ctrl_c_stops_at_once(held):
    held.command.wait_for_text(" mini-batches, ")  # from the first word of the coordinator on
    held.command.send(signal.SIGINT)
    held.command.wait_for_text("Ctrl-C again stops at once")
    held.command.send(signal.SIGINT)
    result = held.command.wait()  # run() itself waits for ever
    assert result.code == 130, result
    assert "stopping at once" in result.output
    assert "To continue: " in result.output
    assert list(held.output.parent.iterdir()) == [], "nothing half-written in the output folder"
    held.make("go")
    result = held.run("--resume")
    assert result.code == 0, result
    assert held.rows() == held.expected


def test_ctrl_c_while_the_script_starts(work):
    work.files(5)
    work.script(
        "from steps import note, wait_for\n\n"
        "def init():\n    note('init', 1)\n    wait_for('go')\n\n"
        "def run(b):\n    return [open(p).read() for p in b]\n"
    )
    work.job()
    command = work.start_job()
    command.wait_for(lambda: len(work.noted("init")) == 2, "init() runs")
    command.send(signal.SIGINT)
    result = command.wait()  # init() itself waits for ever
    assert result.code == 130, result
    work.make("go")
    result = work.run("--resume")
    assert result.code == 0, result
    assert work.rows() == [f"row {index}" for index in range(5)]


@pytest.mark.parametrize(
    ("signo", "words"),
    [
        (signal.SIGINT, []),
        (signal.SIGTERM, []),
        (signal.SIGHUP, []),
        (signal.SIGINT, ["--dry-run"]),
    ],
)
def test_a_signal_before_anything_was_started(work, signo, words):
    """What it has made until then is gone, too: the fixture looks at TMPDIR."""
    rows = work.files(3)
    work.script()
    os.mkfifo(work.root / "never")
    python = work.root / "python"  # it is asked about the script, and never answers
    python.write_text(f"#!/bin/sh\necho asked > {work.root}/asked\nexec cat {work.root}/never\n")
    python.chmod(0o755)
    work.job(environment={"python": str(python)})
    command = work.start_job(*words)
    command.wait_for(lambda: work.noted("asked"), "Python is asked")
    command.send(signo)
    result = command.wait()
    assert result.code == 128 + signo, result
    assert "Ctrl-C again stops at once" in result.output
    assert "stopped before anything was started" in result.output
    assert list(work.temporary.iterdir()) == []
    assert not work.out.exists()
    work.job()
    assert work.run().code == 0
    assert work.rows() == rows


def test_second_command_on_the_same_job(held):
    result = held.start_job().wait_only()
    assert result.code == 2, result
    assert "another parallelrun works on this job" in result.output
    assert str(held.command.pid) in result.output
    for option in ("--resume", "--overwrite"):
        assert held.start_job(option).wait_only().code == 2
    assert processes.running("coordinator")
    held.make("go")
    result = held.command.wait()
    assert result.code == 0, result
    assert held.rows() == held.expected


def test_terminal_shows_a_live_line(work):
    rows = work.files(30)
    work.script(SCRIPT)
    work.job()
    command = work.start_job(terminal=True)
    command.wait_for_text("of 30 mini-batches, ")
    command.wait_for_text(", 1 node")
    work.make("go")
    result = command.wait()
    assert result.code == 0, result
    assert "\r\x1b[K" in result.output
    assert work.rows() == rows
