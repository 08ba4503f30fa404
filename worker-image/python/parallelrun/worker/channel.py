"""The socket to the agent: frames in, frames out, small results held back.

Plain reads and writes on the descriptor: the `socket` module alone costs 5 ms of start-up.
"""

import fcntl
import os
import struct
from collections import deque
from time import monotonic_ns

START, BATCH, STOP, HEADER_OF_JOB, SIDE_FILES_SENT = range(1, 6)
READY, INIT_FAILED, RESULT, ROWS, FAILED, STOPPED, METRIC, HEADER, PASSED_OVER, OWES = range(16, 26)
SIDE_FILES = 26

MAX_BODY = 64 << 20
MAX_PART = 4 << 20

# Results wait for company while run() is short; docs/worker-protocol.md, "Worker to agent".
SHORT_RUN_NS = 100_000
MAX_HELD_NS = 1_000_000
MAX_HELD_BYTES = 256 << 10

_HEAD = struct.Struct("<IB")
_ROWS = struct.Struct("<IBQ")
_RESULT = struct.Struct("<IBQQQQQQIII")
_RESULT_BODY = _RESULT.size - _HEAD.size
_FAILED = struct.Struct("<QQQQQQ")
_READ_SIZE = 256 << 10

# Nanoseconds that a process waited for a mini-batch, read it, and wrote its rows; this one where
# nobody measured them.
NOT_KNOWN = 2**64 - 1
UNMEASURED = (NOT_KNOWN, NOT_KNOWN, NOT_KNOWN)

# Scripts that close descriptors wholesale begin at 3, so the socket moves out of their way.
_OUT_OF_THE_WAY = 200


class AgentGone(Exception):
    """The agent closed its end, or the script closed ours."""


class ProtocolError(Exception):
    """The agent sent what docs/worker-protocol.md does not allow."""


def unexpected(frame_type, body):
    """The error of a frame that must not come here."""
    return ProtocolError(f"a frame of type {frame_type} with {len(body)} bytes")


class Channel:
    """One per process, used by the main thread only. Owns the descriptor."""

    def __init__(self, descriptor):
        self._descriptor = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _OUT_OF_THE_WAY)
        os.close(descriptor)
        self._buffer = memoryview(bytearray(_READ_SIZE))
        self._start = 0
        self._end = 0
        self._held = bytearray()
        self._oldest = 0
        self._later = deque()  # frames that came in front of one that was waited for
        os.register_at_fork(after_in_child=self._detach)

    def _detach(self):
        # A forked child must neither keep the connection alive nor answer in its parent's place.
        os.closerange(self._descriptor, self._descriptor + 1)
        self.result = self.failed = self.send = _came_back

    def take(self):
        """The next complete frame as (type, body), or None. The body lives until `fill`."""
        if self._later:
            return self._later.popleft()
        return self._take_new()

    def wait_for(self, frame_type):
        """The body of the next frame of that type; what comes in front of it is taken later."""
        self._buffer = memoryview(bytearray(self._buffer))  # bodies that were taken live on
        while True:
            frame = self._take_new()
            if frame is None:
                self._read()
            elif frame[0] == frame_type:
                return bytes(frame[1])
            else:
                self._later.append((frame[0], memoryview(bytes(frame[1]))))

    def _take_new(self):
        start = self._start
        body = start + 5
        if body > self._end:
            return None
        size, frame_type = _HEAD.unpack_from(self._buffer, start)
        if size > MAX_BODY:
            raise ProtocolError(f"a frame of {size} bytes; at most {MAX_BODY} are allowed")
        end = body + size
        if end > self._end:
            return None
        self._start = end
        return frame_type, self._buffer[body:end]

    def arrived(self, timeout_ms):
        """Waits at most that long for bytes from the agent; True when `fill` will not block."""
        import select

        if self._later:
            return True
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN)
        return bool(poll.poll(timeout_ms))

    def fill(self):
        """Waits for bytes from the agent. Raises AgentGone at the end of the stream."""
        if not self._later:
            self._read()

    def _read(self):
        self._make_room()
        try:
            count = os.readv(self._descriptor, (self._buffer[self._end :],))
        except OSError as error:
            raise _gone(error) from error
        if count == 0:
            raise AgentGone("the agent closed the connection")
        self._end += count

    def _make_room(self):
        """Moves an incomplete frame to the front of a buffer that can hold all of it."""
        have = self._end - self._start
        rest = self._buffer[self._start : self._end]
        need = 5 + _HEAD.unpack_from(rest)[0] if have >= 5 else 5
        if need > len(self._buffer):
            self._buffer = memoryview(bytearray(need))
        elif self._start == 0:
            return
        self._buffer[:have] = rest
        self._start = 0
        self._end = have

    def result(
        self, sequence, run_ns, cpu_ns, succeeded, skipped, rows, data, now, spent=UNMEASURED
    ):
        """Queues a result made at `now`; sends it and what is held when the rule says so."""
        if len(data) > MAX_PART:
            data = self._send_parts(sequence, data)
        held = self._held
        if not held:
            self._oldest = now
        size = _RESULT_BODY + len(data)
        held += _RESULT.pack(
            size, RESULT, sequence, run_ns, cpu_ns, *spent, succeeded, skipped, rows
        )
        held += data
        if (
            run_ns >= SHORT_RUN_NS
            or now - self._oldest >= MAX_HELD_NS
            or len(held) >= MAX_HELD_BYTES
        ):
            self.flush()

    def _send_parts(self, sequence, data):
        """Sends all but the last part of big rows, and returns the last."""
        self.flush()
        view = memoryview(data)
        position = 0
        while len(data) - position > MAX_PART:
            self._write(_ROWS.pack(8 + MAX_PART, ROWS, sequence))
            self._write(view[position : position + MAX_PART])
            position += MAX_PART
        return view[position:]

    def failed(self, sequence, run_ns, cpu_ns, failure_json, spent=UNMEASURED):
        """Sends a failed attempt at once, after what is held."""
        self.send(FAILED, _FAILED.pack(sequence, run_ns, cpu_ns, *spent) + failure_json)

    def send(self, frame_type, body=b""):
        """Sends a frame at once, after what is held."""
        self._held += _HEAD.pack(len(body), frame_type)
        self._held += body
        self.flush()

    def flush_if_old(self):
        """Sends what is held when its oldest result is old; called before run()."""
        if self._held and monotonic_ns() - self._oldest >= MAX_HELD_NS:
            self.flush()

    def flush(self):
        """Sends all that is held."""
        if self._held:
            self._write(self._held)
            self._held = bytearray()

    def _write(self, data):
        try:
            sent = os.write(self._descriptor, data)
            while sent < len(data):
                sent += os.write(self._descriptor, memoryview(data)[sent:])
        except OSError as error:
            raise _gone(error) from error


def _came_back(*_):
    raise AgentGone("a process that the script forked came back; it must end with os._exit()")


def _gone(error):
    return AgentGone(
        f"the connection to the agent broke ({error}); if the agent lives, the script closed a "
        "descriptor that it did not open"
    )
