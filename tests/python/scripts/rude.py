"""Does to its process what scripts in the wild do: the first argument says what."""

import os
import subprocess
import sys
import threading


def run(mini_batch):
    what = sys.argv[1]
    if what == "exit":
        os._exit(7)
    if what == "close":
        os.closerange(3, 1024)
    if what == "close-low":
        os.closerange(3, 100)
    if what == "thread":
        threading.Thread(target=print, args=("from a thread",)).start()
    if what in ("fork", "fork-exit"):
        child = os.fork()
        if child == 0:
            return ["from a forked child"]
        os.waitpid(child, 0)
        if what == "fork-exit":
            os._exit(7)
    if what == "leave-child":
        subprocess.Popen(["sleep", "60"])
    if what == "count-descriptors":
        listing = subprocess.run(["ls", "/proc/self/fd"], stdout=subprocess.PIPE, check=True)
        return [listing.stdout.decode().split()]
    return mini_batch
