"""The power goes while a job runs: all that the real command and its coordinator had not synced is
forgotten, or some of it, and the run is continued from what is left (support/power_cut.py).

    POWER_CUTS        how many cuts are continued from, each about a second; 3 unless told
    POWER_CUT_SEED    what decides about them; the same unless told (script/soak), and printed
"""

import os
import random
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from support import power_cut
from support.command import PATIENCE

CUTS = int(os.environ.get("POWER_CUTS") or 3)
SEED = int(os.environ.get("POWER_CUT_SEED") or 1)
MINI_BATCHES = 24

# A row that is longer than a page, so that half of it can be lost.
SCRIPT = """
from steps import note

def run(mini_batch, context):
    note("calls", mini_batch[0])
    return [f"{rank} " + str(rank % 10) * 6000 for rank in mini_batch]
"""
ROWS = [f"{rank} " + str(rank % 10) * 6000 for rank in range(MINI_BATCHES)]


@pytest.fixture(scope="module")
def recorder(tmp_path_factory, sanitized):
    if sanitized is not None:
        pytest.skip("a sanitizer wants to be in front of what records")
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        pytest.skip("there is no C compiler")
    library = tmp_path_factory.mktemp("recorder") / "disk_recorder.so"
    source = Path(__file__).parent / "support" / "disk_recorder.c"
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", "-o", library, source], check=True, timeout=PATIENCE
    )
    return library


class Recorded:
    """A job whose disk is written down, from an empty output volume on."""

    def __init__(self, work, library):
        self.work = work
        self.record = work.root / "record"
        self.environment = {
            **work.environment,
            "LD_PRELOAD": str(library),
            "DISK_RECORD": str(self.record),
            "DISK_RECORD_BELOW": str(work.out),
        }
        work.script(SCRIPT)
        work.out.mkdir()
        work.job(
            inputs=None,
            volumes=[work.spec()["volumes"][1]],
            miniBatchSize=None,
            rankMiniBatchCount=MINI_BATCHES,
        )

    def run(self, *words):
        """The notes of a whole run."""
        self.record.unlink(missing_ok=True)
        plain, self.work.environment = self.work.environment, self.environment
        try:
            result = self.work.run(*words)
        finally:
            self.work.environment = plain
        assert result.code == 0, result
        return power_cut.read(self.record)

    def continue_from(self, files):
        """Puts in place what is left on the disk, and continues; the ranks that were run again."""
        shutil.rmtree(self.work.out)
        power_cut.restore(files, self.work.out)
        before = len(self.work.noted("calls"))
        result = self.work.run("--resume")
        assert result.code == 0, result
        return [int(rank) for rank in self.work.noted("calls")[before:]]

    def results(self, files, folder):
        """Of what is left on the disk: (mini-batch, fence) of each result in the ledger."""
        power_cut.restore(files, folder)
        result = self.work.call("ledger", folder / "job" / "state", "--records")
        shutil.rmtree(folder)
        assert result.code == 0, result
        found = re.findall(r"result +mini-batch (\d+), fence ([\d.]+),", result.output)
        return Counter((int(batch), fence) for batch, fence in found)


@pytest.fixture
def recorded(work, recorder):
    print(f"POWER_CUT_SEED={SEED}")
    return Recorded(work, recorder)


def actual(folder):
    """{path: bytes} of what lies there, but the logs."""
    found = {}
    for path in folder.rglob("*"):
        name = str(path.relative_to(folder))
        if "logs" not in name:
            found[name] = None if path.is_dir() else path.read_bytes()
    return found


def disks(notes, folder, files=()):
    """The disk behind each note: always the same object."""
    disk = power_cut.Disk(folder, files)
    for note in notes:
        disk.apply(note)
        yield note, disk


def cuts(notes, folder, decisions, files=()):
    """(told, what is left) where it matters: a node has just heard something, the disk has another
    name, or was synced. And the disk at the end."""
    told = set()
    found = []
    for (kind, *_), disk in disks(notes, folder, files):
        if kind in "SEROU":
            told = disk.told() if kind == "S" else told
            found += [(set(told), disk.after_cut()), (set(told), disk.after_cut(decisions))]
    return found, disk


def test_what_was_told_as_durable_outlives_a_power_cut(recorded):
    work = recorded.work
    notes = recorded.run()
    assert work.rows() == ROWS
    decisions = random.Random(SEED)

    found, disk = cuts(notes, work.out, decisions)
    assert disk.files() == actual(work.out), "this test knows all that was done to the disk"
    assert {batch for batch, _ in disk.told()} == set(range(MINI_BATCHES)), "and who was told what"

    in_between = [cut for cut in found if cut[0]]
    for told, files in decisions.sample(in_between, min(40, len(in_between))):
        results = recorded.results(files, work.root / "left")
        assert told <= set(results), "told as durable, and lost"
        assert set(results.values()) <= {1}, "there twice"

    for told, files in decisions.sample(in_between, min(CUTS, len(in_between))):
        again = recorded.continue_from(files)
        assert work.rows() == ROWS
        assert len(again) == len(set(again))
        assert {batch for batch, _ in told}.isdisjoint(again), "told as durable, and run again"


def test_an_output_that_was_told_of_outlives_a_power_cut(recorded):
    """The command has said that all is well, and the power goes."""
    work = recorded.work
    _, disk = cuts(recorded.run(), work.out, random.Random(SEED))
    for kept in (None, random.Random(SEED)):
        left = disk.after_cut(kept)
        output = left[str(work.output.relative_to(work.out))]
        assert output.decode().splitlines() == ROWS
        assert recorded.continue_from(left) == []
        assert work.rows() == ROWS


def test_a_second_power_cut_while_the_run_is_continued(recorded):
    """The second epoch reads what the first one left, copies what may be lost, and seals it."""
    work = recorded.work
    decisions = random.Random(SEED)
    found, _ = cuts(recorded.run(), work.out, decisions)
    told, left = decisions.choice([cut for cut in found if 0 < len(cut[0]) < MINI_BATCHES])
    shutil.rmtree(work.out)
    power_cut.restore(left, work.out)
    notes = recorded.run("--resume")
    assert work.rows() == ROWS
    found, disk = cuts(notes, work.out, decisions, left)
    assert disk.files() == actual(work.out)
    for more, files in decisions.sample(found, min(CUTS, len(found))):
        again = recorded.continue_from(files)
        assert work.rows() == ROWS
        assert {batch for batch, _ in told | more}.isdisjoint(again), "told, and run again"


@pytest.fixture
def two_epochs(recorded):
    """Two have been at work, one after the other: the second has sealed what the first wrote."""
    work = recorded.work
    found, _ = cuts(recorded.run(), work.out, random.Random(SEED))
    recorded.continue_from([files for told, files in found if 0 < len(told) < MINI_BATCHES][-1])
    return work


@pytest.mark.parametrize("newest", [False, True])
def test_a_roll_back_of_part_of_the_state_is_noticed(two_epochs, newest):
    """A volume that was put back in part: a log is as it was when it had just been made. Of the
    newest that is what a crash at that time would have left: what came after is done again, and the
    output is the same."""
    work = two_epochs
    log = sorted((work.out / "job" / "state" / "epochs").iterdir())[-1 if newest else 0]
    before = len(work.noted("calls"))
    log.write_bytes(log.read_bytes()[:64])
    result = work.run("--resume")
    if newest:
        assert result.code == 0, result
        assert work.rows() == ROWS
        return
    assert result.code == 2, result
    assert str(log) in result.output
    assert "restore" in result.output
    assert len(work.noted("calls")) == before
    assert work.call("ledger", work.out / "job" / "state").code != 0


def test_a_log_that_is_gone_is_noticed(two_epochs):
    work = two_epochs
    (work.out / "job" / "state" / "epochs" / "000001.log").unlink()
    result = work.run("--resume")
    assert result.code == 2, result
    assert "000001.log" in result.output
