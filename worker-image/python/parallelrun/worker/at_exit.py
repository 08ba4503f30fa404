"""What a script leaves for the end of its process: threads at work, and what it gave to atexit.

It may write results there, so that is done before the agent hears that the process has stopped, and
the job waits for it as for shutdown().
"""

import atexit
import os
import sys

from parallelrun.worker import logs

_MAX_NAMED = 10
_EXECUTORS = ("threading", "concurrent.futures.thread", "concurrent.futures._base")


class AtExit:
    """One per process. `root`: the folder of the user's code."""

    def __init__(self, root):
        self._inside = root + os.sep
        self._register = atexit.register
        self._any = False  # the script has given something to atexit
        atexit.register = self._note

    def _note(self, function, *args, **kwargs):
        if sys._getframe(1).f_code.co_filename.startswith(self._inside):
            self._any = True
        return self._register(function, *args, **kwargs)

    def owes(self):
        """Whether something of the script's is left for the end of the process, as it is now."""
        return self._any or bool(_at_work())

    def run(self):
        """Waits for threads, runs the handlers. The first exception of the script's, or None."""
        _wait_for_threads()
        raised = []
        known = sys.unraisablehook

        def note(unraisable):  # from Python 3.10 on
            raised.append(unraisable.exc_value)
            known(unraisable)

        sys.unraisablehook = note
        try:
            atexit._run_exitfuncs()
        except BaseException as error:  # before
            raised.append(error)
        sys.unraisablehook = known
        return next((error for error in raised if self._is_of_script(error)), None)

    def _is_of_script(self, error):
        frames = getattr(error, "__traceback__", None)
        while frames is not None:
            if frames.tb_frame.f_code.co_filename.startswith(self._inside):
                return True
            frames = frames.tb_next
        return False


def _at_work():
    """The names of the threads and processes that the interpreter waits for at its end.

    But for those of executors that have nothing to do: they end at once then. Only the insides of
    executors tell that, and other libraries and releases of Python have others: where they are not
    as they are known here, there is work, which is waited for.
    """
    try:
        return _known_at_work()
    except Exception as error:
        return [f"unknown ones ({type(error).__name__}: {error})"]


def _known_at_work():
    names = []
    of_executors = []
    threading = sys.modules.get("threading")
    if threading is not None and len(threading._active) > 1:  # asked for each mini-batch
        frames = sys._current_frames()
        for thread in threading.enumerate():
            waited_for = thread is not threading.main_thread() and not thread.daemon
            pending = getattr(thread, "pending_work_items", None)
            if pending is not None:  # that of a ProcessPoolExecutor, or of one like it
                of_executors += list(thread.processes.values())
                waited_for = len(pending) > 0
            elif thread in _queues():
                waited_for = not _rests(thread, frames.get(thread.ident))
            if waited_for:
                names.append(thread.name)
    children = sys.modules.get("multiprocessing.process")
    if children is not None and children._children:
        names += [
            child.name
            for child in children.active_children()
            if not child.daemon and child not in of_executors
        ]
    return names


def _queues():
    """Of the threads of ThreadPoolExecutors; they were daemons before Python 3.9."""
    executors = sys.modules.get("concurrent.futures.thread")
    return executors._threads_queues if executors is not None else {}


def _rests(thread, frame):
    if not _queues()[thread].empty():
        return False
    if frame is None:
        return True
    # Where it calls what was given to it, that may be none of Python's functions.
    calls = frame.f_code.co_name == "run"
    while frame is not None and frame.f_globals.get("__name__") in _EXECUTORS:
        frame = frame.f_back
    return frame is None and not calls


def _wait_for_threads():
    """As the interpreter does at its end, executors and what was given to them included."""
    names = _at_work()
    if names:
        more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
        logs.say(f"waits for threads of the script: {', '.join(names[:_MAX_NAMED])}{more}")
    threading = sys.modules.get("threading")
    if threading is not None:
        threading._shutdown()
