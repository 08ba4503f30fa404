"""The agent's end of docs/worker-protocol.md, for tests: starts a worker process and drives it."""

import collections
import fcntl
import json
import mmap
import os
import signal
import socket
import struct
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "worker-image" / "python"
UNKNOWN_SIZE = 2**64 - 1
TIMEOUT_S = 120

# The worker's python3 may be another one than that of the tests: WORKER_PYTHON=python3.8 pytest
PYTHON = os.environ.get("WORKER_PYTHON", sys.executable)

START, BATCH, STOP, HEADER_OF_JOB, SIDE_FILES_SENT = range(1, 6)
READY, INIT_FAILED, RESULT, ROWS, FAILED, STOPPED, METRIC, HEADER, PASSED_OVER, OWES = range(16, 26)
SIDE_FILES = 26
STARTING, IMPORTING, WAITING, LOADING, RUNNING, ENCODING, STOPPING = range(7)

TIMES = "sequence run_ns cpu_ns waited_ns read_ns wrote_ns"
Result = collections.namedtuple("Result", TIMES + " succeeded rows data")
Failed = collections.namedtuple("Failed", TIMES + " failure")


def frame(frame_type, body=b""):
    return struct.pack("<IB", len(body), frame_type) + body


def text(value):
    data = value if isinstance(value, bytes) else value.encode("utf-8", "surrogateescape")
    return struct.pack("<I", len(data)) + data


def work_head(kind, items, index, retries=0, first=0, context=None, flags=0):
    keys = json.dumps(context) if context else ""
    return struct.pack("<BBHQQI", kind, flags, retries, index, first, items) + text(keys)


def files_work(root, names, index=0, stamps=None, metadata=None, **head):
    """Work of kind 1; without stamps the files are not checked. `metadata`: JSON, of a manifest."""
    flags = 0 if metadata is None else 2
    described = b"" if metadata is None else text(metadata)
    stamps = stamps or [(UNKNOWN_SIZE, 0)] * len(names)
    joined = b"\0".join(os.fsencode(name) for name in names)
    body = work_head(1, len(names), index, flags=flags, **head)
    body += text(os.fsencode(root)) + text(joined)
    return body + b"".join(struct.pack("<Qq", *stamp) for stamp in stamps) + described


def stamp_of(path):
    found = os.stat(path)
    return found.st_size, found.st_mtime_ns


def slice_of(path, offset=0, length=None, header=b"", stamp=None):
    """A slice of a table, as Work of the kinds 2 and 5 has it."""
    length = os.stat(path).st_size - offset if length is None else length
    return (
        text(str(path))
        + struct.pack("<QQ", offset, length)
        + text(header)
        + struct.pack("<Qq", *(stamp or stamp_of(path)))
    )


def table_format(delimiter=",", form=None):
    return text(json.dumps(form or {"delimiter": delimiter, "encoding": "utf-8"}))


def table_work(path, items, index=0, delimiter=",", form=None, **options):
    """Work of kind 2."""
    head = {name: options.pop(name) for name in ("retries", "first", "context") if name in options}
    form = table_format(delimiter, form)
    return work_head(2, items, index, **head) + slice_of(path, **options) + form


def table_group_work(slices, items, index=0, form=None, **head):
    """Work of kind 5."""
    body = work_head(5, items, index, **head) + struct.pack("<I", len(slices))
    return body + b"".join(slices) + table_format(form=form)


def json_lines_work(
    path, items, offset=0, length=None, index=0, stamp=None, encoding="utf-8", form=None, **head
):
    """Work of kind 3."""
    length = os.stat(path).st_size - offset if length is None else length
    return (
        work_head(3, items, index, **head)
        + text(str(path))
        + struct.pack("<QQ", offset, length)
        + struct.pack("<Qq", *(stamp or stamp_of(path)))
        + text(json.dumps({"encoding": encoding, **(form or {})}))
    )


def rank_work(index, **head):
    """Work of kind 4."""
    return work_head(4, 1, index, **head)


def batch(sequence, work):
    return frame(BATCH, struct.pack("<Q", sequence) + work)


def python_path():
    """The package behind what the environment has, as the agent sets it."""
    return os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), str(PACKAGE))))


class FakeAgent:
    """One worker process in `folder`, which holds `code` and the output files."""

    def __init__(self, folder, environment=None, **start):
        self.folder = folder
        self.code = folder / "code"
        self.code.mkdir(exist_ok=True)
        self.start = {
            "release": "0.1.0",
            "entryScript": "score.py",
            "arguments": [],
            "process": "process000",
            "node": 0,
            "outputFolder": str(folder / "output"),
            "outputAction": "AppendRow",
            "loggingLevel": "INFO",
        }
        self.start.update(start)
        self.socket, theirs = socket.socketpair()
        self.socket.settimeout(TIMEOUT_S)
        self._bytes = b""
        page = os.memfd_create("page")
        os.ftruncate(page, 4096)
        self._page = memoryview(mmap.mmap(page, 4096)).cast("Q")
        self._stacks = os.memfd_create("stacks")
        # Out of the way of 3 to 5, so that no dup2 overwrites another's source.
        ends = [
            fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 50)
            for end in (theirs.fileno(), page, self._stacks)
        ]
        theirs.close()
        os.close(page)

        def place_descriptors():
            os.dup2(ends[0], 3)
            os.dup2(ends[1], 4)
            os.dup2(ends[2], 5)
            os.setpgid(0, 0)

        with open(self.stdout_path, "wb") as out, open(self.stderr_path, "wb") as err:
            self.process = subprocess.Popen(
                [PYTHON, str(PACKAGE / "start_worker.py")],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                cwd=self.code,
                env={**os.environ, "PYTHONPATH": python_path(), **(environment or {})},
                close_fds=False,
                preexec_fn=place_descriptors,
            )
        for end in ends:
            os.close(end)
        self.send(frame(START, json.dumps(self.start).encode()))

    @property
    def stdout_path(self):
        return self.folder / "stdout.txt"

    @property
    def stderr_path(self):
        return self.folder / "stderr.txt"

    def stacks(self):
        """What faulthandler has written."""
        return os.pread(self._stacks, 1 << 20, 0).decode()

    def send(self, data):
        self.socket.sendall(data)

    def receive(self):
        """The next frame as (type, body), or None at the end of the stream."""
        while True:
            if len(self._bytes) >= 5:
                size, frame_type = struct.unpack_from("<IB", self._bytes)
                if len(self._bytes) >= 5 + size:
                    body, self._bytes = self._bytes[5 : 5 + size], self._bytes[5 + size :]
                    return frame_type, body
            data = self.socket.recv(8 << 20)
            if not data:
                return None
            self._bytes += data

    def expect(self, frame_type):
        """The body of the next frame, which must have this type; it may say first that it owes."""
        received = self.receive()
        if received == (OWES, b"") and not self.owes:
            self.owes = 1
            received = self.receive()
        assert received is not None, self.stderr_path.read_text()
        assert received[0] == frame_type, received
        return received[1]

    def ready(self):
        nanoseconds, self.owes = struct.unpack("<QB", self.expect(READY))
        return nanoseconds

    def init_failure(self):
        failure = json.loads(self.expect(INIT_FAILED))
        assert self.receive() is None
        assert self.wait() == 1
        return failure

    def result(self, skipped=0):
        body = self.expect(RESULT)
        *head, left_out, rows = struct.unpack_from("<6QIII", body)
        assert left_out == skipped
        return Result(*head, rows, body[60:])

    def failed(self):
        body = self.expect(FAILED)
        return Failed(*struct.unpack_from("<6Q", body), json.loads(body[48:]))

    def header(self, of_the_job=None):
        """The header that the process tells; it is told that of the job, or its own."""
        body = self.expect(HEADER)
        self.send(frame(HEADER_OF_JOB, body if of_the_job is None else of_the_job))
        return body

    def metric(self):
        return json.loads(self.expect(METRIC))

    def run(self, work, sequence=1):
        self.send(batch(sequence, work))

    def run_files(self, names=("a",), root="/in", sequence=1, **work):
        self.send(batch(sequence, files_work(root, list(names), **work)))

    def run_table(self, path, items, sequence=1, **work):
        self.send(batch(sequence, table_work(path, items, **work)))

    def stop(self):
        """Sends stop; returns the stopped frame's failure (or None) and the exit code."""
        self.send(frame(STOP))
        body = self.expect(STOPPED)
        return (json.loads(body) if body else None), self.wait()

    def wait(self):
        return self.process.wait(timeout=TIMEOUT_S)

    def phase(self):
        """(sequence, phase) of the status page."""
        word = self._page[0]
        return word >> 8, word & 255

    def entered(self):
        return self._page[1]

    def finished(self):
        return self._page[2]

    def take_back(self, sequence):
        """What has not begun up to this sequence is not to begin."""
        self._page[3] = sequence

    def passed_over(self):
        (sequence,) = struct.unpack("<Q", self.expect(PASSED_OVER))
        return sequence

    def log(self, path):
        return (self.code / "logs" / path).read_text()

    def close(self):
        # The group, because scripts leave children; first, because it is gone with its members.
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        self.socket.close()
        os.close(self._stacks)
