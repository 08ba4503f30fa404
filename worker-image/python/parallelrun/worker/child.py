"""What children that the script starts by multiprocessing's spawn or forkserver run first.

They import the script anew, so they need what it found when it was imported here: the stand-ins,
logging, what `EntryScript` tells, and the script's module under the name that it has here.

They run this file by its path: a name is looked for in the user's code first, and a
`parallelrun.py` there ends every child, for which a Pool starts another one, without end.
"""

import os
import sys


class _EntryScript:
    """Finds the entry script under its name, which may be none that an import would find."""

    def __init__(self, name, path):
        self._name = name
        self._path = path

    def find_spec(self, name, path=None, target=None):
        if name != self._name:
            return None
        from importlib.util import spec_from_file_location

        return spec_from_file_location(name, self._path)


def _begin():
    known = sys.path[:]
    own = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    # The user's modules stay out of our imports, as in start_worker.py.
    roots = tuple({sys.base_prefix + os.sep, sys.base_exec_prefix + os.sep})
    sys.path[:] = [own, *(path for path in known if path.startswith(roots))]
    from parallelrun import shims
    from parallelrun.worker import logs, process

    sys.path[:] = known
    current = process.begin_child()
    if current is not None:
        logs.set_up(current.logging_level)
        if current.module is not None:
            sys.meta_path.insert(0, _EntryScript(*current.module))
    shims.install()


if __name__ == "__mp_main__":
    _begin()
