"""docs/quickstart.md does what it says: each of its commands, in order, on an empty cluster."""

import os
import subprocess
import time

from pages import run_step, steps_of
from s3_server import OWNER, REGION, Server
from support import images

PAGE = "docs/quickstart.md"
TOOLS = images.ROOT / "tests" / "deploy" / "tools"


def test_the_commands_of_the_page(request, empty_cluster, kube, work, tmp_path, figures):
    cluster = empty_cluster
    for node in cluster.nodes:  # an image of a public registry, for the tests
        node.tag("library/newer:1", "library/python:3.13-slim")
    # In place of a default StorageClass, which this cluster has not: for the claim that the page
    # fills. The job whose data is in a bucket needs none.
    folder = work / "files"
    folder.mkdir()
    os.chmod(folder, 0o777)
    kube.apply(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": "files"},
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "",
                "hostPath": {"path": str(folder)},
            },
        }
    )
    server = Server(tmp_path / "s3", host=cluster.network.here)
    request.addfinalizer(server.close)
    server.bucket("quickstart")
    for number in range(1, 21):
        server.put("quickstart", f"texts/{number:02}.txt", f"text number {number:02}\n".encode())
    tools = subprocess.check_output([TOOLS, "helm"], text=True, timeout=600).strip()
    environment = dict(
        os.environ,
        KUBECONFIG=str(cluster.kubeconfig),
        CLONE=str(images.ROOT),
        BUCKET="quickstart",
        REGION=REGION,
        ENDPOINT=server.url,
        AWS_ACCESS_KEY_ID=OWNER[0],
        AWS_SECRET_ACCESS_KEY=OWNER[1],
        HOME=str(tmp_path),
        PATH=f"{cluster.programs}:{tools}:{os.environ['PATH']}",
    )
    started = time.monotonic()
    steps = steps_of(PAGE)
    assert len(steps) > 5
    for step in steps:
        run_step(step, PAGE, tmp_path, environment, limit=240)
    beside = server.root / "quickstart/results/sizes/sizes.txt.run"
    assert sorted(path.name for path in beside.iterdir()) == ["job_result.txt", "report.html"]
    output = (server.root / "quickstart/results/sizes/sizes.txt").read_text()
    assert output == "".join(f"{number:02}.txt: 15 bytes\n" for number in range(1, 21))
    kube.kubectl("delete", "pv", "files", "--wait=false")
    figures.append(f"{PAGE}, every command: {time.monotonic() - started:.1f} s")
