"""Where the user's words go: print and root logging to stdout, failures to the error log."""

import faulthandler
import fcntl
import importlib.util
import os
import sys
import time

_OUT_OF_THE_WAY = 200  # of scripts that close descriptors wholesale, as in channel.py
_LINE = "%(asctime)s|%(levelname)s|%(process)d|%(thread)d|%(message)s"


def set_up(level):
    """Prepares stdout and stderr, which are files, and root logging at `level`."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)
    if "logging" in sys.modules:
        _set_up_root(sys.modules["logging"], level)
    else:
        sys.meta_path.insert(0, _LoggingFinder(level))


def flush():
    """Sends on what the script has written to stdout and stderr."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:  # the script may have put anything there
            pass


def formatter():
    """Lines as `2026-03-01 12:00:00,123|INFO|pid|tid|message`, in UTC like all other logs."""
    import logging

    lines = logging.Formatter(_LINE)
    lines.converter = time.gmtime
    return lines


def append_error(path, title, failure):
    """Appends a failure with its whole traceback to the error log of this process."""
    import threading

    now = time.time()
    stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(now))
    text = (
        f"{stamp},{int(now % 1 * 1000):03d}|ERROR|{os.getpid()}|{threading.get_ident()}|"
        f"{title}: {failure.type}: {failure.message}\n{failure.logged()}"
    )
    if failure.output:
        ranges = [(name, *part) for name, part in failure.output.items() if part[0] < part[1]]
        wrote = ", ".join(f"bytes {begin} to {end} of {name}" for name, begin, end in ranges)
        text += f"What it wrote: {wrote}\n" if wrote else ""
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "a", encoding="utf-8", errors="backslashreplace") as log:
            log.write(text)
    except OSError as error:
        say(f"cannot write {path}: {error}")


def append_skipped(path, title, rows):
    """Appends rows that were left out of a mini-batch: (path, line, reason) each."""
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "a", encoding="utf-8", errors="backslashreplace") as log:
            log.writelines(
                f"{title}: {_one_line(file)}:{line}: {reason}\n" for file, line, reason in rows
            )
    except OSError as error:
        say(f"cannot write {path}: {error}")


def _one_line(path):
    """The path without what would end the line, as a name may hold it."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in path)


def say(message):
    """A line of our own on stderr, past whatever the script made of sys.stderr."""
    try:
        os.write(2, f"parallelrun: {message}\n".encode("utf-8", "backslashreplace"))
    except OSError:
        pass


def tell_stacks_on(signal_number, descriptor):
    """Has a signal write the stacks of all threads there, also when nothing else runs any more.

    The descriptor is moved out of the way of the script.
    """
    if signal_number:
        stacks = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _OUT_OF_THE_WAY)
        faulthandler.register(signal_number, file=stacks, all_threads=True)
    os.close(descriptor)


class _LoggingFinder:
    """Sets up root logging as soon as the script imports it; importing it up front costs 6 ms."""

    def __init__(self, level):
        self._level = level

    def find_spec(self, name, path=None, target=None):
        if name != "logging":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            _set_up_root(module, self._level)

        spec.loader.exec_module = exec_module
        return spec


def _set_up_root(logging, level):
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(formatter())
    logging.root.addHandler(handler)
    logging.root.setLevel(level)
