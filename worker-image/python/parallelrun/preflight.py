"""Whether an interpreter can run an entry script: what the command asks before it starts anything.

    main([ROOT, SCRIPT, OWN_FOLDER, FUNCTIONS, (MODULE, REASON)...])

ROOT is the code folder, SCRIPT a path below it ("": none to look at), OWN_FOLDER the folder that
modules are looked for in first ("": the root), FUNCTIONS names joined by commas, each MODULE one
that the job needs, and why. Answers on standard output with texts that each end with a zero byte:
the version, the path of the interpreter, then a part ("python" or "script") and what is wrong with
it, in turn; an empty text and a mark stand before them, the mark once more behind them. What else
is on standard output (the greeting of a sitecustomize, of a wrapper of a module system) is no part
of it. The script is parsed, and never executed.

The command waits for it: it is imported (src/cli/run/python_check.cc), so that it is compiled once,
and imports nothing itself where all is well (`re` and `json` cost as much as the rest). Older
interpreters are told too, so Python 2 must be able to compile this.
"""

import os
import sys

_MARK = "parallelrun-preflight"  # as src/cli/run/python_check.cc knows it
_AST_ONLY = 0x400  # ast.PyCF_ONLY_AST
_STAND_INS = ("azureml", "mlflow", "mltable", "opencensus")  # of parallelrun.shims
_MOST_FILES = 200  # of the user's code are read, to learn whether one changes where modules lie
# Whoever has one of these may make modules importable that are not to be found now.
_CHANGES_IMPORTS = (
    r"sys\.path|from sys import|path_hooks|meta_path|sys\.modules|addsitedir|pyximport"
    r"|import_hook|__import__|importlib|\bexec\b|\bpip\b"
)
# Whose distribution is called otherwise.
_DISTRIBUTIONS = {
    "PIL": "pillow",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python-headless",
    "dateutil": "python-dateutil",
    "dotenv": "python-dotenv",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
}
_MEND = "Fix the script and run again."

_standard_path = []  # sys.path without the user's code


def look(root, script, own_folder, functions, needs):
    """Returns what is wrong: pairs of a part and a text."""
    # With -c the working directory stands in front, where that is not switched off.
    first = 0 if getattr(sys.flags, "safe_path", False) else 1
    _standard_path[:] = sys.path[first:]
    sys.path[:first] = [own_folder, root] if own_folder else [root]
    problems = []
    tree = None
    if script:
        try:
            tree = _parse(root, script)
        except SyntaxError as error:
            place = "%s:%d" % (script, error.lineno or 1)
            problems.append(("script", "%s: SyntaxError: %s. %s" % (place, error.msg, _MEND)))
        except (OSError, IOError) as error:  # noqa: UP024 - Python 2 has both
            problems.append(("script", "%s cannot be read: %s" % (script, error.strerror)))
        except Exception:  # nested too deep, say: the worker will tell
            pass
    missing = [(name, reason) for name, reason in needs if not _found(name)]
    if tree is not None:
        lacks = [name for name in functions if not _binds(tree, name)]
        if lacks:
            problems.append(("script", _no_function(script, lacks)))
        of_script = [
            (name, "%s:%d" % (script, line)) for name, line in _imports(tree) if not _found(name)
        ]
        if of_script and not _may_change_imports(root, script, tree):
            for name, place in of_script:
                beside = _beside(root, script, name)
                if beside:
                    problems.append(
                        ("script", "%s: No module named %r. %s" % (place, name, beside))
                    )
                elif name not in [known for known, _ in missing]:
                    missing.append((name, place))
    if missing:
        problems.append(("python", _missing(missing, root)))
    return problems


def _standard(name):
    """A module of the standard library, whatever the user's code has of this name."""
    path = sys.path[:]
    sys.path[:] = _standard_path
    try:
        return __import__(name)
    finally:
        sys.path[:] = path


def _parse(root, script):
    with open(os.path.join(root, script), "rb") as file:
        source = file.read()
    try:
        return compile(source, script, "exec", _AST_ONLY, True)
    except (ValueError, TypeError) as error:  # null bytes
        place = (script, 1, None, None)
        raise SyntaxError(str(error), place)  # noqa: B904 - Python 2 has no "from"


def _no_function(script, lacks):
    if lacks == ["run"]:
        return (
            "%s:1: there is no function run(). Define run(mini_batch), which returns one element "
            "for each item that it processed." % script
        )
    return "%s:1: async mode is on, and there is no function %s. Define it." % (
        script,
        ", ".join(lacks),
    )


def _imports(tree):
    """The modules that importing the script imports for certain, without what is below them."""
    found = {}
    for node in tree.body:
        kind = type(node).__name__
        if kind == "Import":
            names = [alias.name for alias in node.names]
        elif kind == "ImportFrom" and not node.level:
            names = [node.module]
        else:
            continue
        for name in names:
            found.setdefault(name.partition(".")[0], node.lineno)
    return sorted(found.items(), key=lambda item: item[1])


def _found(name):
    """Whether the worker can import it. Nothing of it is executed."""
    if name in sys.modules or name in _STAND_INS:
        return True
    for finder in sys.meta_path:
        try:
            if finder.find_spec(name, None) is not None:
                return True
        except Exception:  # somebody else's finder, of an editable install: it may know
            return True
    return False


def _binds(tree, name):
    """Whether the module may have this name once it was imported."""
    for node in tree.body:
        if getattr(node, "name", None) == name:
            return True
    ast = _standard("ast")
    waiting = list(tree.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            if node.name in (name, "__getattr__"):
                return True
            inside = ast.walk(node)
            if any(isinstance(one, ast.Global) and name in one.names for one in inside):
                return True
            continue  # what is in it is no name of the module
        if isinstance(node, ast.alias) and (node.asname or node.name) in (name, "*"):
            return True
        if isinstance(node, ast.Name) and node.id in (name, "globals", "exec", "setattr", "vars"):
            return True
        waiting.extend(ast.iter_child_nodes(node))
    return False


def _may_change_imports(root, script, tree):
    """Whether the script, or own code that it imports, may change where modules are looked for."""
    changes = _standard("re").compile(_CHANGES_IMPORTS)
    waiting = [os.path.join(root, script)]
    known = set(waiting)
    while waiting:
        path = waiting.pop()
        try:
            with open(path, "rb") as file:
                source = file.read()
            if changes.search(source.decode("utf-8", "replace")):
                return True
            tree = compile(source, path, "exec", _AST_ONLY, True)
        except Exception:  # it cannot be read or parsed: nobody knows
            return True
        for name, _ in _imports(tree):
            for found in _own_files(root, name):
                if found not in known:
                    known.add(found)
                    waiting.append(found)
        if len(known) > _MOST_FILES:
            return True
    return False


def _own_files(root, name):
    """The files of the user's code that importing this module may execute."""
    for folder in sys.path[:2]:
        if not folder.startswith(root):
            continue
        base = os.path.join(folder, name)
        if os.path.isfile(base + ".py"):
            yield base + ".py"
        for below, _, names in os.walk(base):
            for one in names:
                if one.endswith(".py"):
                    yield os.path.join(below, one)


def _beside(root, script, name):
    """What to do about a module beside the script, where nobody looks; "": it is not there."""
    folder = os.path.dirname(script)
    for found in (os.path.join(folder, name + ".py"), os.path.join(folder, name)):
        if folder and os.path.exists(os.path.join(root, found)):
            return (
                "%s is there, but modules are looked for in the code folder, not in %s below it: "
                "import %s.%s." % (found, folder, folder.replace(os.sep, "."), name)
            )
    return ""


def _missing(missing, root):
    told = ", ".join("%r (%s)" % item for item in missing)
    text = "No module named %s in %s, Python %s. Install %s: %s" % (
        told,
        sys.executable,
        sys.version.split()[0],
        "it" if len(missing) == 1 else "them",
        _install([_DISTRIBUTIONS.get(name, name) for name, _ in missing]),
    )
    if any(":" in reason for _, reason in missing):  # a place in the script
        text += "; modules of your own belong into the code folder %s" % root
    return text


def how_to_install(module):
    """The command that installs what has this module, into this interpreter."""
    return _install([_DISTRIBUTIONS.get(module, module)])


def _install(packages):
    """The command that installs them into this interpreter."""
    python, packages = _quoted(sys.executable), " ".join(packages)
    in_environment = sys.prefix != sys.base_prefix
    mark = os.path.join(os.path.dirname(os.__file__), "EXTERNALLY-MANAGED")
    if not in_environment and os.path.exists(mark):
        # It belongs to the system, and pip leaves it alone: an environment on top of it.
        return (
            "%s -m venv --system-site-packages .venv && .venv/bin/python3 -m pip install %s, then "
            "add --python .venv/bin/python3" % (python, packages)
        )
    first = "" if _found("pip") else "%s -m ensurepip && " % python
    return "%s%s -m pip install %s" % (first, python, packages)


def _quoted(path):
    return "'%s'" % path.replace("'", "'\\''") if set(path) & set(" '\"$&()\\`;*?[]") else path


def main(arguments):
    answer = ["", _MARK, ".".join(map(str, sys.version_info[:3])), sys.executable]
    if sys.version_info >= (3, 8):  # noqa: UP036 - the command tells older ones
        root, script, own_folder, functions = arguments[:4]
        needs = list(zip(arguments[4::2], arguments[5::2]))
        for problem in look(root, script, own_folder, functions.split(","), needs):
            answer.extend(problem)
    answer.append(_MARK)
    text = "".join(one + "\0" for one in answer)
    if not isinstance(text, bytes):
        text = text.encode("utf-8", "backslashreplace")
    while text:
        text = text[os.write(1, text) :]
