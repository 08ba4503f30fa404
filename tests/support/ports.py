"""Ports for the programs that tests start: no two alike in all suites that run on a machine."""

import fcntl
import os
import random
import socket
import tempfile
from pathlib import Path

_FOLDER = Path(tempfile.gettempdir()) / f"parallelrun-ports-{os.getuid()}"
_kept = []  # locks, until this process ends


def free_port(host="0.0.0.0"):
    """A port that nobody listens on, and that no other call has returned whose process still runs.

    Programs bind it later, and again after a restart: it is below those that the kernel gives to
    whoever connects.
    """
    _FOLDER.mkdir(mode=0o700, exist_ok=True)
    kernels = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text()
    below = max(int(kernels.split()[0]), 20_000)
    while True:
        port = random.randrange(10_000, below)
        lock = os.open(_FOLDER / str(port), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with socket.socket() as probe:
                probe.bind((host, port))
        except OSError:
            os.close(lock)
            continue
        _kept.append(lock)
        return port
