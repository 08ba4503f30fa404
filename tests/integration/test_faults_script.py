"""Entry scripts that use up what a process has, or will not be stopped."""

import os
import re
from pathlib import Path

import pytest
from support import processes
from support.cluster import ClusterJob
from support.command import PROGRAM
from support.processes import expect_nothing_running
from waits import wait_until

LEAKS = """
import os, threading
from steps import note

kept = []

def run(mini_batch):
    for _ in range(30):
        kept.append(open(__file__))
        threading.Thread(target=threading.Event().wait, daemon=True).start()
        if os.fork() == 0:
            os._exit(0)  # a zombie: nobody waits for it
    note("open", len(os.listdir("/proc/self/fd")))
    return [open(path).read() for path in mini_batch]
"""


def test_a_script_that_leaks_files_threads_and_zombies(work):
    rows = work.files(6)
    work.script(LEAKS)
    work.job(processCountPerNode=1)
    result = work.run()
    assert result.code == 0, result
    assert work.rows() == rows
    assert max(map(int, work.noted("open"))) >= 180
    expect_nothing_running()


DEAF = """
import signal, time
from steps import note

signal.pthread_sigmask(signal.SIG_BLOCK, range(1, signal.NSIG))

def run(mini_batch):
    (row,) = [open(path).read() for path in mini_batch]
    note("called", row)
    while row == "row 1":
        time.sleep(1)
    return [row]
"""


def test_a_script_that_blocks_every_signal_is_ended_all_the_same(work):
    rows = work.files(3)
    work.script(DEAF)
    # So many tries are for the other ones, on a machine that is busy.
    work.job(runInvocationTimeoutSeconds=1, runMaxTry=6)
    result = work.run()
    assert result.code == 3, result
    assert work.rows() == [rows[0], rows[2]]
    assert work.noted("called").count("row 1") == 6
    expect_nothing_running()


DROWNING = """
import os
from steps import note

def run(mini_batch):
    (row,) = [open(path).read() for path in mini_batch]
    note("called", row)
    if row == "row 1":
        files = []
        while True:
            files.append(os.open("/dev/null", os.O_RDONLY))
    return [row]
"""


def test_a_script_without_a_descriptor_left_still_says_so(work):
    rows = work.files(3)
    work.script(DROWNING)
    work.job(runMaxTry=1, processCountPerNode=1)
    result = work.run()
    assert result.code == 3, result
    assert work.rows() == [rows[0], rows[2]]
    assert "Too many open files" in result.output
    expect_nothing_running()


BOMB = """
import os, time
from steps import note

def run(mini_batch):
    (row,) = [open(path).read() for path in mini_batch]
    note("called", row)
    while row == "row 1":
        try:
            if os.fork() == 0 and os.getpid() % 2:
                os.setsid()
        except OSError:
            time.sleep(0.05)
    return [row]
"""


@pytest.fixture
def few_processes():
    """A cgroup of 200 processes and threads; its folder."""
    group = Path(f"/sys/fs/cgroup/pids/parallelrun-test-{os.getpid()}")
    if not (group.parent / "cgroup.procs").exists():
        pytest.skip("there is no cgroup v1 to write to")
    try:
        group.mkdir()
        (group / "pids.max").write_text("200")
    except OSError as error:
        pytest.skip(f"no cgroup can be made: {error}")
    yield group
    wait_until(lambda: not (group / "cgroup.procs").read_text(), "the group is empty")
    group.rmdir()


def within(group):
    """The words in front of a program that put it into a cgroup."""
    return ["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh"]


def refusals(group):
    """How often the cgroup had no process left for who asked for one."""
    (count,) = re.findall(r"max (\d+)", (group / "pids.events").read_text())
    return int(count)


def test_a_script_that_forks_until_it_may_no_more(work, few_processes):
    """On a node whose pod may have so many: the node goes on, and nothing stays behind."""
    rows = work.files(6)
    work.script(BOMB)
    cluster = ClusterJob(work)
    cluster.mount_code()
    # So many tries are for the other ones, on a machine that is busy.
    spec = {"runInvocationTimeoutSeconds": 2, "runMaxTry": 5}
    coordinator = cluster.start_coordinator(nodes=1, spec=spec)
    space = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    node = cluster.start_node(0, before=[*within(few_processes), *space])
    assert coordinator.wait_only().code == 0, coordinator.output + node.output
    assert node.wait_only().code == 0, node.output
    assert work.rows() == rows[:1] + rows[2:]
    assert work.noted("called").count("row 1") == 5
    assert refusals(few_processes) > 0  # it got as far as it may
    expect_nothing_running()


def start_within(work, group):
    work.files(3)
    work.script(HELD)
    work.job(processCountPerNode=1)
    program, *words = within(group)
    return work.start(*words, PROGRAM, "run", work.job_file.name, program=program)


HELD = """
from steps import note, wait_for

def run(mini_batch):
    note("held", 1)
    wait_for("go")
    return [open(path).read() for path in mini_batch]
"""


def test_a_command_that_may_start_no_process_says_what_to_do(work, few_processes):
    (few_processes / "pids.max").write_text("2")
    result = start_within(work, few_processes).wait()
    assert result.code == 2, result
    assert "raise their limit" in result.output


def test_a_job_waits_while_others_hold_all_processes(work, few_processes):
    command = start_within(work, few_processes)
    command.wait_for(lambda: work.noted("held"), "the process is held")
    (few_processes / "pids.max").write_text("1")
    (coordinator,) = processes.running("coordinator")
    coordinator.kill()
    command.wait_for(lambda: refusals(few_processes) > 0, "there is no process to be had")
    (few_processes / "pids.max").write_text("200")
    work.make("go")
    result = command.wait()
    assert result.code == 0, result
    assert work.rows() == ["row 0", "row 1", "row 2"]
