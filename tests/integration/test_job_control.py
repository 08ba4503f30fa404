"""Ctrl-Z and `fg`, in a shell with job control on a terminal of its own."""

import re
import signal
import sys
from pathlib import Path

import pytest
from support import processes
from support.command import PROGRAM
from support.processes import expect_nothing_running
from support.terminal import Terminal
from waits import wait_until

# Gives the shell the terminal, which it needs for job control.
SHELL = [
    sys.executable,
    "-c",
    """
import fcntl, os, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])
""",
]

SCRIPT = """
import os
import time
from steps import note, there

def run(mini_batch, context):
    if context.minibatch_index == 0:
        note("pid", os.getpid())
        while not there("go"):
            note("lives", 1)
            time.sleep(0.01)
    return [open(path).read() for path in mini_batch]
"""

LIMIT_S = 3  # of one call of run()


def state_of(pid):
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]


@pytest.fixture
def shell(work):
    work.expected = work.files(40)
    work.script(SCRIPT)
    work.job(runInvocationTimeoutSeconds=LIMIT_S, runMaxTry=1)
    terminal = Terminal(SHELL, work.root, {**work.environment, "TERM": "xterm", "PS1": "$ "})
    terminal.expect("$ ")
    yield terminal
    terminal.close()


def start(shell, work, words=""):
    shell.type(f"{PROGRAM} run job.yaml --progress plain {words}")
    wait_until(lambda: work.noted("pid"), lambda: shell.output)
    return int(work.noted("pid")[0])


def stop(shell, work, pid):
    shell.press("\x1a")
    shell.expect("Stopped")
    wait_until(lambda: state_of(pid) == "T", lambda: f"{state_of(pid)}\n{shell.output}")
    return len(work.noted("lives"))


def go_on(shell):
    shell.type('fg; echo "status"=$?')


def end(shell):
    """The exit status of the run."""
    shell.expect("status=")
    shell.type("exit 0")
    shell.wait()
    expect_nothing_running()
    return int(re.findall(r"status=(\d+)", shell.output)[-1])


def pass_by(seconds):
    """Real time, which is what limits are about."""
    signal.sigtimedwait([], seconds)


def test_ctrl_z_stops_the_workers_and_fg_goes_on(shell, work):
    pid = start(shell, work)
    lives = stop(shell, work, pid)
    pass_by(LIMIT_S + 1)
    assert len(work.noted("lives")) == lives
    go_on(shell)
    wait_until(lambda: len(work.noted("lives")) > lives, lambda: shell.output)
    work.make("go")
    # Nothing has expired: one attempt of each, and the process that was stopped went on.
    shell.expect("Succeeded (Complete)")
    assert end(shell) == 0
    assert work.rows() == work.expected
    assert work.noted("pid") == [str(pid)]


def test_leases_do_not_expire_while_it_is_stopped(shell, work):
    work.job(runInvocationTimeoutSeconds=60, runMaxTry=1, nodeCount=2)
    pid = start(shell, work, "--nodes 2")
    stop(shell, work, pid)
    pass_by(12)  # a lease takes 10 s
    go_on(shell)
    work.make("go")
    shell.expect("Succeeded (Complete)")
    assert end(shell) == 0
    assert work.rows() == work.expected
    assert work.noted("pid") == [str(pid)]


def test_a_time_out_still_counts_what_ran(shell, work):
    pid = start(shell, work)
    stop(shell, work, pid)
    go_on(shell)
    shell.expect("run() took longer than 3.0s")
    assert end(shell) == 3


def test_twice_and_in_the_background(shell, work):
    pid = start(shell, work)
    for _ in range(2):
        lives = stop(shell, work, pid)
        go_on(shell)
        wait_until(lambda n=lives: len(work.noted("lives")) > n, lambda: shell.output)
    lives = stop(shell, work, pid)
    shell.type("bg")
    wait_until(lambda: len(work.noted("lives")) > lives, lambda: shell.output)
    work.make("go")
    shell.expect("Succeeded (Complete)")
    shell.type('wait %1; echo "status"=$?')
    assert end(shell) == 0
    assert work.rows() == work.expected


@pytest.mark.parametrize("signo", [signal.SIGTERM, signal.SIGKILL])
def test_what_is_stopped_can_be_ended(shell, work, signo):
    pid = start(shell, work)
    stop(shell, work, pid)
    shell.type(f"kill -{signo.name[3:]} %1; kill -CONT %1")
    work.make("go")
    wait_until(
        lambda: all(process.role == "other" for process in processes.running()),
        lambda: f"{processes.running()}\n{shell.output}",
    )
    shell.type("exit 0")
    shell.wait()
    assert work.run("--overwrite").code == 0
