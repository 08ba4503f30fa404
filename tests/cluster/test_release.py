"""The chart with jobs that run: upgraded from its previous version, rolled back, uninstalled."""

import subprocess

import pytest
from support import images, jobs
from support.kube import wait_until

NEWER = "0.1.1"  # another name of the same images
RELEASE = ["parallelrun", "--namespace", "parallelrun-system"]
CHART = images.ROOT / "helm/parallelrun"
OUTPUT = "{}/output/parallel_run_step.txt"


def git(*words):
    command = ["git", "-c", "safe.directory=*", "-C", images.ROOT, *words]
    return subprocess.run(command, capture_output=True, timeout=60)


@pytest.fixture(scope="module")
def previous_chart(tmp_path_factory):
    """The chart as it was before the last commit that changed it.

    With the present CRD: there is no older image, and the present operator refuses an older CRD.
    """
    parts = ["helm", "deploy/monitoring"]
    last = git("log", "-1", "--format=%H", "--", *parts).stdout.decode().strip()
    archive = git("archive", f"{last}~1", *parts) if last else None
    if archive is None or archive.returncode != 0:
        pytest.skip("the chart's previous version is not in this clone's history")
    folder = tmp_path_factory.mktemp("previous")
    subprocess.run(["tar", "-xf", "-", "-C", folder], input=archive.stdout, check=True, timeout=60)
    (folder / "crds").symlink_to(images.ROOT / "crds")
    return folder / "helm/parallelrun"


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
        60,
    )


def identities(pods):
    return {pod["metadata"]["uid"] for pod in pods}


def runtime_images(pods):
    return {pod["spec"]["initContainers"][0]["image"] for pod in pods}


def operator_image(kube):
    path = "/apis/apps/v1/namespaces/parallelrun-system/deployments/parallelrun-operator"
    return kube.raw(path)["spec"]["template"]["spec"]["containers"][0]["image"]


def test_jobs_outlive_what_is_done_to_the_release(empty_cluster, helm, previous_chart, kube, space):
    for node in empty_cluster.nodes:
        for name in ("operator", "runtime"):
            node.tag(f"parallelrun/{name}:{images.VERSION}", f"parallelrun/{name}:{NEWER}")
    wait = ["--wait", "--timeout", "2m"]
    helm("install", *RELEASE, previous_chart, "--create-namespace", *wait)
    job, data, out, output = space.run("first", count=8, arguments=["--wait", "go"])
    begun(job, out, 2)
    pods = job.pods()
    assert len(pods) == 3

    newer = ["--set", f"image.tag={NEWER},runtimeImage.tag={NEWER}"]
    helm("upgrade", *RELEASE, CHART, "--reset-then-reuse-values", *newer, *wait)
    assert operator_image(kube).endswith(NEWER)
    helm("test", *RELEASE)
    assert identities(job.pods()) == identities(pods)
    # The new operator goes on with the job, with the runtime that the job began with.
    kube.kubectl("delete", "pod", pods[1]["metadata"]["name"], "-n", space.name, "--wait=false")
    wait_until(
        lambda: identities(job.pods("node", living=True)) - identities(pods),
        lambda: f"a successor\n{job.tell()}",
    )
    assert runtime_images(job.pods("node")) == runtime_images(pods[1:])

    helm("rollback", *RELEASE, *wait)
    assert operator_image(kube).endswith(images.VERSION)
    data.write({"go": b""})
    job.succeeded()
    assert out.read(OUTPUT.format("first")) == output
    assert job.status["nodes"]["restarts"] == 0

    # Without an operator a job goes on to its output, and the next release writes the status.
    second, data, out, output = another(space)
    begun(second, out, 2)
    helm("uninstall", *RELEASE, "--wait")
    data.write({"on": b""})
    wait_until(
        lambda: out.files(OUTPUT.format("second")), lambda: f"the output\n{second.tell()}", 60
    )
    assert second.phase == "Running"
    helm("install", *RELEASE, CHART, *wait)
    second.succeeded()
    assert out.read(OUTPUT.format("second")) == output
    assert job.phase == "Succeeded"


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
