"""Entry scripts that use up what a process has, or will not be stopped."""

from support.processes import expect_nothing_running

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
    work.job(runInvocationTimeoutSeconds=1, runMaxTry=2)
    result = work.run()
    assert result.code == 0, result
    assert work.rows() == [rows[0], rows[2]]
    assert work.noted("called").count("row 1") == 2
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
    assert result.code == 0, result
    assert work.rows() == [rows[0], rows[2]]
    assert "Too many open files" in result.output
    expect_nothing_running()
