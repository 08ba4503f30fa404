"""How soon a job works once it is applied, with the images on the nodes."""

import time

import pytest
from support import images, jobs
from support.kube import wait_until


def like_a_node(space, name):
    """A pod with a node's image, volumes and init container, that only leaves a mark."""
    loader = ["/opt/parallelrun/lib/ld.so", "--library-path", "/opt/parallelrun/lib"]
    install = [*loader, "/opt/parallelrun/bin/parallelrun-agent", "install", "/target"]
    security = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    mounts = [{"name": volume, "mountPath": f"/mnt/{volume}"} for volume in ("data", "out")]
    runtime = {
        "name": "runtime",
        "image": images.RUNTIME,
        "command": install,
        "volumeMounts": [{"name": "runtime", "mountPath": "/target"}],
        "securityContext": security,
    }
    worker = {
        "name": "worker",
        "image": "newer:1",
        "command": ["sh", "-c", f"date +%s.%N > /mnt/out/{name}"],
        "volumeMounts": [*mounts, {"name": "runtime", "mountPath": "/opt/parallelrun"}],
        "securityContext": security,
    }
    spec = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "runAsGroup": 65532,
            "fsGroup": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "initContainers": [runtime],
        "containers": [worker],
        "volumes": [
            {"name": "runtime", "emptyDir": {}},
            jobs.volume("data", read_only=True),
            jobs.volume("out"),
        ],
    }
    metadata = {"name": name, "namespace": space.name}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def start_of_a_pod(space, out, name):
    started = time.time()
    space.kube.apply(like_a_node(space, name))
    wait_until(lambda: name in out.files("*") and out.read(name).strip(), f"the mark of pod {name}")
    return float(out.read(name)) - started


def start_of_a_job(space, out, name):
    started = time.time()
    job = space.apply(jobs.manifest(space.name, name))
    wait_until(
        lambda: any(mark[2] > started for mark in jobs.marks(out)),
        lambda: f"the first run()\n{job.tell()}",
    )
    return min(mark[2] for mark in jobs.marks(out) if mark[2] > started) - started


@pytest.mark.own_cluster  # elsewhere the clocks differ
def test_the_first_run_comes(space, operator, figures):
    files, _output = jobs.rows(8)
    data, out = space.volume("data"), space.volume("out")
    data.write(files)
    space.code()
    bare = start_of_a_pod(space, out, "bare")
    first = start_of_a_job(space, out, "quick")
    figures.append(
        f"kubectl apply to the first run(): {first:.1f} s (aim: 5 s); "
        f"to the start of a pod with the same images and volumes: {bare:.1f} s"
    )
