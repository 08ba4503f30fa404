"""The control groups of a node: a root for its kubelet in each hierarchy, and their removal."""

import time
from pathlib import Path

from waits import Limit

_TOP = Path("/sys/fs/cgroup")


def _hierarchies():
    if (_TOP / "cgroup.controllers").exists():  # version 2: one
        return [_TOP]
    return [
        folder
        for folder in _TOP.iterdir()
        if folder.is_dir() and (folder / "cgroup.procs").exists()
    ]


def make(name):
    for top in _hierarchies():
        group = top / name
        group.mkdir(exist_ok=True)
        for file in ("cpuset.cpus", "cpuset.mems"):  # of version 1; empty ones take no process
            if (group / file).exists() and not (group / file).read_text().strip():
                (group / file).write_text((top / file).read_text())
        if (group / "cgroup.controllers").exists():
            controllers = (group / "cgroup.controllers").read_text().split()
            (group / "cgroup.subtree_control").write_text(" ".join(f"+{c}" for c in controllers))


def left(prefix):
    return [group for top in _hierarchies() for group in top.glob(f"{prefix}*")]


def remove(prefix):
    """A group can be removed once its processes are gone, which takes the kernel a moment."""
    limit = Limit(30)
    while left(prefix) and not limit.over():
        for top in left(prefix):
            below = sorted((p for p in top.rglob("*") if p.is_dir()), key=lambda p: -len(p.parts))
            for group in [*below, top]:
                try:
                    group.rmdir()
                except OSError:
                    pass
        if left(prefix):
            time.sleep(0.1)
    return left(prefix)
