"""Failures: what went wrong, in the words that the agent and the user's error log get."""

import errno
import json
import os

_MAX_MESSAGE = 4 << 10
_MAX_TRACEBACK = 64 << 10
_MAX_CAUSES = 100
_MAX_WORDS = 1000  # characters
_OF_THE_SCRIPT = ("Exception", "InitFailed")
_OWN_FRAMES = (
    os.path.dirname(__file__) + os.sep,
    "<frozen importlib",
    os.path.join(os.path.dirname(os.__file__), "profile.py"),  # profiling goes through it
)


class Failure(Exception):
    """An attempt, or the start of the process, that failed for a reason with a kind."""

    def __init__(self, kind, message, location="", fatal=False):
        super().__init__(message)
        self.kind = kind
        self.type = kind
        self.message = message
        self.location = location
        self.traceback = ""
        self.root = ""  # of the code that it names
        self.fatal = fatal
        self.output = {}  # where its output is: "stdout" and "stderr", [from, to] in bytes

    def logged(self):
        """The traceback for whoever reads it later, when the node's copy of the code is gone.

        Its files are named relative to the code, as in `location`.
        """
        return self.traceback.replace(self.root + os.sep, "") if self.root else self.traceback

    def to_json(self):
        """The failure JSON of docs/worker-protocol.md."""
        body = {
            "kind": self.kind,
            "type": self.type,
            "message": cut(self.message, _MAX_MESSAGE),
            "location": cut(self.location, _MAX_MESSAGE),
            "traceback": cut(self.logged(), _MAX_TRACEBACK),
            "fatal": self.fatal,
            **self.output,
        }
        return json.dumps(body).encode()


def from_exception(kind, error, root, message=None, fatal=False):
    """A failure because `error` was raised; `root` is the folder of the user's code."""
    frames = user_frames(error)
    location = _location(error, frames, root)
    if kind in _OF_THE_SCRIPT and _ran_out(error):
        kind = "NoSpace"
    if message is None:
        message = text_of(error) + _last_words(error) + _own_folder(error, root) + _debugger(error)
    failure = Failure(kind, message, location, fatal)
    failure.type = _type_name(error)
    failure.traceback = _format(error, frames)
    failure.root = root
    return failure


def _ran_out(error):
    """Whether the exception, or one that it was raised for, says that a disk or quota is full."""
    for _ in range(_MAX_CAUSES):
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return True
        error = error.__cause__ or error.__context__
        if error is None:
            break
    return False


def _own_folder(error, root):
    """Why a file is not there that lies in ./outputs or ./logs beside the script."""
    name = getattr(error, "filename", None)
    if not isinstance(error, FileNotFoundError) or not isinstance(name, str):
        return ""
    folder = relative(os.path.abspath(name), root).split(os.sep)[0]
    if folder not in ("outputs", "logs"):
        return ""
    from parallelrun.worker import process

    if folder == "outputs" and process.current is not None and process.current.staging:
        return (
            " With output.sideFiles: Staged there is no ./outputs: write to the folder that "
            "$(output) in an argument stands for."
        )
    return (
        f" While a job runs, ./{folder} is its own folder, and not the one of the code: what the "
        "script reads belongs into another folder, as ./model."
    )


def _debugger(error):
    """What breakpoint() and pdb.set_trace() say, where nobody can type."""
    if _type_name(error) != "bdb.BdbQuit":
        return ""
    return (
        "A debugger has no terminal here: remove breakpoint() or pdb.set_trace(), or run the item "
        "in your terminal with `parallelrun debug OUT --item FILE`."
    )


def _last_words(error):
    """What a program said on stderr that subprocess.run(capture_output=True) has started.

    The exception holds it and does not print it, so that the cause would be in no log at all.
    """
    words = getattr(error, "stderr", None) if type(error).__module__ == "subprocess" else None
    if isinstance(words, bytes):
        words = words.decode("utf-8", "replace")
    if not isinstance(words, str) or not words.strip():
        return ""
    return f" Its stderr ends with: {words.strip()[-_MAX_WORDS:]}"


def text_of(error):
    """str(error), whatever the user's exception class makes of it."""
    try:
        return str(error)
    except BaseException as second:  # the user's __str__ may raise anything
        return f"(its message cannot be printed: {type(second).__name__})"


def cut(text, limit):
    """The text as valid Unicode within `limit` bytes, its middle left out when it is longer."""
    data = text.encode("utf-8", "backslashreplace")
    if len(data) <= limit:
        return data.decode()
    note = f"\n... the middle of {len(data)} bytes is left out ...\n"
    half = (limit - len(note)) // 2
    return data[:half].decode("utf-8", "ignore") + note + data[-half:].decode("utf-8", "ignore")


def relative(path, root):
    """A path as the user knows it: relative to the code, if it is in there."""
    return path[len(root) + 1 :] if path.startswith(root + os.sep) else path


def _type_name(error):
    """The type's name as Python's tracebacks print it."""
    kind = type(error)
    if kind.__module__ in ("builtins", "__main__"):
        return kind.__qualname__
    return f"{kind.__module__}.{kind.__qualname__}"


def user_frames(error):
    """The traceback without the frames of this package and of the import system."""
    frames = error.__traceback__
    while frames is not None:
        if not frames.tb_frame.f_code.co_filename.startswith(_OWN_FRAMES):
            break
        frames = frames.tb_next
    return frames


def _location(error, frames, root):
    """file:line of the innermost frame in the user's code, else of the innermost one."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{relative(error.filename, root)}:{error.lineno}"
    found = ""
    in_code = False
    while frames is not None:
        file = frames.tb_frame.f_code.co_filename
        inside = file.startswith(root + os.sep)
        if inside or not in_code:
            found = f"{relative(file, root)}:{frames.tb_lineno}"
            in_code = inside
        frames = frames.tb_next
    return found


def _format(error, frames):
    try:
        import traceback  # the user's, where the code has a module of that name

        return "".join(traceback.format_exception(type(error), error, frames))
    except BaseException as second:  # the user's __repr__ may raise anything
        return f"(the traceback cannot be printed: {type(second).__name__})\n"
