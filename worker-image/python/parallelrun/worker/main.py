"""The life of a worker process: start, mini-batches one after the other, stop."""

import os
import struct
from time import monotonic_ns, process_time_ns

from parallelrun import shims
from parallelrun.worker import channel as frames
from parallelrun.worker import logs, output_range, process, script, work
from parallelrun.worker.at_exit import AtExit
from parallelrun.worker.channel import NOT_KNOWN, UNMEASURED, AgentGone, Channel, ProtocolError
from parallelrun.worker.failure import Failure, from_exception
from parallelrun.worker.rows import RowEncoder, read_out
from parallelrun.worker.status import (
    ENCODING,
    IMPORTING,
    RUNNING,
    STOPPING,
    WAITING,
    StatusPage,
)

_U64 = struct.Struct("<Q")


def main(socket_descriptor, page_descriptor, stacks_descriptor):
    """Serves the agent until it says stop. Returns the exit code, or ends the process."""
    worker = Worker(Channel(socket_descriptor), StatusPage(page_descriptor), stacks_descriptor)
    try:
        if not worker.start():
            worker.exit_now()
        worker.serve()
        worker.stop()
    except (AgentGone, ProtocolError) as error:
        logs.say(error)
        worker.exit_now()
    # A normal end: atexit handlers run, threads of the script are waited for.
    return 0


def _call(function):
    returned = function()
    if hasattr(returned, "__await__"):  # async def: without it, its body would never run
        import asyncio

        asyncio.run(_wait_for(returned))


async def _wait_for(awaitable):
    return await awaitable


class Worker:
    """Calls the script; everything happens on the main thread, as scripts expect."""

    def __init__(self, channel, page, stacks):
        self.channel = channel
        self.page = page
        self._stacks = stacks
        self.process = None
        self.script = None
        self._encode = None
        self._profiler = None
        self._at_exit = None
        self._side_files = None  # where they are staged
        self._owes = False  # the agent knows that something is left for the end
        self._cpu_ns = 0
        self._free = 0  # since when it waits for the next mini-batch
        self._mark = None
        self._marked = 0

    def start(self):
        """Reads the start frame, imports the script and calls init(). False when that failed."""
        frame = self.channel.take()
        while frame is None:
            self.channel.fill()
            frame = self.channel.take()
        frame_type, body = frame
        if frame_type != frames.START:
            raise ProtocolError(f"the first frame has type {frame_type}, not start")
        self.process = process.begin(body)
        self.process.channel = self.channel
        process.set_environment(self.process)
        process.prepare_children(self.process)
        logs.set_up(self.process.logging_level)
        logs.tell_stacks_on(self.process.stack_signal, self._stacks)
        self.process.output_mark = output_range.mark()
        shims.install()
        began = self.page.enter(0, IMPORTING)
        self._at_exit = AtExit(self.process.root)
        try:
            self._load()
        except Failure as failure:
            logs.append_error(self.process.error_log, failure.kind, failure)
            self.channel.send(frames.INIT_FAILED, failure.to_json())
            return False
        self._free = ready = self.page.enter(0, WAITING)
        self._owes = self.script.shutdown is not None or self._at_exit.owes()
        self.channel.send(frames.READY, _U64.pack(ready - began) + bytes([self._owes]))
        return True

    def _load(self):
        if self.process.staging:
            self._stage_side_files()
        load = script.load
        if self.process.profiling:
            from parallelrun.worker.profiler import Profiler

            self._profiler = Profiler(self.process)
            load = self._profiler.wrap(load)
        self.script = load(self.process)
        if self._profiler is not None:
            self._profiler.wrap_functions(self.script)
        self._encode = RowEncoder(self.process, self.script.location, self._ask_header).encode
        if self.script.init is not None:
            try:
                _call(self.script.init)
            except BaseException as error:  # sys.exit() in init() is a failure too
                raise script.init_failed(error, "init()", self.process) from None
        if self._side_files is not None:
            left = self._side_files.left_by("init()")
            if left is not None:
                raise Failure("InitFailed", left, fatal=True)
        if self._profiler is not None:
            self._profiler.catch_sigterm()  # the script may have caught it for itself

    def _stage_side_files(self):
        from parallelrun.worker.side_files import SideFiles

        try:
            self._side_files = SideFiles(self.process, self.page)
        except OSError as error:
            raise from_exception("InitFailed", error, self.process.root) from None

    def serve(self):
        """Runs mini-batches until the agent says stop."""
        if self.process.async_mode:
            from parallelrun.worker.async_loop import AsyncLoop

            AsyncLoop(self).serve()
            return
        channel = self.channel
        take = channel.take
        sequence = 0
        while True:
            frame = take()
            if frame is None:
                self.page.enter(sequence, WAITING)
                self.wait()
                continue
            frame_type, body = frame
            if frame_type == frames.BATCH and len(body) >= _U64.size:
                (sequence,) = _U64.unpack_from(body)
                self._attempt(sequence, body)
            elif frame_type == frames.STOP:
                return
            else:
                raise frames.unexpected(frame_type, body)

    def wait(self):
        """Sends what is held and waits for the agent."""
        self.send_waiting()
        self.channel.fill()
        self._cpu_ns = process_time_ns()

    def send_waiting(self):
        """Sends the results that are held, and what threads of the script logged."""
        metrics = self.process.metrics
        while metrics:
            self.channel.send(frames.METRIC, metrics.popleft())
        self.channel.flush()

    def _attempt(self, sequence, body):
        page = self.page
        user = self.script
        now = page.begin(sequence)
        if now is None:
            self.channel.send(frames.PASSED_OVER, _U64.pack(sequence))
            return
        waited_ns = now - self._free
        if now - self._marked >= output_range.FRESH_NS:
            self._marked = now
            self._mark = output_range.mark()
            page.mark(self._mark)
        mark = self._mark
        try:
            items, skipped, mini_batch, context = work.load(
                body, user.with_context, self.process.root
            )
        except Failure as failure:
            spent = (waited_ns, monotonic_ns() - now, NOT_KNOWN)
            self.fail(sequence, body, 0, mark, failure, spent)
            return
        self.channel.flush_if_old()
        began = page.enter(sequence, RUNNING)
        read_ns = began - now
        try:
            returned = user.run(mini_batch) if context is None else user.run(mini_batch, context)
            returned = read_out(returned)
        except BaseException as error:  # sys.exit() fails the attempt, no more
            run_ns = page.enter(sequence, ENCODING) - began
            failure = from_exception("Exception", error, self.process.root)
            self.fail(sequence, body, run_ns, mark, failure, (waited_ns, read_ns, NOT_KNOWN))
            return
        ended = page.enter(sequence, ENCODING)
        spent = waited_ns, read_ns
        self.answer(sequence, body, began, ended, mark, items, skipped, returned, spent)

    def answer(
        self,
        sequence,
        body,
        began,
        ended,
        mark,
        items,
        skipped,
        returned,
        spent=(NOT_KNOWN, NOT_KNOWN),
    ):
        """Encodes what the script returned for the mini-batch of `body` and sends it.

        `spent`: how long the process waited for it and read it, in ns.
        """
        try:
            succeeded, rows, data = self._encode(returned, items, body)
            if self._side_files is not None:
                data = self._side_files.take(sequence) + data
        except Failure as failure:
            spent = (*spent, monotonic_ns() - ended)
            self.fail(sequence, body, ended - began, mark, failure, spent)
            return
        except AgentGone:
            raise
        except BaseException as error:  # __str__ of an element is the user's code
            failure = from_exception("Exception", error, self.process.root)
            spent = (*spent, monotonic_ns() - ended)
            self.fail(sequence, body, ended - began, mark, failure, spent)
            return
        if not self._owes and self._at_exit.owes():  # since run() was called
            self._owes = True
            self.channel.send(frames.OWES, b"")
        cpu_ns, self._cpu_ns = self._cpu_ns, process_time_ns()
        self.page.finish()
        self._free = monotonic_ns()
        self.channel.result(
            sequence,
            ended - began,
            self._cpu_ns - cpu_ns,
            succeeded,
            skipped,
            rows,
            data,
            ended,
            (*spent, self._free - ended),
        )

    def _ask_header(self, header):
        """Tells the agent the header line of a DataFrame, and gives that of the job."""
        if not self.process.takes_header:
            logs.say("the header line of the DataFrame is left out: this agent takes none")
            return header
        self.channel.send(frames.HEADER, header)
        return self.channel.wait_for(frames.HEADER_OF_JOB)

    def fail(self, sequence, body, run_ns, mark, failure, spent=UNMEASURED):
        """Logs and sends the failed attempt of the mini-batch of `body`."""
        if self._side_files is not None:
            self._side_files.discard()
        failure.output = output_range.since(mark)
        logs.append_error(self.process.error_log, work.describe(body), failure)
        cpu_ns, self._cpu_ns = self._cpu_ns, process_time_ns()
        self.page.finish()
        self.channel.failed(sequence, run_ns, self._cpu_ns - cpu_ns, failure.to_json(), spent)
        self._free = monotonic_ns()

    def stop(self):
        """Calls shutdown(), does what the script left for the end, and says goodbye."""
        self.channel.flush()
        self.page.enter(0, STOPPING)
        body = b""
        if self.script.shutdown is not None:
            try:
                _call(self.script.shutdown)
            except BaseException as error:  # its results are safe all the same
                body = self._failed_at_end("shutdown()", error)
        if self._profiler is not None:
            self._profiler.write()
        error = self._at_exit.run()
        if error is not None:
            body = body or self._failed_at_end("atexit", error)
        if self._side_files is not None:
            left = self._side_files.left_by("shutdown()")
            if left is not None:
                failure = Failure("BadSideFile", left)
                logs.append_error(self.process.error_log, "shutdown()", failure)
                body = body or failure.to_json()
        self.send_waiting()
        self.channel.send(frames.STOPPED, body)

    def _failed_at_end(self, where, error):
        failure = from_exception("Exception", error, self.process.root)
        logs.append_error(self.process.error_log, where, failure)
        return failure.to_json()

    def exit_now(self):
        """Ends the process with 1, whatever threads the script left behind."""
        if self._profiler is not None:
            self._profiler.write()
        logs.flush()
        os._exit(1)
