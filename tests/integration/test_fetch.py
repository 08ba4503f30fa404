"""parallelrun fetch JOB WHAT FOLDER: what a job of a cluster has written, on this machine."""

import json
import signal

import pytest
from support.job_on_cluster import POD_SPEC, Cluster

SCRIPT = """
import os

def run(mini_batch):
    for path in mini_batch:
        name = os.path.basename(path)
        with open(os.path.join(os.environ["AZUREML_BI_OUTPUT_PATH"], "side-" + name), "w") as file:
            file.write(name)
    return [open(path).read() for path in mini_batch]
"""


@pytest.fixture
def cluster(work):
    return Cluster(work, SCRIPT)


def files_of(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_the_output_comes_by_a_pod_that_is_removed(cluster):
    result = cluster.fetch("output", "--context", "lab", "-n", "team")
    assert result.code == 0, result
    names = ["parallel_run_step.txt", "parallel_run_step.txt.index.jsonl"]
    assert sorted(files_of(cluster.got)) == names
    assert (cluster.got / names[0]).read_bytes() == cluster.work.output.read_bytes()
    assert f"2 files, {sum(map(len, files_of(cluster.got).values()))} bytes" in result.output
    assert all(w[:2] == ["--context=lab", "--namespace=team"] for w in cluster.words())
    created = json.loads((cluster.home / "created").read_text())
    assert created["spec"]["containers"][0]["volumeMounts"][0]["readOnly"] is True
    assert not (cluster.home / created["metadata"]["name"]).exists()


def test_side_files_logs_and_report(cluster):
    assert cluster.fetch("side-files").code == 0
    assert files_of(cluster.got) == {f"side-{i:06}.txt": b"%06d.txt" % i for i in range(5)}
    words = ["fetch", "job", "logs", "got/logs"]
    result = cluster.work.call(*words)
    assert result.code == 0, result
    logs = files_of(cluster.got / "logs")
    assert set(logs) <= set(files_of(cluster.work.logs))
    assert logs["job_result.txt"] == (cluster.work.logs / "job_result.txt").read_bytes()
    again = cluster.work.call(*words)
    assert again.code == 2 and "no empty folder" in again.output
    assert cluster.work.call("fetch", "job", "report", "report").code == 0
    assert (cluster.work.root / "report/report.html").exists()


def test_a_running_coordinator_is_asked(cluster):
    pod = {"metadata": {"name": "job-0a1b2-coordinator-1"}, "status": {"phase": "Running"}}
    cluster.coordinators(pod)
    assert cluster.fetch("logs").code == 0
    executed = [w for w in cluster.words() if w[0] == "exec"]
    assert executed[0][1:3] == ["job-0a1b2-coordinator-1", "--container=coordinator"]
    assert not (cluster.home / "created").exists()


def test_the_coordinator_of_a_job_that_is_over_is_waited_for(cluster):
    pod = {"metadata": {"name": "job-0a1b2-coordinator-1"}, "status": {"phase": "Running"}}
    cluster.coordinators(pod)
    complete = {"type": "Complete", "status": "True", "reason": "Completed"}
    cluster.object["status"]["conditions"] = [complete]
    cluster.tell()
    command = cluster.work.start("fetch", "job", "report", "got")
    command.wait_for_text("waiting for its coordinator")
    assert not cluster.got.exists()
    cluster.coordinators({**pod, "status": {"phase": "Succeeded"}, "spec": POD_SPEC})
    assert command.wait().code == 0
    assert (cluster.got / "report.html").exists() and (cluster.home / "created").exists()

    # Not for ever.
    cluster.coordinators(pod)
    result = cluster.work.call("fetch", "job", "logs", "logs", "--wait", "1")
    assert result.code == 0, result
    executed = [w for w in cluster.words() if w[0] == "exec"]
    assert executed[-1][1] == "job-0a1b2-coordinator-1"


def test_links_that_a_script_has_left_are_not_followed(cluster):
    (cluster.work.logs / "link").symlink_to("/etc")
    assert cluster.fetch("logs").code == 0
    assert not (cluster.got / "link").exists()
    cluster.object["status"]["logs"] = "out/job/logs/link"
    cluster.tell()
    result = cluster.work.call("fetch", "job", "logs", "more")
    assert result.code == 1 and "link is in the way" in result.output, result
    assert not (cluster.work.root / "more").exists()


def test_what_is_cut_comes_again_and_never_looks_whole(cluster):
    (cluster.home / "cut").write_text("2")
    result = cluster.fetch("output")
    assert result.code == 0 and result.output.count("trying again") == 2, result
    (cluster.got / "parallel_run_step.txt").unlink()
    for path in cluster.got.iterdir():
        path.unlink()
    cluster.got.rmdir()
    (cluster.home / "cut").write_text("9")
    result = cluster.fetch("output")
    assert result.code == 1 and "has no end" in result.output, result
    cluster.nothing_left()


def test_another_output_than_was_published_does_not_come(cluster):
    cluster.work.output.write_bytes(b"changed")
    result = cluster.fetch("output")
    assert result.code == 1 and "is not what the job published" in result.output, result
    cluster.nothing_left()


@pytest.mark.parametrize("signo", [signal.SIGTERM, signal.SIGINT])
def test_who_stops_it_leaves_no_pod_and_no_folder(cluster, signo):
    (cluster.home / "hangs").touch()
    command = cluster.work.start("fetch", "job", "output", "got")
    command.wait_for((cluster.home / "hung").exists, "it hangs")
    command.send(signo)
    result = command.wait()
    assert result.code == -signo, result
    cluster.nothing_left()


def test_a_pod_that_does_not_run_says_why(cluster):
    waiting = {"reason": "ErrImagePull", "message": "no such image"}
    state = {"name": "reader", "state": {"waiting": waiting}}
    cluster.pod_becomes({"phase": "Pending", "containerStatuses": [state]})
    result = cluster.fetch("output", "--wait", "1")
    assert result.code == 2 and "does not run: ErrImagePull: no such image" in result.output, result
    cluster.nothing_left()


def test_a_missing_right_is_named(cluster):
    (cluster.home / "forbidden").touch()
    result = cluster.fetch("output")
    assert result.code == 1 and "pods/exec" in result.output, result
    cluster.nothing_left()


def test_what_is_not_there(cluster):
    cluster.object["status"]["logs"] = "out/absent"
    del cluster.object["status"]["output"]
    cluster.tell()
    result = cluster.fetch("output")
    assert result.code == 2 and "has no output yet" in result.output, result
    result = cluster.fetch("logs")
    assert result.code == 2 and "nothing to fetch" in result.output, result
    (cluster.home / "job.json").unlink()
    result = cluster.fetch("logs")
    assert result.code == 2 and "not found" in result.output, result
    cluster.nothing_left()
