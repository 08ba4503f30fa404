"""Debian's Prometheus scrapes operator and coordinators, and every panel has something to show."""

import json
import shutil

import pytest
from support import jobs
from support.kube import wait_until
from support.prometheus import Prometheus, queries

# One mini-batch fails, so that there are failures to show.
BROKEN = jobs.SCRIPT.replace(
    "def run(mini_batch):\n",
    "def run(mini_batch):\n    if '0000' in mini_batch[0]:\n        raise ValueError('zero')\n",
)


@pytest.fixture
def prometheus(tmp_path):
    if shutil.which("prometheus") is None:
        pytest.skip("not installed: prometheus (script/bootstrap test installs it)")
    prometheus = Prometheus(tmp_path / "prometheus")
    yield prometheus
    prometheus.close()


@pytest.mark.own_cluster
def test_every_panel_has_data(space, operator, cluster, prometheus, figures):
    space.code(BROKEN)
    files, _output = jobs.rows(6)
    data, _out = space.volume("data"), space.volume("out")
    data.write(files)
    tolerant = {"runMaxTry": 1, "errorThreshold": -1}
    job = space.apply(jobs.manifest(space.name, "watched", arguments=["--wait", "go"], **tolerant))
    other = space.apply(jobs.manifest(space.name, "strict", runMaxTry=1, errorThreshold=0))
    job.wait_for_phase("Running")
    assert other.wait_for_phase("Failed", "Succeeded") == "Failed"
    # One node is replaced because of the cluster, one because it failed.
    first, second = job.workers(2)
    space.kube.kubectl("delete", "pod", first["metadata"]["name"], "-n", space.name, "--wait=false")
    cluster.kill_worker(second)

    asked = queries(space.name, "watched")
    assert len(asked) > 30
    silent = list(asked)

    def all_told():
        prometheus.discover(space.kube.raw("/api/v1/pods")["items"])
        silent[:] = [one for one in silent if not prometheus.query(one[1])]
        return not silent

    wait_until(
        all_told, lambda: "\n".join(map(str, silent)) + f"\n{prometheus.tell()}\n{job.tell()}"
    )
    figures.append(f"queries of the dashboards that have data: {len(asked)} of {len(asked)}")

    up = {tuple(sorted(one["metric"].items())) for one in prometheus.query("up == 1")}
    scraped = {dict(metric)["job"] for metric in up}
    assert scraped == {"parallelrun-operator", "parallelrun-jobs"}
    rules = [r for g in prometheus.ask("rules")["groups"] for r in g["rules"]]
    assert rules
    assert [rule for rule in rules if rule["health"] != "ok"] == [], json.dumps(rules)[:3000]
    data.write(jobs.GO)
    job.succeeded()
