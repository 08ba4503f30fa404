"""The life of a worker process: start, mini-batches one after the other, stop."""

import os
import struct
import sys
from time import process_time_ns

from parallelrun.worker import channel as frames
from parallelrun.worker import logs, process, script, work
from parallelrun.worker.channel import AgentGone, Channel, ProtocolError
from parallelrun.worker.failure import Failure, from_exception
from parallelrun.worker.rows import RowEncoder
from parallelrun.worker.status import (
    ENCODING,
    IMPORTING,
    LOADING,
    RUNNING,
    STOPPING,
    WAITING,
    StatusPage,
)

_U64 = struct.Struct("<Q")


def main(socket_descriptor, page_descriptor):
    """Serves the agent until it says stop. Returns the exit code, or ends the process."""
    worker = Worker(Channel(socket_descriptor), StatusPage(page_descriptor))
    try:
        if not worker.start():
            _exit_now()
        worker.serve()
        worker.stop()
    except (AgentGone, ProtocolError) as error:
        logs.say(error)
        _exit_now()
    # A normal end: atexit handlers run, threads of the script are waited for.
    return 0


def _exit_now():
    """Ends the process with 1, whatever threads the script left behind."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:  # the script may have put anything there
            pass
    os._exit(1)


class Worker:
    """Calls the script; everything happens on the main thread, as scripts expect."""

    def __init__(self, channel, page):
        self._channel = channel
        self._page = page
        self._process = None
        self._script = None
        self._encode = None
        self._cpu_ns = 0

    def start(self):
        """Reads the start frame, imports the script and calls init(). False when that failed."""
        frame = self._channel.take()
        while frame is None:
            self._channel.fill()
            frame = self._channel.take()
        frame_type, body = frame
        if frame_type != frames.START:
            raise ProtocolError(f"the first frame has type {frame_type}, not start")
        self._process = process.begin(body)
        logs.set_up(self._process.logging_level)
        began = self._page.enter(0, IMPORTING)
        try:
            self._script = script.load(self._process)
            self._encode = RowEncoder(self._process, self._script.location).encode
            if self._script.init is not None:
                self._init()
        except Failure as failure:
            logs.append_error(self._process.error_log, failure.kind, failure)
            self._channel.send(frames.INIT_FAILED, failure.to_json())
            return False
        ready = self._page.enter(0, WAITING)
        self._channel.send(frames.READY, _U64.pack(ready - began))
        return True

    def _init(self):
        try:
            self._script.init()
        except BaseException as error:  # sys.exit() in init() is a failure too
            raise script.init_failed(error, "init()", self._process.root) from None

    def serve(self):
        """Runs mini-batches until the agent says stop."""
        channel = self._channel
        take = channel.take
        sequence = 0
        while True:
            frame = take()
            if frame is None:
                self._page.enter(sequence, WAITING)
                channel.flush()
                channel.fill()
                self._cpu_ns = process_time_ns()
                continue
            frame_type, body = frame
            if frame_type == frames.BATCH and len(body) >= _U64.size:
                (sequence,) = _U64.unpack_from(body)
                self._attempt(sequence, body)
            elif frame_type == frames.STOP:
                return
            else:
                raise ProtocolError(f"a frame of type {frame_type} with {len(body)} bytes")

    def _attempt(self, sequence, body):
        page = self._page
        user = self._script
        page.enter(sequence, LOADING)
        try:
            items, mini_batch, context = work.load(body, user.with_context, self._process.root)
        except Failure as failure:
            self._fail(sequence, body, 0, failure)
            return
        self._channel.flush_if_old()
        began = page.enter(sequence, RUNNING)
        try:
            returned = user.run(mini_batch) if context is None else user.run(mini_batch, context)
        except BaseException as error:  # sys.exit() fails the attempt, no more
            run_ns = page.enter(sequence, ENCODING) - began
            failure = from_exception("Exception", error, self._process.root)
            self._fail(sequence, body, run_ns, failure)
            return
        ended = page.enter(sequence, ENCODING)
        try:
            succeeded, rows, data = self._encode(returned, items)
        except Failure as failure:
            self._fail(sequence, body, ended - began, failure)
            return
        except BaseException as error:  # __str__ of an element is the user's code
            failure = from_exception("Exception", error, self._process.root)
            self._fail(sequence, body, ended - began, failure)
            return
        cpu_ns, self._cpu_ns = self._cpu_ns, process_time_ns()
        page.finish()
        self._channel.result(
            sequence, ended - began, self._cpu_ns - cpu_ns, succeeded, rows, data, ended
        )

    def _fail(self, sequence, body, run_ns, failure):
        logs.append_error(self._process.error_log, work.describe(body), failure)
        cpu_ns, self._cpu_ns = self._cpu_ns, process_time_ns()
        self._page.finish()
        self._channel.failed(sequence, run_ns, self._cpu_ns - cpu_ns, failure.to_json())

    def stop(self):
        """Calls shutdown() and says goodbye."""
        self._channel.flush()
        self._page.enter(0, STOPPING)
        body = b""
        if self._script.shutdown is not None:
            try:
                self._script.shutdown()
            except BaseException as error:  # its results are safe all the same
                failure = from_exception("Exception", error, self._process.root)
                logs.append_error(self._process.error_log, "shutdown()", failure)
                body = failure.to_json()
        self._channel.send(frames.STOPPED, body)
