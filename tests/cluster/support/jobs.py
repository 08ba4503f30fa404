"""Jobs of the tests, and what is seen of them."""

import json
import os
import subprocess
from collections import Counter
from pathlib import Path

from support import images, words
from support.kube import wait_until

BIN = Path(os.environ.get("PARALLELRUN_BIN") or images.ROOT / "build/release/bin").resolve()

# One row for each file, its content. Each run() leaves a mark with its time, so that tests can see
# which mini-batches were begun where. With --wait it goes on when the file of that name is in the
# input's volume; with --seconds, after that time; with both, after what comes first.
SCRIPT = """\
import argparse
import os
import time
from pathlib import Path


def init():
    global options
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--marks", type=Path)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--wait", default="")
    options, _ = parser.parse_known_args()


def held(since):
    if options.wait and (options.data / options.wait).exists():
        return False
    if options.seconds is None:
        return bool(options.wait)
    return time.monotonic() < since + options.seconds


def run(mini_batch):
    begun = time.monotonic()
    if options.marks:
        options.marks.mkdir(parents=True, exist_ok=True)
        name = Path(mini_batch[0]).stem
        (options.marks / f"{name}.{os.uname().nodename}.{time.time():.3f}").touch()
    while held(begun):
        time.sleep(0.05)
    return [Path(path).read_text() for path in mini_batch]
"""


# Written to the input's volume, it lets the jobs go on that have `--wait go`.
GO = {"go": b""}


def rows(count):
    """Input files and the output that they make."""
    files = {f"in/{index:04}.txt": f"row {index}".encode() for index in range(count)}
    return files, b"".join(b"row %d\n" % index for index in range(count))


def code_map(namespace, files, name="code"):
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": files}


def volume(name, read_only=False):
    claim = {"claimName": name}
    if read_only:
        claim["readOnly"] = True
    return {"name": name, "persistentVolumeClaim": claim}


def manifest(namespace, name, **fields):
    """A job with SCRIPT over data/in, one file a mini-batch, two nodes of one process.

    A field of None is left out.
    """
    arguments = ["--data", "/mnt/data", "--marks", "/mnt/out/marks", *fields.pop("arguments", [])]
    spec = {
        "entryScript": "score.py",
        "code": {"configMap": {"name": "code"}},
        "arguments": arguments,
        "environment": {"image": "newer:1"},
        "volumes": [volume("data", read_only=True), volume("out")],
        "inputs": [{"name": "rows", "files": {"volume": "data", "path": "in"}}],
        "output": {"volume": "out"},
        "nodeCount": 2,
        "processCountPerNode": 1,
        "miniBatchSize": "1",
        "runInvocationTimeoutSeconds": 900,  # tests let run() wait
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}},
    }
    spec.update(fields)
    return {
        "apiVersion": "parallelrun.dev/v1alpha1",
        "kind": "ParallelRunJob",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {key: value for key, value in spec.items() if value is not None},
    }


def run_here(job, code, folders, work):
    """The output of the same job by `parallelrun run` on this machine; `folders`: by volume."""
    work = Path(work)
    work.mkdir(parents=True, exist_ok=True)
    local = json.loads(json.dumps(job))
    local["spec"].pop("resources", None)
    local["spec"].pop("environment", None)
    local["spec"]["environment"] = {"python": "/usr/bin/python3"}
    file = work / "job.json"
    file.write_text(json.dumps(local))
    words = [BIN / "parallelrun", "run", file, "--code", code]
    for name, folder in folders.items():
        words += ["--volume", f"{name}={folder}"]
    done = subprocess.run(
        [str(w) for w in words], capture_output=True, text=True, timeout=300, cwd=work
    )
    assert done.returncode == 0, done.stdout + done.stderr
    name = job["metadata"]["name"]
    return (Path(folders["out"]) / name / "output" / "parallel_run_step.txt").read_bytes()


class Job:
    def __init__(self, kube, namespace, name):
        self.kube = kube
        self.namespace = namespace
        self.name = name

    def get(self):
        return self.kube.get("parallelrunjobs", self.namespace, self.name)

    @property
    def status(self):
        return (self.get() or {}).get("status", {})

    @property
    def phase(self):
        return self.status.get("phase")

    def condition(self, kind):
        """The condition, or an empty dictionary."""
        found = [c for c in self.status.get("conditions", []) if c["type"] == kind]
        return found[0] if found else {}

    def pods(self, role=None, living=False):
        selector = f"parallelrun.dev/job={self.name}" + (
            f",parallelrun.dev/role={role}" if role else ""
        )
        pods = self.kube.list("pods", self.namespace, labelSelector=selector)
        if living:
            pods = [p for p in pods if not p["metadata"].get("deletionTimestamp")]
            pods = [p for p in pods if p["status"].get("phase") not in ("Succeeded", "Failed")]
        return sorted(pods, key=lambda pod: pod["metadata"]["name"])

    def workers(self, count):
        """The pods of that many nodes, once the API server says that they run."""

        def running():
            pods = self.pods("node", living=True)
            found = [
                p for p in pods if p["status"].get("containerStatuses", [{}])[0].get("started")
            ]
            return len(found) >= count and found

        return wait_until(running, lambda: f"{count} running nodes\n{self.tell()}")

    def pod(self, role, index=None):
        """The one living pod of a role, or None."""
        found = self.pods(role, living=True)
        if index is not None:
            found = [
                p for p in found if p["metadata"]["labels"]["parallelrun.dev/node"] == str(index)
            ]
        return found[-1] if found else None

    def wait_for_phase(self, *phases, limit=120):
        return wait_until(
            lambda: self.phase in phases and self.phase, lambda: f"{phases}\n{self.tell()}", limit
        )

    def succeeded(self, limit=240):
        def ended():
            stalled = self.condition("Stalled").get("status") == "True"
            return stalled or self.phase in ("Succeeded", "Failed")

        wait_until(ended, lambda: f"the end of the job\n{self.tell()}", limit)
        assert self.phase == "Succeeded", self.tell()

    def wait_for_condition(self, kind, reason, limit=120):
        wait_until(
            lambda: self.condition(kind).get("reason") == reason,
            lambda: f"condition {kind} with reason {reason}\n{self.tell()}",
            limit,
        )
        return self.condition(kind)

    def says(self, row, conditions, *events, lines=(), limit=60):
        """Waits until `kubectl get` and `describe` say this of it, word for word (words.py).

        `row`: its line of the table, without its age. Of events, "TYPE REASON: MESSAGE", and of
        other lines, "NODES: READY: 2", there may be more.
        """

        closest = []  # what may be said for a while only is over when the wait is

        def wrong():
            table = self.kube.kubectl("get", "prj", self.name, "-n", self.namespace)
            told = self.describe()
            found = words.differences(told, table, row, conditions, events, lines)
            if not closest or len(found) < len(closest):
                closest[:] = found
            return found

        wait_until(
            lambda: not wrong(),
            lambda: "\n".join([*wrong(), "the closest that was seen:", *closest, self.tell()]),
            limit,
            pause=0.5,
        )

    def says_it_succeeded(self, count, *events, lines=()):
        """Of a job of two nodes with one process each, and `count` mini-batches."""
        done = f"Completed: all {count} mini-batches succeeded"
        self.says(
            f"{self.name} Succeeded 100% ({count}/{count}) 0 0/2",
            {**words.OVER, "Complete": f"True {done}", "Finished": f"True {done}"},
            "Normal Started: 2 nodes of 1 process",
            *events,
            f"Normal Completed: {done}",
            lines=lines,
        )

    def describe(self):
        return self.kube.kubectl("describe", "prj", self.name, "-n", self.namespace)

    def tell(self):
        """All there is to know, for the message of a failed test."""
        said = [
            self.kube.kubectl(
                "describe", "prj", self.name, "-n", self.namespace, check=False
            ).stdout
        ]
        said.append(self.kube.kubectl("get", "pods", "-n", self.namespace, "-o", "wide"))
        said.append(
            self.kube.kubectl("get", "events", "-n", self.namespace, "--sort-by=.lastTimestamp")
        )
        for pod in self.pods():
            name = pod["metadata"]["name"]
            said.append(f"--- {name}\n{self.kube.log(self.namespace, name)[-1500:]}")
        return "\n".join(said)


def begun_twice(out):
    """The marks of mini-batches that have more than one."""
    found = marks(out)
    count = Counter(mark[0] for mark in found)
    return [mark for mark in found if count[mark[0]] > 1]


def marks(out):
    """What SCRIPT left: (name of the input, pod, time), in the order of the times."""
    found = []
    for file in out.files("marks/*"):
        name, pod, seconds = Path(file).name.split(".", 2)
        found.append((name, pod, float(seconds)))
    return sorted(found, key=lambda mark: mark[2])
