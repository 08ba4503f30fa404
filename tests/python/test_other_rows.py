"""Rows of libraries that the package does not know, and values that no format has a type for."""

import collections
import datetime
import decimal
import enum
import json
import pathlib
import random
import sys
import types
import uuid
from pathlib import Path

import numpy
import pandas
import pytest
from parallelrun.worker import typed_values
from parallelrun.worker.csv_rows import CsvRows
from parallelrun.worker.failure import Failure
from parallelrun.worker.json_rows import JsonRows
from parallelrun.worker.parquet_rows import ParquetRows
from parallelrun.worker.plain import JsonText, Refused
from parallelrun.worker.rows import RowEncoder
from parallelrun.worker.typed_values import column

# script/bootstrap test puts it here for the system's Python.
POLARS = Path(__file__).resolve().parents[2] / "build/tools"
sys.path.append(str(POLARS / f"polars-{sys.implementation.cache_tag}"))


class Color(enum.Enum):
    RED = "red"


class Word(str, enum.Enum):
    YES = "yes"


class Level(enum.IntEnum):
    HIGH = 3


class Model:
    """As pydantic has them: what they hold is a dict of Python's own values."""

    def __init__(self, **members):
        self._members = members

    def model_dump(self):
        return {
            name: value.model_dump() if isinstance(value, Model) else value
            for name, value in self._members.items()
        }


class Root:
    """As a RootModel of pydantic."""

    def __init__(self, value):
        self._value = value

    def model_dump(self):
        return self._value


ID = uuid.UUID(int=7)
RECORD = numpy.array([(1, 0.5, "x")], [("a", "i4"), ("b", "f4"), ("c", "U1")])
BIG = decimal.Decimal("12345678901234567890.10")


def jsonl(returned):
    lines = JsonRows(False, "made.py").encode(returned).decode().splitlines()
    return [json.loads(line) for line in lines]


def csv(returned):
    """The names, and the rows as they are written."""
    names, *rows = CsvRows(None, False, "made.py").encode(returned).decode().splitlines()
    return json.loads(names), rows


@pytest.mark.parametrize(
    ("value", "as_json", "as_csv", "typed"),
    [
        (BIG, "12345678901234567890.10", "12345678901234567890.10", "text"),
        (decimal.Decimal("NaN"), None, '""', "null"),
        (ID, str(ID), str(ID), "text"),
        (pathlib.PurePosixPath("/a/b"), "/a/b", "/a/b", "text"),
        (pathlib.Path("c,d"), "c,d", '"c,d"', "text"),
        (pathlib.PureWindowsPath("C:/x"), "C:\\x", "C:\\x", "text"),
        (Color.RED, "red", "red", "text"),
        (Word.YES, "yes", "yes", "text"),
        (Level.HIGH, 3, "3", "int64"),
        (datetime.timedelta(1, 3661, 500000), "P1DT1H1M1.5S", "P1DT1H1M1.5S", None),
        (datetime.timedelta(seconds=-1), "P-1DT23H59M59S", "P-1DT23H59M59S", None),
        (datetime.timedelta(), "P0DT0H0M0S", "P0DT0H0M0S", None),
        (numpy.timedelta64(90, "m"), "P0DT1H30M0S", "P0DT1H30M0S", None),
        (numpy.timedelta64("NaT"), None, '""', None),
    ],
)
def test_values_that_json_lacks_are_the_texts_that_they_are_known_by(value, as_json, as_csv, typed):
    assert jsonl([value, [value], {"k": value}]) == [as_json, [as_json], {"k": as_json}]
    assert csv([value]) == (["Column1"], [as_csv])
    if typed is not None:
        kind, plain = column([value], JsonText(False))
        assert (kind.type, plain[0]) == (typed, as_json)


def test_durations_are_written_as_pandas_writes_its_own():
    for own in ((), (1, 2, 3), (0, 0, 1), (-3, 5), (0, 86399, 999999), (0, 10)):
        value = datetime.timedelta(*own)
        assert jsonl([value]) == jsonl([pandas.Timedelta(value)])


def test_what_holds_such_values_is_told_alike():
    row = {Color.RED: 1, ID: 2, decimal.Decimal("1.5"): 3, pathlib.PurePosixPath("p"): 4}
    told = {"red": 1, str(ID): 2, "1.5": 3, "p": 4}
    assert jsonl([row, {"in": row}]) == [told, {"in": told}]
    assert csv([row]) == (list(told), ["1,2,3,4"])


@pytest.mark.parametrize(
    "value", [numpy.timedelta64(1, "ns"), numpy.timedelta64(1, "Y"), numpy.timedelta64(2)]
)
def test_durations_that_are_no_microseconds_are_refused(value):
    with pytest.raises(Failure, match="which is no number of microseconds"):
        jsonl([value])
    with pytest.raises(Failure, match="which is no number of microseconds"):
        csv([value])


@pytest.mark.parametrize(
    ("returned", "dicts"),
    [
        (RECORD, [{"a": 1, "b": 0.5, "c": "x"}]),
        (list(RECORD), [{"a": 1, "b": 0.5, "c": "x"}]),
        (RECORD.view(numpy.recarray), [{"a": 1, "b": 0.5, "c": "x"}]),
        ([Model(a=1, b="x"), Model(b="y", a=None)], [{"a": 1, "b": "x"}, {"b": "y", "a": None}]),
        ([Model(a=Model(k=[1]), b=Color.RED)], [{"a": {"k": [1]}, "b": "red"}]),
        ([{"a": Model(k=1), "b": RECORD}],
         [{"a": {"k": 1}, "b": [{"a": 1, "b": 0.5, "c": "x"}]}]),
        ([Root({"a": 1})], [{"a": 1}]),
    ],
)  # fmt: skip
def test_records_and_models_are_rows_like_dicts(returned, dicts):
    assert jsonl(returned) == dicts
    assert csv(returned) == csv(dicts)
    pytest.importorskip("pyarrow")
    encode = ParquetRows(None, False, "made.py").encode
    assert encode(returned) == encode(dicts)


def test_a_model_that_is_a_list_is_a_row_like_a_list():
    assert jsonl([Root([1, "x"])]) == [[1, "x"]]
    assert csv([Root([1, "x"])]) == csv([[1, "x"]])
    assert csv([Root(5)]) == csv([5])


def test_missing_values_of_pandas_own_numbers_are_missing():
    for dtype in ("Float64", "Float32", "Int64", "boolean"):
        frame = pandas.DataFrame({"a": pandas.array([1, None], dtype), "b": ["x", "y"]})
        assert csv(frame)[1][1] == ",y"


ROWS = [
    {"n": 2**53 + 1, "x": 0.1, "t": "a,b", "d": datetime.date(2024, 1, 2), "l": [1, 2]},
    {"n": None, "x": None, "t": None, "d": None, "l": None},
    {"n": 3, "x": 1.0, "t": "", "d": datetime.date(2024, 1, 3), "l": []},
]


def tables():
    """A function that makes each of ROWS, where its library is there."""
    arrow = pytest.importorskip("pyarrow")
    polars = pytest.importorskip("polars")
    columns = {name: [row[name] for row in ROWS] for name in ROWS[0]}
    return [
        arrow.table(columns),
        arrow.RecordBatch.from_pydict(columns),
        polars.DataFrame(columns),
    ]


def test_tables_of_polars_and_pyarrow_are_what_their_rows_are():
    for table in tables():
        for encoder in (JsonRows(False, "made.py"), CsvRows(None, False, "made.py")):
            assert encoder.encode(plain(table)) == encoder.encode(ROWS)
        encode = ParquetRows(None, False, "made.py").encode
        assert encode(plain(table)) == encode(ROWS)
        fixed = ["x", "more", "n", "t", "d", "l"]
        encode = CsvRows(fixed, False, "made.py").encode
        assert encode(plain(table)) == encode(ROWS)


def encoder(form):
    """That of a process whose output has this format."""
    return RowEncoder(
        types.SimpleNamespace(
            summary_only=False,
            short_return_fails=False,
            component_mode=False,
            root="/nowhere",
            output_format=form,
            output_columns=[],
            nan_as_null=False,
            provenance=False,
            dataframe_header=False,
        ),
        "made.py",
    )


def plain(returned):
    """What the encoder of rows makes of it, for a format that is not text."""
    return encoder("jsonl")._plain(returned)


def test_they_are_returned_like_data_frames():
    for table in tables():
        for form in ("jsonl", "csv", "parquet", "text"):
            succeeded, rows, data = encoder(form).encode(table, 3)
            assert (succeeded, rows) == (3, 3)
            if form == "text":
                lines = data.decode().splitlines()
                assert lines[0].startswith(f'{2**53 + 1} 0.1 a,b 2024-01-02 "[1, 2]"')
                assert lines[1] == " ".join([""] * 5), "as of a DataFrame: missing is nothing"


def test_columns_of_polars_and_pyarrow_are_rows_like_a_list():
    arrow = pytest.importorskip("pyarrow")
    polars = pytest.importorskip("polars")
    values = [1, None, 3]
    for made in (arrow.array(values), arrow.chunked_array([values]), polars.Series(values)):
        assert encoder("csv").encode(made, 3)[2] == encoder("csv").encode(values, 3)[2]
        assert encoder("text").encode(made, 3)[2] == b"1\nNone\n3\n"
        row = [{"a": made, "b": made[0]}]
        assert encoder("jsonl").encode(row, 1)[2] == b'{"a": [1, null, 3], "b": 1}\n'


def test_two_columns_of_one_name_are_refused():
    arrow = pytest.importorskip("pyarrow")
    table = arrow.table([arrow.array([1]), arrow.array([2])], names=["a", "a"])
    for form in ("jsonl", "csv", "parquet"):
        with pytest.raises(Failure, match="a table with two columns 'a'"):
            encoder(form).encode(table, 1)
    assert encoder("text").encode(table, 1)[2] == b"1 2\n"


def test_a_lazy_frame_says_how_to_return_it():
    polars = pytest.importorskip("polars")
    with pytest.raises(Failure, match=r"Return its collect\(\)"):
        encoder("csv").encode(polars.LazyFrame({"a": [1]}), 1)


def test_without_pandas_a_table_is_no_text(monkeypatch):
    arrow = pytest.importorskip("pyarrow")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(Failure, match="Install pandas, or set"):
        encoder("text").encode(arrow.table({"a": [1]}), 1)


def mixed_rows(pick):
    """Dicts of one shape, each column of values that go together, or nearly so."""
    pools = [
        ["plain", "a,b", 'say "hi"', "cr\r", "", "\udce9", "é", "nan", Word.YES, numpy.str_("s")],
        ["plain", "more", "é"],
        [1, -5, 2**63 - 1, -(2**63)],
        [1, True, 2],
        [0.1, 1e300, 5e-324, float("inf"), -0.0, float("nan")],
        [1.5, numpy.float32(0.1), numpy.float64(0.1)],
        [True, False],
        [datetime.date(2024, 1, 2), pandas.NaT],
        [[1, "a"], {"k": 1}],
        [numpy.int64(3), 4],
    ]
    pools = [pick.choice([pool, pool, [*pool, None], [pool[0]]]) for pool in pools]
    count = pick.randrange(1, 12)
    return [{f"c{i}": pick.choice(pool) for i, pool in enumerate(pools)} for _ in range(count)]


def test_dicts_of_one_shape_are_what_they_are_one_by_one():
    """An OrderedDict is taken by row, a dict by column where all have the same keys."""
    pytest.importorskip("pyarrow")
    pick = random.Random(7)
    for _ in range(200):
        rows = mixed_rows(pick)
        by_row = [collections.OrderedDict(row) for row in rows]
        for fixed in ((), [*reversed(list(rows[0])), "more"]):
            encode = CsvRows(list(fixed), False, "made.py").encode
            assert encode(rows) == encode(by_row), rows
            encode = ParquetRows(list(fixed), False, "made.py").encode
            assert told(encode, rows) == told(encode, by_row), rows


def told(encode, rows):
    try:
        return encode(rows)
    except Failure as failure:
        return failure.message


@pytest.mark.parametrize(
    "values",
    [
        [1, None, 3],
        [2**63 - 1, -(2**63)],
        [2**63],
        [-(2**63) - 1, None],
        ["a", None, "é"],
        ["a", "\udce9", None],
        ["\ud83d", "\ude00"],
        [True, None],
        [0.5, float("nan"), None],
    ],
)
def test_columns_of_one_class_are_what_their_values_are_one_by_one(values):
    def outcome(make):
        try:
            return make(values, JsonText(False))
        except Refused as refused:
            return refused.row, refused.what

    assert outcome(column) == outcome(typed_values._mixed)


def test_named_tuples_stay_what_they_are():
    point = collections.namedtuple("point", "x y")
    assert csv([point(Level.HIGH, Word.YES)]) == (["x", "y"], ["3,yes"])
