"""Inputs without an item, where a job says that they are no mistake."""

import csv
import sys

import pytest
from support import arrow

NEVER = "def run(mini_batch):\n    raise SystemExit('called')\n"


def day_job(work, allowed, **more):
    """A job over the tables of two folders; its output is a table too."""
    given = {"allowEmpty": allowed} if allowed else {}
    work.job(
        inputs=[
            {"name": name, "tabular": {"volume": "data", "path": name, "format": "CSV"}, **given}
            for name in ("day", "late")
        ],
        output={"volume": "out", "format": "csv", "columns": ["id", "word"], "fileName": "a.csv"},
        **more,
    )


def expect_empty(result, *inputs):
    """A run that succeeds with nothing, and says so first."""
    assert result.code == 0, result
    names = ", ".join(f"inputs[{name}]" for name in inputs)
    assert f"Succeeded (Complete): EMPTY: there was no item in {names}, which" in result.output
    for name in inputs:
        assert f"inputs[{name}]: EMPTY: no item below " in result.output, result


def test_days_with_a_header_and_no_rows_and_a_day_with_rows(work):
    def rows():
        lines = (work.output.parent / "a.csv").read_text().splitlines()
        header, *below = csv.reader(lines)
        assert header == ["id", "word"]
        return below

    for name in ("day", "late"):
        (work.data / name).mkdir()
        (work.data / name / "a.csv").write_text("id\n")
    work.script("def run(frame):\n    return [[number, 'new'] for number in frame['id']]\n")
    day_job(work, None)
    result = work.run()
    assert result.code == 1, result
    assert "InputUnusable" in result.output and "holds a row" in result.output, result
    assert "write allowEmpty: Existing beside its name" in result.output, result

    # The same run goes on: what may be empty does not change what a mini-batch is.
    day_job(work, "Existing")
    result = work.run("--resume")
    expect_empty(result, "day", "late")
    assert "columns: id; there is no row" in result.output, result
    assert rows() == []

    # Rows that come late are no part of that success.
    (work.data / "day" / "b.csv").write_text("id\n1\n")
    result = work.run("--resume")
    assert result.code == 2, result
    assert "day/b.csv (added)" in result.output, result
    result = work.run("--overwrite")
    assert result.code == 0, result
    assert "inputs[late]: EMPTY: no item below " in result.output, result
    assert "(Complete): EMPTY" not in result.output, result
    assert rows() == [["1", "new"]]

    # Nothing does not replace rows by mistake.
    (work.data / "day" / "b.csv").unlink()
    result = work.run("--overwrite")
    assert result.code == 1, result
    assert "would replace one that has something in it" in result.output, result
    assert "write allowEmpty: Missing" in result.output, result
    assert rows() == [["1", "new"]]
    (work.data / "late" / "a.csv").unlink()
    (work.data / "late").rmdir()
    day_job(work, "Missing")
    expect_empty(work.run("--overwrite"), "day", "late")
    assert rows() == []

    # One empty day after the other is no loss: the header that the last one left is no row.
    (work.data / "late").mkdir()
    day_job(work, "Existing")
    expect_empty(work.run("--overwrite"), "day", "late")
    assert rows() == []


def test_results_of_a_script_are_not_removed_for_nothing(work):
    work.script(NEVER)
    results = work.output.parent
    results.mkdir(parents=True)
    (results / "own").touch()
    work.job(
        inputs=[{"name": "day", "files": {"volume": "data"}, "allowEmpty": "Existing"}],
        output={"volume": "out", "action": "SummaryOnly"},
    )
    result = work.run("--overwrite")
    assert result.code == 2, result
    assert "inputs[day]: allowEmpty: Existing does not go with --overwrite" in result.output, result
    assert (results / "own").exists()


def of_words(work, *words):
    """A run without a job file."""
    return work.call("run", work.code / "score.py", "--python", sys.executable, *words)


def test_parquet_without_rows_and_without_a_job_file(work):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table({"id": pyarrow.array([], "int64")}), work.data / "a.parquet")
    work.script(NEVER)
    work.environment["PYTHONPATH"] = arrow.python_path()
    output = work.root / "rows.parquet"
    result = of_words(work, "--input", work.data / "a.parquet", "--output", output, "--allow-empty")
    expect_empty(result, "input")
    assert parquet.read_table(output).num_rows == 0


def test_words_of_what_need_not_be_there(work):
    work.script(NEVER)
    words = ["--input", work.data / "b.csv", "--output", work.root / "other"]
    result = of_words(work, *words, "--allow-empty")
    assert result.code == 2, result
    assert "b.csv does not exist" in result.output, result
    expect_empty(of_words(work, *words, "--allow-empty=Missing"), "input")
    work.job()
    result = work.run("--allow-empty")
    assert result.code == 2, result
    assert "--allow-empty, --output and arguments go with an entry script" in result.output, result
