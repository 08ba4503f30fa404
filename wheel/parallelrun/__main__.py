"""Starts the bundled command: `parallelrun …`, or `python -m parallelrun …`.

The interpreter that runs this is the default for the workers: the environment that calls is the
environment that works.
"""

import os
import signal
import sys

# What pipx and `uv tool` leave in an environment that they keep for one command.
TOOL_MARKS = ("pipx_metadata.json", "uv-receipt.toml")


def environment():
    """The command's environment variables; PARALLELRUN_PYTHON is the workers' default."""
    variables = dict(os.environ)
    variables.pop("PARALLELRUN_PYTHON", None)
    # Nothing of the user's is in the environment of a tool: one that is active goes before it.
    of_a_tool = any(os.path.exists(os.path.join(sys.prefix, name)) for name in TOOL_MARKS)
    active = variables.get("VIRTUAL_ENV") or variables.get("CONDA_PREFIX")
    if sys.executable and not (of_a_tool and active):
        variables["PARALLELRUN_PYTHON"] = sys.executable
    return variables


def main():
    """Becomes the command; does not return. `demo` is Python's own, and calls the command."""
    if sys.argv[1:2] == ["demo"]:
        # By its path: where this file was started by its name, the package is not on the path.
        sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        from parallelrun import demo

        sys.exit(demo.main(sys.argv[2:]))
    bundle = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bundle")
    library = os.path.join(bundle, "lib")
    loader = os.path.join(library, "ld.so")
    # Python ignores these, and the command would inherit that.
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(ignored, signal.SIG_DFL)
    words = [loader, "--library-path", library, "--argv0", "parallelrun"]
    words += [os.path.join(bundle, "bin", "parallelrun"), *sys.argv[1:]]
    os.execve(loader, words, environment())  # noqa: S606 - the words are not for a shell


if __name__ == "__main__":
    main()
