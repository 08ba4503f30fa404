"""Inputs and outputs that cannot be used: the job ends at once, and says what to do."""

import os
from pathlib import Path

import pytest
from support.refusal import expect_no_output, expect_refusal


def refused(work, *words, **options):
    work.script()
    if not work.job_file.exists():
        work.job()
    result = work.run()
    expect_refusal(work, result, *words, **options)
    assert work.noted("calls") == []


def test_empty_input_folder(work):
    refused(work, f"no file below {work.data}")
    # What was missing is put there: the same job goes on.
    rows = work.files(3)
    result = work.run("--resume")
    assert result.code == 0, result
    assert work.rows() == rows


def test_pattern_that_matches_nothing(work):
    work.files(3)
    work.job(inputs=[{"name": "pngs", "files": {"volume": "data", "pattern": "**/*.png"}}])
    refused(work, "**/*.png", str(work.data), "pngs")


def test_missing_input_folder(work):
    work.job(inputs=[{"name": "files", "files": {"volume": "data", "path": "images"}}])
    refused(work, f"{work.data}/images does not exist", "check the volume and path")


def test_file_name_with_a_line_break(work):
    work.files(3)
    (work.data / "two\nlines.txt").write_text("row")
    refused(work, r'"two\nlines.txt"', str(work.data), "rename it")


def test_file_name_that_is_not_utf8(work):
    work.files(3)
    Path(os.fsdecode(os.fsencode(work.data) + b"/latin\xe4.txt")).write_text("row")
    refused(work, r'"latin\xe4.txt"', str(work.data), "rename it")


def test_file_name_with_an_escape_sequence(work):
    """Such a file is read; what is printed of it does not reach the terminal as it is."""
    (work.data / "red\x1b[31m.txt").write_text("row")
    work.script("def run(mini_batch):\n    raise ValueError(mini_batch[0])\n")
    work.job(runMaxTry=1, errorThreshold=0)
    result = work.run()
    assert result.code == 1, result
    assert "red" in result.output
    assert "\x1b" not in result.output


def test_table_that_is_broken(work):
    (work.data / "table.csv").write_text('a,b\n1,"never closed\n2,3\n')
    work.job(inputs=[{"name": "t", "tabular": {"volume": "data", "format": "CSV"}}])
    work.script()
    result = work.run()
    assert result.code == 1, result
    assert f"{work.data}/table.csv, bytes 4 to 24, cannot be read" in result.output
    assert "EOF inside string" in result.output
    assert "Traceback" not in result.output
    expect_no_output(work)


def test_output_that_exists(work):
    rows = work.files(3)
    work.script()
    work.job()
    assert work.run().code == 0
    before = work.output.stat()
    calls = work.noted("calls")
    result = work.run()
    assert result.code == 2, result
    assert result.seconds < 30
    assert f"{work.output} exists" in result.output
    assert "--overwrite" in result.output
    assert work.output.stat() == before
    assert os.listdir(work.output.parent) == [work.output.name]
    assert work.rows() == rows
    assert work.noted("calls") == calls


def test_output_of_somebody_else(work):
    work.files(3)
    work.script()
    work.job()
    work.output.parent.mkdir(parents=True)
    work.output.write_text("precious\n")
    result = work.run()
    assert result.code == 2, result
    assert f"{work.output} exists" in result.output
    assert "--overwrite" in result.output
    assert os.listdir(work.output.parent) == [work.output.name]
    assert work.rows() == ["precious"]


def test_output_folder_that_is_a_file(work):
    work.files(3)
    work.out.write_text("not a folder")
    work.script()
    work.job()
    result = work.run()
    assert result.code == 2, result
    assert str(work.out) in result.output
    assert "--volume out=" in result.output
    assert work.out.read_text() == "not a folder"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_output_folder_that_is_read_only(work):
    work.files(3)
    work.out.mkdir(mode=0o555)
    refused(work, str(work.out), "Permission denied", "--volume out=")


def test_output_inside_the_input(work):
    work.files(3)
    work.out = work.data / "out"
    refused(work, 'inside the input "files"', "spec.output.path", code=2)


def test_input_that_changes_while_the_job_runs(work):
    """The row of a file that was rewritten after it had been listed would be anybody's guess."""
    work.files(3)
    work.script(
        "from steps import there\nimport os\n\n"
        "def run(mini_batch):\n"
        "    if mini_batch[0].endswith('0.txt'):\n"
        "        path = mini_batch[0].replace('0.txt', '2.txt')\n"
        "        os.path.getsize(path) > 100 or open(path, 'w').write('other' * 100)\n"
        "    return ['row']\n"
    )
    work.job(processCountPerNode=1, errorThreshold=0, runMaxTry=1)
    result = work.run()
    assert result.code == 1, result
    assert "InputChanged" in result.output
    assert "000002.txt" in result.output
    expect_no_output(work)
