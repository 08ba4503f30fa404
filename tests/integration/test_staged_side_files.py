"""`output.sideFiles: Staged`: files that scripts write are there once, of attempts that count."""

import contextlib
import hashlib
import json
import os
import shutil

import pytest
from support import processes
from support.processes import expect_nothing_running

LIST = "_files.jsonl"
SUMMARY = {"volume": "out", "action": "SummaryOnly", "sideFiles": "Staged"}
ROWS = {"volume": "out", "sideFiles": "Staged"}

# Each first attempt leaves half of what it is to leave, and what the second one does not write.
SCRIPT = """
import os, sys
from steps import first, note, there, wait_for

def put(name, text):
    path = os.path.join(sys.argv[sys.argv.index("--to") + 1], name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)

def run(mini_batch, context):
    index = context.minibatch_index
    if there("fails") and first(f"tried-{index}"):
        put(f"{index:03}.txt", "half")
        put(f"of-an-attempt-{index}.txt", "x")
        raise ValueError("once")
    put(f"{index:03}.txt", f"whole {index}")
    put(f"models/{index % 3}/{index:03}.bin", "x" * index)
    note("held", index)
    if there("waits") and not there("go"):
        wait_for("go")
    return [open(path).read() for path in mini_batch]
"""


def expected(count):
    """{name: content} of the side files of a whole run."""
    files = {f"{index:03}.txt": f"whole {index}" for index in range(count)}
    files.update({f"models/{index % 3}/{index:03}.bin": "x" * index for index in range(count)})
    return files


def folder_of(work):
    return work.out / "job" / "output"


def files_in(folder):
    return {str(p.relative_to(folder)): p for p in sorted(folder.rglob("*")) if p.is_file()}


def side_files(work, own=(LIST, f"{LIST}.index.jsonl")):
    """{name: content} of all that lies there, but for what the job itself has there."""
    there = files_in(folder_of(work))
    return {name: path.read_text() for name, path in there.items() if name not in own}


def listed(work):
    """{name: content's size and digest} as the list says."""
    lines = map(json.loads, (folder_of(work) / LIST).read_text().splitlines())
    return {line["name"]: (line["bytes"], line["sha256"]) for line in lines}


def facts(files):
    return {
        name: (len(text), hashlib.sha256(text.encode()).hexdigest()) for name, text in files.items()
    }


def expect_whole(work, count):
    assert side_files(work) == expected(count)
    assert listed(work) == facts(expected(count))
    assert sorted(p.name for p in folder_of(work).iterdir() if p.name.startswith(".")) == []


def job(work, count, output=None, **fields):
    rows = work.files(count)
    work.script(SCRIPT)
    options = {"arguments": ["--to", "$(output)"], "processCountPerNode": 2}
    work.job(output=output or SUMMARY, **{**options, **fields})
    return rows


def test_side_files_of_attempts_that_count_are_there(work):
    job(work, 12)
    work.make("fails")
    result = work.run("--nodes", "2")
    assert result.code == 0, result
    expect_whole(work, 12)
    lines = (folder_of(work) / LIST).read_text().splitlines()
    assert [json.loads(line)["miniBatch"] for line in lines] == sorted(2 * list(range(12)))
    verified = work.call("verify", folder_of(work) / LIST)
    assert verified.code == 0, verified
    assert f"{LIST} (24 side files, " in verified.output
    assert "whole: 24 side files (" in verified.output
    (folder_of(work) / "models/1/004.bin").write_text("yyyy")
    verified = work.call("verify", folder_of(work) / LIST)
    assert verified.code == 1, verified
    assert "damaged: the side file models/1/004.bin has other bytes than" in verified.output
    told = json.loads(work.call("verify", folder_of(work) / LIST, "--json").output)
    assert (told["state"], told["damage"]) == ("damaged", "")
    assert (told["sideFiles"]["files"], told["sideFiles"]["damaged"]) == (24, 1)


def test_beside_rows_the_index_lists_them(work):
    rows = job(work, 6, output=ROWS)
    work.make("fails")
    result = work.run()
    assert result.code == 0, result
    assert work.rows() == rows
    name = work.output.name
    index = f"{name}.index.jsonl"
    assert side_files(work, (name, index)) == expected(6)
    _, *batches, _ = map(json.loads, (folder_of(work) / index).read_text().splitlines())
    for line in batches:
        number = line["miniBatch"]
        wanted = {
            n: c
            for n, c in expected(6).items()
            if n.endswith((f"{number:03}.txt", f"{number:03}.bin"))
        }
        assert {f["name"]: (f["bytes"], f["sha256"]) for f in line["files"]} == facts(wanted)
    assert work.call("verify", work.output).code == 0


def test_of_mini_batches_that_failed_there_is_nothing(work):
    job(work, 4, runMaxTry=1, errorThreshold=-1)
    work.make("fails")
    (work.root / "tried-0").touch()  # it does not fail, nor does 2
    (work.root / "tried-2").touch()
    result = work.run()
    assert result.code == 0, result
    wanted = {name: text for name, text in expected(4).items() if "000" in name or "002" in name}
    assert side_files(work) == wanted
    assert listed(work) == facts(wanted)
    # What failed is run again, and the list is the complete one.
    result = work.run("--retry-failed")
    assert result.code == 0, result
    expect_whole(work, 4)


def test_until_the_job_has_succeeded_there_is_nothing(work):
    job(work, 6)
    work.make("waits")
    command = work.start_job()
    command.wait_for(lambda: work.noted("held"), "a mini-batch has written")
    names = os.listdir(folder_of(work))
    assert all(name.startswith(".") for name in names)
    assert [name for name in names if name.startswith(".parallelrun-staged-")]
    work.make("go")
    result = command.wait()
    assert result.code == 0, result
    expect_whole(work, 6)


@pytest.mark.parametrize("role", ["coordinator", "agent", "worker"])
def test_whatever_is_killed_the_files_are_there_once(work, role):
    job(work, 40)
    work.make("waits")
    command = work.start_job("--nodes", "2")
    command.wait_for(lambda: len(work.noted("held")) >= 4, "all processes are in run()")
    known = {process.pid for process in processes.running(role)}
    min(processes.running(role), key=lambda process: process.pid).kill()
    command.wait_for(
        lambda: [p for p in processes.running(role) if p.pid not in known], f"a new {role} runs"
    )
    work.make("go")
    result = command.wait()
    assert result.code == 0, result
    expect_whole(work, 40)


def first_is_moved(work):
    """Whether the publisher has begun: a file of the script is in its place."""
    folder = folder_of(work)
    names = os.listdir(folder) if folder.exists() else []
    return any(not name.startswith((".", "_")) for name in names)


def test_a_coordinator_that_is_killed_while_it_publishes_is_followed_by_one_that_does_it(work):
    """Whatever it had moved by then."""
    job(work, 60)
    command = work.start_job()
    command.wait_for(lambda: first_is_moved(work) or command.ended, "the first file is moved")
    for process in processes.running("coordinator"):
        with contextlib.suppress(ProcessLookupError):  # it has ended by itself
            process.kill()
    result = command.wait()
    assert result.code == 0, result
    expect_whole(work, 60)


def test_all_that_is_killed_while_it_publishes_is_resumed(work):
    job(work, 60)
    command = work.start_job()
    command.wait_for(lambda: first_is_moved(work) or command.ended, "the first file is moved")
    if not command.ended:
        command.send(9)
    command.wait_only()
    expect_nothing_running()
    result = work.run("--resume")
    assert result.code == 0, result
    expect_whole(work, 60)


def test_a_list_that_is_gone_is_published_again(work):
    job(work, 4)
    assert work.run().code == 0
    (folder_of(work) / LIST).unlink()
    result = work.run("--resume")
    assert result.code == 0, result
    expect_whole(work, 4)
    # A side file that is gone is in no ledger.
    (folder_of(work) / LIST).unlink()
    (folder_of(work) / "002.txt").unlink()
    result = work.run("--resume")
    assert result.code == 1, result
    assert "the side file 002.txt of mini-batch 2 is neither in" in result.output
    # Nothing of that run is published now: what is lost is run again, and nothing else.
    result = work.run("--resume")
    assert result.code == 0, result
    assert sorted(work.noted("held")) == ["0", "1", "2", "2", "3"]
    expect_whole(work, 4)


def test_staged_files_that_were_removed_are_made_again(work):
    job(work, 4, runMaxTry=1, errorThreshold=0, processCountPerNode=1)
    work.make("fails")
    for index in range(3):
        (work.root / f"tried-{index}").touch()
    assert work.run().code == 1
    (staged,) = folder_of(work).glob(".parallelrun-staged-*")
    shutil.rmtree(staged)
    result = work.run("--resume")
    assert result.code == 0, result
    assert sorted(work.noted("held")) == ["0", "0", "1", "1", "2", "2", "3"]
    expect_whole(work, 4)


def test_what_is_not_this_runs_is_not_replaced(work):
    job(work, 4)
    work.make("waits")
    command = work.start_job()
    command.wait_for(lambda: work.noted("held"), "a mini-batch has written")
    (folder_of(work) / "003.txt").write_text("a user's")
    work.make("go")
    result = command.wait()
    assert result.code == 1, result
    assert f"{folder_of(work)}/003.txt is there, and is not this run's" in result.output
    visible = [name for name in os.listdir(folder_of(work)) if not name.startswith(".")]
    assert visible == ["003.txt"]
    (folder_of(work) / "003.txt").unlink()
    result = work.run("--resume")
    assert result.code == 0, result
    expect_whole(work, 4)


@pytest.mark.parametrize("killed", [False, True])
def test_a_run_that_starts_over_removes_what_the_one_before_has_left(work, killed):
    job(work, 8)
    if killed:
        work.make("waits")
        command = work.start_job()
        command.wait_for(lambda: work.noted("held"), "a mini-batch has written")
        command.send(9)
        command.wait_only()
        expect_nothing_running()
        work.make("go")
    else:
        assert work.run().code == 0
    for path in sorted(work.data.iterdir())[3:]:
        path.unlink()
    result = work.run("--overwrite")
    assert result.code == 0, result
    expect_whole(work, 3)


def test_side_files_of_an_output_that_is_replaced_go_with_it(work):
    job(work, 6, output=ROWS)
    assert work.run().code == 0
    for path in sorted(work.data.iterdir())[3:]:
        path.unlink()
    (folder_of(work) / "of-a-user.txt").write_text("x")
    (folder_of(work) / "005.txt").write_text("by a user now")
    result = work.run("--overwrite")
    assert result.code == 0, result
    own = (work.output.name, f"{work.output.name}.index.jsonl")
    kept = {"of-a-user.txt": "x", "005.txt": "by a user now"}
    assert side_files(work, own) == {**expected(3), **kept}


APPENDS = """
import os, sys

def run(mini_batch):
    with open(os.path.join(sys.argv[sys.argv.index("--to") + 1], "all.txt"), "a") as file:
        file.write("x")
    return mini_batch
"""


def test_appending_to_the_file_of_another_mini_batch_is_refused(work):
    work.files(6)
    work.script(APPENDS)
    work.job(output=SUMMARY, arguments=["--to", "$(output)"])
    result = work.run()
    assert result.code == 1, result
    assert "SideFilesUnusable" in result.output
    assert "have both written the side file all.txt" in result.output
    assert not (folder_of(work) / "all.txt").exists()
    assert not (folder_of(work) / LIST).exists()


HOLDS = """
import os, sys

held = []

def run(mini_batch):
    folder = sys.argv[sys.argv.index("--to") + 1]
    held.append(open(os.path.join(folder, os.path.basename(mini_batch[0])), "w"))
    return mini_batch
"""


def test_a_file_that_is_still_open_fails_its_mini_batch(work):
    work.files(2)
    work.script(HOLDS)
    work.job(output=SUMMARY, arguments=["--to", "$(output)"], runMaxTry=1)
    result = work.run()
    assert result.code == 1, result
    assert "BadSideFile" in result.output
    assert "was still open for writing when run() had returned" in result.output


def test_async_mode_is_refused(work):
    work.files(2)
    work.script(
        "def init(): pass\n"
        "def enqueue(mini_batch, context): pass\n"
        "def check_all_tasks_processed(): return True\n"
        "def get_processing_batch_number(): return 0\n"
        "def get_finished_batch_result(): return {}\n"
    )
    work.job(output=SUMMARY, arguments=["--amlbi_async_mode", "True"])
    result = work.run()
    assert result.code == 2, result
    assert "spec.output.sideFiles: Staged takes the files of a mini-batch" in result.output


def test_a_folder_named_outputs_is_told_as_lost(work):
    work.files(2)
    work.script(
        "import os\n"
        "def run(mini_batch):\n"
        "    os.makedirs('outputs', exist_ok=True)\n"
        "    open(os.path.join('outputs', os.path.basename(mini_batch[0])), 'w').close()\n"
        "    return mini_batch\n"
    )
    work.job(output=ROWS)
    result = work.run()
    assert result.code == 0, result
    assert "outputs/000000.txt, outputs/000001.txt" in result.output
    assert "belongs into the output folder: the path that $(output) in an" in result.output


def test_a_run_goes_on_with_the_same_kind_of_side_files_only(work):
    job(work, 3, runMaxTry=1, errorThreshold=0, processCountPerNode=1)
    work.make("fails")
    (work.root / "tried-0").touch()
    assert work.run().code == 1
    (work.root / "fails").unlink()
    result = work.run("--resume", "--set", "spec.output.sideFiles=Direct")
    assert result.code == 2, result
    assert 'spec.output.sideFiles: "Staged" -> (none)' in result.output
    result = work.run("--resume")
    assert result.code == 0, result
    expect_whole(work, 3)


COPIES = """
import os
from azureml_user.parallel_run import EntryScript

def run(mini_batch):
    for path in mini_batch:
        with open(os.path.join(EntryScript().output_dir, os.path.basename(path)), "w") as file:
            file.write(open(path).read().replace(*os.environ["WORDS"].split()))
    return ["row" for _ in mini_batch]
"""


def test_compare_knows_side_files_by_what_they_are(work):
    """And not by the folder in which their attempt had them."""
    (work.root / "score.py").write_text(COPIES)
    work.files(4)
    words = ["--mini-batch-size", "2", "--set", "spec.output.sideFiles=Staged"]
    for out, change in (("a", "x y"), ("b", "x y"), ("c", "3 9")):
        work.environment["WORDS"] = change
        result = work.call("run", "score.py", "--input", "data", "--output", out, *words)
        assert result.code == 0, result
    assert (work.root / "c" / "000003.txt").read_text() == "row 9"
    result = work.call("compare", "a", "b")
    assert result.code == 0, result
    assert result.output == "mini-batches: 2 the same, 0 changed, 0 only in A, 0 only in B\n"
    result = work.call("compare", "a", "c")
    assert result.code == 1, result
    assert "mini-batches: 1 the same, 1 changed" in result.output
    assert "- side file 000003.txt: 5 bytes, SHA-256 " in result.output
