"""Two releases that meet: this one, and the programs of a later one (tests/releases)."""

import re
import shutil
import signal

import pytest
from support import processes
from support.cluster import ClusterJob
from support.command import BIN, ROOT
from support.workspace import drains

THIS_VERSION = re.search(r"VERSION ([\d.]+) LANG", (ROOT / "CMakeLists.txt").read_text())[1]
LATER = BIN.parent / "later" / "bin"
LATER_VERSION = "9.8.7"
LATER_FORMAT = 99  # of its ledgers
REFUSED = f"use parallelrun {LATER_VERSION}, which wrote it, or a later one"

# More than a process is given ahead, so that some are left when it is stopped.
FILES = 200
ROWS = [f"row {index}" for index in range(FILES)]

SCRIPT = """
from steps import note, there, wait_for

def run(mini_batch):
    rows = [open(path).read() for path in mini_batch]
    if rows == ["row 4"] and there("hold"):
        note("held")
        wait_for("go")
    note("calls", *mini_batch)
    return rows
"""


def logs_of(work):
    folder = work.out / "job" / "state" / "epochs"
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def format_of(log):
    return int.from_bytes(log[8:12], "little")


def succeeded(work):
    """How many mini-batches the ledger of a run of this release has results of."""
    output = work.call("ledger", work.out / "job" / "state").output
    return int(re.search(r"mini-batches: (\d+) succeeded", output)[1])


def stopped_amid(work, program):
    """The logs of a run of that program, stopped when some rows are done and one has begun."""
    work.make("hold")
    command = work.start("run", work.job_file.name, program=program)
    command.wait_for(lambda: work.noted("held"), "some are done and one is held")
    command.send(signal.SIGINT)
    command.wait_for(lambda: drains(work.logs), "the node has heard of it")
    work.make("go")
    command.wait_only()
    (work.root / "hold").unlink()
    return logs_of(work)


@pytest.fixture
def job(work):
    work.script(SCRIPT)
    work.files(FILES)
    work.job(processCountPerNode=1)
    return work


def test_a_run_goes_on_under_a_later_release_and_under_no_older_one(job):
    before = stopped_amid(job, BIN / "parallelrun")
    done, called = succeeded(job), len(job.noted("calls"))
    assert 0 < done < FILES
    result = job.start("run", job.job_file.name, "--resume", program=LATER / "parallelrun").wait()
    assert result.code == 0, result
    assert job.rows() == ROWS
    assert len(job.noted("calls")) - called == FILES - done, "what was done is not done again"
    after = logs_of(job)
    assert {name: after[name] for name in before} == before, "what was written stays as it is"
    assert [format_of(log) == LATER_FORMAT for _, log in sorted(after.items())] == [False, True]

    state = job.out / "job" / "state"
    for words in (["run", job.job_file.name, "--resume"], ["ledger", state]):
        result = job.call(*words)
        assert result.code != 0, result
        assert REFUSED in result.output
    assert logs_of(job) == after
    result = job.start("ledger", state, program=LATER / "parallelrun").wait()
    assert result.code == 0, result
    assert f"{FILES} succeeded, 0 failed, 0 open, of {FILES}" in result.output


def test_what_a_later_release_has_begun_is_left_alone(job):
    before = stopped_amid(job, LATER / "parallelrun")
    calls = job.noted("calls")
    result = job.run("--resume")
    assert result.code != 0, result
    assert REFUSED in result.output
    assert (logs_of(job), job.noted("calls")) == (before, calls)


class Mixed(ClusterJob):
    """A job whose pods have images of different releases."""

    programs = BIN

    def program(self, name):
        return [self.programs / name]

    def start_node(self, index, *words, **keys):
        package = self.programs.parent / "lib" / "parallelrun" / "python"
        return super().start_node(index, *words, pythonPath=str(package), **keys)


@pytest.fixture
def mixed(work):
    work.script(SCRIPT)
    work.files(FILES)
    job = Mixed(work)
    job.mount_code()
    return job


@pytest.mark.parametrize("late", ["agent", "coordinator"])
def test_an_agent_of_another_release_is_refused_by_name_and_the_job_goes_on(mixed, late):
    ours, other = (LATER, BIN) if late == "coordinator" else (BIN, LATER)
    names = [LATER_VERSION, THIS_VERSION]
    if late == "coordinator":
        names.reverse()
    mixed.programs = ours
    coordinator = mixed.start_coordinator(nodes=1)
    mixed.wait_for(lambda progress: progress["release"] == names[1], "it listens")
    mixed.programs = other
    farewell = mixed.work.root / "farewell"
    assert mixed.start_node(0, farewell=farewell).wait_only().code != 0
    assert f"different releases of ParallelRun, {names[0]} and {names[1]}" in farewell.read_text()
    mixed.programs = ours
    node = mixed.start_node(0)
    assert coordinator.wait_only().code == 0, coordinator.output
    assert node.wait_only().code == 0, node.output
    assert mixed.work.rows() == ROWS


def test_a_job_that_is_applied_again_goes_on_with_the_later_image(mixed):
    work = mixed.work
    work.make("hold")
    coordinator, node = mixed.start_coordinator(nodes=1), mixed.start_node(0)
    mixed.wait_for(
        lambda progress: progress["miniBatches"]["succeeded"] > 0 and work.noted("held"),
        "some are done and one is held",
    )
    coordinator.send(signal.SIGTERM)
    assert coordinator.wait_only().code == 3, coordinator.output
    node.send(signal.SIGKILL)
    node.wait_only()
    processes.expect_nothing_running()
    done, called = succeeded(work), len(work.noted("calls"))
    assert 0 < done < FILES
    work.make("go")

    mixed.programs = LATER
    coordinator, node = mixed.start_coordinator(nodes=1), mixed.start_node(0)
    assert coordinator.wait_only().code == 0, coordinator.output
    assert node.wait_only().code == 0, node.output
    assert work.rows() == ROWS
    assert len(work.noted("calls")) - called == FILES - done, "what was done is not done again"

    mixed.programs = BIN
    before = logs_of(work)
    assert mixed.start_coordinator(nodes=1).wait_only().code == 2
    assert REFUSED in mixed.words()["error"]
    assert logs_of(work) == before


def test_a_coordinator_under_a_later_operator(mixed):
    """What is added beside the job is passed over; an unknown field of the job is refused."""
    refused = mixed.start_coordinator(
        nodes=1, release=LATER_VERSION, spec={"ofALaterRelease": 1}
    ).wait_only()
    assert refused.code == 2
    assert "spec.ofALaterRelease: unknown field" in refused.output
    wrote = f"parallelrun {LATER_VERSION} wrote this, and this is parallelrun {THIS_VERSION}"
    assert wrote in refused.output
    coordinator = mixed.start_coordinator(nodes=1, release=LATER_VERSION, ofALaterRelease=True)
    node = mixed.start_node(0, ofALaterRelease=True)
    assert coordinator.wait_only().code == 0, coordinator.output
    assert node.wait_only().code == 0, node.output
    assert mixed.work.rows() == ROWS


def test_a_python_package_of_another_release_ends_the_job_by_name(job):
    """Half of an installation was replaced."""
    folder = job.root / "installed"
    (folder / "bin").mkdir(parents=True)
    for program in ("parallelrun", "parallelrun-coordinator", "parallelrun-agent"):
        shutil.copy(BIN / program, folder / "bin")
    (folder / "lib").symlink_to(LATER.parent / "lib")
    program = folder / "bin" / "parallelrun"
    result = job.start("run", job.job_file.name, program=program).wait()
    assert result.code == 1, result
    told = f"the agent is release {THIS_VERSION} and this package is release {LATER_VERSION}"
    assert told in result.output
