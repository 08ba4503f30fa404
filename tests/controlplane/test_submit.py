"""`parallelrun.submit` (docs/python.md): a job of a cluster from Python, by kubectl."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2] / "worker-image/python"))

import parallelrun
from support.coordinator import BIN, ROOT
from support.job import spec
from support.node import Work

PACKAGE = ROOT / "worker-image/python"
SECONDS = 120  # nothing waits for so long, but on a machine that does other things


@pytest.fixture
def environment(plane, monkeypatch):
    """What the command finds: kubectl, and this cluster."""
    changes = {
        "PARALLELRUN_BIN": str(BIN),
        "KUBECONFIG": str(plane.kubeconfig),
        "PATH": f"{plane.programs}:{os.environ['PATH']}",
    }
    for name, value in changes.items():
        monkeypatch.setenv(name, value)
    return {**os.environ, **changes}


@pytest.fixture
def submit(world, environment):
    """submit(**fields of the spec) -> Job; what it needs is there, and nothing follows it later."""
    world.code()
    world.claim()
    jobs = []

    def call(job=None, name="digits", options=None, **changes):
        job = document(name, **changes) if job is None else job
        options = {"namespace": world.namespace, "progress": False, **(options or {})}
        jobs.append(parallelrun.submit(job, **options))
        return jobs[-1]

    yield call
    for job in jobs:
        job._leave()
        job._process.wait(SECONDS)
        job._folder.cleanup()


def document(name="digits", **changes):
    return {
        "apiVersion": "parallelrun.dev/v1alpha1",
        "kind": "ParallelRunJob",
        "metadata": {"name": name},
        "spec": spec(**changes),
    }


def test_a_dict_to_its_result(submit, world):
    world.kubelet.work.may_finish.clear()
    job = submit(options={"settings": {"nodeCount": 1}})
    assert not job.done and "digits: running" in repr(job)
    with pytest.raises(TimeoutError):
        job.wait(0.2)
    world.kubelet.work.may_finish.set()
    result = job.wait(SECONDS)
    assert (result.state, result.ok, result.exit_status) == ("Succeeded", True, 0)
    assert (result.mini_batches.total, result.mini_batches.succeeded, result.rows) == (20, 20, 20)
    assert result.output == world.status()["output"]["path"]
    assert result.logs == "out/digits/logs" and result.losses == 0
    assert job.done and job.result == result

    # The same again is that job.
    assert submit().wait(SECONDS).output == result.output


def test_options_are_those_of_the_command(submit, world, tmp_path):
    file = tmp_path / "job.json"
    file.write_text(json.dumps(document()))
    job = submit(file, options={"settings": {"nodeCount": 1, "coordinator.restartLimit": 7}})
    assert job.wait(SECONDS).ok
    made = world.job()["spec"]
    assert made["nodeCount"] == 1 and made["coordinator"]["restartLimit"] == 7
    text = json.dumps(document(name="text"), indent=1)
    assert submit(text).wait(SECONDS).ok


def test_what_was_lost_and_is_tried_again(submit, world):
    world.kubelet.work = Work(fails={3})
    job = submit(runMaxTry=1)
    result = job.wait(SECONDS)
    assert (result.state, result.reason) == ("Succeeded", "CompletedWithFailures")
    assert (result.exit_status, result.ok, result.losses) == (3, False, 1)
    first = world.job()["metadata"]["uid"]
    world.kubelet.work = Work()
    again = job.retry()
    assert again.wait(SECONDS).ok
    assert again.result.rows == 20
    made = world.job()
    assert made["metadata"]["uid"] != first
    assert made["spec"]["output"]["ifExists"] == "RetryFailed"


def test_losses_that_the_job_allows(submit, world):
    world.kubelet.work = Work(fails={3})
    result = submit(runMaxTry=1, errorThreshold=5).wait(SECONDS)
    assert (result.reason, result.exit_status, result.losses) == ("CompletedWithFailures", 0, 1)


def test_cancel_and_the_end_of_a_block(submit, world):
    world.kubelet.work.may_finish.clear()
    job = submit()
    result = job.cancel()
    assert (result.state, result.reason, result.exit_status) == ("Failed", "Canceled", 1)
    assert job.cancel() == result
    with submit(name="block") as job:
        assert not job.done
    assert job.done and job.result.reason == "Canceled"


def test_what_cannot_start_says_all_of_it(submit, world):
    for job, says in (
        (submit(miniBatchSize="x", runMaxTry=0), ["spec.miniBatchSize", "spec.runMaxTry"]),
        (submit(options={"namespace": "not-there"}), ["not-there"]),
        (submit("absent.yaml"), ["absent.yaml is not there"]),
    ):
        with pytest.raises(parallelrun.CannotStart) as raised:
            job.wait(SECONDS)
        for text in says:
            assert text in str(raised.value)
        assert job.cancel() is None
    for wrong in (3, None, ["job.yaml"]):
        with pytest.raises(TypeError):
            parallelrun.submit(wrong)
    assert not world.client.find("ParallelRunJob", world.namespace, "digits")


def test_a_job_that_goes_on_is_not_replaced(submit, world):
    world.kubelet.work.may_finish.clear()
    submit()
    with pytest.raises(parallelrun.CannotStart, match="job digits goes on"):
        submit(options={"replace": True}).wait(SECONDS)


def test_a_job_that_is_deleted_has_ended(submit, world, plane):
    world.kubelet.work.may_finish.clear()
    job = submit()
    plane.kubectl("-n", world.namespace, "delete", "prj/digits", "--wait=false")
    result = job.wait(SECONDS)
    assert (result.state, result.reason) == ("Failed", "Deleted")
    with pytest.raises(parallelrun.JobError):
        next(job.rows())


def test_a_python_that_ends_leaves_the_job_alone(submit, world, environment, tmp_path):
    world.kubelet.work.may_finish.clear()
    file = tmp_path / "job.json"
    file.write_text(json.dumps(document()))
    code = f"import parallelrun\nparallelrun.submit({str(file)!r}, namespace={world.namespace!r})\n"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**environment, "PYTHONPATH": str(PACKAGE)},
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stderr
    assert world.job()["spec"]["cancel"] is False
    world.kubelet.work.may_finish.set()
    assert submit().wait(SECONDS).ok
