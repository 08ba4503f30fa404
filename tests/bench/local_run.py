"""Measures `parallelrun run` beside multiprocessing.Pool, in turns, on this machine.

Prints a line per figure: the median, and the smallest and largest of the repetitions. Nothing is
asserted: speed is measured here and judged by people.
"""

import argparse
import json
import multiprocessing
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import threading
import time

EMPTY = "def run(mini_batch):\n    return mini_batch\n"
FIRST = """import os, time
def run(mini_batch):
    if not os.path.exists({path!r}):
        with open({path!r}, "w") as mark:
            mark.write(repr(time.time()))
    return mini_batch
"""


def make_files(folder, count):
    os.makedirs(folder)
    at = os.open(folder, os.O_DIRECTORY)
    for i in range(count):
        os.close(os.open(f"f{i:07d}", os.O_CREAT | os.O_WRONLY, dir_fd=at))
    os.close(at)


def command(programs, script, folder, out, batch):
    return [
        os.path.join(programs, "parallelrun"), "run", script,
        "--input", folder, "--output", out, "--mini-batch-size", str(batch),
        "--processes", "2", "--overwrite", "--set", f"spec.environment.python={sys.executable}",
    ]  # fmt: skip


class PeakMemory(threading.Thread):
    """The highest VmHWM of the coordinator that runs below `parent`, in MB."""

    def __init__(self, parent):
        super().__init__(daemon=True)
        self.parent, self.peak, self.stop = parent, 0.0, threading.Event()

    def run(self):
        while not self.stop.wait(0.02):
            self.peak = max(self.peak, self.read())

    def read(self):
        try:
            with open(f"/proc/{self.parent}/task/{self.parent}/children") as children:
                for pid in children.read().split():
                    with open(f"/proc/{pid}/status") as status:
                        fields = dict(line.split(":", 1) for line in status)
                    if fields["Name"].strip().startswith("parallelrun-coo"):
                        return int(fields["VmHWM"].split()[0]) / 1024
        except (OSError, KeyError, ValueError):
            pass
        return 0.0


def product(programs, script, folder, out, batch, mark=None):
    """Runs one job; seconds in all, seconds to the first run(), the coordinator's peak MB."""
    if mark and os.path.exists(mark):
        os.unlink(mark)
    started, wall = time.monotonic(), time.time()
    with subprocess.Popen(
        command(programs, script, folder, out, batch), stdout=subprocess.PIPE, text=True
    ) as child:
        memory = PeakMemory(child.pid)
        memory.start()
        text = child.stdout.read()
    memory.stop.set()
    took = time.monotonic() - started
    if child.returncode != 0:
        sys.exit(f"the job failed:\n{text}")
    first = 0.0
    if mark:
        with open(mark) as written:
            first = float(written.read()) - wall
    return took, first, memory.peak


def identity(path):
    return path


def pool(folder):
    """multiprocessing.Pool, chunksize 1: no ledger, no retries, no output file; start included."""
    paths = [os.path.join(folder, name) for name in sorted(os.listdir(folder))]
    started = time.monotonic()
    with multiprocessing.Pool(2) as workers:
        for _ in workers.imap_unordered(identity, paths, chunksize=1):
            pass
    return time.monotonic() - started


def in_own_folder(bench, options):
    """Calls it with a folder that is gone when it ends."""
    with tempfile.TemporaryDirectory(prefix="parallelrun-bench-") as work:
        bench(options, work)


def line(name, values, unit):
    print(
        f"{name:<58}{statistics.median(values):>12,.2f} {unit:<16}"
        f"({min(values):,.2f} to {max(values):,.2f}, {len(values)} runs)",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", required=True, help="folder of the programs")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--mini-batches", type=int, default=100_000)
    parser.add_argument("--files", type=int, default=1_000_000, help="0 skips the large listing")
    in_own_folder(bench, parser.parse_args())


def bench(options, work):
    programs, count = options.programs, options.mini_batches
    machine = {
        "machine": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "python": platform.python_version(),
    }
    print(json.dumps(machine))
    script = os.path.join(work, "code", "score.py")
    mark = os.path.join(work, "first")
    os.makedirs(os.path.dirname(script))
    with open(script, "w") as out:
        out.write(EMPTY)
    make_files(os.path.join(work, "in"), count)

    ours, theirs = [], []
    for _ in range(options.runs):
        took, _, _ = product(programs, script, f"{work}/in", f"{work}/out", 1)
        ours.append(count / took)
        theirs.append(count / pool(f"{work}/in"))
    line(f"empty run(), {count:,} one-item mini-batches, durable", ours, "mini-batches/s")
    line("multiprocessing.Pool(2).imap_unordered, chunksize 1", theirs, "tasks/s")
    line("ratio, run by run", [a / b for a, b in zip(ours, theirs)], "x")

    with open(script, "w") as out:
        out.write(FIRST.format(path=mark))
    make_files(os.path.join(work, "one"), 1)
    firsts = [product(programs, script, f"{work}/one", f"{work}/out1", 1, mark)[1:2][0]
              for _ in range(options.runs)]  # fmt: skip
    line("start of the command to the first run()", firsts, "s")

    if options.files:
        make_files(os.path.join(work, "many"), options.files)
        runs = [product(programs, script, f"{work}/many", f"{work}/out2", 10, mark)
                for _ in range(max(1, options.runs // 2))]  # fmt: skip
        line(f"{options.files:,} files: first run() after", [r[1] for r in runs], "s")
        line(
            f"{options.files:,} files: whole job, 10 files a mini-batch", [r[0] for r in runs], "s"
        )
        line(f"{options.files:,} files: coordinator's peak memory", [r[2] for r in runs], "MB")


if __name__ == "__main__":
    main()
