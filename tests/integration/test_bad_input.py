"""Inputs and outputs that cannot be used: the job ends at once, and says what to do."""

import csv
import json
import os
from pathlib import Path

import pytest
from support.refusal import expect_refusal


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
    refused(work, f"{work.data}/images does not exist", "correct where the input lies")


def test_file_names_that_are_not_utf8_or_hold_line_breaks(work):
    """They are items like others, and what is told of them gives the name back."""
    good = [b"a plain.txt", b"latin\xe4.txt", b"two\nlines.txt"]
    bad = b"bad\xff\nname.txt"
    for name in (*good, bad):
        (work.data / os.fsdecode(name)).write_text("row")
    work.script(
        "import os\n"
        "def run(mini_batch):\n"
        "    for path in mini_batch:\n"
        "        assert open(path).read() == 'row'\n"
        "        assert 'bad' not in path, path\n"
        "    return [os.fsencode(os.path.basename(path)) for path in mini_batch]\n"
    )
    work.job(runMaxTry=1, errorThreshold=1, isolateFailures=True, miniBatchSize=4)
    result = work.run()
    assert result.code == 0, result
    assert work.rows() == [repr(name) for name in good]
    letters = (work.logs / "dead-letter.jsonl").read_text().splitlines()
    assert [os.fsencode(json.loads(line)["path"]) for line in letters] == [
        os.fsencode(work.data) + b"/" + bad
    ]
    # The table of the attempts has one line for each, whatever their messages hold.
    report = (work.logs / "sys" / "job_report" / "processed_mini-batches.csv").read_text()
    assert len(report.splitlines()) == 1 + len(list(csv.reader(report.splitlines()[1:])))
    assert r"bad\udcff\nname.txt" in result.output + report
    # Where an error happened first, too, the bytes are told.
    result = work.run("--overwrite", "--set", "spec.miniBatchSize=1", "spec.isolateFailures=false")
    assert result.code == 0, result
    assert rf" ({work.data}/bad\xff\nname.txt), node 0" in result.output


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
    refused(work, f"{work.data}/table.csv:2: the quote that this field begins with is still open")


def test_table_with_a_quote_that_is_not_closed(work):
    table = {"name": "rows", "tabular": {"volume": "data", "maxFieldSize": "1KB"}}
    rows = "".join(f"{i},{i}\n" for i in range(500))
    (work.data / "a.csv").write_text("a,b\n" + rows)
    work.job(inputs=[table])
    # A field that swallows more than it may, then one to the end of its file.
    (work.data / "b.csv").write_text('a,b\n1,2\n3,"4\n' + rows)
    refused(work, f"{work.data}/b.csv:3: a field is longer than 1024 bytes", "maxFieldSize")
    (work.data / "b.csv").write_text('a,b\n1,2\n3,"4\n5,6\n')
    refused(work, f"{work.data}/b.csv:3: the quote", "still open at the end of the file")


def test_output_that_exists(work):
    rows = work.files(3)
    work.script()
    work.job()
    assert work.run().code == 0
    before = work.output.stat()
    calls = work.noted("calls")
    result = work.run()
    assert result.code == 2, result
    assert f"{work.output} exists" in result.output
    assert "--overwrite" in result.output
    assert work.output.stat() == before
    assert work.beside_index() == [work.output.name]
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
    refused(
        work,
        f'the output ("{work.out}/job/output"), the log folder ("{work.out}/job/logs"), the state',
        f'are inside the input "files" ("{work.data}")',
        "spec.output.path",
        code=2,
    )


# While the first file is worked on, something happens to the others, named by their numbers.
CHANGES = """
import os

def run(mini_batch):
    (path,) = mini_batch
    row = open(path).read()
    if path.endswith("000000.txt"):
        one, two, three, four, five, six, seven, eight = (
            path.replace("000000", f"{number:06}") for number in range(1, 9)
        )
        CHANGE
    return [row]
"""


def run_and_change(work, change):
    """Returns the failures, by number: (kind, message)."""
    work.script(CHANGES.replace("CHANGE", change))
    work.job(processCountPerNode=1, runMaxTry=1, isolateFailures=True)
    result = work.run()
    work.data.chmod(0o755)
    assert result.code == 3, result
    letters = map(json.loads, work.log_text("dead-letter.jsonl").splitlines())
    failures = {letter["path"]: (letter["kind"], letter["message"]) for letter in letters}
    for path, (_, message) in failures.items():
        assert f"{path} " in message
    return {int(Path(path).stem): failure for path, failure in failures.items()}


def test_input_that_changes_while_the_job_runs(work):
    """The row of a file that is not the one that was listed would be anybody's guess."""
    rows = work.files(9)
    changes = [
        "open(one, 'w').write('other' * 100)",
        "open(two, 'w')",
        "os.utime(three, (1, 1))",
        "os.replace(four, five)",
        "os.remove(six); os.symlink(six, six)",
        "os.remove(seven); os.mkdir(seven)",
    ]
    failures = run_and_change(work, "; ".join(changes))
    expected = {
        1: ("InputChanged", "it has 500 bytes"),
        2: ("InputChanged", "it has 0 bytes"),
        3: ("InputChanged", "time 1000000000 ns"),
        4: ("InputUnreadable", "No such file or directory"),
        5: ("InputChanged", "--overwrite"),
        6: ("InputUnreadable", "symbolic links"),
        7: ("InputChanged", "is not what was listed"),
    }
    assert sorted(failures) == sorted(expected)
    for number, (kind, words) in expected.items():
        assert failures[number][0] == kind
        assert words in failures[number][1]
    assert work.rows() == [rows[0], rows[8]]


def test_input_that_may_not_be_read_any_more(work):
    """Root is kept from nothing, so it becomes somebody else."""
    rows = work.files(3)
    change = "os.chmod(os.path.dirname(path), 0); os.geteuid() or os.seteuid(65534)"
    failures = run_and_change(work, change)
    assert sorted(failures) == [1, 2]
    for kind, message in failures.values():
        assert kind == "InputUnreadable"
        assert "Permission denied" in message
    assert work.rows() == rows[:1]
