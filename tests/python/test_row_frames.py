"""Random DataFrames, split into mini-batches at random: together their rows are what pandas writes
of the whole frame.

ROW_FRAMES=100000 ROW_FRAMES_SEED=7 makes more, and others.
"""

import csv
import io
import json
import os
import random
from types import SimpleNamespace

import numpy
import pandas
from parallelrun.worker.rows import RowEncoder

TEXTS = [
    "", "a", "two words", "a,b", "a;b|c\td", '"', 'say "hi"', "two\nlines", "\r\n", "'", "\\",
    "NaN", "\u00e4\u4e2d\U0001f600", "\u2028", "\ufeffx", "\udcff", "x\ud800", "1", " ", "q" * 300,
    "\0",
]  # fmt: skip
NUMBERS = [
    0.0, -0.0, 1.0, 0.1, 1 / 3, -2.5e-308, 5e-324, 1.7976931348623157e308, 1e16, 123456789.125,
    1e-5, float("inf"), -float("inf"), float("nan"),
]  # fmt: skip
INTEGERS = [0, 1, -1, 2**31, 2**53 + 1, 2**63 - 1, -(2**63)]


def column(draw, rows):
    """A column of one of the types, whose values do not depend on each other when they are written:
    pandas leaves out the time of a column in which every value is a midnight, for one.
    """
    kind = draw.randrange(14)
    texts = draw.choices(TEXTS, k=rows)
    seconds = [draw.randrange(1, 86_399) + 86_400 * draw.randrange(40_000) for _ in range(rows)]
    if kind == 0:
        return pandas.array(draw.choices(INTEGERS, k=rows), dtype="int64")
    if kind == 1:
        return pandas.array(draw.choices([*INTEGERS, None], k=rows), dtype="Int64")
    if kind == 2:
        return numpy.array(draw.choices(NUMBERS, k=rows), dtype="float64")
    if kind == 3:
        return numpy.array(draw.choices([0.1, 1e30, 3.0, float("nan")], k=rows), dtype="float32")
    if kind == 4:
        return numpy.array(draw.choices([True, False], k=rows), dtype=bool)
    if kind == 5:
        return pandas.array(draw.choices([True, False, None], k=rows), dtype="boolean")
    if kind == 6:
        return pandas.array(draw.choices([*TEXTS[:15], None], k=rows), dtype="string")
    if kind == 7:
        return pandas.Categorical(texts, categories=TEXTS)
    if kind == 8:
        times = pandas.to_datetime(seconds, unit="s", utc=True)
        return times.tz_convert(draw.choice(["UTC", "Europe/Berlin", "Asia/Kolkata"]))
    if kind == 9:
        return pandas.to_datetime(seconds, unit="s")
    if kind == 10:
        return pandas.to_timedelta(seconds, unit="s")
    if kind == 11:
        return pandas.array(draw.choices([*NUMBERS[:8], None], k=rows), dtype="Float64")
    mixed = numpy.empty(rows, dtype=object)
    values = [None, float("nan"), pandas.NaT, pandas.NA, 1, 2.5, True, b"bytes", [1, "a"], {"k": 1}]
    for row in range(rows):
        mixed[row] = texts[row] if kind == 12 or draw.random() < 0.5 else draw.choice(values)
    return mixed


def frame(draw):
    rows = draw.choice([0, 1, 2, 5, 20])
    names = draw.sample(["a", "b c", "d,e", 'f"', "", 3, "\u00e4", "x" * 50], k=draw.randrange(6))
    columns = {name: column(draw, rows) for name in names}
    index = draw.choices(range(100), k=rows) if draw.random() < 0.5 else range(rows)
    return pandas.DataFrame(columns, index=index)


def options(draw):
    """What the settings file says of DataFrame.to_csv."""
    chosen = {}
    if draw.random() < 0.5:
        chosen["sep"] = draw.choice([",", ";", "\t", "|"])
    for name, values in {
        "index": [True],
        "na_rep": ["NA", "a b"],
        "float_format": ["%.3f"],
        "quoting": [csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC],
        "lineterminator": ["\r\n"],
        "decimal": [","],
        "date_format": ["%Y-%m-%d"],
    }.items():
        if draw.random() < 0.1:
            chosen[name] = draw.choice(values)
    return chosen


def parts(whole, draw):
    """The mini-batches: runs of rows of the frame, in order."""
    cuts = sorted(draw.choices(range(len(whole) + 1), k=draw.randrange(4)))
    for begin, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
        yield whole.iloc[begin:end]


def in_bytes(text):
    """As the output has it: bytes that were not UTF-8 as they were, no other surrogates."""
    return b"".join(
        c.encode("utf-8", "surrogateescape" if "\udc80" <= c <= "\udcff" else "backslashreplace")
        for c in text
    )


def test_the_rows_of_parts_are_those_of_the_whole(tmp_path):
    seed = int(os.environ.get("ROW_FRAMES_SEED", "1"))
    draw = random.Random(seed)
    rows = 0
    for number in range(int(os.environ.get("ROW_FRAMES", "400"))):
        whole, chosen, with_header = frame(draw), options(draw), draw.random() < 0.5
        settings = {"append_row": {"pandas.DataFrame.to_csv": chosen}}
        (tmp_path / "parallel_run_step.settings.json").write_text(json.dumps(settings))
        process = SimpleNamespace(
            summary_only=False,
            output_format="text",
            short_return_fails=False,
            component_mode=False,
            root=str(tmp_path),
            dataframe_header=with_header,
        )
        headers = []

        def ask(header, headers=headers):
            headers.append(header)
            return header

        encoder = RowEncoder(process, "score.py:1", ask)
        written = b""
        for part in parts(whole, draw):
            succeeded, count, data = encoder.encode(part, len(part))
            assert succeeded == count == len(part)
            written += data
            rows += count
        where = f"seed {seed}, frame {number}: {chosen}\n{whole!r}"
        arguments = {"sep": " ", "index": False, **chosen}
        told = whole.to_csv(header=with_header, **arguments) if len(whole) else ""
        assert b"".join([*headers, written]) == in_bytes(told), where
        if len(whole.columns) > 1 and "lineterminator" not in chosen:
            read = csv.reader(io.StringIO(told, newline=""), delimiter=arguments["sep"])
            assert sum(1 for _ in read) == len(whole) + (with_header and len(whole) > 0), where
    assert rows > 500
