"""A job tried on some of its items: --limit, --sample, --only; --dry-run, which runs nothing."""

import json
import os
import shlex
import sys

import pytest

SCORE = """
import os

def run(mini_batch):
    return [os.path.basename(path) for path in mini_batch]
"""

NOT_YET = """
import os

def run(mini_batch):
    fixed = os.path.exists(os.environ["TEST_FOLDER"] + "/fix")
    if "000003.txt" in mini_batch[0] and not fixed:
        raise ValueError("not yet")
    return [os.path.basename(path) for path in mini_batch]
"""

ROWS = """
def run(mini_batch):
    return [str(value) for value in mini_batch["a"]]
"""


@pytest.fixture
def images(work):
    (work.root / "score.py").write_text(SCORE)
    work.files(40)
    return ["run", "score.py", "--input", "data", "--output", "out"]


def rows(work, out="out"):
    return (work.root / out / "parallel_run_step.txt").read_text().splitlines()


def names(*numbers):
    return [f"{number:06}.txt" for number in numbers]


def test_the_first_items(work, images):
    result = work.call(*images, "--limit", "13")
    assert result.code == 0, result
    assert "--limit: the first 13 items are taken\n" in result.output
    assert rows(work) == names(*range(13))


def test_the_first_rows_of_a_table(work):
    (work.root / "score.py").write_text(ROWS)
    (work.root / "t.csv").write_text("a,b\n" + "".join(f"{i},x\n" for i in range(900)))
    words = ["run", "score.py", "--input", "t.csv", "--output", "out", "--mini-batch-size", "1KB"]
    words += ["--python", sys.executable]
    result = work.call(*words, "--limit", "401")
    assert result.code == 0, result
    assert rows(work) == [str(i) for i in range(401)]


def test_a_sample_is_the_same_each_time_and_from_everywhere(work, images):
    assert work.call(*images, "--sample", "8").code == 0
    first = rows(work)
    assert len(first) == 8
    assert first == sorted(first)
    assert first != names(*range(8))
    assert work.call(*images, "--sample", "8", "--overwrite").code == 0
    assert rows(work) == first


def test_only_these(work, images):
    result = work.call(*images, "--only", "data/000031.txt", "000002.txt")
    assert result.code == 0, result
    assert rows(work) == names(2, 31)


def test_what_is_not_there_is_told_before_anything_is_started(work, images):
    result = work.call(*images, "--only", "000002.txt", "000040.txt")
    assert result.code == 2, result
    assert "nothing was started" in result.output
    assert "--only: no input has 000040.txt (did you mean 000000.txt, " in result.output
    assert not (work.root / "out").exists()


def test_a_trial_and_the_whole_are_different_runs(work, images):
    assert work.call(*images, "--limit", "5").code == 0
    refused = work.call(*images)
    assert refused.code == 2, refused
    (work.root / "out" / "parallel_run_step.txt").rename(work.root / "aside.txt")
    refused = work.call(*images)
    assert refused.code == 2, refused
    assert "a trial of this job, of the first 5 items (--limit), has finished" in refused.output
    (work.root / "aside.txt").rename(work.root / "out" / "parallel_run_step.txt")
    refused = work.call(*images, "--resume")
    assert refused.code == 2, refused
    assert "--limit: 5 -> (none)" in refused.output
    assert rows(work) == names(*range(5))
    assert work.call(*images, "--limit", "5", "--resume").code == 0
    assert work.call(*images, "--overwrite").code == 0
    assert rows(work) == names(*range(40))


def test_a_trial_is_resumed_with_the_same_words(work, images):
    (work.root / "score.py").write_text(NOT_YET)
    words = [*images, "--mini-batch-size", "1", "--sample", "40"]
    assert work.call(*words).code == 3
    work.make("fix")
    result = work.call(*words, "--retry-failed")
    assert result.code == 0, result
    assert "were added" not in result.output
    assert rows(work) == names(*range(40))


def test_what_is_left_says_that_it_is_of_a_trial(work, images):
    words = [*images[:-1], "out.jsonl", "--events", "jsonl"]
    result = work.call(*words, "--limit", "5")
    assert result.code == 0, result
    told = "the first 5 items (--limit)"
    assert f"  trial         of {told} alone\n" in result.output
    events = [json.loads(line) for line in result.output.splitlines() if line.startswith("{")]
    assert events[-1]["trial"] == told
    index = (work.root / "out.jsonl.index.jsonl").read_text().splitlines()
    assert json.loads(index[0])["trial"] == told
    assert told in (work.root / "out.jsonl.run" / "logs" / "report.html").read_text()
    verified = work.call("verify", "out.jsonl")
    assert verified.code == 0, verified
    assert verified.output.endswith(f"bytes), of a trial on {told}\n")
    whole = work.call(*words, "--overwrite")
    assert whole.code == 0, whole
    assert "trial" not in whole.output.replace('"trial":""', "")
    assert "trial" not in (work.root / "out.jsonl.index.jsonl").read_text()
    assert "trial" not in work.call("verify", "out.jsonl").output


def test_a_job_that_overwrites_by_itself_loses_nothing_to_a_trial(work):
    rows = work.files(6)
    work.script()
    work.job(output={"volume": "out", "ifExists": "Overwrite"})
    assert work.run().code == 0
    refused = work.run("--limit", "2")
    assert refused.code == 2, refused
    assert "start over with --overwrite" in refused.output
    assert work.rows() == rows
    assert work.run("--limit", "2", "--overwrite").code == 0
    assert work.rows() == rows[:2]
    assert work.run().code == 0
    assert work.rows() == rows


def test_items_and_rows_are_those_of_the_whole_run(work, images):
    words = [*images[:-1], "{}.jsonl", "--set", "spec.output.provenance=true"]

    def origins(name, *more):
        result = work.call(*[word.format(name) for word in words], *more)
        assert result.code == 0, result
        text = (work.root / f"{name}.jsonl").read_text()
        return [json.loads(line) for line in text.splitlines()]

    (work.root / "score.py").write_text(
        "def run(batch):\n    return [{'text': open(path).read()} for path in batch]\n"
    )
    whole = origins("whole")
    assert origins("front", "--limit", "25") == whole[:25]
    chosen = origins("chosen", "--only", "000007.txt", "000030.txt")
    for row in chosen:
        del row["_row"], row["_minibatch"]
    assert chosen == [{key: whole[i][key] for key in ("text", "_file")} for i in (7, 30)]


def test_names_that_would_do_harm(work):
    names = [
        "a b'\"$(touch harm).txt",
        "line\nbreak.txt",
        "-rf.txt",
        "*.txt",
        "\udce9.txt",
        "über.txt",
    ]
    (work.root / "score.py").write_text(SCORE.replace("path)", "path).encode('utf8', 'replace')"))
    for name in [*names, "plain.txt"]:
        (work.data / name).touch()
    words = ["run", "score.py", "--input", "data", "--output"]
    for index, name in enumerate(names):
        result = work.call(*words, f"out{index}", "--only", f"data/{name}")
        assert result.code == 0, (name, result)
        assert "--only: 1 file is taken" in result.output
        assert len(rows(work, f"out{index}")) == 1, name
    result = work.call(*words, "none", "--only", "line\nbrake.txt")
    assert result.code == 2, result
    assert "no input has line\\nbrake.txt (did you mean line\\nbreak.txt?)" in result.output
    assert not (work.root / "harm").exists()


def test_the_command_that_retries_a_trial_is_told(work, images):
    (work.root / "score.py").write_text(NOT_YET)
    result = work.call(*images, "--mini-batch-size", "1", "--only", "000003.txt", "000004.txt")
    assert result.code == 3, result
    command = result.output.split("To retry them: ")[1].splitlines()[0]
    work.make("fix")
    assert work.call(*shlex.split(command)[1:]).code == 0
    assert rows(work) == names(3, 4)


def test_one_choice_at_a_time(work, images):
    result = work.call(*images, "--limit", "5", "--sample", "3")
    assert result.code == 2, result
    assert "excludes" in result.output


def test_a_dry_run_says_what_a_run_would_take_and_leaves_nothing(work, images):
    before = sorted(os.listdir(work.root))
    result = work.call(*images, "--dry-run", "--processes", "3", "--mini-batch-size", "7")
    assert result.code == 0, result
    for line in (
        "  files         40, 230 bytes",
        "  items         40",
        "  mini-batches  6",
        "  processes     3 (1 node x 3, ",
        f"  output        {work.root}/out/parallel_run_step.txt",
        "nothing was started, and nothing was written",
    ):
        assert line in result.output, (line, result)
    left = [name for name in sorted(os.listdir(work.root)) if not name.startswith("command-")]
    assert left == before
    assert os.listdir(work.temporary) == []


def test_a_dry_run_takes_what_the_trial_would(work, images):
    result = work.call(*images, "--dry-run", "--only", "000007.txt", "--quiet")
    assert result.code == 0, result
    assert "  items         1\n" in result.output
    assert not (work.root / "out").exists()


def test_a_dry_run_tells_what_is_wrong(work, images):
    (work.root / "score.py").write_text("import not_there\n\ndef walk(b):\n    return b\n")
    result = work.call(*images, "--dry-run", "--limit", "3")
    assert result.code == 2, result
    assert "script: score.py:1: there is no function run()" in result.output
    assert "No module named 'not_there'" in result.output
