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


def run(work, *words, **tables):
    for name, columns in tables.items():
        table = pyarrow.table(columns)
        parquet.write_table(table, work.data / f"{name}.parquet", row_group_size=2)
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
