"""parallelrun fetch JOB WHAT FOLDER: what a job of a cluster has written, on this machine.

In place of kubectl stands a program that keeps the objects in a folder, and executes in a pod as
kubectl does: the real `parallelrun-agent send`, on this machine (tests/cluster has the real one).
"""

import hashlib
import json
import signal
import sys

import pytest
from support.command import BIN

KUBECTL = """
import json, os, signal, subprocess, sys, time
from pathlib import Path

home, words = Path(HOME), sys.argv[1:]
with open(home / "words", "a") as file:
    file.write(json.dumps(words) + "\\n")
words = [w for w in words if not w.startswith(("--context=", "--namespace=", "--request-timeout="))]

def fail(text):
    sys.exit(text)

if words[0] == "get" and words[1] == "pods":
    print((home / "pods.json").read_text())
elif words[0] == "get":
    kind, name = words[1].split("/")
    path = home / ("job.json" if kind.startswith("parallelrunjobs") else name)
    if not path.exists():
        fail(f'Error from server (NotFound): "{name}" not found')
    print(path.read_text())
elif words[0] == "create":
    pod = json.load(sys.stdin)
    pod["status"] = json.loads((home / "status.json").read_text())
    (home / pod["metadata"]["name"]).write_text(json.dumps(pod))
    (home / "created").write_text(json.dumps(pod))
elif words[0] == "delete":
    (home / words[1].split("/")[1]).unlink(missing_ok=True)
elif words[0] == "exec":
    command = words[words.index("--") + 1 :]
    command = [BIN + "/parallelrun-agent", *command[4:]]
    command = [VOLUME if word == "/mnt/out" else word for word in command]
    if (home / "hangs").exists():
        print("PRFILES1", end="", flush=True)
        (home / "hung").touch()
        signal.pause()
    if (home / "forbidden").exists():
        fail('Error from server (Forbidden): cannot create resource "pods/exec"')
    sent = subprocess.run(command, stdout=subprocess.PIPE)
    cut = home / "cut"
    left = int(cut.read_text()) if cut.exists() else 0
    cut.write_text(str(max(left - 1, 0)))
    sys.stdout.buffer.write(sent.stdout[: len(sent.stdout) // 2] if left else sent.stdout)
    sys.exit(sent.returncode)
else:
    fail(f"unexpected: {words}")
"""

SCRIPT = """
import os

def run(mini_batch):
    for path in mini_batch:
        name = os.path.basename(path)
        with open(os.path.join(os.environ["AZUREML_BI_OUTPUT_PATH"], "side-" + name), "w") as file:
            file.write(name)
    return [open(path).read() for path in mini_batch]
"""

UID = "0a1b2c3d-0000-4000-8000-000000000001"
RUNNING = {
    "phase": "Running",
    "containerStatuses": [{"name": "reader", "state": {"running": {}}}],
}
# Of a coordinator.
POD_SPEC = {
    "containers": [{"name": "coordinator", "image": "runtime:1"}],
    "volumes": [{"name": "out", "persistentVolumeClaim": {"claimName": "o"}}],
}


class Cluster:
    """A job that is over, of which the output's volume is a folder here."""

    def __init__(self, work):
        self.work = work
        work.script(SCRIPT)
        work.files(5)
        work.job()
        assert work.run().code == 0
        self.home = work.root / "cluster"
        self.home.mkdir()
        folder = work.root / "bin"
        folder.mkdir()
        program = folder / "kubectl"
        constants = f"HOME, BIN, VOLUME = {str(self.home)!r}, {str(BIN)!r}, {str(work.out)!r}\n"
        program.write_text(f"#!{sys.executable}\n{constants}{KUBECTL}")
        program.chmod(0o755)
        work.environment["PATH"] = f"{folder}:/usr/bin:/bin"
        rows = work.output.read_bytes()
        self.object = {
            "metadata": {"name": "job", "uid": UID},
            "spec": {
                "volumes": [{"name": "out", "persistentVolumeClaim": {"claimName": "o"}}],
                "output": {"volume": "out"},
            },
            "status": {
                "logs": "out/job/logs",
                "effective": {"runtimeImage": "runtime:1"},
                "output": {
                    "path": "/mnt/out/job/output/parallel_run_step.txt",
                    "bytes": len(rows),
                    "sha256": hashlib.sha256(rows).hexdigest(),
                },
            },
        }
        self.tell()
        self.coordinators()
        self.pod_becomes(RUNNING)

    def tell(self):
        (self.home / "job.json").write_text(json.dumps(self.object))

    def coordinators(self, *pods):
        (self.home / "pods.new").write_text(json.dumps({"items": pods}))
        (self.home / "pods.new").rename(self.home / "pods.json")

    def pod_becomes(self, status):
        (self.home / "status.json").write_text(json.dumps(status))

    def fetch(self, what, *more):
        return self.work.call("fetch", "job", what, "got", *more)

    @property
    def got(self):
        return self.work.root / "got"

    def words(self):
        return [json.loads(line) for line in (self.home / "words").read_text().splitlines()]

    def nothing_left(self):
        """Neither a folder nor a part of one, nor a pod."""
        assert list(self.work.root.glob("got*")) == []
        assert [p.name for p in self.home.iterdir() if "-reader-" in p.name] == []


@pytest.fixture
def cluster(work):
    return Cluster(work)


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
