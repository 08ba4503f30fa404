"""Async mode: several mini-batches in flight, which the script answers in any order."""

import struct
from time import monotonic_ns

from parallelrun.worker import channel as frames
from parallelrun.worker import output_range, work
from parallelrun.worker.channel import ProtocolError
from parallelrun.worker.failure import Failure, from_exception
from parallelrun.worker.rows import read_out
from parallelrun.worker.status import LOADING, RUNNING, WAITING

# The contract has no way for the script to say that something is finished: it is asked.
_ASK_EVERY_MS = 5

# Sequence and head of Work: what must outlive the frame, to describe the mini-batch.
_HEAD = struct.Struct("<QBBHQQII")
_NOTHING = object()


class _InFlight:
    def __init__(self, sequence, head, items, skipped, mark):
        self.sequence = sequence
        self.head = head
        self.items = items
        self.skipped = skipped
        self.mark = mark
        self.began = monotonic_ns()


class AsyncLoop:
    """Takes the place of Worker.serve(); main thread only, as all that calls the script."""

    def __init__(self, worker):
        self._worker = worker
        self._script = worker.script
        self._in_flight = {}  # by mini-batch id, oldest first

    def serve(self):
        """Hands mini-batches to the script and sends what it finished, until stop."""
        channel = self._worker.channel
        stopping = False
        while True:
            frame = channel.take()
            if frame is not None:
                frame_type, body = frame
                if frame_type == frames.BATCH and len(body) >= _HEAD.size and not stopping:
                    self._enqueue(body)
                elif frame_type == frames.STOP:
                    stopping = True
                else:
                    raise frames.unexpected(frame_type, body)
                continue
            self._collect()
            if self._in_flight:
                self._show()
                self._worker.send_waiting()
                if channel.arrived(_ASK_EVERY_MS):
                    channel.fill()
            elif stopping:
                return
            else:
                self._worker.page.enter(0, WAITING)
                self._worker.wait()

    def _show(self):
        """The status page shows the oldest mini-batch in flight, since it was accepted."""
        oldest = next(iter(self._in_flight.values()))
        self._worker.page.mark(oldest.mark)
        self._worker.page.enter_since(oldest.sequence, RUNNING, oldest.began)

    def _enqueue(self, body):
        sequence, _, _, _, index, _, _, _ = _HEAD.unpack_from(body)
        if index in self._in_flight:
            raise ProtocolError(f"mini-batch {index} was sent while it is in flight")
        if not self._in_flight:
            self._worker.page.enter(sequence, LOADING)
        head = bytes(body[: _HEAD.size])
        mark = output_range.mark()
        root = self._worker.process.root
        try:
            items, skipped, mini_batch, context = work.load(body, True, root)
        except Failure as failure:
            self._worker.fail(sequence, head, 0, mark, failure)
            return
        batch = self._in_flight[index] = _InFlight(sequence, head, items, skipped, mark)
        self._show()
        try:
            self._script.enqueue(mini_batch, context)
        except BaseException as error:  # sys.exit() fails the attempt, no more
            del self._in_flight[index]
            self._fail(batch, from_exception("Exception", error, root))

    def _collect(self):
        """Answers what the script has finished."""
        if not self._in_flight or self._take_finished():
            return
        try:
            idle = (
                self._script.check_all_tasks_processed()
                and not self._script.get_processing_batch_number()
            )
        except BaseException as error:
            self._fail_all(from_exception("Exception", error, self._worker.process.root))
            return
        # What was finished between the two questions comes now; the rest never does.
        if idle and not self._take_finished():
            self._fail_all(
                Failure(
                    "BadReturn",
                    "check_all_tasks_processed() returned True, and get_finished_batch_result() "
                    "never returned this mini-batch. Return each mini-batch once, under its "
                    "mini_batch_context.minibatch_index.",
                    location=self._script.location,
                )
            )

    def _take_finished(self):
        """Answers what get_finished_batch_result() returns; True when that was anything."""
        try:
            finished = self._script.get_finished_batch_result()
            # A copy: threads of the script may go on writing into theirs.
            finished = dict(finished).items()
        except BaseException as error:
            self._fail_all(from_exception("Exception", error, self._worker.process.root))
            return True
        answered = False
        for key, entry in finished:
            batch = self._pop(key)
            if batch is not None:
                answered = True
                self._answer(batch, entry)
        return answered

    def _pop(self, key):
        """The mini-batch in flight under this id; some scripts turn ids into strings."""
        batch = self._in_flight.pop(key, None)
        if batch is None and isinstance(key, str) and key.isdigit():
            batch = self._in_flight.pop(int(key), None)
        return batch

    def _answer(self, batch, entry):
        error, returned = None, _NOTHING
        if isinstance(entry, dict):
            error = entry.get("exception")
            returned = entry.get("ret", _NOTHING)
        if isinstance(error, BaseException):
            failure = from_exception("Exception", error, self._worker.process.root)
            self._fail(batch, failure)
        elif error is not None:
            self._fail(batch, Failure("Exception", str(error), self._script.location))
        elif returned is _NOTHING:
            message = (
                "get_finished_batch_result() returned no result for this mini-batch. Return "
                '{id: {"ret": rows, "mini_batch_context": context, "exception": None}}.'
            )
            self._fail(batch, Failure("BadReturn", message, self._script.location))
        else:
            try:
                returned = read_out(returned)
            except BaseException as raised:  # the script's code runs in there
                self._fail(batch, from_exception("Exception", raised, self._worker.process.root))
                return
            now = monotonic_ns()
            self._worker.answer(
                batch.sequence,
                batch.head,
                batch.began,
                now,
                batch.mark,
                batch.items,
                batch.skipped,
                returned,
            )

    def _fail_all(self, failure):
        batches = list(self._in_flight.values())
        self._in_flight.clear()
        for batch in batches:
            self._fail(batch, failure)

    def _fail(self, batch, failure):
        run_ns = monotonic_ns() - batch.began
        self._worker.fail(batch.sequence, batch.head, run_ns, batch.mark, failure)
