"""The chart with jobs that run: upgraded from its previous version, rolled back, uninstalled."""

import json
import shutil
import subprocess

import pytest
from support import images, jobs
from support.kube import wait_until

NEWER = "0.1.1"  # the same programs, as other images
RELEASE = ["parallelrun", "--namespace", "parallelrun-system"]
CHART = images.ROOT / "helm/parallelrun"
OUTPUT = "{}/output/parallel_run_step.txt"


def git(*words):
    command = ["git", "-c", "safe.directory=*", "-C", images.ROOT, *words]
    return subprocess.run(command, capture_output=True, timeout=60)


@pytest.fixture(scope="module")
def previous_chart(tmp_path_factory):
    """The chart as it was before the last commit that changed its templates or values.

    With the present copies of the CRD and of what is for Prometheus, which change more often: there
    is no older image, and the present operator refuses an older CRD.
    """
    chart = CHART.relative_to(images.ROOT)
    parts = [chart / part for part in ("templates", "values.yaml", "values.schema.json")]
    last = git("log", "-1", "--format=%H", "--", *parts).stdout.decode().strip()
    archive = git("archive", f"{last}~1", chart) if last else None
    if archive is None or archive.returncode != 0:
        pytest.skip("the chart's previous version is not in this clone's history")
    folder = tmp_path_factory.mktemp("previous")
    subprocess.run(["tar", "-xf", "-", "-C", folder], input=archive.stdout, check=True, timeout=60)
    shutil.rmtree(folder / chart / "files")
    shutil.copytree(CHART / "files", folder / chart / "files")
    return folder / chart


@pytest.fixture
def helm(empty_cluster):
    tools = images.ROOT / "tests/deploy/tools"
    folder = subprocess.check_output([tools, "helm"], text=True, timeout=1800).strip()

    def run(*words):
        command = [f"{folder}/helm", "--kubeconfig", empty_cluster.kubeconfig, *words]
        done = subprocess.run(
            [str(w) for w in command], capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, f"helm {words}: {done.stdout}{done.stderr}"
        return done.stdout

    yield run
    empty_cluster.kubectl("delete", "crd", "parallelrunjobs.parallelrun.dev", "--ignore-not-found")
    run("uninstall", *RELEASE, "--ignore-not-found", "--wait")
    empty_cluster.kubectl("delete", "namespace", "parallelrun-system", "--ignore-not-found")


def begun(job, out, pods):
    wait_until(
        lambda: len({mark[1] for mark in jobs.marks(out)}) >= pods,
        lambda: f"{pods} nodes at work\n{job.tell()}",
    )


def identities(pods):
    return {pod["metadata"]["uid"] for pod in pods}


def running_image(kube):
    """What the one running operator was started from, as the node knows it."""

    def started():
        pods = kube.list(
            "pods", "parallelrun-system", labelSelector="app.kubernetes.io/component=operator"
        )
        pods = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
        found = [s["imageID"] for pod in pods for s in pod["status"].get("containerStatuses", [])]
        return len(pods) == len(found) == 1 and found[0]

    return wait_until(started, "one running operator")


def runtime_images(pods):
    """What the pods of nodes have their agents from, as the nodes know it; "" if not yet known."""
    told = [pod["status"].get("initContainerStatuses", [{}])[0] for pod in pods]
    return {status.get("imageID", "") for status in told}


def operator_image(kube):
    path = "/apis/apps/v1/namespaces/parallelrun-system/deployments/parallelrun-operator"
    return kube.raw(path)["spec"]["template"]["spec"]["containers"][0]["image"]


@pytest.fixture
def newer_images(empty_cluster, builder):
    for number, name in enumerate((images.OPERATOR, images.RUNTIME)):
        file = builder.folder / f"newer-{number}.tar"
        empty_cluster.load([builder.of_version(name, NEWER, file)])


def evict_both(kube, nodes):
    """What the API server says to the eviction of one operator and then the other.

    None can come in place of the first, since both hosts are closed.
    """
    namespace = "parallelrun-system"
    budget = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets/parallelrun-operator"
    wait_until(lambda: kube.raw(budget)["status"].get("disruptionsAllowed") == 1, "a budget")
    said = []
    try:
        for node in nodes:
            kube.kubectl("cordon", node.name)
        for pod in kube.list("pods", namespace):
            name = pod["metadata"]["name"]
            path = f"/api/v1/namespaces/{namespace}/pods/{name}/eviction"
            metadata = {"name": name, "namespace": namespace}
            eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
            words = ["create", "--raw", path, "-f", "-"]
            said.append(kube.kubectl(*words, text=json.dumps(eviction), check=False).stderr)
    finally:
        for node in nodes:
            kube.uncordon(node.name)
    return said


def test_jobs_outlive_what_is_done_to_the_release(
    empty_cluster, newer_images, helm, previous_chart, kube, space
):
    wait = ["--wait", "--timeout", "2m"]
    helm("install", *RELEASE, previous_chart, "--create-namespace", *wait)
    job, data, out, output = space.run("first", count=20, arguments=["--wait", "go"])
    begun(job, out, 2)
    wait_until(lambda: "" not in runtime_images(job.pods("node")), job.tell)
    pods = job.pods()
    assert len(pods) == 3
    older = running_image(kube)

    newer = ["--set", f"image.tag={NEWER},runtimeImage.tag={NEWER}"]
    helm("upgrade", *RELEASE, CHART, "--reset-then-reuse-values", *newer, *wait)
    assert operator_image(kube).endswith(NEWER)
    assert running_image(kube) != older
    helm("test", *RELEASE)
    assert identities(job.pods()) == identities(pods)
    # The new operator goes on with the job, with the runtime that the job began with.
    kube.kubectl("delete", "pod", pods[1]["metadata"]["name"], "-n", space.name, "--wait=false")
    wait_until(
        lambda: identities(job.pods("node", living=True)) - identities(pods),
        lambda: f"a successor\n{job.tell()}",
    )
    begun(job, out, 3)
    begun_with = runtime_images(pods[1:])
    assert len(begun_with) == 1
    wait_until(lambda: runtime_images(job.pods("node")) == begun_with, job.tell)
    # A job that is new has the new runtime.
    third = space.apply(jobs.manifest(space.name, "third", arguments=["--wait", "go"]))
    wait_until(lambda: not runtime_images(third.workers(2)) & {"", *begun_with}, third.tell)
    assert third.status["effective"]["runtimeImage"].endswith(f":{NEWER}")

    helm("rollback", *RELEASE, *wait)
    assert operator_image(kube).endswith(images.VERSION)
    assert running_image(kube) == older
    data.write(jobs.GO)
    job.succeeded()
    third.succeeded()
    assert out.read(OUTPUT.format("first")) == output
    assert job.status["nodes"]["restarts"] == 0

    # Without an operator a job goes on to its output, and the next release writes the status.
    second, data, out, output = another(space)
    begun(second, out, 2)
    second.wait_for_phase("Running")
    helm("uninstall", *RELEASE, "--wait")
    wait_until(lambda: not kube.list("pods", "parallelrun-system"), "no operator any more")
    data.write({"on": b""})
    wait_until(lambda: out.files(OUTPUT.format("second")), lambda: f"the output\n{second.tell()}")
    assert second.phase == "Running"
    two = ["--set", "replicas=2,podDisruptionBudget.enabled=true"]
    helm("install", *RELEASE, CHART, *two, *wait)
    second.succeeded()
    assert out.read(OUTPUT.format("second")) == output
    assert job.phase == "Succeeded"

    first, other = evict_both(kube, empty_cluster.nodes)
    assert first == ""
    assert "Cannot evict pod as it would violate the pod's disruption budget" in other


def another(space):
    files, output = jobs.rows(8)
    data, out = space.volume("data2"), space.volume("out2")
    data.write(files)
    volumes = [
        {"name": "data", "persistentVolumeClaim": {"claimName": "data2", "readOnly": True}},
        {"name": "out", "persistentVolumeClaim": {"claimName": "out2"}},
    ]
    job = space.apply(
        jobs.manifest(space.name, "second", volumes=volumes, arguments=["--wait", "on"])
    )
    return job, data, out, output
