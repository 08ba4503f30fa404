"""Processes below this one, found through /proc.

This process is made the reaper of orphans, so everything that a command started stays below it,
whatever session or parent it gave itself, and can be found after the command itself has ended.
"""

import ctypes
import os
import signal
import time

from waits import Limit

_PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans():
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


class Process:
    def __init__(self, pid, parent, words):
        self.pid = pid
        self.parent = parent
        self.words = words
        self.forked = False  # from a process of the same words, and has not executed a program yet

    @property
    def role(self):
        program = os.path.basename(self.words[0]) if self.words else ""
        if program == "parallelrun":
            return "other" if self.forked else "command"
        if program == "parallelrun-coordinator":
            return "coordinator"
        if program == "parallelrun-agent":
            return "guardian" if "guard" in self.words else "agent"
        if program == "versitygw" or any(word.endswith("/azurite-blob") for word in self.words[:3]):
            return "server"
        if any(word.endswith("/start_worker.py") for word in self.words):
            return "worker"
        return "other"

    def kill(self, signo=signal.SIGKILL):
        os.kill(self.pid, signo)

    def __repr__(self):
        return f"{self.role} {self.pid} (child of {self.parent}): {' '.join(self.words)[:200]}"


def _content(path):
    """What a file of /proc says; None once its process has gone."""
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        parts = []
        while part := os.read(file, 65536):
            parts.append(part)
        return b"".join(parts)
    except OSError:
        return None
    finally:
        os.close(file)


def _children():
    """The ids of the children of each process, but for zombies.

    A test asks several times, and the machine has hundreds of processes: one file of each is read.
    """
    children = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        stat = _content(f"/proc/{pid}/stat")
        if stat is None:
            continue
        state, parent = stat[stat.rindex(b")") + 2 :].split(None, 2)[:2]
        if state not in (b"Z", b"X"):
            children.setdefault(int(parent), []).append(int(pid))
    return children


def _process(pid, parent):
    """None once it has gone."""
    line = _content(f"/proc/{pid}/cmdline")
    if line is None:
        return None
    words = line.decode(errors="replace").split("\0")
    return Process(pid, parent, [word for word in words if word])


def running(role=None):
    """Every process below this one, of one role or all; a server of the tests' own is no part of
    what they look at."""
    children = _children()
    found = []
    parents = [os.getpid()]
    for parent in parents:  # it grows meanwhile
        pids = children.get(parent, [])
        parents += pids
        found += filter(None, (_process(pid, parent) for pid in pids))
    words = {process.pid: process.words for process in found}
    for process in found:
        process.forked = process.words == words.get(process.parent)
    wanted = [process for process in found if process.role != "server"]
    return [process for process in wanted if role is None or process.role == role]


def left_after(limit=20.0):
    """What still runs when what was sent SIGKILL, or has lost its parent, had time to be gone."""
    wait = Limit(limit)
    while (left := running()) and not wait.over():
        time.sleep(0.01)
    return left


def expect_nothing_running(about=""):
    """A process that is left over is no wait that was too short, so this is no TooLate."""
    left = left_after()
    assert not left, f"left running: {left}" + (f" ({about})" if about else "")


def kill_all():
    """Ends what a failed test left; returns what that was."""
    left = running()
    while running():
        for process in running():
            try:
                process.kill()
            except ProcessLookupError:
                pass
        time.sleep(0.01)
    return left


def reap():
    """Takes leave of orphans that have ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0] != 0:
            pass
    except ChildProcessError:
        pass
