"""The worker process: runs the user's entry script for one agent (docs/worker-protocol.md)."""

import sys


def _refuse(version, executable, descriptor):
    """Tells the agent that this interpreter is too old; in words that it can still read itself."""
    import json
    import os
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
    sys.exit(1)


if sys.version_info < (3, 8) and sys.argv[0] == "-m":
    _refuse(sys.version_info, sys.executable, 3)
