"""A function or a class as an entry script: what `parallelrun.run` makes of them.

The object goes into a file beside a small script, by cloudpickle where that is installed, which
takes functions of notebooks with what they close over. Without it only what can be imported goes,
by its name. The worker processes look for modules where the caller does.
"""

from __future__ import annotations

import inspect
import io
import os
import pickle
import sys
from pathlib import Path
from typing import Any

# Of what a function closes over.
MOST_BYTES = 50 << 20

_PICKLE = "function.pickle"
SCRIPT_NAME = "entry.py"

_SCRIPT = '''\
"""Runs {name}, which parallelrun.run() was given."""

import os
import pickle
import sys

_MADE_UNDER = {version!r}

for _folder in {path!r}:
    if _folder not in sys.path:
        sys.path.append(_folder)


def init():
    global _target
    if list(sys.version_info[:2]) != _MADE_UNDER:
        raise RuntimeError(
            "{name} was made under Python %d.%d, and this is Python %d.%d (%s): code cannot be "
            "passed from one to the other. Leave out python=, or write it as a script"
            % (*_MADE_UNDER, *sys.version_info[:2], sys.executable)
        )
    folder = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(folder, "{pickle}"), "rb") as pickled:
        _target = pickle.load(pickled)
    {begin}


def run({parameters}):
    return _target{method}({parameters})
'''

_SHUTDOWN = """

def shutdown():
    _target.shutdown()
"""


def write_script(target: Any, folder: Path) -> Path:
    """Writes the script into an empty folder; returns its path.

    target: a function of (mini_batch) or (mini_batch, context); or a class, of which each worker
        process makes one, without arguments: with `run`, and perhaps `init()` and `shutdown()`.

    Raises TypeError for anything else, and for what cannot be pickled, and says what to do.
    """
    is_class = inspect.isclass(target)
    run = getattr(target, "run", None) if is_class else target
    if not callable(run):
        raise TypeError(
            f"{name_of(target)} is neither a script's path, nor a function, nor a class with run()"
        )
    if inspect.iscoroutinefunction(run):
        raise TypeError(
            f"{name_of(target)} is async: write it as a script, with asyncMode in a job file"
        )
    text = _SCRIPT.format(
        name=name_of(target),
        version=list(sys.version_info[:2]),
        path=[os.path.abspath(entry) for entry in sys.path],
        pickle=_PICKLE,
        begin=_begin(target) if is_class else "",
        method=".run" if is_class else "",
        parameters=_parameters(run, is_class),
    ).replace("\n    \n", "\n")
    if is_class and hasattr(target, "shutdown"):
        text += _SHUTDOWN
    (folder / _PICKLE).write_bytes(_pickled(target))
    script = folder / SCRIPT_NAME
    script.write_text(text, encoding="utf-8")
    return script


def name_of(target: Any) -> str:
    """For people."""
    return str(getattr(target, "__qualname__", type(target).__name__)).replace('"', "'")


def _begin(target: type) -> str:
    begin = "_target = _target()"
    return begin + "\n    _target.init()" if hasattr(target, "init") else begin


def _parameters(run: Any, is_class: bool) -> str:
    try:
        parameters = list(inspect.signature(run).parameters.values())[1 if is_class else 0 :]
    except (TypeError, ValueError):  # of what is written in C it is not known
        return "mini_batch"
    places = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    wanted = [one for one in parameters if one.kind in places and one.default is one.empty]
    takes = any(one.kind in (*places, one.VAR_POSITIONAL) for one in parameters)
    if len(wanted) > 2 or not takes:
        raise TypeError(f"run takes (mini_batch) or (mini_batch, context), and not {parameters}")
    return "mini_batch, context" if len(wanted) == 2 else "mini_batch"


class _TooLarge(Exception):
    pass


class _Bounded(io.BytesIO):
    """Takes no more than MOST_BYTES, so that what is larger costs no memory twice."""

    def write(self, data: Any) -> int:
        if self.tell() + len(data) > MOST_BYTES:
            raise _TooLarge
        return super().write(data)


def _pickled(target: Any) -> bytes:
    pickler: Any = pickle
    try:
        import cloudpickle  # type: ignore[import-not-found]

        pickler = cloudpickle
    except ImportError:
        if target.__module__ == "__main__" or "<locals>" in target.__qualname__:
            raise TypeError(
                f"{name_of(target)} is defined in a notebook, in the script that was started, or "
                "within a function: that needs cloudpickle. pip install 'parallelrun[notebook]', "
                "or put it into a module"
            ) from None
    stream = _Bounded()
    try:
        pickler.dump(target, stream)
    except _TooLarge:
        large = ", ".join(_large_variables(target, pickler)) or "what it closes over"
        raise TypeError(
            f"{name_of(target)} takes more than {MOST_BYTES >> 20} MiB with all that it uses of "
            f"its surroundings, and every worker process would read that: {large}. Write it to a "
            "file and read that in the function, or in init() of a class, which is called once"
        ) from None
    except (pickle.PicklingError, AttributeError) as error:
        raise TypeError(f"{name_of(target)} cannot be passed on: {error}") from error
    return stream.getvalue()


def _large_variables(target: Any, pickler: Any) -> list[str]:
    """Names of the variables that a function, or the methods of a class, take much room by."""
    members = vars(target).values() if inspect.isclass(target) else [target]
    used: dict[str, Any] = {}
    for function in filter(inspect.isfunction, members):
        try:
            found = inspect.getclosurevars(function)
        except ValueError:  # a variable that has no value yet
            continue
        used.update({**found.globals, **found.nonlocals})
    return [name for name, value in used.items() if _is_large(value, pickler)]


def _is_large(value: Any, pickler: Any) -> bool:
    stream = _Bounded()
    try:
        pickler.dump(value, stream)
    except _TooLarge:
        return True
    except Exception:  # of what cannot be passed on the whole has not come so far
        return False
    return stream.tell() > MOST_BYTES // 10
