"""The samples of deploy/samples on two nodes: the same bytes as a local run makes."""

import csv
import io
import json
import subprocess
from pathlib import Path

import pytest
import yaml
from support import images, jobs
from support.kube import wait_until
from support.words import OVER

SAMPLES = images.ROOT / "deploy" / "samples"


def sample(space, name, tmp_path, **fields):
    """Applies the sample's own job file with its code in a ConfigMap; its data is made here."""
    folder = tmp_path / "data"
    subprocess.run(
        ["/usr/bin/python3", SAMPLES / name / "make_data.py", folder], check=True, timeout=60
    )
    manifest = yaml.safe_load((SAMPLES / name / "job.yaml").read_text())
    data = space.volume(manifest["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"])
    out = space.volume(manifest["spec"]["volumes"][1]["persistentVolumeClaim"]["claimName"])
    data.write(
        {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    )
    local = jobs.run_here(
        manifest, SAMPLES / name, {"data": folder, "out": tmp_path / "out"}, tmp_path / "here"
    )

    space.code((SAMPLES / name / "score.py").read_text())
    manifest["metadata"]["namespace"] = space.name
    manifest["spec"]["code"] = {"configMap": {"name": "code"}}
    manifest["spec"]["environment"] = {"image": "digits:1"}
    manifest["spec"]["nodeCount"] = 2
    manifest["spec"].update(fields)
    return space.apply(manifest), out, local


@pytest.mark.parametrize("name", ["digits", "wine"])
def test_output_is_that_of_a_local_run(space, operator, tmp_path, name):
    job, out, local = sample(space, name, tmp_path)
    job.succeeded()
    path = f"{name}/output/parallel_run_step.txt"
    assert out.read(path) == local
    # The claim of the output goes last, after the reports.
    beside = lambda: [Path(file).name for file in out.files(f"{name}/output/*")]  # noqa: E731
    left = ["parallel_run_step.txt", "parallel_run_step.txt.index.jsonl"]
    wait_until(
        lambda: sorted(beside()) == left, lambda: f"only the output and its index: {beside()}"
    )

    gone = {"desired": 2, "ready": 0, "restarts": 0, "disruptions": 0, "againstLimit": 0}
    wait_until(lambda: job.status["nodes"] == gone, lambda: f"no nodes\n{job.tell()}")
    status = job.status
    assert status["output"]["rows"] == len(local.splitlines())
    assert status["output"]["bytes"] == len(local)
    assert status["progress"]["percent"] == 100
    done = {"Complete": "True Completed: all <n> mini-batches succeeded"}
    job.says(f"{name} Succeeded 100% (<n>/<n>) 0 0/2", {**OVER, **done})
    # Each node that did something has left its logs; the other may have come when all was done.
    report = f"{name}/logs/sys/job_report/processed_mini-batches.csv"
    wait_until(lambda: out.files(report), "the coordinator's report")
    rows = list(csv.reader(io.StringIO(out.read(report).decode())))[1:]
    nodes = {json.loads(row[-1])["node"] for row in rows}
    assert nodes
    for node in nodes:
        wait_until(lambda node=node: out.files(f"{name}/logs/sys/node/{node}/*"), f"node {node}")
