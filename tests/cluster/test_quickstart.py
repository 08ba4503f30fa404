"""docs/quickstart.md does what it says: each of its commands, in order, on an empty cluster."""

import os
import subprocess
import time

from pages import run_step, steps_of
from support import images

PAGE = "docs/quickstart.md"
TOOLS = images.ROOT / "tests" / "deploy" / "tools"


def test_the_commands_of_the_page(empty_cluster, kube, work, tmp_path, figures):
    cluster = empty_cluster
    for node in cluster.nodes:  # an image of a public registry, for the tests
        node.tag("library/newer:1", "library/python:3.13-slim")
    shared = work / "shared"
    shared.mkdir()
    os.chmod(shared, 0o777)
    kube.apply(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": "shared"},
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteMany"],
                "storageClassName": "",
                "hostPath": {"path": str(shared)},
            },
        }
    )
    tools = subprocess.check_output([TOOLS, "helm"], text=True, timeout=600).strip()
    environment = dict(
        os.environ,
        KUBECONFIG=str(cluster.kubeconfig),
        CLONE=str(images.ROOT),
        HOME=str(tmp_path),
        PATH=f"{cluster.programs}:{tools}:{os.environ['PATH']}",
    )
    started = time.monotonic()
    steps = steps_of(PAGE)
    assert len(steps) > 5
    for step in steps:
        run_step(step, PAGE, tmp_path, environment, limit=240)
    kube.kubectl("delete", "pv", "shared", "--wait=false")
    figures.append(f"{PAGE}, every command: {time.monotonic() - started:.1f} s")
