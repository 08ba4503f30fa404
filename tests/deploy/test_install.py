"""The chart and deploy/ on a real API server: installed, upgraded, rolled back; and rights.

The control plane of tests/controlplane runs no pods: what the operator does is tested elsewhere.
"""

import json
import os
import re
import subprocess

import pytest
import yaml
from pages import job_of
from ports import free_port
from support import live, render
from support.render import CHART, NAMESPACE, ROOT
from test_chart import EVERYTHING
from test_monitoring import DASHBOARDS, needs_prometheus, queries
from waits import wait_until

ACCOUNT = f"system:serviceaccount:{NAMESPACE}:parallelrun-operator"
LEASE = "leases.coordination.k8s.io/parallelrun-operator"
RELEASE = ["parallelrun", "--namespace", NAMESPACE]
ESTABLISHED = "--for=condition=Established", "crd/parallelrunjobs.parallelrun.dev"
# What the monitoring objects need and this cluster lacks.
NO_MONITORING = {
    "metrics": {"serviceMonitor": {"enabled": False}, "podMonitor": {"enabled": False}},
    "prometheusRule": {"enabled": False},
}
JOB = {
    "apiVersion": "parallelrun.dev/v1alpha1",
    "kind": "ParallelRunJob",
    "metadata": {"name": "kept", "namespace": "default"},
    "spec": {
        "entryScript": "score.py",
        "code": {"configMap": {"name": "code"}},
        "environment": {"image": "python:3.13-slim"},
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
        "inputs": [{"name": "texts", "files": {"volume": "data", "path": "texts"}}],
        "output": {"volume": "data"},
    },
}


class Cluster:
    def __init__(self, folder):
        self.kubeconfig = folder / "kubeconfig"

    def kubectl(self, *words, **options):
        command = [render.kubectl(), "--kubeconfig", self.kubeconfig, *words]
        return render.run(command, **options)

    def helm(self, *words, values=None):
        command = [render.tool("helm"), "--kubeconfig", self.kubeconfig, *words]
        if values is not None:
            return render.run([*command, "--values", "-"], input=yaml.safe_dump(values))
        return render.run(command)

    def names(self, kinds, *words):
        return self.kubectl("get", kinds, "--output", "name", *words).split()

    def may(self, account, verb, resource, *words):
        command = [render.kubectl(), "--kubeconfig", self.kubeconfig, "auth", "can-i"]
        command += [verb, resource, "--as", account, *words]
        answer = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert answer.stdout.strip() in ("yes", "no"), answer.stdout + answer.stderr
        return answer.stdout.strip() == "yes"

    def comes_to_may(self, account, verb, resource, *words):
        """The authorizer, and the controller that fills the built-in roles, hear of a new role or
        binding a moment later."""
        what = f"{account} may {verb} {resource}"
        wait_until(lambda: self.may(account, verb, resource, *words), what, pause=0.2)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plane") / "data"
    plane = ROOT / "tests/controlplane/plane"
    render.run([plane, "up", folder], seconds=1800)
    try:
        made = Cluster(folder)
        # The chart brings its own.
        made.kubectl("delete", "crd", "parallelrunjobs.parallelrun.dev", "--ignore-not-found")
        yield made
    finally:
        render.run([plane, "down", folder])


@pytest.fixture(scope="module")
def release(cluster):
    """The chart is installed, whichever tests ran before, its rights are known, and there is a
    job."""
    cluster.helm("upgrade", "--install", *RELEASE, CHART, "--create-namespace")
    cluster.kubectl("wait", *ESTABLISHED, "--timeout=110s")
    cluster.kubectl("apply", "--filename", "-", input=json.dumps(JOB))
    cluster.comes_to_may(ACCOUNT, "list", "pods", "--namespace", "default")
    cluster.comes_to_may(ACCOUNT, "update", LEASE, "--namespace", NAMESPACE)
    return cluster


def test_the_life_of_a_release(cluster):
    cluster.helm("uninstall", *RELEASE, "--ignore-not-found")
    told = cluster.helm("install", *RELEASE, CHART, "--create-namespace")
    assert "kubectl explain parallelrunjobs.spec" in told
    cluster.kubectl("wait", *ESTABLISHED, "--timeout=110s")
    cluster.kubectl("apply", "--filename", "-", input=json.dumps(JOB))

    jobs = EVERYTHING["jobs"]
    egress = {**jobs["egress"], "namespaces": ["default"]}  # one that is there
    values = {**EVERYTHING, **NO_MONITORING, "watchNamespaces": ["default"]}
    values["jobs"] = {**jobs, "egress": egress}
    cluster.helm("upgrade", *RELEASE, CHART, values=values)
    assert cluster.names("role,rolebinding", "--namespace", "default")
    assert cluster.names("networkpolicy", "--namespace", "default")
    assert "clusterrole.rbac.authorization.k8s.io/parallelrun-operator" not in cluster.names(
        "clusterrole"
    )

    cluster.helm("rollback", *RELEASE)
    assert "clusterrole.rbac.authorization.k8s.io/parallelrun-operator" in cluster.names(
        "clusterrole"
    )
    assert not cluster.names("role,rolebinding", "--namespace", "default")

    cluster.helm("uninstall", *RELEASE)
    left = cluster.names("deployment,service,serviceaccount,role", "--namespace", NAMESPACE)
    assert left == ["serviceaccount/default"]
    assert cluster.names("parallelrunjobs", "--namespace", "default")

    # What was kept is taken over by the next release.
    cluster.helm("install", *RELEASE, CHART)
    assert cluster.names("parallelrunjobs", "--namespace", "default")


def test_the_schema_explains_itself(release):
    told = release.kubectl("explain", "parallelrunjobs.spec.miniBatchSize")
    assert "DESCRIPTION" in told
    went = " ".join(
        release.kubectl("explain", "parallelrunjobs.spec.ttlSecondsAfterFinished").split()
    )
    assert "pods, Secret, Service and other objects go; the job and its output stay" in went
    went = " ".join(release.kubectl("explain", "parallelrunjobs.spec.deleteAfterFinished").split())
    assert "deletes the job too. Output, logs and ledger stay" in went


def test_what_the_operator_may_do(release):
    for verb in ("get", "list", "watch", "create", "delete"):
        release.comes_to_may(ACCOUNT, verb, "pods", "--namespace", "default")
    release.comes_to_may(ACCOUNT, "get", "secrets", "--namespace", "default")
    release.comes_to_may(ACCOUNT, "update", LEASE, "--namespace", NAMESPACE)
    for verb in ("list", "watch"):
        assert not release.may(ACCOUNT, verb, "secrets", "--namespace", "default"), verb
        assert not release.may(ACCOUNT, verb, "secrets", "--namespace", NAMESPACE), verb
    for resource in ("nodes", "namespaces", "customresourcedefinitions", "clusterroles"):
        assert not release.may(ACCOUNT, "get", resource), resource
    assert not release.may(ACCOUNT, "update", "parallelrunjobs", "--namespace", "default")
    assert not release.may(ACCOUNT, "update", LEASE, "--namespace", "default")


def test_jobs_become_part_of_the_built_in_roles(release):
    jobs, scale = "parallelrunjobs", ("parallelrunjobs", "--subresource=scale")
    for role, writes in (("view", False), ("edit", True), ("admin", True)):
        user = f"{role}er"
        release.kubectl("create", "rolebinding", role, f"--clusterrole={role}", f"--user={user}")
        release.comes_to_may(user, "list", jobs)
        if writes:
            release.comes_to_may(user, "create", jobs)
            release.comes_to_may(user, "update", *scale)
        else:
            assert not release.may(user, "create", jobs)
            assert not release.may(user, "update", *scale)
        assert not release.may(user, "patch", jobs, "--subresource=status")


def test_the_server_takes_kustomize(release):
    for folder in ("crds", "deploy/base", "deploy/overlays/namespaced"):
        text = release.kubectl("kustomize", folder)
        found = render.objects(text)
        # A dry run makes no namespace, so nothing can be tried in one that is not there.
        tried = [o for (_, namespace, _), o in found.items() if namespace in (None, NAMESPACE)]
        command = ["apply", "--server-side", "--force-conflicts", "--dry-run=server"]
        release.kubectl(*command, "--filename", "-", input=yaml.safe_dump_all(tried))


def test_the_server_takes_the_job_of_the_quickstart(release):
    job = job_of("docs/quickstart.md", BUCKET="bucket", REGION="eu-west-1", ENDPOINT="https://h")
    release.kubectl("apply", "--dry-run=server", "--filename", "-", input=job)


@pytest.mark.parametrize("sample", ["digits", "wine"])
def test_the_server_takes_the_samples(release, sample):
    folder = f"deploy/samples/{sample}"
    release.kubectl("apply", "--dry-run=server", "-k", folder)
    release.kubectl("apply", "--dry-run=server", "--filename", f"{folder}/data.yaml")


def test_a_second_apply_from_git_changes_nothing(release):
    apply = ["apply", "--server-side", "--field-manager", "git", "--filename", "-"]
    job = json.loads(json.dumps(JOB))
    job["metadata"]["name"] = "from-git"
    versions = set()
    for _ in range(2):
        release.kubectl(*apply, input=json.dumps(job))
        made = json.loads(release.kubectl("get", "prj", "from-git", "--output", "json"))
        versions.add((made["metadata"]["resourceVersion"], made["metadata"]["generation"]))
    assert len(versions) == 1


OPERATOR = live.BIN / "parallelrun-operator"
# What has not happened to one job without code: pods, an end, refusals.
QUIET = (
    "node_restarts|node_disruptions|node_seconds|gpu_seconds|finished|code!~"
    "|mini_batches|items|rows|registered|paused|epoch|listing|attempts"
)


@pytest.fixture
def operator(release, tmp_path):
    """The operator's program with the chart's arguments and its service account: (port of its
    metrics, port of its health, log)."""
    if not OPERATOR.exists():
        pytest.skip(f"{OPERATOR} is not built")
    kubeconfig = yaml.safe_load(release.kubeconfig.read_text())
    token = release.kubectl("create", "token", "parallelrun-operator", "--namespace", NAMESPACE)
    kubeconfig["users"][0]["user"] = {"token": token.strip()}
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(kubeconfig))
    ports = free_port(), free_port()
    flags = render.arguments(render.chart())
    flags["metrics-address"], flags["health-address"] = (f"127.0.0.1:{port}" for port in ports)
    command = [OPERATOR, f"--kubeconfig={path}", *(f"--{k}={v}" for k, v in flags.items())]
    log = tmp_path / "operator.log"
    environment = {**os.environ, "POD_NAMESPACE": NAMESPACE}
    with live.running(command, log, env=environment) as process:
        ready = f"http://127.0.0.1:{ports[1]}/readyz"
        live.wait_for(lambda: live.get(ready), process, log)
        yield (*ports, log, process)


def test_the_operator_runs_with_the_charts_arguments_and_rights(cluster, operator):
    metrics, health, log, process = operator
    settled = "--for=condition=Accepted", "parallelrunjob/kept", "--timeout=110s"
    cluster.kubectl("wait", *settled)
    check = [OPERATOR, "--check", f"http://127.0.0.1:{health}/readyz"]
    assert subprocess.run(check, timeout=120).returncode == 0
    check[-1] = f"http://127.0.0.1:{free_port()}/readyz"
    assert subprocess.run(check, timeout=120, capture_output=True).returncode == 1
    text = live.get(f"http://127.0.0.1:{metrics}/metrics")
    assert 'code="403"' not in text, log.read_text()[-5000:]
    assert process.poll() is None


@needs_prometheus
def test_the_operators_metrics_are_well_formed_and_fill_the_panels(cluster, operator, tmp_path):
    port = operator[0]
    cluster.kubectl("wait", "--for=condition=Accepted", "parallelrunjob/kept", "--timeout=110s")
    text = live.get(f"http://127.0.0.1:{port}/metrics")
    render.run(["promtool", "check", "metrics"], input=text)
    asked = [query.replace("team", "default") for path in DASHBOARDS for query in queries(path)]
    told = [query for query in asked if not re.search(QUIET, query)]
    assert len(told) > 12
    with live.prometheus(tmp_path, [(port, {"job": "parallelrun-operator"})]) as query:
        rate = "rate(controller_runtime_reconcile_total[5m]) > 0"
        live.wait_for(lambda: query(rate), query.process, query.log)
        for expression in told:
            assert query(expression), f"no data for {expression}"
