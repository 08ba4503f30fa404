"""kill -9 of each of the job's processes: every row is there, once, in order."""

import shutil
import signal

import pytest
from support import processes
from support.processes import expect_nothing_running
from waits import wait_until

COUNT = 300

# Some mini-batches wait until the test has killed what it wants to kill, so that it is never late.
SCRIPT = """
import os
from steps import note, wait_for

def run(mini_batch, context):
    index = context.minibatch_index
    note("started", index, os.getpid())
    if index >= 150:
        note("held", index)
        wait_for("go")
    note("returned", index)
    return [f"{open(path).read()} {line}" for path in mini_batch for line in range(3)]
"""


@pytest.fixture
def job(work):
    rows = work.files(COUNT)
    work.expected = [f"{row} {line}" for row in rows for line in range(3)]
    work.script(SCRIPT)
    work.job()
    return work


def start_and_reach_the_middle(work, *words):
    command = work.start_job(*words)
    command.wait_for(lambda: len(work.noted("held")) >= 2, "processes are held")
    command.wait_for(lambda: len(work.noted("returned")) > 20, "some are done")
    return command


def victim(role):
    return min(processes.running(role), key=lambda process: process.pid)


@pytest.mark.parametrize("role", ["coordinator", "agent", "guardian", "worker"])
def test_kill(job, role):
    command = start_and_reach_the_middle(job, "--nodes", "2")
    killed = victim(role)
    killed.kill()
    wait_until(lambda: killed.pid not in [p.pid for p in processes.running()], "it is gone")
    job.make("go")
    result = command.wait()
    assert result.code == 0, result
    assert job.rows() == job.expected
    assert f"{COUNT} succeeded, 0 failed" in result.output


@pytest.mark.parametrize("role", ["coordinator", "agent", "worker"])
def test_kill_on_the_only_node_while_it_is_busy(job, role):
    """What was killed is replaced while run() is still going on."""
    command = start_and_reach_the_middle(job)
    known = {process.pid for process in processes.running(role)}
    victim(role).kill()
    command.wait_for(
        lambda: [p for p in processes.running(role) if p.pid not in known], f"a new {role} runs"
    )
    job.make("go")
    result = command.wait()
    assert result.code == 0, result
    assert job.rows() == job.expected


def test_kill_the_coordinator_three_times(job):
    command = start_and_reach_the_middle(job, "--nodes", "2")
    epochs = job.out / "job" / "state" / "epochs"
    for number in range(3):
        victim("coordinator").kill()
        command.wait_for(
            lambda wanted=number + 2: len(list(epochs.iterdir())) == wanted,
            "the next coordinator has claimed its epoch",
        )
    job.make("go")
    result = command.wait()
    assert result.code == 0, result
    assert job.rows() == job.expected
    # Each of the four had reserved room behind its log; those that were killed could not free it.
    logs = list(epochs.iterdir())
    assert len(logs) == 4
    assert sum(log.stat().st_blocks * 512 for log in logs) < 1 << 20


def test_a_coordinator_that_is_replaced_loses_no_work(job):
    """Results and running mini-batches are offered to the next epoch, not run again."""
    command = start_and_reach_the_middle(job)
    victim("coordinator").kill()
    job.make("go")
    result = command.wait()
    assert result.code == 0, result
    assert job.rows() == job.expected
    started = [line.split()[0] for line in job.noted("started")]
    assert sorted(map(int, started)) == list(range(COUNT))


def test_kill_the_command(job):
    command = start_and_reach_the_middle(job, "--nodes", "2")
    command.send(9)
    command.wait_only()
    expect_nothing_running()
    assert not job.output.exists()
    job.make("go")
    result = job.run("--resume", "--nodes", "2")
    assert result.code == 0, result
    assert job.rows() == job.expected
    assert job.beside_index() == [job.output.name]


# What each worker process has started, beside itself.
STARTS = """
import os, subprocess, sys
from steps import note, wait_for

def run(mini_batch):
    sleep = [sys.executable, "-c", "import time; time.sleep(1000)"]
    note("started", subprocess.Popen(sleep).pid)
    note("started", subprocess.Popen(sleep, start_new_session=True).pid)
    # One without a parent, as daemons are.
    subprocess.run(["sh", "-c", "setsid sleep 1000 & echo $!"], stdout=subprocess.DEVNULL)
    if os.fork() == 0:
        wait_for("never")
    note("held", mini_batch[0])
    wait_for("never")
"""


@pytest.mark.parametrize(
    ("role", "before"),
    [
        ("command", signal.SIGCONT),  # nothing
        ("command", signal.SIGTSTP),  # all below it is stopped too
        ("guardian", signal.SIGSTOP),
        ("agent", signal.SIGSTOP),
    ],
)
def test_what_the_script_has_started_ends_with_the_command(work, role, before):
    work.files(2)
    work.script(STARTS)
    work.job()
    command = work.start_job()
    command.wait_for(lambda: len(work.noted("held")) == 2, "both processes are held")
    victim(role).kill(before)
    command.send(signal.SIGKILL)
    command.wait_only()
    expect_nothing_running()
    for folder in work.temporary.glob("parallelrun-*"):  # as the next run would
        shutil.rmtree(folder)


def test_kill_everything(job):
    """As when the machine loses its power, but for what the disk forgets."""
    command = start_and_reach_the_middle(job, "--nodes", "2")
    for process in processes.running():
        try:
            process.kill()
        except ProcessLookupError:
            pass
    command.wait_only()
    expect_nothing_running()
    job.make("go")
    result = job.run("--resume")
    assert result.code == 0, result
    assert job.rows() == job.expected


HELD = """
from steps import note, wait_for

def run(mini_batch):
    note("held", mini_batch[0])
    wait_for("go")
    return [open(path).read() for path in mini_batch]
"""


def test_a_coordinator_that_always_crashes_ends_the_job(work):
    rows = work.files(4)
    work.script(HELD)
    work.job(coordinator={"restartLimit": 2})
    command = work.start_job()
    command.wait_for(lambda: work.noted("held"), "a process is held")
    killed = set()

    def kill_it():
        for process in processes.running("coordinator"):
            if process.pid not in killed:
                killed.add(process.pid)
                process.kill()
        return command.ended

    wait_until(kill_it, "the command gives up")
    result = command.wait()
    assert result.code == 1, result
    assert "the coordinator ended 3 times without a new result" in result.output
    assert not work.output.exists()
    work.make("go")
    result = work.run("--resume")
    assert result.code == 0, result
    assert work.rows() == rows


# Rows of 9 MB travel in parts. Each row says of which call it is.
LARGE = """
import os, time
from steps import note, wait_for

def run(mini_batch, context):
    index = context.minibatch_index
    wait_for(f"go {index // 2}")
    call = f"{index} {os.getpid()}-{time.monotonic_ns()}"
    note("made", call)
    return [f"{call} {line} " + "x" * 880 for line in range(10_000)]
"""


def test_large_rows_are_of_one_call_whatever_is_killed_meanwhile(work):
    work.files(6)
    work.script(LARGE)
    work.job(runMaxTry=100, speculation=False)
    command = work.start_job("--nodes", "2")
    for part, role in enumerate(["coordinator", "agent", "worker"]):
        work.make(f"go {part}")
        command.wait_for(
            lambda part=part: [call for call in work.noted("made") if int(call[0]) // 2 == part],
            "rows are on their way",
        )
        for process in processes.running(role)[:1]:
            try:
                process.kill()
            except ProcessLookupError:  # the job may have ended meanwhile
                pass
    result = command.wait()
    assert result.code == 0, result
    made = set(work.noted("made"))
    rows = work.rows()
    assert len(rows) == 60_000
    for index in range(6):
        of_one = rows[index * 10_000 : (index + 1) * 10_000]
        call = " ".join(of_one[0].split()[:2])
        assert call.startswith(f"{index} ")
        assert call in made
        assert of_one == [f"{call} {line} " + "x" * 880 for line in range(10_000)]
