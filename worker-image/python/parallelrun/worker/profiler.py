"""The profile of a process: the script's import and functions, on the main thread."""

import os
import signal
import sys

from parallelrun.worker import logs
from parallelrun.worker.failure import Failure

_MODULES = ("cProfile", "profile")


class Profiler:
    """Collects from `wrap`ped functions; `write` leaves the file. One per process."""

    def __init__(self, process):
        if process.profiling not in _MODULES:
            raise Failure(
                "InitFailed",
                f"profiling is {process.profiling!r}; it must be one of {', '.join(_MODULES)}",
                fatal=True,
            )
        self._path = process.profile
        self._process_id = os.getpid()
        self._dispatching = False
        self._told = None  # the SIGTERM that came meanwhile
        self._previous = signal.SIG_DFL
        if process.profiling == "cProfile":
            import cProfile

            self._profile = cProfile.Profile()
            self._call = self._call_c
        else:
            import profile

            self._profile = profile.Profile()
            self._dispatch = self._profile.dispatcher
            self._profile.dispatcher = self._until_sigterm
            self._call = self._call_python
        self.catch_sigterm()

    def _call_c(self, function, *arguments):
        # Not runcall(): its frame would stand in the tracebacks of the user's exceptions.
        self._profile.enable()
        try:
            return function(*arguments)
        finally:
            self._profile.disable()

    def _call_python(self, function, *arguments):
        try:
            return self._profile.runcall(function, *arguments)
        finally:
            # Without it a second call finds the stack of the first.
            self._profile.simulate_cmd_complete()

    def _until_sigterm(self, frame, event, argument):
        # A call out of nowhere, as a signal's handler is, fails an assertion of the profiler's.
        if frame.f_code is Profiler._on_sigterm.__code__:
            sys.setprofile(None)
            return
        self._dispatching = True
        try:
            self._dispatch(frame, event, argument)
        finally:
            self._dispatching = False
            if self._told:
                told, self._told = self._told, None
                self._end(*told)

    def wrap(self, function):
        """The function, profiled."""

        def profiled(*arguments):
            return self._call(function, *arguments)

        return profiled

    def wrap_functions(self, script):
        """Profiles the functions of the entry script."""
        for name, value in vars(script).items():
            if callable(value):
                setattr(script, name, self.wrap(value))

    def catch_sigterm(self):
        """Writes the profile when the process is told to end; what the script does then stays."""
        current = signal.getsignal(signal.SIGTERM)
        if current != self._on_sigterm:
            self._previous = current
            signal.signal(signal.SIGTERM, self._on_sigterm)

    def _on_sigterm(self, number, frame):
        if self._dispatching:  # its counts are half written
            self._told = (number, frame)
        else:
            self._end(number, frame)

    def _end(self, number, frame):
        if os.getpid() == self._process_id:  # not in a child that the script forked
            self.write()
        if callable(self._previous):
            self._previous(number, frame)
        elif self._previous != signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    def write(self):
        """Writes the profile collected so far; the call that is running counts no further."""
        sys.setprofile(None)
        try:
            os.makedirs(os.path.dirname(self._path), exist_ok=True)
            self._profile.dump_stats(self._path)
        except OSError as error:
            logs.say(f"cannot write {self._path}: {error}")
