"""What a job does when something breaks.

The output is exactly that of an undisturbed run, or the cause is said.
"""

import calendar
import time

import pytest
from support import jobs
from support.kube import wait_until

OUTPUT = "{}/output/parallel_run_step.txt"


# Takes more memory than its container may have, once.
HUNGRY = """

echo = run


def run(mini_batch):
    first = not list(options.marks.glob("0003.*"))
    rows = echo(mini_batch)
    if first and "0003" in mini_batch[0]:
        held = [b"x" * (16 << 20) for _ in range(128)]
        rows.append(str(len(held)))
    return rows
"""


# Workers on different hosts, where there are some.
APART = {
    "spec": {
        "affinity": {
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "weight": 100,
                        "podAffinityTerm": {
                            "topologyKey": "kubernetes.io/hostname",
                            "labelSelector": {"matchLabels": {"parallelrun.dev/role": "node"}},
                        },
                    }
                ]
            }
        }
    }
}


def node_of(pod):
    return pod["spec"]["nodeName"]


def pod_name(pod):
    return pod["metadata"]["name"]


def running(space, name, count=40, seconds=0.4, **fields):
    """A job of which both nodes have begun something."""
    job, data, out, output = space.run(
        name, count=count, arguments=["--seconds", str(seconds)], **fields
    )
    wait_until(
        lambda: len({mark[1] for mark in jobs.marks(out)}) == 2,
        lambda: f"both nodes\n{job.tell()}",
        90,
    )
    return job, data, out, output


def test_a_worker_pod_is_deleted(space, operator):
    job, _data, out, output = running(space, "deleted")
    pod = job.pod("node", 0)
    space.kube.kubectl("delete", "pod", pod_name(pod), "-n", space.name, "--wait=false")
    job.succeeded()
    assert out.read(OUTPUT.format("deleted")) == output
    # It drains: what it had begun it ended, and nothing is begun twice.
    names = [mark[0] for mark in jobs.marks(out)]
    assert len(names) == len(set(names))
    # A deletion is a disruption: it does not count against the limit.
    nodes = job.status["nodes"]
    assert (nodes["restarts"], nodes["disruptions"]) == (0, 1)


def test_a_worker_is_killed_for_its_memory(space, operator):
    script = jobs.SCRIPT + HUNGRY
    data, out = space.volume("data"), space.volume("out")
    files, output = jobs.rows(12)
    data.write(files)
    space.code(script)
    job = space.apply(jobs.manifest(space.name, "hungry"))
    job.succeeded()
    assert out.read(OUTPUT.format("hungry")) == output
    assert len([mark for mark in jobs.marks(out) if mark[0] == "0003"]) >= 2
    failure = job.status["failure"]["errors"][0]
    assert "memory" in failure["message"], failure


@pytest.mark.own_cluster
def test_a_worker_is_killed(space, operator, cluster, figures):
    """Its container ends without a word, as when the kernel kills all of it."""
    job, _data, out, output = running(space, "killed", count=30, seconds=1)
    working = {mark[1] for mark in jobs.marks(out)}
    pod = next(pod for pod in job.pods("node", living=True) if pod_name(pod) in working)
    machine = next(node for node in cluster.nodes if node.name == node_of(pod))
    container = pod["status"]["containerStatuses"][0]["containerID"].split("//")[1]
    moment = time.time()
    machine.kill_container(container)
    job.succeeded()
    assert out.read(OUTPUT.format("killed")) == output
    held = [mark[0] for mark in jobs.marks(out) if mark[1] == pod_name(pod)][-1]
    again = min(mark[2] for mark in jobs.marks(out) if mark[0] == held and mark[2] > moment)
    figures.append(f"a killed worker's work went on elsewhere after {again - moment:.1f} s (< 5 s)")
    assert again - moment < 10
    assert job.status["nodes"]["restarts"] == 1


@pytest.mark.own_cluster
def test_a_node_is_lost(space, operator, cluster, figures):
    job, _data, out, output = running(space, "lost", count=60, seconds=1, podTemplate=APART)
    coordinator = job.pod("coordinator")
    lost = next(pod for pod in job.pods("node") if node_of(pod) != node_of(coordinator))
    machine = next(node for node in cluster.nodes if node.name == node_of(lost))
    keep_operator_from(space, operator, node_of(lost))
    held = {mark[0] for mark in jobs.marks(out) if mark[1] == pod_name(lost)}
    moment = time.time()
    machine.lose()
    try:
        job.succeeded(limit=120)
        assert out.read(OUTPUT.format("lost")) == output
        again = [
            m[2]
            for m in jobs.marks(out)
            if m[0] in held and m[1] != pod_name(lost) and m[2] > moment
        ]
        if again:
            figures.append(
                f"a lost node's work went on elsewhere after {min(again) - moment:.1f} s (< 20 s)"
            )
            assert min(again) - moment < 30
        assert job.status["nodes"]["restarts"] == 0
    finally:
        machine.start()
        machine.start_kubelet()
        cluster.wait_for_nodes()


@pytest.mark.own_cluster
def test_the_coordinators_node_is_lost(space, operator, cluster, figures):
    job, _data, out, output = running(space, "headless", count=60, seconds=2)
    coordinator = job.pod("coordinator")
    at = node_of(coordinator)
    keep_operator_from(space, operator, at)
    machine = next(node for node in cluster.nodes if node.name == at)
    moment = time.time()
    machine.lose()
    try:
        wait_until(
            lambda: (
                (job.pod("coordinator") or coordinator)["metadata"]["uid"]
                != coordinator["metadata"]["uid"]
            ),
            lambda: f"a new coordinator\n{job.tell()}",
            150,
        )
        wait_until(lambda: job.phase == "Succeeded", lambda: job.tell(), 180)
        assert out.read(OUTPUT.format("headless")) == output
        new = [
            p
            for p in job.pods("coordinator")
            if p["metadata"]["uid"] != coordinator["metadata"]["uid"]
        ]
        figures.append(
            f"coordinator's node lost: new one made after {created(new[0]) - moment:.0f} s (< 90 s)"
        )
    finally:
        machine.start()
        machine.start_kubelet()
        cluster.wait_for_nodes()


def created(pod):
    return calendar.timegm(
        time.strptime(pod["metadata"]["creationTimestamp"], "%Y-%m-%dT%H:%M:%SZ")
    )


def keep_operator_from(space, namespace, node):
    """Moves the operator if it is on that node: its own absence is another test."""
    if all(node_of(pod) != node for pod in space.kube.list("pods", namespace)):
        return
    space.kube.kubectl("cordon", node)
    try:
        space.kube.kubectl("delete", "pod", "-n", namespace, "--all")
        rolled = ["rollout", "status", "-n", namespace, "deployment/parallelrun-operator"]
        space.kube.kubectl(*rolled, "--timeout=60s")
    finally:
        space.kube.kubectl("uncordon", node)


def test_a_node_is_drained(space, operator):
    job, _data, out, output = running(space, "drained", podTemplate=APART)
    coordinator = job.pod("coordinator")
    pod = next(pod for pod in job.pods("node") if node_of(pod) != node_of(coordinator))
    node = node_of(pod)
    drain = [
        "--ignore-daemonsets",
        "--delete-emptydir-data",
        "--force",
        "--pod-selector",
        f"parallelrun.dev/job={job.name}",
    ]
    try:
        space.kube.kubectl("drain", node, *drain, "--timeout=90s")
        job.succeeded()
    finally:
        space.kube.kubectl("uncordon", node)
    assert out.read(OUTPUT.format("drained")) == output
    nodes = job.status["nodes"]
    assert nodes["restarts"] == 0, job.tell()
    # Nothing was begun twice: what it held was finished or handed back.
    names = [mark[0] for mark in jobs.marks(out)]
    assert len(names) == len(set(names)), job.tell()


def test_the_coordinator_is_deleted(space, operator, figures):
    job, _data, out, output = running(space, "beheaded", count=60, seconds=0.3)
    coordinator = job.pod("coordinator")
    done = len(jobs.marks(out))
    moment = time.time()
    space.kube.kubectl(
        "delete", "pod", pod_name(coordinator), "-n", space.name, "--grace-period=0", "--force"
    )
    new = wait_until(
        lambda: (
            (pod := job.pod("coordinator"))
            and pod["metadata"]["uid"] != coordinator["metadata"]["uid"]
            and pod
        ),
        lambda: f"a new coordinator\n{job.tell()}",
    )
    job.succeeded()
    assert out.read(OUTPUT.format("beheaded")) == output
    assert job.status["nodes"]["restarts"] == 0
    assert pod_name(new) != pod_name(coordinator)
    # The workers went on with what they held; the gap is the longest in which nothing was begun.
    times = [mark[2] for mark in jobs.marks(out) if mark[2] > moment]
    gaps = [b - a for a, b in zip([moment, *times], times)]
    figures.append(
        f"coordinator deleted: leasing again after {max(gaps):.1f} s (< 5 s), {done} done before"
    )


def test_the_operator_is_killed(space, operator):
    job, _data, out, output = running(space, "orphan", count=30, seconds=0.3)
    space.kube.kubectl("delete", "pod", "-n", operator, "--all", "--grace-period=0", "--force")
    job.succeeded()
    assert out.read(OUTPUT.format("orphan")) == output
    assert len(job.pods("coordinator")) <= 1
    assert job.status["nodes"]["restarts"] == 0


@pytest.mark.own_cluster
def test_the_api_server_is_down_for_a_minute(space, operator, cluster):
    job, _data, out, output = running(space, "alone", count=30, seconds=0.3)
    cluster.stop_api_server()
    moment = time.time()
    try:
        # The job goes on and ends without it.
        wait_until(lambda: out.files("alone/output/parallel_run_step.txt"), "the output", 60)
        time.sleep(max(0, 60 - (time.time() - moment)))
    finally:
        cluster.start_api_server()
    job.succeeded()
    assert out.read(OUTPUT.format("alone")) == output
    cluster.wait_for_nodes()
    names = [mark[0] for mark in jobs.marks(out)]
    assert len(names) == len(set(names))


def test_an_image_that_does_not_exist(space, operator):
    job, _data, _out, _output = space.run("noimage", environment={"image": "localhost/nothere:1"})
    condition = job.wait_for_condition("NodesReady", "ImagePullBackOff")
    assert "localhost/nothere:1" in condition["message"]
    assert job.table()["STATUS"] == "Starting"
    assert "localhost/nothere:1" in job.describe()


@pytest.mark.own_cluster
def test_a_volume_that_is_full_from_the_start(space, operator, cluster):
    folder = space.folder / "small"
    full = 'cat /dev/zero > "$1/filler" 2> /dev/null || true'
    cluster.control.run(
        "bash",
        "-ec",
        f'mkdir -p "$1"; mount -t tmpfs -o size=256k,mode=777 tmpfs "$1"; {full}',
        "-",
        folder,
    )
    files, _output = jobs.rows(8)
    data = space.volume("data")
    space.volume("out", folder=folder)
    data.write(files)
    space.code()
    job = space.apply(jobs.manifest(space.name, "full"))
    condition = job.wait_for_condition("Failed", "CoordinatorCannotStart")
    assert "/mnt/out/full/state" in condition["message"]
    assert "No space left on device" in condition["message"]
    assert "make room on the volume" in condition["message"]
    assert job.table()["STATUS"] == "Failed"


def test_a_claim_that_cannot_be_shared(space, operator):
    data = space.volume("data")
    space.volume("out", mode="ReadWriteOncePod")
    files, _ = jobs.rows(4)
    data.write(files)
    space.code()
    job = space.apply(jobs.manifest(space.name, "unshared"))
    job.wait_for_phase("Failed", "Pending")
    wait_until(lambda: "VolumeNotShared" in str(job.status.get("conditions")), lambda: job.tell())
    assert "ReadWriteMany" in str(job.status["conditions"])


def test_a_claim_for_one_host_keeps_the_job_on_it(space, operator):
    data, out = space.volume("data"), space.volume("out", mode="ReadWriteOnce")
    files, output = jobs.rows(12)
    data.write(files)
    space.code()
    job = space.apply(jobs.manifest(space.name, "together"))
    seen = set()

    def ended():
        seen.update(node_of(p) for p in job.pods() if p["spec"].get("nodeName"))
        return job.phase in ("Succeeded", "Failed")

    wait_until(ended, lambda: job.tell(), 90)
    assert job.phase == "Succeeded", job.tell()
    assert len(seen) == 1
    assert out.read(OUTPUT.format("together")) == output


def test_a_quota_that_is_too_small(space, operator):
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "small", "namespace": space.name},
        "spec": {"hard": {"pods": "1"}},
    }
    space.kube.apply(quota)
    job, _data, out, output = space.run("limited")
    condition = job.wait_for_condition("NodesReady", "QuotaExceeded")
    assert "small" in condition["message"]
    space.kube.kubectl(
        "patch",
        "quota",
        "small",
        "-n",
        space.name,
        "--type=merge",
        "-p",
        '{"spec":{"hard":{"pods":"9"}}}',
    )
    job.succeeded()
    assert out.read(OUTPUT.format("limited")) == output


def test_the_first_run_comes_soon(space, operator, figures):
    files, _output = jobs.rows(8)
    data, out = space.volume("data"), space.volume("out")
    data.write(files)
    space.code()
    started = time.time()
    job = space.apply(jobs.manifest(space.name, "quick", nodeCount=1))
    job.succeeded()
    first = jobs.marks(out)[0][2] - started
    figures.append(f"kubectl apply to the first run(): {first:.1f} s (< 5 s)")
