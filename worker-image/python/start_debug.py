"""What `parallelrun debug` becomes: one mini-batch in this terminal. Never started by hand.

Started by its path, for the reason that start_worker.py has.
"""

import os
import sys


def start():
    """Runs the mini-batch and returns the exit status."""
    if sys.version_info < (3, 8):  # noqa: UP036 - here the older ones are told
        sys.stderr.write("ParallelRun needs Python 3.8 or newer: choose another with --python\n")
        return 2
    for descriptor in (3, 4):
        os.set_inheritable(descriptor, False)
    if getattr(sys.flags, "safe_path", False):
        sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    from parallelrun.worker.debug import main

    # The script is run where it lies, and nothing of a look at a mini-batch stays there.
    sys.dont_write_bytecode = True
    del sys.path[0]
    return main(3, 4, sys.argv[1], sys.argv[2:])


if __name__ == "__main__":
    sys.exit(start())
