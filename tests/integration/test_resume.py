"""What a job that is continued takes over from the job file, what it refuses, and `parallelrun
ledger`, which says what it continues from."""

import os
import re
import sys

import pytest
from support.command import PROGRAM
from support.workspace import rows_without

# The last row is bad until it is mended: the job fails with some results, and --resume has work.
SCRIPT = """
import sys
from steps import note, there

def run(mini_batch, context):
    note("calls", context.minibatch_index)
    rows = [open(path).read() for path in mini_batch]
    if "row 9" in rows and not there("mended"):
        raise ValueError("row 9 is bad")
    return rows
"""


@pytest.fixture
def failed(work):
    """A job of ten mini-batches that has failed, and is mended by now. `kept` have succeeded."""
    work.files(10)
    work.script(SCRIPT)
    work.job(runMaxTry=1, errorThreshold=0, processCountPerNode=1)
    result = work.run()
    assert result.code == 1, result
    work.kept = int(re.search(r"(\d+) succeeded, 1 failed, of 10", result.output).group(1))
    work.tried = len(work.noted("calls"))
    work.make("mended")
    return work


def expect_the_rest_only(work, result):
    assert result.code == 0, result
    assert work.rows() == rows_without(10)
    assert len(work.noted("calls")) - work.tried == 10 - work.kept


def test_thresholds_nodes_and_limits_are_taken(failed):
    changes = ["errorThreshold=-1", "runMaxTry=5", "runInvocationTimeoutSeconds=77"]
    words = [word for change in changes for word in ("--set", f"spec.{change}")]
    result = failed.run("--resume", "--nodes", "2", *words)
    expect_the_rest_only(failed, result)
    assert "warning" not in result.output


def test_a_changed_script_and_argument_are_taken_with_a_warning(failed):
    failed.script(SCRIPT.replace('"row 9" in rows', '"--top" not in sys.argv'))
    words = ["--set", "spec.arguments[0]=--top", "--set", "spec.arguments[1]='5'"]
    result = failed.run("--resume", *words)
    expect_the_rest_only(failed, result)
    (warning,) = re.findall(r"^warning: .*", result.output, re.M)
    assert "the code (score.py was changed); " in warning
    assert 'spec.arguments[0]: (none) -> "--top"' in warning
    assert "Finished mini-batches keep their rows" in warning
    assert f"  warning       {warning[9:]}\n" in result.output  # in the summary
    # Who believes that the success is one of the corrected script hears better.
    failed.script(SCRIPT + "\n# corrected once more\n")
    (failed.code / "run.log").write_text("what nohup and the like leave there is no code")
    calls = len(failed.noted("calls"))
    result = failed.run("--resume", *words)
    assert result.code == 0, result
    assert len(failed.noted("calls")) == calls
    told = "changed since the run was started: the code (score.py was changed). It has finished"
    assert told in result.output
    assert "--overwrite" in result.output


def test_the_file_that_the_command_writes_to_is_no_code(failed):
    said = failed.code / "said.txt"
    words = f'exec "$0" run job.yaml --resume > {said} 2>&1'
    result = failed.start("-c", words, PROGRAM, program="/bin/sh").wait()
    expect_the_rest_only(failed, result)
    assert "10 succeeded" in said.read_text()
    assert "changed since" not in said.read_text()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--set", "spec.miniBatchSize=2"], "spec.miniBatchSize: 1 -> 2"),
        (
            ["--set", "spec.inputs[0].files.pattern='*.txt'"],
            'spec.inputs[0].files.pattern: (none) -> "*.txt"',
        ),
        (["--volume", "data=other"], 'spec.volumes.data: "{root}/data" -> "{root}/other"'),
    ],
)
@pytest.mark.parametrize("flag", ["--resume", "--retry-failed"])
def test_other_mini_batches_are_refused_with_the_difference(failed, words, told, flag):
    (failed.root / "other").mkdir()
    (failed.root / "other" / "000000.txt").write_text("another row")
    result = failed.run(flag, *words)
    assert result.code == 2, result
    assert f"\n  {told.format(root=failed.root)}\n" in result.output
    assert "--overwrite" in result.output
    assert len(failed.noted("calls")) == failed.tried
    # What was refused has changed nothing.
    expect_the_rest_only(failed, failed.run("--resume"))


@pytest.mark.parametrize("flag", ["--resume", "--retry-failed"])
def test_files_that_are_not_those_that_were_planned_are_refused(failed, flag):
    """Whether their mini-batches are finished or not: an id means the same items for ever."""
    gone, changed = failed.data / "000000.txt", failed.data / "000009.txt"
    stamp = gone.stat()
    gone.rename(failed.root / "aside")
    text = changed.read_text()
    changed_at = changed.stat()
    changed.write_text("row nine")
    result = failed.run(flag)
    assert result.code == 2, result
    assert f"\n  inputs[files]: {gone} is gone\n" in result.output
    assert f"\n  inputs[files]: {changed} had 5 bytes, has 8\n" in result.output
    assert "undo the change, or start over with --overwrite" in result.output
    assert "by --only FILE with another output" in result.output
    assert len(failed.noted("calls")) == failed.tried
    # Undone: as if nothing had been.
    (failed.root / "aside").rename(gone)
    assert gone.stat().st_mtime_ns == stamp.st_mtime_ns
    changed.write_text(text)
    os.utime(changed, ns=(changed_at.st_atime_ns, changed_at.st_mtime_ns))
    expect_the_rest_only(failed, failed.run(flag))


def test_added_files_are_left_out_with_a_warning(failed):
    added = failed.data / "000003 more.txt"
    added.write_text("another row")
    result = failed.run("--resume")
    expect_the_rest_only(failed, result)
    (warning,) = re.findall(r"^warning: .*", result.output, re.M)
    assert "not part of this run" in warning
    assert str(added) in warning


def test_an_output_that_is_gone_is_published_again(failed):
    expect_the_rest_only(failed, failed.run("--resume"))
    failed.output.unlink()
    expect_the_rest_only(failed, failed.run("--resume"))  # nothing is run for it
    result = failed.run("--resume", "--set", "spec.output.fileName=other.txt")
    assert result.code == 0, result
    assert (failed.output.parent / "other.txt").read_text() == failed.output.read_text()


def test_rows_of_two_formats_are_never_in_one_output(failed):
    for flag in "--resume", "--retry-failed":
        result = failed.run(flag, "--set", "spec.output.format=jsonl")
        assert result.code == 2, result
        assert 'spec.output.format: (none) -> "jsonl"' in result.output
    expect_the_rest_only(failed, failed.run("--resume"))


def test_a_finished_run_of_other_files_is_no_success(failed):
    expect_the_rest_only(failed, failed.run("--resume"))
    added = failed.data / "000003 more.txt"
    added.write_text("another row")
    for flag in "--resume", "--retry-failed":
        result = failed.run(flag)
        assert result.code == 2, result
        assert "this run has finished, and its inputs have changed since" in result.output
        assert str(added) in result.output
    added.unlink()
    expect_the_rest_only(failed, failed.run("--resume"))


def test_a_mended_file_of_a_run_without_a_result_starts_it_over(work):
    work.files(1, text="row 9")
    work.script(SCRIPT)
    work.job(runMaxTry=1, errorThreshold=0)
    assert work.run().code == 1
    (work.data / "000000.txt").write_text("a good row")
    result = work.run("--resume")
    assert result.code == 0, result
    assert work.rows() == ["a good row"]


def test_another_input_of_a_script_is_refused(work):
    for folder in ("first", "second one"):
        (work.root / folder).mkdir()
        (work.root / folder / "a.txt").write_text(folder)
        (work.root / folder / "b.txt").write_text(folder)
    (work.root / "score.py").write_text(
        "import os\n\n"
        "def run(b):\n"
        "    if b[0].endswith('b.txt'): raise ValueError('no')\n"
        "    return [open(b[0]).read()]\n"
    )
    words = ["--output", "out", "--mini-batch-size", "1", "--processes", "1"]
    words += ["--set", f"spec.environment.python={sys.executable}"]
    result = work.call("run", "score.py", "--input", "first", *words)
    assert "CompletedWithFailures" in result.output, result
    result = work.call("run", "score.py", "--input", "second one", *words, "--retry-failed")
    assert result.code == 2, result
    assert f'"{work.root}/first" -> "{work.root}/second one"' in result.output


# --- parallelrun ledger


def states(work):
    return work.out / "job" / "state"


def test_the_ledger_is_verified_and_printed(failed):
    result = failed.call("ledger", states(failed))
    assert result.code == 0, result
    assert result.output.startswith("sound: ")
    assert f"mini-batches: {failed.kept} succeeded, 1 failed, {9 - failed.kept} open, of 10" in (
        result.output
    )
    assert "verdict: ErrorThresholdExceeded: " in result.output

    assert failed.run("--resume").code == 0
    result = failed.call("ledger", states(failed), "--records")
    assert result.code == 0, result
    lines = result.output.splitlines()
    results = [line for line in lines if re.match(r" +\d+ +\d+ result ", line)]
    assert len(results) == 10
    assert [line for line in lines if "row 9 is bad" in line and " failed " in line]
    assert len([line for line in lines if re.match(r" +\d+ +\d+ settings +generation ", line)]) == 2
    assert "mini-batches: 10 succeeded, 0 failed, 0 open, of 10" in lines
    assert f"published: {failed.output} ({failed.output.stat().st_size} bytes)" in lines


def test_a_damaged_ledger_is_named_and_never_continued(failed):
    (log, *_) = sorted((states(failed) / "epochs").iterdir())
    whole = log.read_bytes()
    log.write_bytes(whole[:200] + bytes([whole[200] ^ 1]) + whole[201:])
    result = failed.call("ledger", states(failed))
    assert result.code == 1, result
    assert f"{log} at 64: " in result.output
    result = failed.run("--resume")
    assert result.code == 2, result
    assert f"{log} at 64: " in result.output
    assert "another state folder" in result.output
    assert len(failed.noted("calls")) == failed.tried
    log.write_bytes(whole)
    expect_the_rest_only(failed, failed.run("--resume"))


def test_a_ledger_that_is_not_there(work):
    result = work.call("ledger", "nowhere")
    assert result.code == 2
    assert f"{work.root}/nowhere/epochs holds no ledger" in result.output
