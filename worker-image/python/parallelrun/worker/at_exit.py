"""What a script leaves for the end of its process: threads at work, and what it gave to atexit.

It may write results there, so that is done before the agent hears that the process has stopped, and
the job waits for it as for shutdown().
"""

import atexit
import os
import sys

from parallelrun.worker import logs

_MAX_NAMED = 10


class AtExit:
    """One per process. `root`: the folder of the user's code."""

    def __init__(self, root):
        self._inside = root + os.sep
        self._register = atexit.register
        self.any = False  # the script has given something to atexit
        atexit.register = self._note

    def _note(self, function, *args, **kwargs):
        if sys._getframe(1).f_code.co_filename.startswith(self._inside):
            self.any = True
        return self._register(function, *args, **kwargs)

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


def _wait_for_threads():
    """As the interpreter does at its end, executors and what was given to them included."""
    threading = sys.modules.get("threading")
    if threading is None:
        return
    me = threading.current_thread()
    names = [t.name for t in threading.enumerate() if t is not me and not t.daemon]
    if names:
        more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
        logs.say(f"waits for threads of the script: {', '.join(names[:_MAX_NAMED])}{more}")
    threading._shutdown()
