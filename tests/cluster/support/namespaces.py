"""A small machine inside this one: mount, network and process namespaces that one process holds.

When that process is killed, everything that was started inside ends, and its mounts and network
devices are gone: as if the machine's plug was pulled. Needs root.
"""

import ctypes
import os
import re
import signal
import subprocess
import threading
import time
from pathlib import Path

from waits import Limit

# Takes no notice of SIGCHLD, so the kernel reaps what is orphaned inside.
_HOLD = "trap '' CHLD; mount --make-rshared /; exec -a {name} sleep infinity"


_PR_SET_PDEATHSIG = 1


class CannotStart(Exception):
    pass


def _children(pid):
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue
            if int(stat[stat.rindex(")") + 2 :].split()[1]) == pid:
                found.append(int(entry.name))
    return found


class Program:
    """A program inside a Machine. Its output is in `log`."""

    def __init__(self, name, popen, log):
        self.name = name
        self.log = log
        self._popen = popen

    @property
    def running(self):
        return self._popen.poll() is None

    def tail(self, lines=15):
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def kill(self, signo=signal.SIGKILL):
        """Sends a signal and waits for the end."""
        for pid in _children(self._popen.pid):  # the Popen is nsenter, which waits for the program
            try:
                os.kill(pid, signo)
            except ProcessLookupError:
                pass
        self._popen.wait(30)


def _end_with_parent():
    """When the thread that makes an outermost Machine ends, however, all of it ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class Machine:
    """`parent` is the Machine that this one is inside of, or None. `folder` gets its logs."""

    def __init__(self, name, folder, parent=None):
        self.name = name
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.programs = {}
        self._lock = threading.Lock()
        words = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
        words += ["--propagation", "slave", "--"]
        marker = f"machine:{self.folder}:{os.getpid()}.{time.monotonic_ns()}"
        words += ["bash", "-c", _HOLD.format(name=marker)]
        self._popen = subprocess.Popen(
            parent.words_inside(*words) if parent else words,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=None if parent else _end_with_parent,
        )
        self.pid = self._wait_for(marker)

    def _wait_for(self, marker):
        wanted = marker.encode()
        limit = Limit(30)
        while not limit.over():
            if self._popen.poll() is not None:
                said = self._popen.stderr.read().decode()
                raise CannotStart(f"the namespaces of {self.name} could not be made: {said}")
            for entry in Path("/proc").iterdir():
                if entry.name.isdigit():
                    try:
                        if (entry / "cmdline").read_bytes().split(b"\0")[0] == wanted:
                            return int(entry.name)
                    except OSError:
                        pass
            time.sleep(0.02)
        raise CannotStart(f"the namespaces of {self.name} did not come within 30 s")

    def words_inside(self, *words):
        enter = ["nsenter", "--target", str(self.pid), "--mount", "--net", "--pid", "--"]
        return enter + [str(word) for word in words]

    def run(self, *words, check=True, **options):
        """Runs a command to its end; returns what it printed."""
        done = subprocess.run(
            self.words_inside(*words),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            **options,
        )
        if check and done.returncode != 0:
            raise CannotStart(f"{self.name}: {' '.join(map(str, words))}: {done.stdout}")
        return done.stdout

    def start(self, name, *words):
        """Starts a program that stays; one of that name that has ended is forgotten."""
        log = self.folder / f"{name}.log"
        with open(log, "ab") as output:
            popen = subprocess.Popen(
                self.words_inside(*words),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        program = Program(name, popen, log)
        with self._lock:
            self.programs[name] = program
        return program

    def kill(self):
        """Pulls the plug."""
        try:
            os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._popen.wait(10)
        self._popen.stderr.close()
        for program in self.programs.values():
            program._popen.wait(10)


def kill_left(folder):
    """Ends the machines whose folder is below `folder`, left by a run that was killed itself."""
    wanted = re.compile(rb"machine:" + re.escape(str(folder).encode()) + rb"[/:]")
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if wanted.match((entry / "cmdline").read_bytes().split(b"\0")[0]):
                    os.kill(int(entry.name), signal.SIGKILL)
            except (OSError, ProcessLookupError):
                pass
