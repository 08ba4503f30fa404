"""Parquet files whose column types are decided: the same types in every row group and file."""

import datetime
import decimal

import pytest

pandas = pytest.importorskip("pandas")
pyarrow = pytest.importorskip("pyarrow")

from parallelrun.worker import typed_parquet  # noqa: E402
from parallelrun.worker.failure import Failure  # noqa: E402
from pyarrow import parquet  # noqa: E402


@pytest.fixture
def read(tmp_path):
    """read(table, columns, groups) -> its DataFrame, two rows a row group."""

    def read(table, columns, groups=None):
        path = tmp_path / "rows.parquet"
        parquet.write_table(table, path, row_group_size=2)
        form = {"format": "parquet", "columns": columns}
        if groups is not None:
            form["rowGroups"] = groups
        return typed_parquet.read(str(path), form)

    return read


def types_of(frame):
    return [str(dtype) for dtype in frame.dtypes]


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        (pyarrow.array([1, 2, None, 4]), "float64"),
        (pyarrow.array([1, 2, None, 4], pyarrow.uint8()), "float64"),
        (pyarrow.array([2**60 + 1, 2, None, 4]), "Int64"),
        (pyarrow.array([2**63 + 1, 2, None, 4], pyarrow.uint64()), "UInt64"),
        (pyarrow.array([True, False, None, True]), "object"),
        (pyarrow.array([1, 2, 3, 4], pyarrow.int32()), "int64"),
        (pyarrow.array([1, 2, 3, 4], pyarrow.int32()), "float64"),
        (pyarrow.array([0.5, 2, None, 4], pyarrow.float32()), "float64"),
        (pyarrow.nulls(4), "float64"),
    ],
)
def test_each_row_group_has_the_type_of_the_whole(values, dtype, read):
    table = pyarrow.table({"a": values})
    column = {"name": "a", "dtype": dtype}
    frames = [read(table, [column], [group]) for group in (0, 1)]
    assert [types_of(frame) for frame in frames] == [[dtype]] * 2
    joined = pandas.concat(frames)["a"].tolist()
    for found, expected in zip(joined, values.to_pylist()):
        assert pandas.isna(found) if expected is None else found == expected


def test_casts(read):
    day = datetime.datetime(2020, 1, 2, 3, 4, 5)
    table = pyarrow.table(
        {
            "when": pyarrow.array([day, None], pyarrow.timestamp("ms")),
            "zone": pyarrow.array([day, None], pyarrow.timestamp("ms", "UTC")),
            "time": pyarrow.array([day.time(), None], pyarrow.time32("s")),
            "cost": pyarrow.array([decimal.Decimal("1.5"), None], pyarrow.decimal128(5, 1)),
        }
    )
    columns = [
        {"name": "cost", "cast": "decimal128(12, 3)"},
        {"name": "when", "cast": "timestamp[us]"},
        {"name": "zone", "cast": "timestamp[ns, tz=UTC]"},
        {"name": "time", "cast": "time64[us]"},
    ]
    frame = read(table, columns)
    assert list(frame.columns) == ["cost", "when", "zone", "time"]
    assert str(frame["cost"][0]) == "1.500"
    assert frame["when"][0] == day
    assert str(frame["zone"].dtype) == "datetime64[ns, UTC]"
    assert frame["time"][0] == day.time()


def test_what_does_not_fit_a_cast_is_no_value(read):
    old = pyarrow.array([datetime.datetime(1600, 1, 1)], pyarrow.timestamp("us"))
    with pytest.raises(pyarrow.ArrowInvalid):
        read(pyarrow.table({"a": old}), [{"name": "a", "cast": "timestamp[ns]"}])


def test_dictionaries_are_their_values(read):
    table = pyarrow.table({"a": pyarrow.array(["x", "y", None]).dictionary_encode()})
    frame = read(table, [{"name": "a"}])
    assert types_of(frame) != ["category"]
    assert frame["a"][:2].tolist() == ["x", "y"]


@pytest.mark.parametrize(("values", "dtype"), [([1, None], "int64"), ([True, None], "bool")])
def test_a_footer_that_lies_is_a_misfit(values, dtype, read):
    with pytest.raises(Failure) as raised:
        read(pyarrow.table({"a": values}), [{"name": "a", "dtype": dtype}])
    assert raised.value.kind == "Misfit"
    assert "rows.parquet: column 'a' has no missing value by what" in raised.value.message


def test_a_named_index_comes_first(tmp_path):
    frame = pandas.DataFrame({"b": [1, 2]}, index=pandas.Index([7, 8], name="id"))
    path = tmp_path / "rows.parquet"
    frame.to_parquet(path)
    columns = [{"name": "b", "dtype": "float64"}, {"name": "id", "dtype": "int64"}]
    found = typed_parquet.read(str(path), {"format": "parquet", "columns": columns})
    assert list(found.columns) == ["id", "b"]
    assert types_of(found) == ["int64", "float64"]
    assert found.index.equals(pandas.RangeIndex(2))


def test_pandas_own_integers(tmp_path):
    frame = pandas.DataFrame({"a": pandas.array([1, None], "Int64")})
    path = tmp_path / "rows.parquet"
    frame.to_parquet(path)
    columns = [{"name": "a", "dtype": "float64"}]
    found = typed_parquet.read(str(path), {"format": "parquet", "columns": columns})
    assert types_of(found) == ["float64"]
    assert str(found["a"].tolist()) == "[1.0, nan]"


@pytest.mark.parametrize(
    ("values", "decided", "dtype"),
    [
        (pandas.to_timedelta(["1s", "2s", "3s"]), "int64", "timedelta64[ns]"),
        (pandas.to_timedelta(["1s", "2s", None]), "float64", "timedelta64[ns]"),
        (pandas.to_timedelta(["1s", "2s", None]), "Int64", "timedelta64[ns]"),
        (pandas.period_range("2020-01", periods=3, freq="M"), "int64", "period[M]"),
        (pandas.PeriodIndex(["2020-01", "2020-02", None], freq="M"), "float64", "period[M]"),
        (pandas.array([True, False, True], "boolean"), "bool", "bool"),
        (pandas.array([True, False, None], "boolean"), "object", "object"),
        (pandas.array([1, 2, 3], "Int8"), "int8", "int8"),
    ],
)
def test_what_only_the_schema_of_pyarrow_tells(tmp_path, values, decided, dtype):
    """Durations were refused: "has no missing value by the footer, and has one in its rows"."""
    path = tmp_path / "rows.parquet"
    whole = pandas.DataFrame({"a": values})
    whole.to_parquet(path, row_group_size=2)
    form = {"format": "parquet", "columns": [{"name": "a", "dtype": decided}]}
    frames = [typed_parquet.read(str(path), {**form, "rowGroups": [group]}) for group in (0, 1)]
    assert [types_of(frame) for frame in frames] == [[dtype]] * 2
    for found, expected in zip(pandas.concat(frames)["a"], whole["a"]):
        assert pandas.isna(found) if pandas.isna(expected) else found == expected


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_durations_of_each_unit(unit, read):
    values = pyarrow.array([1, None, 3, 4], pyarrow.duration(unit))
    frames = [read(pyarrow.table({"a": values}), [{"name": "a", "dtype": "float64"}], [0])]
    frames.append(read(pyarrow.table({"a": values}), [{"name": "a", "dtype": "float64"}], [1]))
    assert all(frame["a"].dtype.kind == "m" for frame in frames)
    assert frames[1]["a"][0] == pandas.Timedelta(3, unit)
