"""Finds and imports the entry script, and tells how its run() is called."""

import importlib
import importlib.util
import os
import sys

from parallelrun.worker import output_range
from parallelrun.worker.failure import Failure, from_exception, relative
from parallelrun.worker.process import tell_children_of_script

_MEND = "Fix the script and run again."
_VARARGS, _VARKEYWORDS = 0x04, 0x08  # inspect's CO_…; importing inspect costs 12 ms


class Script:
    """The functions of the entry script. `init` and `shutdown` may be None."""

    def __init__(self, module, path, root):
        self.init = _optional(module, "init")
        self.shutdown = _optional(module, "shutdown")
        self.run = getattr(module, "run", None)
        self._check_run(path, root)

    def _check_run(self, path, root):
        file = relative(path, root)
        if not callable(self.run):
            raise Failure(
                "ScriptInvalid",
                f"{file}:1: there is no function run(). Define run(mini_batch), which returns one "
                "element for each item that it processed.",
                location=f"{file}:1",
                fatal=True,
            )
        code = getattr(self.run, "__code__", None)
        line = getattr(code, "co_firstlineno", 1)
        self.location = f"{relative(getattr(code, 'co_filename', path), root)}:{line}"
        count = _positional_arguments(self.run)
        if count == 0:
            raise Failure(
                "ScriptInvalid",
                f"{self.location}: run() takes no positional argument. "
                "Define it as run(mini_batch) or run(mini_batch, mini_batch_context).",
                location=self.location,
                fatal=True,
            )
        self.with_context = count > 1
        _check_required(self.run, "run", ("mini_batch", "mini_batch_context"), path, root)
        _check_required(self.init, "init", (), path, root)


class AsyncScript:
    """The functions of an entry script that takes several mini-batches at once."""

    FUNCTIONS = (
        "enqueue",
        "check_all_tasks_processed",
        "get_finished_batch_result",
        "get_processing_batch_number",
    )

    def __init__(self, module, path, root):
        file = relative(path, root)
        missing = [name for name in self.FUNCTIONS if _optional(module, name) is None]
        if missing:
            raise Failure(
                "ScriptInvalid",
                f"{file}:1: async mode is on, and there is no function {', '.join(missing)}. "
                f"Define {', '.join(self.FUNCTIONS)}, or switch async mode off to use run().",
                location=f"{file}:1",
                fatal=True,
            )
        self.init = _optional(module, "init")
        self.shutdown = _optional(module, "shutdown")
        self.enqueue = module.enqueue
        self.check_all_tasks_processed = module.check_all_tasks_processed
        self.get_finished_batch_result = module.get_finished_batch_result
        self.get_processing_batch_number = module.get_processing_batch_number
        _check_required(self.init, "init", (), path, root)
        code = getattr(self.get_finished_batch_result, "__code__", None)
        line = getattr(code, "co_firstlineno", 1)
        self.location = f"{relative(getattr(code, 'co_filename', path), root)}:{line}"


def load(process):
    """Imports the entry script on the calling thread. Raises Failure only."""
    path, parts = _find(process.root, process.entry_script)
    sys.path.insert(0, process.root)
    own_folder = os.path.dirname(path)
    if process.script_folder_first and own_folder != process.root:
        sys.path.insert(0, own_folder)
    sys.argv = [path, *process.arguments]
    file = relative(path, process.root)
    try:
        module = _import(path, parts, process)
        return (AsyncScript if process.async_mode else Script)(module, path, process.root)
    except Failure:
        raise
    except SyntaxError as error:
        failure = from_exception("ScriptInvalid", error, process.root, fatal=True)
        failure.location = failure.location or f"{file}:1"  # null bytes have no place
        failure.message = f"{failure.location}: {error.msg}. {_MEND}"
        raise failure from None
    except BaseException as error:  # importing runs the user's code
        raise init_failed(error, f"importing {file}", process) from None


def init_failed(error, doing, process):
    """The failure of an import or an init() that raised `error`."""
    failure = from_exception("InitFailed", error, process.root)
    if isinstance(error, SystemExit):
        words = output_range.last_words(process.output_mark)
        failure.message = (
            f"{doing} ended the process with sys.exit({error.code!r})"
            + (f", after {words!r} on stderr." if words else ".")
            + " With argparse, use parse_known_args()."
        )
    elif isinstance(error, ModuleNotFoundError):
        failure.message += ". " + _mend_import(error.name or "", failure.location, process.root)
    return failure


def _mend_import(name, location, root):
    """What to do about a module that is missing; it may lie beside the file that imports it."""
    folder = os.path.dirname(location.rpartition(":")[0])
    beside = os.path.join(folder, *name.split("."))
    for found in (beside + ".py", beside):
        if folder and name and os.path.exists(os.path.join(root, found)):
            package = folder.replace(os.sep, ".")
            return (
                f"{found} is there, but modules are looked for in the code folder, not in {folder} "
                f"below it: import {package}.{name}."
            )
    own = "A module of your own belongs into the code folder."
    if not name:
        return f"Install it (on a cluster: in the image). {own}"
    from parallelrun import preflight  # no process needs it where all is well

    return (
        f"Install it: {preflight.how_to_install(name.partition('.')[0])} (on a cluster: in the "
        f"image). {own}"
    )


def _find(root, entry):
    """The script's absolute path, and the parts of its module's name."""
    if entry.endswith(".py"):
        candidates = [entry]
    else:
        module = entry.replace(".", os.sep)
        candidates = [module + ".py", os.path.join(module, "__init__.py")]
    for candidate in candidates:
        path = os.path.normpath(os.path.join(root, candidate))
        inside = relative(path, root)
        if inside != path and os.path.isfile(path):
            parts = inside[: -len(".py")].split(os.sep)
            return path, parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts
    scripts = sorted(name for name in os.listdir(root) if name.endswith(".py"))[:10]
    raise Failure(
        "ScriptMissing",
        f"The entry script {entry} is not in the code folder, which holds "
        f"{', '.join(scripts) or 'no Python file at its top'}. Set entryScript to a path inside "
        "the code folder, or to a dotted module name.",
        location=entry,
        fatal=True,
    )


def _import(path, parts, process):
    """Imports the file under its dotted name, its package first, so relative imports work."""
    *packages, name = parts
    if "." in name:  # score.v2.py: pickle would look for a package `score`
        name = f"entry_script_{name.replace('.', '_')}"
    if packages and all(package.isidentifier() for package in packages):
        parent = importlib.import_module(".".join(packages))
        name = f"{parent.__name__}.{name}"
    known = sys.modules.get(name)
    if known is not None:
        if getattr(known, "__file__", None) == path:
            return known  # its own package imported it
        # A name of the standard library: the script runs, but does not take its place.
        name = f"entry_script_{name}"
    # Not import_module: a folder of the same name, or a built-in module, would win over the file.
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    try:
        code = spec.loader.get_code(name)
    except ValueError as error:
        raise SyntaxError(str(error), (path, 1, None, None)) from None
    sys.modules[name] = module
    tell_children_of_script(process, name, path)
    exec(code, module.__dict__)  # noqa: S102 - running the user's script is what this is for
    return module


def _check_required(function, name, given, path, root):
    """Refuses a function that asks for more than it is called with: it would fail each time."""
    code = getattr(function, "__code__", None)
    if type(function) is not type(_find) or code is None:
        return
    names = code.co_varnames
    positional = names[len(given) : code.co_argcount - len(function.__defaults__ or ())]
    keyword = names[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    known = function.__kwdefaults__ or {}
    wanted = [*positional, *(word for word in keyword if word not in known)]
    if not wanted:
        return
    location = f"{relative(code.co_filename or path, root)}:{code.co_firstlineno}"
    raise Failure(
        "ScriptInvalid",
        f"{location}: {name}() asks for {', '.join(wanted)}, and nobody gives it that. Define it "
        f"as {name}({', '.join(given)}), or give what is more a default.",
        location=location,
        fatal=True,
    )


def _optional(module, name):
    function = getattr(module, name, None)
    return function if callable(function) else None


def _positional_arguments(run):
    """How many of (mini_batch, mini_batch_context) run() takes."""
    code = getattr(run, "__code__", None)
    if type(run) is not type(_find) or code is None:
        return _signature_arguments(run)
    count = code.co_argcount
    if count < 2 and code.co_flags & _VARARGS:
        # def wrapper(*args): what it wraps knows better.
        wrapped = getattr(run, "__wrapped__", None) or _forwards_to(run)
        return 2 if wrapped is None else _positional_arguments(wrapped)
    return min(count, 2)


def _forwards_to(wrapper):
    """What a decorator without functools.wraps has wrapped: the one function that it knows."""
    if not wrapper.__code__.co_flags & _VARKEYWORDS:  # only (*args, **kwargs) passes all on
        return None
    known = []
    for cell in wrapper.__closure__ or ():
        try:
            known.append(cell.cell_contents)
        except ValueError:  # empty: deleted, or not assigned yet
            pass
    functions = [value for value in known if type(value) is type(wrapper)]
    return functions[0] if len(functions) == 1 else None


def _signature_arguments(run):
    """The same for bound methods, partials and other callables."""
    import inspect

    try:
        parameters = inspect.signature(run).parameters.values()
    except (TypeError, ValueError):
        return 1  # not written in Python
    if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
        return 2
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return min(sum(parameter.kind in positional for parameter in parameters), 2)
