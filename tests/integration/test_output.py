"""The output file is one run's, and stays what that run published: claims, what appears meanwhile,
and what is damaged later."""

import hashlib
import json
import shutil
import signal

import pytest
from support.processes import expect_nothing_running
from support.workspace import drains, rows_without

NAME = "parallel_run_step.txt"
INDEX = f"{NAME}.index.jsonl"

# Waits in each mini-batch until it is let go.
WAITING = """
from steps import note, wait_for

def run(mini_batch, context):
    note("calls", context.minibatch_index)
    wait_for("go")
    return [open(path).read() for path in mini_batch]
"""


def output_of(work):
    return work.out / "job" / "output" / NAME


def beside(work):
    return sorted(path.name for path in output_of(work).parent.iterdir())


@pytest.fixture
def other(work):
    """A second job file, with other rows: another state folder, the same output."""
    work.files(5)
    work.script()
    work.job(
        inputs=[{"name": "files", "files": {"volume": "data", "pattern": "*[0-3].txt"}}],
        logs={"volume": "out", "path": "other/logs"},
        state={"volume": "out", "path": "other/state"},
    )
    path = work.root / "other.yaml"
    path.write_text(work.job_file.read_text())
    work.job()
    return path


@pytest.fixture
def published(work):
    work.files(5)
    work.script()
    work.job()
    result = work.run()
    assert result.code == 0, result
    assert work.rows() == rows_without(5)
    return work


def test_of_two_jobs_with_one_output_the_second_is_refused(work, other):
    work.script(WAITING)
    first = work.start_job()
    first.wait_for(lambda: work.noted("calls"), "a mini-batch runs")
    for words in ([], ["--overwrite"], ["--resume"]):
        result = work.start("run", other.name, *words).wait_only(60)
        assert result.code == 2, result
        assert "another run publishes to" in result.output
        assert str(work.out / "job" / "state") in result.output
    work.make("go")
    result = first.wait()
    assert result.code == 0, result
    assert work.rows() == rows_without(5)
    assert beside(work) == [NAME, INDEX]


def test_a_killed_job_does_not_keep_its_output(work, other):
    work.script(WAITING)
    first = work.start_job()
    first.wait_for(lambda: work.noted("calls"), "a mini-batch runs")
    first.send(9)
    first.wait_only()
    expect_nothing_running()
    assert f".{NAME}.parallelrun-claim" in beside(work)
    work.make("go")
    result = work.start("run", other.name).wait()
    assert result.code == 0, result
    assert work.rows() == rows_without(4)
    assert beside(work) == [NAME, INDEX]
    # The killed one, if it is continued, does not replace what is the other one's.
    index = output_of(work).with_name(INDEX)
    bytes_before = output_of(work).read_bytes(), index.read_bytes()
    result = work.run("--resume")
    assert result.code in (1, 2), result
    assert "move it away" in result.output
    assert (output_of(work).read_bytes(), index.read_bytes()) == bytes_before


def test_a_folder_of_summary_only_is_one_jobs_too(work, other):
    work.script(WAITING)
    action = ["--set", "spec.output.action=SummaryOnly"]
    first = work.start_job(*action)
    first.wait_for(lambda: work.noted("calls"), "a mini-batch runs")
    result = work.start("run", other.name, *action).wait_only(60)
    assert result.code == 2, result
    assert "another run publishes to" in result.output
    work.make("go")
    result = first.wait()
    assert result.code == 0, result
    assert beside(work) == []


def test_a_file_that_appears_meanwhile_is_kept_and_so_are_the_results(work):
    work.files(5)
    work.script(WAITING)
    work.job()
    command = work.start_job()
    command.wait_for(lambda: work.noted("calls"), "a mini-batch runs")
    output_of(work).write_text("a user's\n")
    work.make("go")
    result = command.wait()
    assert result.code == 1, result
    assert f"{output_of(work)} has appeared since the run began" in result.output
    assert "move it away" in result.output
    assert "--resume" in result.output
    assert output_of(work).read_text() == "a user's\n"
    assert beside(work) == [NAME]
    result = work.run("--resume")
    assert result.code == 1, result
    output_of(work).unlink()
    calls = len(work.noted("calls"))
    result = work.run("--resume")
    assert result.code == 0, result
    assert len(work.noted("calls")) == calls
    assert work.rows() == rows_without(5)


def test_overwrite_replaces_also_what_appeared(work):
    work.files(5)
    work.script(WAITING)
    work.job()
    command = work.start_job("--overwrite")
    command.wait_for(lambda: work.noted("calls"), "a mini-batch runs")
    output_of(work).write_text("a user's\n")
    work.make("go")
    assert command.wait().code == 0
    assert work.rows() == rows_without(5)


@pytest.mark.parametrize("name", [f".{NAME}.backup.tmp", f".{NAME}.0123456789abcdef.7.tmp"])
def test_a_users_file_that_looks_temporary_stays(work, name):
    work.files(5)
    work.script()
    work.job()
    output_of(work).parent.mkdir(parents=True)
    kept = output_of(work).parent / name
    kept.write_text("a user's")
    assert work.run().code == 0
    assert work.run("--overwrite").code == 0
    assert kept.read_text() == "a user's"
    assert beside(work) == sorted([name, NAME, INDEX])


def test_a_users_file_in_the_place_of_the_claim_is_named_and_stays(work):
    work.files(5)
    work.script()
    work.job()
    output_of(work).parent.mkdir(parents=True)
    kept = output_of(work).parent / f".{NAME}.parallelrun-claim"
    kept.write_text("a user's")
    result = work.run()
    assert result.code == 2, result
    assert str(kept) in result.output
    assert kept.read_text() == "a user's"


def damage(work, how):
    path = output_of(work)
    if how == "emptied":
        path.write_text("")
    elif how == "altered":
        path.write_bytes(path.read_bytes()[:-2] + b"X\n")
    else:
        path.unlink()


@pytest.mark.parametrize("flag", ["--resume", "--retry-failed"])
@pytest.mark.parametrize("how", ["emptied", "altered", "missing"])
def test_a_damaged_output_is_published_again(published, how, flag):
    work = published
    whole = hashlib.sha256(output_of(work).read_bytes()).digest()
    calls = len(work.noted("calls"))
    damage(work, how)
    state = work.out / "job" / "state"
    for path in (output_of(work), output_of(work).parent, work.out / "job", state):
        if path.exists():
            result = work.call("verify", path)
            assert result.code == 1, result
            assert "damaged: " in result.output
    result = work.call("verify", state, "--json")
    told = json.loads(result.output)
    assert result.code == 1 and told["state"] == "damaged" and told["damage"], result
    assert work.call("ledger", state).code == 1
    result = work.run(flag)
    assert result.code == 0, result
    assert ("published again" in result.output) == (how != "missing")
    assert hashlib.sha256(output_of(work).read_bytes()).digest() == whole
    assert len(work.noted("calls")) == calls
    aside = [] if how == "missing" else [f"{NAME}.set-aside-1"]
    assert beside(work) == sorted([NAME, INDEX, *aside])
    assert work.call("ledger", state).code == 0


def test_verify_says_that_an_output_is_whole(published):
    work = published
    state = work.out / "job" / "state"
    for path in (output_of(work), output_of(work).parent, work.out / "job", state):
        result = work.call("verify", path)
        assert result.code == 0, result
        assert result.output.startswith(f"whole: {output_of(work)} (5 rows")
    result = work.call("verify", state, "--json")
    assert result.code == 0, result
    assert json.loads(result.output) == {
        "state": "whole",
        "output": str(output_of(work)),
        "rows": 5,
        "bytes": output_of(work).stat().st_size,
        "trial": "",
        "damage": "",
        "sideFiles": None,
    }
    moved = work.root / "moved"
    shutil.move(work.out, moved)
    result = work.call("verify", moved / "job" / "output")
    assert result.code == 0, result
    assert f"whole: {moved}/job/output/{NAME}" in result.output
    result = work.call("verify", work.data)
    assert result.code == 2, result
    assert "give the state folder" in result.output


def test_verify_of_what_was_never_published(work):
    work.files(2)
    work.script("def run(mini_batch):\n    raise ValueError(1)\n")
    work.job(runMaxTry=1, errorThreshold=0)
    assert work.run().code == 1
    result = work.call("verify", work.out / "job" / "state")
    assert result.code == 1, result
    assert "never published" in result.output
    result = work.call("verify", work.out / "job" / "state", "--json")
    assert result.code == 1, result
    assert json.loads(result.output) == {"state": "unpublished", "output": None}


def test_after_a_move_of_its_folder_the_output_has_its_new_name_everywhere(published):
    work = published
    moved = work.root / "moved"
    work.out.rename(moved)
    here = moved / "job" / "output" / NAME
    result = work.call(
        "run", "job.yaml", "--volume", f"data={work.data}", f"out={moved}", "--resume"
    )
    assert result.code == 0, result
    assert f"{here}" in result.output
    assert str(work.out) not in result.output
    report = (moved / "job" / "logs" / "job_result.txt").read_text()
    assert f"Output: {here} (5 rows" in report
    assert str(work.out) not in report


FAILING = """
def run(mini_batch):
    rows = [open(path).read() for path in mini_batch]
    if "row 1" in rows:
        raise ValueError("bad")
    return rows
"""


def previous(work):
    return sorted((work.logs / "previous").iterdir())


def test_reports_of_the_run_before_are_set_aside_by_an_overwrite(work):
    work.files(4)
    work.script(FAILING)
    work.job(runMaxTry=1, errorThreshold=-1, isolateFailures=True)
    assert work.run().code == 0
    reports = ("dead-letter.jsonl", "failures.jsonl", "job_result.txt")
    before = {name: (work.logs / name).read_text() for name in reports}
    assert all("ValueError" in text for text in before.values())
    # One that is stopped before its verdict has no reports of its own, and none of another run.
    work.script(WAITING)
    command = work.start_job("--overwrite")
    command.wait_for(lambda: work.noted("calls"), "a mini-batch runs")
    (aside,) = previous(work)
    for name in reports:
        assert not (work.logs / name).exists()
        assert (aside / name).read_text() == before[name]
    assert list((aside / "user" / "error").rglob("*.txt"))
    assert not (work.logs / "user" / "error").exists()
    work.make("go")
    result = command.wait()
    assert result.code == 0, result
    assert not (work.logs / "dead-letter.jsonl").exists()
    assert work.log_text("job_result.txt").startswith("Succeeded: Complete: all 4")


def test_an_overwrite_sets_aside_the_reports_of_a_run_whose_state_is_gone(published):
    work = published
    shutil.rmtree(work.out / "job" / "state")
    (work.logs / "dead-letter.jsonl").write_text("{}\n")
    result = work.run("--overwrite")
    assert result.code == 0, result
    (aside,) = previous(work)
    assert (aside / "dead-letter.jsonl").exists() and (aside / "job_result.txt").exists()
    assert not (work.logs / "dead-letter.jsonl").exists()


OWN_RESULTS = """
import os, sys
from steps import note, there

def run(mini_batch, context):
    note("calls", context.minibatch_index)
    if context.minibatch_index == 1 and not there("mended"):
        raise ValueError("bad")
    folder = sys.argv[sys.argv.index("--to") + 1]
    with open(os.path.join(folder, f"part-{context.minibatch_index}.txt"), "w") as file:
        file.write("x")
    return mini_batch
"""


def test_a_folder_of_own_results_that_is_not_empty_is_refused(work):
    work.files(3)
    work.script(OWN_RESULTS)
    work.job(
        output={"volume": "out", "action": "SummaryOnly"},
        arguments=["--to", "$(output)/parts"],
        runMaxTry=1,
        errorThreshold=0,
        processCountPerNode=1,
    )
    folder = work.out / "job" / "output"
    folder.mkdir(parents=True)
    (folder / "of-somebody.csv").write_text("x")
    result = work.run()
    assert result.code == 2, result
    assert f"{folder} is not empty (of-somebody.csv is there)" in result.output
    assert "--overwrite" in result.output
    assert not work.noted("calls")
    (folder / "of-somebody.csv").unlink()
    assert work.run().code == 1  # its own folder, logs and state are no reason to refuse it
    assert list(folder.glob("parts/*"))
    result = work.run()
    assert result.code == 2, result
    assert "--resume" in result.output and "--overwrite" in result.output
    work.make("mended")
    result = work.run("--resume")
    assert result.code == 0, result
    assert "is there, and" not in result.output
    assert len(list(folder.glob("parts/*"))) == 3


def test_overwrite_removes_what_the_run_before_has_left_and_nothing_else(work):
    work.files(4)
    work.script(OWN_RESULTS)
    work.make("mended")
    work.job(
        output={"volume": "out", "action": "SummaryOnly"},
        arguments=["--to", "$(output)/parts"],
        processCountPerNode=1,
    )
    folder = work.out / "job" / "output"
    assert work.run().code == 0
    assert len(list(folder.glob("parts/*"))) == 4
    for path in sorted(work.data.iterdir())[1:]:
        path.unlink()
    result = work.run("--overwrite")
    assert result.code == 0, result
    assert [path.name for path in folder.glob("parts/*")] == ["part-0.txt"]
    assert "is there, and" not in result.output
    (folder / "of-somebody.csv").write_text("x")
    for _ in range(2):
        result = work.run("--overwrite")
        assert result.code == 0, result
        assert "the output folder is not empty: of-somebody.csv is there, and" in result.output
        assert (folder / "of-somebody.csv").exists()
    assert [path.name for path in folder.glob("parts/*")] == ["part-0.txt"]


def test_of_a_failed_run_overwrite_removes_what_it_had_written(work):
    work.files(3)
    work.script(OWN_RESULTS)
    work.job(
        output={"volume": "out", "action": "SummaryOnly"},
        arguments=["--to", "$(output)/parts"],
        runMaxTry=1,
        errorThreshold=0,
        processCountPerNode=1,
    )
    assert work.run().code == 1
    folder = work.out / "job" / "output"
    for path in folder.glob("parts/*"):
        path.rename(path.with_suffix(".kept"))
    kept = sorted(path.name for path in folder.glob("parts/*"))
    assert kept  # what a user has saved of it
    work.make("mended")
    result = work.run("--overwrite")
    assert result.code == 0, result
    assert "the output folder is not empty: parts/part-" in result.output
    there = sorted(path.name for path in folder.glob("parts/*"))
    assert there == sorted([*kept, "part-0.txt", "part-1.txt", "part-2.txt"])


def test_of_a_stopped_run_overwrite_removes_what_it_had_written(work):
    """With mini-batches of another size the files have other names, too: none may be left."""
    work.files(6)
    work.script(
        OWN_RESULTS.replace("def run", "from steps import wait_for\n\ndef run").replace(
            "    return mini_batch", "    wait_for('go')\n    return mini_batch"
        )
    )
    work.make("mended")
    work.job(
        output={"volume": "out", "action": "SummaryOnly"},
        arguments=["--to", "$(output)/parts"],
        processCountPerNode=1,
    )
    folder = work.out / "job" / "output"
    command = work.start_job()
    command.wait_for(lambda: list(folder.glob("parts/*")), "a result is written")
    command.send(signal.SIGINT)
    command.wait_for(lambda: drains(work.logs), "the node drains")
    work.make("go")
    assert command.wait().code == 130
    (folder / "later.csv").write_text("x")
    assert list(folder.glob("parts/*"))
    result = work.run("--overwrite", "--set", 'spec.miniBatchSize="6"')
    assert result.code == 0, result
    assert [path.name for path in folder.glob("parts/*")] == ["part-0.txt"]
    assert "the output folder is not empty: later.csv is there" in result.output
    assert (folder / "later.csv").exists()


@pytest.mark.parametrize("arguments", [[], ["--to", "$(output)"]])
def test_files_in_the_working_folder_are_named_at_the_end(work, arguments):
    work.files(4)
    work.script(
        "import os, sys\n"
        "def run(mini_batch):\n"
        "    words = sys.argv\n"
        "    folder = words[words.index('--to') + 1] if '--to' in words else 'own'\n"
        "    os.makedirs(folder, exist_ok=True)\n"
        "    for path in mini_batch:\n"
        "        open(os.path.join(folder, os.path.basename(path)), 'w').close()\n"
        "        open(os.path.join('outputs', 'kept ' + os.path.basename(path)), 'w').close()\n"
        "    return mini_batch\n"
    )
    work.job(**({"arguments": arguments} if arguments else {}))
    result = work.run()
    assert result.code == 0, result
    told = "the script wrote 4 files into its working folder"
    assert (told in result.output) == (not arguments), result
    assert ("own/000000.txt, own/000001.txt, own/000002.txt and 1 more" in result.output) == (
        not arguments
    )
    assert "kept 000003.txt" in beside(work)
