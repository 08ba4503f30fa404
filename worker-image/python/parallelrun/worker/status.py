"""The status page: shared memory in which the agent sees what this process is doing."""

import mmap
import os
from time import monotonic_ns

STARTING, IMPORTING, WAITING, LOADING, RUNNING, ENCODING, STOPPING = range(7)

_SIZE = 4096


class StatusPage:
    """Written by the main thread, read by the agent; word 3 the other way. Owns the descriptor."""

    def __init__(self, descriptor):
        self._words = memoryview(mmap.mmap(descriptor, _SIZE)).cast("Q")
        os.close(descriptor)
        self._finished = 0
        os.register_at_fork(after_in_child=self._detach)

    def _detach(self):
        # A forked child must not write over what its parent reports.
        self._words = memoryview(bytearray(_SIZE)).cast("Q")

    def enter(self, sequence, phase):
        """Enters a phase and returns the time, CLOCK_MONOTONIC in nanoseconds."""
        words = self._words
        # The time first: a reader that sees the new phase must not see the old time.
        words[1] = now = monotonic_ns()
        words[0] = sequence << 8 | phase
        return now

    def begin(self, sequence):
        """Enters LOADING and returns the time, or None: the agent has taken that one back."""
        words = self._words
        words[1] = now = monotonic_ns()
        words[0] = sequence << 8 | LOADING
        # After word 0: see "Taking back" in docs/worker-protocol.md.
        return now if sequence > words[3] else None

    def mark(self, begins):
        """Shows where the output of the mini-batch that begins is; None where it is in no files."""
        if begins is not None:
            self._words[4], self._words[5] = begins

    def enter_since(self, sequence, phase, since):
        """Enters a phase that counts from a time in the past."""
        self._words[1] = since
        self._words[0] = sequence << 8 | phase

    def finish(self):
        """Counts a mini-batch that is done, failed or not."""
        self._finished += 1
        self._words[2] = self._finished
