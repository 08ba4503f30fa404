"""parallelrun.submit: a job of a cluster from Python, its rows and its failures."""

import os
import sys

import pytest
from support import images, jobs

sys.path.append(str(images.ROOT / "worker-image/python"))

import parallelrun

NUMBER = """\
def run(mini_batch):
    return [int(open(path).read().split()[1]) for path in mini_batch]
"""


@pytest.mark.own_cluster
def test_rows_and_failures_of_a_job_come_to_python(space, operator, cluster, tmp_path, monkeypatch):
    monkeypatch.setenv("PARALLELRUN_BIN", str(jobs.BIN))
    monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig))
    monkeypatch.setenv("PATH", f"{cluster.programs}:{os.environ['PATH']}")
    files, _ = jobs.rows(4)
    files["in/0002.txt"] = b"row two"
    data, _ = space.volume("data"), space.volume("out")
    data.write(files)
    script = tmp_path / "score.py"
    script.write_text(NUMBER)
    manifest = jobs.manifest(space.name, "numbers", code={"path": str(tmp_path)}, runMaxTry=1)

    job = parallelrun.submit(manifest, progress=False)
    result = job.wait(240)
    assert (result.state, result.losses, result.exit_status) == ("Succeeded", 1, 3), result
    assert list(job.rows()) == ["0", "1", "3"]
    (failure,) = job.failures
    assert failure.item == "/mnt/data/in/0002.txt"
    assert failure.type == "ValueError" and failure.location == "score.py:2"
    assert "invalid literal for int() with base 10: 'two'" in failure.traceback

    script.write_text(NUMBER.replace("int(", "len(").replace(".split()[1]", ""))
    again = job.retry()
    assert again.wait(240).ok, again.result
    assert list(again.rows()) == ["0", "1", "7", "3"]
    assert again.failures == []
