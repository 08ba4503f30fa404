"""`python3 -m parallelrun.worker`: started by the agent, never by hand."""

import os
import sys


def start():
    """Runs the worker process and returns its exit code."""
    # Before anything else: what the user's script starts must not inherit the agent's descriptors.
    for descriptor in (3, 4):
        os.set_inheritable(descriptor, False)
    # `-m` puts the working directory, the user's code, in front of the standard library. It goes
    # back there when the script is imported (script.py), not while this package imports its own.
    if sys.path and sys.path[0] in ("", os.getcwd()):
        del sys.path[0]
    from parallelrun.worker.main import main

    return main(3, 4)


if __name__ == "__main__":
    sys.exit(start())
