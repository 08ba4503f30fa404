"""Measures what a worker makes of rows as CSV and Parquet, beside pandas and pyarrow themselves.

The same rows (a text, two whole numbers, a number) as a DataFrame and as dicts, in one process: CPU
time, in turns, and a ratio is that of two neighbours. The CSV of both must be equal to the byte.
"""

import argparse
import io
import random
import sys
import time
from pathlib import Path

from local_run import line

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "worker-image/python"))
# script/bootstrap test puts it here for the system's Python.
sys.path.append(str(ROOT / f"build/tools/pyarrow-{sys.implementation.cache_tag}"))

from parallelrun.worker.csv_rows import CsvRows  # noqa: E402


def columns(count):
    pick = random.Random(1)
    return {
        "text": [f"name {i % 977} of {i}" for i in range(count)],
        "id": [pick.randrange(10**9) for _ in range(count)],
        "score": [pick.random() for _ in range(count)],
        "small": [pick.randrange(100) for _ in range(count)],
    }


def spent(make):
    began = time.process_time()
    make()
    return time.process_time() - began


def compare(name, own, other_name, other, turns):
    own_s, other_s = [], []
    for turn in range(turns):
        for make, into in [(own, own_s), (other, other_s)][:: -1 if turn % 2 else 1]:
            into.append(spent(make))
    line(name, [s * 1000 for s in own_s], "ms")
    line(f"  {other_name}", [s * 1000 for s in other_s], "ms")
    ratios = [theirs / ours for ours, theirs in zip(own_s, other_s)]
    line(f"  times as fast as {other_name}", ratios, "")


def main():
    import pandas

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=40_000)
    parser.add_argument("--turns", type=int, default=7)
    options = parser.parse_args()
    frame = pandas.DataFrame(columns(options.rows))
    dicts = frame.to_dict("records")
    as_csv = CsvRows(None, False, "bench").encode
    made = as_csv(frame)
    if made != as_csv(dicts) or made.partition(b"\n")[2] != frame.to_csv(
        index=False, header=False, lineterminator="\n"
    ).encode("utf-8"):
        sys.exit("the rows of both are not those of to_csv")
    print(f"{options.rows:,} rows of text, integer, number, integer: {len(made):,} bytes of CSV")

    def to_csv():
        return frame.to_csv(io.BytesIO(), index=False)

    compare("CSV of a DataFrame", lambda: as_csv(frame), "to_csv", to_csv, options.turns)
    compare("CSV of dicts", lambda: as_csv(dicts), "to_csv of a frame", to_csv, options.turns)
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        print("Parquet is left out: there is no pyarrow (script/bootstrap test installs it)")
        return
    from parallelrun.worker.parquet_rows import ParquetRows

    def write(table):
        parquet.write_table(table, pyarrow.BufferOutputStream(), compression="zstd")

    as_parquet = ParquetRows(None, False, "bench").encode
    compare(
        "Parquet of a DataFrame",
        lambda: as_parquet(frame),
        "pyarrow, from_pandas",
        lambda: write(pyarrow.Table.from_pandas(frame)),
        options.turns,
    )
    compare(
        "Parquet of dicts",
        lambda: as_parquet(dicts),
        "pyarrow, from_pylist",
        lambda: write(pyarrow.Table.from_pylist(dicts)),
        options.turns,
    )


if __name__ == "__main__":
    main()
