"""What an agent starts for each worker process; never started by hand (docs/worker-protocol.md).

It is started by its path, so that nothing of the user's can take the place of what a worker needs
before the script is imported: `python3 -m` would look for modules in the working directory first,
which is the user's code, and a `types.py` or `parallelrun.py` there would end every process.
"""

import os
import sys


def refuse(version, executable, descriptor):
    """Tells the agent that this interpreter is too old; in words that it can still read itself."""
    import json
    import struct

    body = json.dumps(
        {
            "kind": "PythonTooOld",
            "message": "%s is Python %d.%d, and ParallelRun needs 3.8 or newer: use an image that "
            "has it, or name another interpreter in spec.environment.python"
            % (executable, version[0], version[1]),
            "fatal": True,
        }
    ).encode()
    os.write(descriptor, struct.pack("<IB", len(body), 17) + body)
    return 1


def start():
    """Runs the worker process and returns its exit code."""
    if sys.version_info < (3, 8):  # noqa: UP036 - here the older ones are told
        return refuse(sys.version_info, sys.executable, 3)
    # Before anything else: what the user's script starts must not inherit the agent's descriptors.
    for descriptor in (3, 4, 5):
        os.set_inheritable(descriptor, False)
    # This folder stands in front for these imports alone, which the interpreter does by itself
    # unless PYTHONSAFEPATH is set. For the script, the user's packages come first: PYTHONPATH names
    # this folder last.
    if getattr(sys.flags, "safe_path", False):
        sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    from parallelrun.worker.main import main

    del sys.path[0]
    return main(3, 4, 5)


if __name__ == "__main__":
    sys.exit(start())
