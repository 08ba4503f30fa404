"""What run() returned as a row group of Parquet: the types that values have, and what is refused.

What the readers of the joined file make of it: tests/integration/test_parquet_output.py.
"""

import collections
import dataclasses
import datetime
import decimal
import json

import numpy
import pandas
import pytest
from parallelrun.worker.failure import Failure
from parallelrun.worker.origin import Origin
from parallelrun.worker.parquet_rows import ParquetRows
from parallelrun.worker.plain import JsonText
from parallelrun.worker.typed_values import column

pytest.importorskip("pyarrow")

Point = collections.namedtuple("Point", "x y")
UTC = datetime.timezone.utc
NOON = datetime.datetime(2024, 2, 29, 12)
NOON_US = 1709208000000000


@dataclasses.dataclass
class Box:
    label: str
    corners: tuple


def value_of(expression):
    names = {"Box": Box, "Point": Point, "UTC": UTC, "NOON": NOON, "odd": object()}
    names.update(datetime=datetime, decimal=decimal, numpy=numpy, pandas=pandas)
    return eval(expression, names)


def head_of(returned, columns=(), nan_as_null=False, origin=None):
    rows = ParquetRows(list(columns), nan_as_null, "made.py")
    line, _, pages = rows.encode(returned, origin).partition(b"\n")
    head = json.loads(line)
    assert head["rows"] == len(returned)
    assert sum(column.get("bytes", 0) for column in head["columns"]) == len(pages)
    return head


def types_of(returned, **options):
    """The names with their types, as "a int64, b list of double"."""
    return ", ".join(
        f"{column['name']} {'list of ' if column.get('list') else ''}{column['type']}"
        for column in head_of(returned, **options)["columns"]
    )


@pytest.mark.parametrize(
    ("returned", "types"),
    [
        ("['a', None]", "Column1 text"),
        ("[1, None, numpy.int8(3)]", "Column1 int64"),
        ("[1, 2.5, numpy.float32(0.1)]", "Column1 double"),
        ("[True, numpy.bool_(False)]", "Column1 bool"),
        ("[None, float('nan'), pandas.NA, pandas.NaT]", "Column1 null"),
        ("[b'x', bytearray(b'y')]", "Column1 bytes"),
        ("[NOON, pandas.Timestamp(NOON), numpy.datetime64(NOON), pandas.NaT]", "Column1 timestamp"),
        ("[NOON.replace(tzinfo=UTC)]", "Column1 timestampUtc"),
        ("[NOON.date()]", "Column1 date"),
        ("[NOON.time()]", "Column1 time"),
        ("[[1, 'a'], ('b',)]", None),
        ("[{'a': [1, 2]}, {'a': {'k': 1}}, {'a': []}, {'a': 'text'}]", "a text"),
        ("[{'a': numpy.array([1])}, {'a': None}]", "a list of int64"),
        ("[{'a': numpy.array([1])}, {'a': numpy.array([0.5], 'float16')}]", "a list of double"),
        ("[{'a': numpy.array([], bool)}]", "a list of bool"),
        ("[{'a': numpy.array([[1, 2]])}, {'a': numpy.array(['x'])}]", "a text"),
        ("numpy.arange(4).reshape(2, 2)", "Column1 int64, Column2 int64"),
        ("pandas.Series([1.5, 2])", "Column1 double"),
        ("[{'b': 1}, {'a': 'x', 'b': None}]", "b int64, a text"),
        ("[Point(1, 'p'), (2.5, None)]", "x int64, y text, Column1 double, Column2 null"),
        ("[Box('cat', (1, 2))]", "label text, corners text"),
        ("""pandas.DataFrame({'i': numpy.array([1], 'uint8'), 'u': numpy.array([1], 'uint64'),
           'f': numpy.array([1], 'float32'), 'b': [True], 's': ['x'], 'n': [None]})""",
         "i int64, u int64, f double, b bool, s text, n null"),
        ("""pandas.DataFrame({'t': pandas.to_datetime(['2024-01-01', None]),
           'z': pandas.to_datetime(['2024-01-01', None]).tz_localize('UTC'),
           'c': pandas.Categorical(['x', None]), 'I': pandas.array([1, None], 'Int64'),
           'f': [numpy.nan, numpy.nan]})""",
         "t timestamp, z timestampUtc, c text, I int64, f double"),
    ],
)  # fmt: skip
def test_kinds_of_values_make_types(returned, types):
    value = value_of(returned)
    if types is None:  # a row is a list, so its values are columns
        with pytest.raises(Failure, match="is a text, and that of row 0 is a whole number"):
            types_of(value)
    else:
        assert types_of(value) == types


@pytest.mark.parametrize(
    ("values", "plain"),
    [
        ([1, 2.5, None], [1.0, 2.5, None]),
        ([0.5, float("nan"), float("inf")], [0.5, None, float("inf")]),
        ([2**63 - 1, -(2**63)], [2**63 - 1, -(2**63)]),
        ([NOON, numpy.datetime64(NOON), pandas.NaT], [NOON_US, NOON_US, None]),
        ([numpy.datetime64("2024-02-29")], [NOON_US - 12 * 3600 * 10**6]),
        ([datetime.datetime(1, 1, 1)], [-62135596800000000]),
        ([["é", 1], {"k": None}], ['["é", 1]', '{"k": null}']),
        (["a\udce9", "b"], ["a\\udce9", "b"]),
        ([["a\udce9"]], ['["a\\\\udce9"]']),
    ],
)
def test_values_are_kept(values, plain):
    assert column(values, JsonText(False))[1] == plain


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        ("[1, 'x']", "Row 1 (counted from 0) of what run() returned cannot be Parquet: ['Col"),
        ("[1, 'x']", "is a text, and that of row 0 is a whole number. Return one type in each"),
        ("[{'a': True}, {'a': 1}]", "['a'] is a whole number, and that of row 0 is a truth value"),
        ("[NOON, NOON.replace(tzinfo=UTC)]", "a moment with a zone, and that of row 0 is a moment"),
        ("[NOON, NOON.date()]", "is a date, and that of row 0 is a moment without a zone"),
        ("[{'a': numpy.array([1])}, {'a': 1}]", "and that of row 0 is an array of int64. Return"),
        ("[1, 2 ** 63]", "Row 1 (counted from 0)"),
        ("[2 ** 63]", "is 9223372036854775808, and whole numbers have 64 bits. Return a text."),
        ("[2 ** 53 + 1, 0.5]", "is 9007199254740993 beside numbers of type double"),
        ("[{'a': numpy.array([2 ** 53 + 1])}, {'a': numpy.array([0.5])}]", "a double does not"),
        ("[{'a': numpy.array([2 ** 64 - 1], 'uint64')}]", "64 bits do not hold"),
        ("pandas.DataFrame({'a': numpy.array([2 ** 64 - 1], 'uint64')})", "have 64 bits"),
        ("[pandas.Timestamp(1)]", "and moments have microseconds"),
        ("[numpy.datetime64(1, 'ns')]", "and moments have microseconds"),
        ("[numpy.datetime64(10 ** 15, 's')]", "and moments have microseconds"),
        ("[datetime.timedelta(1)]", "of type timedelta, and Parquet has no durations"),
        ("[numpy.timedelta64(1, 's')]", "of type timedelta64, and Parquet has no durations"),
        ("[NOON.time().replace(tzinfo=UTC)]", "a time of day with a zone"),
        ("[decimal.Decimal(1), 1]", "is a whole number, and that of row 0 is a text"),
        ("[{'a': {'b': odd}}]", "['a']['b'] is of type object"),
        ("[{'a': [float('nan')]}]", "['a'][0] is nan. JSON has no such number"),
        ("[{}]", "is without any column"),
        ("pandas.DataFrame(index=range(2))", "is without any column"),
        ("[{'a': 1, 1: 2, '1': 3}]", "a row with two columns '1'"),
        ("pandas.DataFrame([[1, 2]], columns=['a', 'a'])", "a table with two columns 'a'"),
        ("[{'n' * (1 << 20): 1}]", "one of 1 columns, whose names take"),
    ],
)  # fmt: skip
def test_what_parquet_cannot_say_is_refused_with_its_place(returned, words):
    with pytest.raises(Failure) as failed:
        head_of(value_of(returned))
    assert failed.value.kind == "BadReturn" and failed.value.location == "made.py"
    assert words in failed.value.message


def test_columns_of_the_job_come_in_its_order_and_no_others_are_taken():
    assert types_of([{"a": 1}], columns=["b", "a"]) == "b null, a int64"
    assert types_of(pandas.DataFrame({"a": [1]}), columns=["b", "a"]) == "b null, a int64"
    assert types_of([[1, "x"]], columns=["b", "a"]) == "b int64, a text"
    with pytest.raises(Failure, match=r"the column 'c', which output\.columns lacks: b, a"):
        head_of([{"c": 1}], columns=["b", "a"])


def test_rows_without_a_value_are_a_head_alone():
    head = head_of([{"a": None}, {"a": None}])
    assert head["columns"] == [{"name": "a", "type": "null"}]


def test_provenance_adds_columns():
    origin = Origin(7, ["/in/a", "/in/b"], 2)
    types = types_of([{"a": 1}, {"a": 2}], origin=origin)
    assert types == "a int64, _file text, _row int64, _minibatch int64"
    with pytest.raises(Failure, match=r"with the column '_row', which output\.provenance adds"):
        head_of([{"_row": 1}, {"_row": 2}], origin=origin)
