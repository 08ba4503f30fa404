"""A job of a cluster for commands that read it by kubectl: its volume is a folder of this machine.

In place of kubectl stands a program that keeps the objects in a folder, and executes in a pod as
kubectl does: the real `parallelrun-agent send`, on this machine (tests/cluster has the real one).
"""

import hashlib
import json
import sys

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

    def __init__(self, work, script, code=0, **fields):
        self.work = work
        work.script(script)
        work.files(5)
        work.job(**fields)
        assert work.run().code == code
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
