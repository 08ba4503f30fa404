"""Parquet files whose row groups and files pandas would read as different types."""

import sys

import pytest
from support import arrow

pyarrow = pytest.importorskip("pyarrow")

from pyarrow import parquet  # noqa: E402

TYPES = """
def run(mini_batch):
    kinds = [f"{name} {dtype}" for name, dtype in mini_batch.dtypes.items()]
    rows = mini_batch.to_csv(header=False, index=False, sep=" ").splitlines()
    return [", ".join(kinds) + ": " + row for row in rows]
"""


def run(work, *words, options=None, **tables):
    for name, columns in tables.items():
        table = pyarrow.table(columns)
        path = work.data / f"{name}.parquet"
        parquet.write_table(table, path, row_group_size=2, **(options or {}))
    work.script(TYPES)
    work.job(
        inputs=[{"name": "rows", "tabular": {"volume": "data", "format": "Parquet"}}],
        environment={
            "python": sys.executable,
            "env": [{"name": "PYTHONPATH", "value": arrow.python_path()}],
        },
    )
    return work.run(*words)


def test_an_integer_column_with_a_missing_value_is_a_number_in_all_row_groups(work):
    result = run(
        work,
        a={"id": [1, 2, None, 4], "big": [2**60 + 1, 2, None, 4], "ok": [True, True, None, False]},
        b={
            "ok": [True],
            "big": [5],
            "id": pyarrow.array([9], pyarrow.int32()),
        },
    )
    assert result.code == 0, result
    assert "columns: id float64, big Int64, ok object" in result.output
    assert work.rows() == [
        f"id float64, big Int64, ok object: {row}"
        for row in (f"1.0 {2**60 + 1} True", "2.0 2 True", "  ", "4.0 4 False", "9.0 5 True")
    ]


def test_files_that_no_type_holds_are_refused_by_name(work):
    result = run(work, a={"id": [1, 2]}, b={"id": ["x", "y"]})
    assert result.code == 1, result
    assert f'{work.data}/b.parquet: its column "id" is text, that of {work.data}/a.parquet' in (
        result.output
    )


def test_a_file_with_another_column_is_refused_by_name(work):
    result = run(work, a={"id": [1, 2]}, b={"id": [3], "more": [4]})
    assert result.code == 1, result
    assert f'{work.data}/b.parquet: it has a column "more", which' in result.output


@pytest.mark.parametrize("page", ["1.0", "2.0"])
@pytest.mark.parametrize("codec", ["NONE", "SNAPPY", "GZIP", "ZSTD"])
def test_types_are_kept_where_the_footer_counts_no_missing_values(work, codec, page):
    """As Impala, old parquet-mr and parquet-rs write it: ids became 4.0."""
    result = run(
        work,
        options={"write_statistics": False, "compression": codec, "data_page_version": page},
        a={
            "id": pyarrow.array([4, 5, 6], pyarrow.int32()),
            "ok": [True, False, True],
            "no": pyarrow.array([1, None, 2], pyarrow.int32()),
        },
    )
    assert result.code == 0, result
    assert "columns: id int32, ok bool, no float64\n" in result.output
    assert work.rows() == [
        f"id int32, ok bool, no float64: {row}" for row in ("4 True 1.0", "5 False ", "6 True 2.0")
    ]


def test_what_no_page_tells_is_warned_of(work):
    result = run(
        work,
        options={"write_statistics": False, "compression": "LZ4"},
        a={"id": pyarrow.array([4, 5], pyarrow.int32()), "name": ["x", "y"]},
    )
    assert result.code == 0, result
    assert "columns: id float64, name; warning: the files do not say whether" in result.output
    assert "in the column id (float64), so it is read as if some were" in result.output


def test_durations_and_periods_are_what_they_are(work):
    """They are stored as integers, so the footer says that they are such."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "d": pandas.to_timedelta(["1s", "2s", None]),
            "p": pandas.period_range("2020-01", periods=3, freq="M"),
            "ok": pandas.array([True, False, True], "boolean"),
        }
    )
    frame.to_parquet(work.data / "a.parquet", row_group_size=2)
    result = run(work)
    assert result.code == 0, result
    assert work.rows() == [
        f"d timedelta64[ns], p period[M], ok bool: {row}"
        for row in (
            '"0 days 00:00:01" 2020-01 True',
            '"0 days 00:00:02" 2020-02 False',
            " 2020-03 True",
        )
    ]


def test_row_groups_count_where_the_footer_says_no_row(work):
    """As repeated_no_annotation.parquet of parquet-testing: "not that of a Parquet file"."""
    path = work.data / "a.parquet"
    parquet.write_table(pyarrow.table({"id": range(6)}), path, store_schema=False)
    whole = path.read_bytes()
    rows = b"\x16\x0c\x19\x1c"  # field 3: 6, field 4: a list of one struct
    assert whole.count(rows) == 1
    path.write_bytes(whole.replace(rows, b"\x16\x00\x19\x1c"))
    result = run(work)
    assert result.code == 0, result
    assert work.rows() == [f"id int64: {number}" for number in range(6)]


def test_two_columns_of_one_name_are_refused(work):
    table = pyarrow.Table.from_arrays([pyarrow.array([1, 2])] * 2, names=["id", "id"])
    parquet.write_table(table, work.data / "a.parquet")
    result = run(work)
    assert result.code == 1, result
    assert f'{work.data}/a.parquet: it has two columns "id"' in result.output
    again = run(work, "--set", "spec.inputs[0].tabular.typing=PerMiniBatch")
    assert again.code == 0, again
    assert work.rows() == ["id int64, id int64: 1 1", "id int64, id int64: 2 2"]
