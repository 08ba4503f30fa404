"""`parallelrun doctor` of a real API server, by the real kubectl."""

import json
import os
import subprocess

from support.coordinator import BIN

SECONDS = 120  # nothing waits for so long, but on a machine that does other things


def test_a_cluster_and_what_its_user_may_do(plane, world):
    done = subprocess.run(
        [str(BIN / "parallelrun"), "doctor", "--json", "--namespace", world.namespace],
        env={
            **os.environ,
            "KUBECONFIG": str(plane.kubeconfig),
            "PATH": f"{plane.programs}:{os.environ['PATH']}",
        },
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    # The operator of these tests is a process, and no pod.
    assert done.returncode == 1, done.stdout + done.stderr
    findings = {finding["subject"]: finding for finding in json.loads(done.stdout)["findings"]}
    levels = {subject: finding["level"] for subject, finding in findings.items()}
    assert levels == {
        "cluster": "ok",
        "definition": "ok",
        "operator": "fail",
        "may run": "ok",
        "may look": "ok",
        "may show": "ok",
        "storage": "warn",
    }, findings
    assert findings["may look"]["text"].endswith(f"in namespace {world.namespace}")
