"""`--output scores.csv`: one file in the format of its suffix; logs and state lie beside it."""

import json
import sys

import pytest

SCORE = """
from steps import there

def run(mini_batch):
    rows = []
    for path in mini_batch:
        text = open(path).read()
        if text == "row 1" and not there("mended"):
            raise ValueError("not yet")
        rows.append({"text": text, "size": len(text)})
    return rows
"""
QUICK = ("run", "code/score.py", "--input", "data", "--mini-batch-size", "1", "--processes", "2")


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("scores.csv", "text,size\nrow 0,5\n"),
        ("scores.jsonl", '{"text": "row 0", "size": 5}\n'),
        ("scores.txt", "{'text': 'row 0', 'size': 5}\n"),
        ("Scores.CSV", "text,size\nrow 0,5\n"),
    ],
)
def test_the_suffix_says_the_format(work, name, content):
    work.files(1)
    work.script(SCORE)
    result = work.call(*QUICK, "--output", f"made/{name}")
    assert result.code == 0, result
    made = work.root / "made"
    assert (made / name).read_text() == content
    assert names(made / f"{name}.run") == ["logs", "state"]
    assert {n for n in names(made) if not n.startswith(name)} == set()


def test_all_that_takes_an_output_takes_the_file(work):
    work.files(3)
    work.script(SCORE)
    quick = [*QUICK, "--output", "scores.csv"]
    output = work.root / "scores.csv"
    lost = work.call(*quick)
    assert lost.code == 3, lost
    assert output.read_text() == "text,size\nrow 0,5\nrow 2,5\n"
    assert f"parallelrun failures {output}.run/logs" in lost.output
    failures = work.call("failures", "scores.csv", "--paths")
    assert failures.code == 0, failures
    assert failures.output.strip() == str(work.data / "000001.txt")

    again = work.call(*quick)
    assert again.code == 2, again
    assert f"{output} exists: start over with --overwrite" in again.output
    assert "another file with --output FILE" in again.output

    work.make("mended")
    retried = work.call(*quick, "--retry-failed")
    assert retried.code == 0, retried
    whole = "text,size\nrow 0,5\nrow 1,5\nrow 2,5\n"
    assert output.read_text() == whole
    ledger = work.call("ledger", "scores.csv")
    assert ledger.code == 0, ledger
    assert "mini-batches: 3 succeeded" in ledger.output
    verified = work.call("verify", "scores.csv")
    assert verified.code == 0, verified
    assert verified.output.startswith(f"whole: {output} (3 rows")

    output.write_text("spoilt")
    assert work.call("verify", "scores.csv").code == 1
    assert work.call(*quick, "--resume").code == 0
    assert output.read_text() == whole
    output.unlink()
    assert "is not there" in work.call("verify", "scores.csv").output
    assert work.call("failures", "scores.csv").code == 0, "the run is known without its output"

    work.script("def run(mini_batch):\n    return [1] * len(mini_batch)\n")
    assert work.call(*quick, "--overwrite").code == 0
    assert output.read_text() == "Column1\n1\n1\n1\n"


def test_a_run_that_published_nothing_is_told_from_none(work):
    work.files(2)
    work.script("def run(mini_batch):\n    raise ValueError('never')\n")
    assert work.call(*QUICK, "--output", "scores.csv").code == 1
    verified = work.call("verify", "scores.csv")
    assert verified.code == 1, verified
    assert "never published" in verified.output
    failures = work.call("failures", "scores.csv")
    assert "2 items failed" in failures.output, failures
    assert work.call("verify", "other.csv").code == 2


def test_several_outputs_lie_in_the_folder_of_code_and_input(work):
    """None of them is code or input of the next run."""
    (work.root / "rows.csv").write_text("a,b\n1,2\n3,4\n")
    (work.root / "here.py").write_text(
        "import os\n"
        "def run(frame):\n"
        "    return [{'a': int(a), 'code': sorted(os.listdir('.'))} for a in frame['a']]\n"
    )
    quick = ["run", "here.py", "--input", "rows.csv", "--python", sys.executable]
    for name in ("one.csv", "two.jsonl"):
        result = work.call(*quick, "--output", name)
        assert result.code == 0, result
    result = work.call(*quick, "--output", "two.jsonl", "--overwrite")
    assert result.code == 0, result
    rows = [json.loads(line) for line in (work.root / "two.jsonl").read_text().splitlines()]
    assert [row["a"] for row in rows] == [1, 3]
    for row in rows:
        assert "two.jsonl" not in row["code"]
        assert "rows.csv" not in row["code"]
    assert work.call("verify", "one.csv").code == 0
    assert work.call("verify", "two.jsonl").code == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--input", "data", "--output", "scores.json"],
         "scores.json is a file of a format that is not written: name a file that ends in .csv"),
        (["--input", "data", "--output", "data/scores.csv"], "output"),
        (["--input", "data", "--output", "a#b.csv"], '--output: "a#b.csv" cannot name'),
    ],
)  # fmt: skip
def test_what_cannot_be_an_output_is_refused(work, words, says):
    work.files(1)
    work.script(SCORE)
    result = work.call("run", "code/score.py", *words)
    assert result.code in (1, 2), result
    assert says in result.output
    assert not (work.data / "scores.csv").exists()


def test_init_writes_the_job_of_a_file(work):
    work.files(2)
    work.script(
        "def run(mini_batch):\n    return [{'text': open(path).read()} for path in mini_batch]\n"
    )
    assert work.call("init", *QUICK[1:], "--output", "scores.csv", "--file", "made.yaml").code == 0
    result = work.call("run", "made.yaml")
    assert result.code == 0, result
    assert (work.root / "scores.csv").read_text() == "text\nrow 0\nrow 1\n"
