"""Measures tables that are summed with pandas by `parallelrun run`, beside bare pandas in a Pool.

The same files by three: with types that are decided once, with types of each mini-batch, and by
multiprocessing.Pool in a process of its own. In turns, each with its start; a ratio is that of two
neighbours. Then small files, ten a mini-batch, whose script calls pandas itself.
"""

import argparse
import os
import random
import subprocess
import sys
import time

from local_run import in_own_folder, line

SCRIPT = """import pandas

def total(frame):
    return float(frame.select_dtypes("number").sum().sum())

def run(mini_batch):
    if isinstance(mini_batch, pandas.DataFrame):
        return [total(mini_batch)]
    return [sum(total(pandas.read_csv(path)) for path in mini_batch)]
"""
POOL = """import multiprocessing, os, sys
import pandas
from score import total

def of_file(path):
    return total(pandas.read_csv(path))

if __name__ == "__main__":
    folder, processes, chunk = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    paths = [os.path.join(folder, name) for name in sorted(os.listdir(folder))]
    with multiprocessing.Pool(processes) as workers:
        print(sum(workers.imap_unordered(of_file, paths, chunksize=chunk)))
"""
HEADER = "id,price,quantity,customer,day,comment\n"
COMMENTS = ("as ordered", "late", '"two parts, one late"', "", "left at the door")


def rows(count, seed):
    pick = random.Random(seed)
    return "".join(
        f"{i},{pick.random() * 1000:.2f},{pick.randrange(100)},C{pick.randrange(10**6):06d},"
        f"2026-{i % 12 + 1:02d}-{i % 28 + 1:02d},{COMMENTS[i % len(COMMENTS)]}\n"
        for i in range(count)
    ).encode()


def make_tables(folder, megabytes, size=8_000_000):
    """Files of about `size` bytes, of other bytes each and with the same work to do."""
    os.makedirs(folder)
    block = rows(100_000, 1)
    block += block[: block.rfind(b"\n", 0, max(0, size - len(block))) + 1]
    for i in range(max(2, megabytes * 1_000_000 // len(block))):
        with open(os.path.join(folder, f"t{i:05d}.csv"), "wb") as out:
            out.write(HEADER.encode() + b"%d,0,0,,,\n" % i + block)


def make_small(folder, count):
    os.makedirs(folder)
    block = HEADER.encode() + rows(50, 2)
    for i in range(count):
        with open(os.path.join(folder, f"s{i:06d}.csv"), "wb") as out:
            out.write(block)


def seconds_of(command, folder):
    started = time.monotonic()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    took = time.monotonic() - started
    if done.returncode != 0:
        sys.exit(f"{command} failed:\n{done.stdout}{done.stderr}")
    return took, done.stdout


class Bench:
    def __init__(self, options, work):
        self.options, self.work = options, work
        for name, text in (("score.py", SCRIPT), ("pool.py", POOL)):
            with open(os.path.join(work, name), "w") as out:
                out.write(text)

    def product(self, folder, *words):
        out = os.path.join(self.work, "out")
        took, _ = seconds_of(
            [os.path.join(self.options.programs, "parallelrun"), "run", "score.py",
             "--input", folder, "--output", out, "--processes", str(self.options.processes),
             "--overwrite", "--set", f"spec.environment.python={sys.executable}",
             "--set", "spec.errorThreshold=-1", *words],
            self.work,
        )  # fmt: skip
        with open(os.path.join(out, "parallel_run_step.txt")) as text:
            return took, sum(map(float, text))

    def pool(self, folder, chunk):
        took, said = seconds_of(
            [sys.executable, "pool.py", folder, str(self.options.processes), str(chunk)], self.work
        )
        return took, float(said)

    def in_turns(self, what, ways, ratios):
        """`ways`: name -> call; `ratios`: pairs of these names."""
        took = {name: [] for name in ways}
        totals = []
        for turn in range(self.options.pairs):
            # Each is as often in front of its neighbour as behind it.
            for name in list(ways) if turn % 2 == 0 else reversed(list(ways)):
                seconds, total = ways[name]()
                took[name].append(seconds)
                totals.append(total)
        if max(totals) - min(totals) > 1e-6 * abs(totals[0]):
            sys.exit(f"the sums differ: {sorted(totals)}")
        for name, values in took.items():
            line(f"{what}, {name}", values, "s")
        for ours, theirs in ratios:
            speed = [b / a for a, b in zip(took[ours], took[theirs])]
            line(f"{ours} beside {theirs}", speed, "x as fast")


def bench(options, work):
    it = Bench(options, work)
    load = os.getloadavg()[0]
    print(f"{os.cpu_count()} cores, load {load:.1f}, {options.processes} processes", flush=True)
    if options.megabytes:
        folder = os.path.join(work, "tables")
        make_tables(folder, options.megabytes)
        size = ("--format", "csv", "--mini-batch-size", "16mb")  # each file is one mini-batch
        each = ("--set", "spec.inputs[0].tabular.typing=PerMiniBatch")
        it.in_turns(
            f"{options.megabytes} MB of CSV",
            {
                "decided types": lambda: it.product(folder, *size),
                "typing: PerMiniBatch": lambda: it.product(folder, *size, *each),
                "Pool": lambda: it.pool(folder, 1),
            },
            [
                ("decided types", "typing: PerMiniBatch"),
                ("decided types", "Pool"),
                ("typing: PerMiniBatch", "Pool"),
            ],
        )
    if options.files:
        folder = os.path.join(work, "small")
        make_small(folder, options.files)
        files = ("--format", "files", "--mini-batch-size", "10")
        it.in_turns(
            f"{options.files:,} small files",
            {
                "ten a mini-batch": lambda: it.product(folder, *files),
                "Pool, chunksize 10": lambda: it.pool(folder, 10),
            },
            [("ten a mini-batch", "Pool, chunksize 10")],
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", required=True, help="folder of the programs")
    parser.add_argument("--megabytes", type=int, default=520, help="of tables; 0 leaves them out")
    parser.add_argument("--files", type=int, default=5_000, help="small ones; 0 leaves them out")
    parser.add_argument("--pairs", type=int, default=7, help="runs of each")
    parser.add_argument("--processes", type=int, default=2)
    in_own_folder(bench, parser.parse_args())


if __name__ == "__main__":
    main()
