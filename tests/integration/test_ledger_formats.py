"""Ledgers that other versions of the program have written: `data/` has what they left behind."""

import shutil
from pathlib import Path

FOLDER = Path(__file__).parent
DATA = FOLDER / "data"
UNIT_DATA = FOLDER.parent / "unit" / "data"

# The entry script of the job in data/ledger_format_1, mended: rank 4 had failed.
SCRIPT = """
from steps import note

def run(mini_batch, context):
    note("calls", mini_batch[0])
    return [f"rank {rank}" for rank in mini_batch]
"""


def bring(work, source):
    """Copies a state folder to where the job looks for it."""
    state = work.out / "job" / "state"
    shutil.copytree(source, state)
    return state


def job_of_ranks(work):
    work.script(SCRIPT)
    work.job(
        inputs=None, volumes=[work.spec()["volumes"][1]], miniBatchSize=None, rankMiniBatchCount=6
    )


def logs_of(state):
    return {path.name: path.read_bytes() for path in (state / "epochs").iterdir()}


def test_a_run_of_format_1_is_continued(work):
    state = bring(work, DATA / "ledger_format_1")
    before = logs_of(state)
    job_of_ranks(work)
    result = work.run("--resume")
    assert result.code == 0, result
    assert work.rows() == [f"rank {rank}" for rank in range(6)]
    assert work.noted("calls") == ["4"]
    after = logs_of(state)
    assert {name: after[name] for name in before} == before, "what was written stays as it is"
    assert [log[8] for _, log in sorted(after.items())] == [1, 2]
    result = work.call("ledger", state)
    assert result.code == 0, result
    assert "mini-batches: 6 succeeded, 0 failed, 0 open, of 6" in result.output


def test_a_ledger_of_format_1_says_what_it_said(work):
    source = UNIT_DATA / "ledger_format_1"
    result = work.call("ledger", source, "--records")
    assert result.output.startswith((source / "records.txt").read_text())
    assert "sound: 29 records, the last of epoch 3" in result.output


def test_a_ledger_of_a_later_format_is_refused_and_stays_as_it_is(work):
    state = bring(work, DATA / "ledger_later_format")
    before = logs_of(state)
    job_of_ranks(work)
    for words in (["run", work.job_file.name, "--resume"], ["ledger", state]):
        result = work.call(*words)
        assert result.code != 0, result
        assert f"{state}/epochs/000001.log: " in result.output
        assert "use parallelrun 9.8.7, which wrote it, or a later one" in result.output
    assert logs_of(state) == before
    assert work.noted("calls") == []
