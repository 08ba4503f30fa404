"""The one clock of all waits: a limit in seconds is a promise for a machine that has them to give.

Time in which something here waited for a processor or a disk is added to a limit, up to five times
the limit itself: a hang still ends within minutes.
"""

import subprocess
import time
from pathlib import Path

LONGER = 5  # so many times its limit is added to a wait at most


class TooLate(AssertionError):
    """A wait that ended before what it waited for came."""


class Limit:
    """`seconds` from now on. Of one thread."""

    def __init__(self, seconds):
        self.seconds = seconds
        self._began = time.monotonic()
        self._stalled = stalled()

    def left(self):
        """Seconds until it is over, as far as is known by now: it may move on."""
        extra = min(stalled() - self._stalled, LONGER * self.seconds)
        return self._began + self.seconds + extra - time.monotonic()

    def over(self):
        # Most waits end long before: who polls asks the kernel what stalled only when it matters.
        return time.monotonic() >= self._began + self.seconds and self.left() < 0


def wait_until(condition, what, limit=60.0, pause=0.01):
    """Polls until condition() is true; returns its value. `what` is what did not come, for TooLate:
    text, or a function that makes it."""
    wait = Limit(limit)
    while True:
        value = condition()
        if value:
            return value
        if wait.over():
            raise TooLate(f"not within {limit} s: {what() if callable(what) else what}")
        time.sleep(pause)


def wait_for_process(process, what, limit):
    """The exit status of a subprocess.Popen, once it has ended; `what` as for wait_until."""
    return wait_until(lambda: process.poll() is not None and (process.returncode,), what, limit)[0]


def communicate(process, what, limit=120.0):
    """As Popen.communicate(); who comes too late is killed."""
    wait = Limit(limit)
    while True:
        try:
            return process.communicate(timeout=0.5)
        except subprocess.TimeoutExpired:
            if wait.over():
                process.kill()
                raise TooLate(f"not within {limit} s: {what}") from None


def stalled():
    """Seconds since an unknown moment in which something of this control group waited for a
    processor or a disk; of the machine, where groups do not say."""
    return sum(_stalled(what) for what in ("cpu", "io"))


def _stalled(what):
    for place in (_group / f"{what}.pressure", Path("/proc/pressure") / what):
        try:
            some = place.read_text().partition("\n")[0]
        except OSError:  # this kernel does not say
            continue
        return int(some.rpartition("total=")[2]) / 1e6
    return 0


def _own_group():
    """The folder of this process's control group (version 2)."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        if line.startswith("0::"):
            return Path("/sys/fs/cgroup") / line.removeprefix("0::").lstrip("/")
    return Path("/sys/fs/cgroup")


_group = _own_group()
