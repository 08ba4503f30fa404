"""One mini-batch in a terminal: what `parallelrun debug` becomes.

The script is imported, initialised and called as a worker process does it, from its own folder
instead of a copy, with the terminal for a debugger. There is no agent, so nothing is reported, and
what a script writes beside its rows goes to a folder that is removed.
"""

import importlib
import os
import shutil
import struct
import sys
import time

from parallelrun import shims
from parallelrun.worker import logs, process, script, work
from parallelrun.worker.channel import ProtocolError
from parallelrun.worker.failure import Failure, from_exception, user_frames
from parallelrun.worker.rows import RowEncoder, read_out

FAILED, CANNOT_START, INTERRUPTED = 1, 2, 130

_SEQUENCE = struct.Struct("<Q")
_SHOWN = 20  # rows
_LONGEST = 500  # characters of a row
_READ = 1 << 20


class _Ended(Exception):
    """The user's code raised; it was told of."""


def main(start_descriptor, work_descriptor, folder, flags):
    """Runs the Work in one descriptor, of the job in the other; returns the exit status.

    folder: what the script writes lies below it; it is removed at the end.
    """
    try:
        body = _SEQUENCE.pack(1) + _read_all(work_descriptor)
        this = process.begin(_read_all(start_descriptor), folder)
        os.makedirs(this.output_folder, exist_ok=True)
        if not all(_wait_for_editor(port) for port in _editor_ports(flags)):
            return CANNOT_START
        return _Session(this, "--pdb" in flags).run(body)
    except ProtocolError as error:
        logs.say(error)
        return CANNOT_START
    except KeyboardInterrupt:
        return INTERRUPTED
    except _Ended:
        return FAILED
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class _Session:
    def __init__(self, this, pdb):
        self._process = this
        self._pdb = pdb
        this.takes_metrics = False  # without an agent: they go to a file

    def run(self, body):
        this = self._process
        if this.async_mode:
            logs.say("async mode keeps several mini-batches at once, which debug cannot do yet")
            return CANNOT_START
        process.set_environment(this)
        process.prepare_children(this)
        logs.set_up(this.logging_level)
        shims.install()
        user = self._guarded(f"importing {this.entry_script}", script.load, this)
        if user.init is not None:
            self._call("init()", self._init, user.init)
        items, _, mini_batch, context = self._guarded(
            "reading the input", work.load, body, user.with_context, this.root
        )
        given = (mini_batch,) if context is None else (mini_batch, context)
        _say(f"run() of {work.describe(body)}, {items} item{'' if items == 1 else 's'}")
        returned = self._call("run()", lambda: read_out(user.run(*given)))
        encoder = RowEncoder(this, user.location)
        _, rows, data = self._guarded("what run() returned", encoder.encode, returned, items)
        self._show(rows, bytes(data))
        return 0

    def _init(self, init):
        returned = init()
        if hasattr(returned, "__await__"):
            import asyncio

            asyncio.run(_wait_for(returned))

    def _call(self, what, function, *given):
        """Calls the user's function, and says how long that took."""
        began = time.monotonic()
        try:
            returned = function(*given)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # as in a worker process, sys.exit() is a failure too
            self._tell(what, error)
            raise _Ended from None
        _say(f"{what} took {time.monotonic() - began:.3g} s")
        return returned

    def _guarded(self, what, function, *given):
        """Calls one of ours, which may run into the user's code."""
        try:
            return function(*given)
        except KeyboardInterrupt:
            raise
        except Failure as failure:
            cause = failure.__context__
            if cause is not None and user_frames(cause) is not None:
                self._tell(what, cause, failure.message)
            else:
                _say(f"{failure.kind}: {failure.message}")
            raise _Ended from None
        except ProtocolError:
            raise
        except BaseException as error:  # __str__ of an element is the user's code
            self._tell(what, error)
            raise _Ended from None

    def _tell(self, what, error, message=""):
        failure = from_exception("Exception", error, self._process.root)
        logs.flush()
        sys.stderr.write(failure.traceback)
        _say(f"{what} failed at {failure.location}" + (f": {message}" if message else ""))
        frames = user_frames(error)
        if self._pdb and frames is not None:
            import pdb  # noqa: T100 - it is what was asked for

            pdb.post_mortem(frames)
        elif not self._pdb:
            _say("--pdb starts a debugger there, and breakpoint() in the script one earlier")

    def _show(self, count, data):
        if self._process.summary_only:
            _say(f"{count} elements returned; with SummaryOnly there are no rows")
            return
        _say(f"{count} row{'' if count == 1 else 's'}" + (":" if count else ""))
        lines = data.decode("utf-8", "backslashreplace").splitlines()
        logs.flush()
        for line in lines[:_SHOWN]:
            print(_shown(line))
        if len(lines) > _SHOWN:
            logs.flush()
            _say(f"and {len(lines) - _SHOWN} more")


def _editor_ports(flags):
    name = "--debugpy="
    return [int(flag[len(name) :]) for flag in flags if flag.startswith(name)]


def _wait_for_editor(port):
    """Before anything of the script runs, so that breakpoints anywhere in it are met."""
    try:
        debugpy = importlib.import_module("debugpy")
    except ImportError:
        _say(f"debugpy is not installed: {sys.executable} -m pip install debugpy")
        return False
    try:
        debugpy.listen(("127.0.0.1", port))
    except (OSError, RuntimeError) as error:
        _say(f"debugpy cannot listen on port {port}: {error}. Choose another one")
        return False
    _say(f"waiting for an editor to attach to 127.0.0.1:{port}; Ctrl-C ends it")
    debugpy.wait_for_client()
    return True


async def _wait_for(awaitable):
    return await awaitable


def _read_all(descriptor):
    parts = []
    offset = 0
    while True:
        part = os.pread(descriptor, _READ, offset)  # wherever the position is
        if not part:
            break
        parts.append(part)
        offset += len(part)
    os.close(descriptor)
    return b"".join(parts)


def _shown(line):
    """A row as a terminal may have it: no control characters, and not without end."""
    text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."


def _say(message):
    logs.flush()
    logs.say(message)
