"""What children that the script starts by multiprocessing's spawn or forkserver run first.

They import the script anew, so they need what it found when it was imported here: the stand-ins,
logging, and what `EntryScript` tells.
"""

from parallelrun import shims
from parallelrun.worker import logs, process

_current = process.begin_child()
if _current is not None:
    logs.set_up(_current.logging_level)
shims.install()
