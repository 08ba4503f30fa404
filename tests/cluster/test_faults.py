"""What a job does when something breaks.

The output is exactly that of an undisturbed run, or the cause is said.
"""

import math
import re
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
    job.shows("Succeeded", "100% (40/40)", "0/2")
    job.tells(
        "Normal Started: 2 nodes of 1 processes",
        f"Normal NodeDisrupted: node 0 ({pod_name(pod)}): Deleted",
        "Normal Completed: Completed: all 40 mini-batches succeeded",
    )


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
    job.shows("Succeeded", "100% (12/12)", "0/2")
    # By the kernel, or by the agent that sees it come.
    killed = r"by signal 9 \(SIGKILL\), most likely|before it would have taken .+ with it,"
    memory = "out of memory: the container's limit is 256 MiB, "
    assert re.search(rf"process\d+ was killed ({killed}) {memory}", job.describe()), job.tell()


def repeated(measure, limit, job):
    """The first of three measured times within the limit, or the least: others use this machine."""
    times = [measure()]
    while len(times) < 3 and min(times) >= limit and job.phase == "Running":
        times.append(measure())
    return min(times)


@pytest.mark.own_cluster
def test_a_worker_is_killed(space, operator, cluster, figures):
    """Its container ends without a word, as when the kernel kills all of it."""
    job, _data, out, output = running(space, "killed", count=50, seconds=1)
    killed = []

    def kill():
        known = {pod_name(pod): pod for pod in job.workers(1)}
        begun = wait_until(
            lambda: [mark for mark in jobs.marks(out) if mark[1] in known],
            lambda: f"a node at work\n{job.tell()}",
        )
        pod = begun[-1][1]
        moment = time.time()
        cluster.kill_worker(known[pod])
        killed.append(pod)
        name, _, when = [mark for mark in jobs.marks(out) if mark[1] == pod][-1]
        while time.time() < moment + 8:
            again = [m[2] for m in jobs.marks(out) if m[0] == name and m[2] > when]
            if again:
                return again[0] - moment
            time.sleep(0.1)
        return math.inf  # it was ended just before

    seconds = repeated(kill, 5, job)
    job.succeeded()
    assert out.read(OUTPUT.format("killed")) == output
    figures.append(f"a killed worker's work went on elsewhere after {seconds:.1f} s (< 5 s)")
    assert seconds < 5
    assert job.status["nodes"]["restarts"] == len(killed)
    job.shows("Succeeded", "100% (50/50)", "0/2")
    job.tells("Warning NodeFailed: node ")


@pytest.mark.own_cluster
def test_a_node_is_lost(space, operator, cluster, figures):
    job, _data, out, output = running(space, "lost", count=40, seconds=1, podTemplate=APART)
    coordinator = job.pod("coordinator")
    lost = next(pod for pod in job.pods("node") if node_of(pod) != node_of(coordinator))
    machine = cluster.node_of(lost)
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
            assert min(again) - moment < 20
        assert job.status["nodes"]["restarts"] == 0
        job.shows("Succeeded", "100% (40/40)", "0/2")
    finally:
        machine.start()
        machine.start_kubelet()
        cluster.wait_for_nodes()


@pytest.mark.own_cluster
def test_the_coordinators_node_is_lost(space, operator, cluster, figures):
    job, _data, out, output = running(space, "headless", count=24, seconds=2, podTemplate=APART)
    coordinator = job.pod("coordinator")
    keep_operator_from(space, operator, node_of(coordinator))
    machine = cluster.node_of(coordinator)
    moment = time.time()
    machine.lose()
    try:
        wait_until(lambda: job.phase == "Succeeded", lambda: job.tell(), 240)
        assert out.read(OUTPUT.format("headless")) == output
        # The other node ends what it holds and waits: the longest time in which nothing is begun.
        times = [mark[2] for mark in jobs.marks(out) if mark[2] > moment]
        seconds = max(b - a for a, b in zip([moment, *times], times))
        figures.append(
            f"a coordinator on a lost node was leasing again after {seconds:.0f} s (< 90 s)"
        )
        assert seconds < 90
        job.shows("Succeeded", "100% (24/24)", "0/2")
        job.tells("Warning CoordinatorRestarted: the coordinator was restarted 1 times so far")
    finally:
        machine.start()
        machine.start_kubelet()
        cluster.wait_for_nodes()


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
    index = pod["metadata"]["labels"]["parallelrun.dev/node"]
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
    job.shows("Succeeded", "100% (40/40)", "0/2")
    job.tells(f"Normal NodeDisrupted: node {index} ({pod_name(pod)}): EvictionByEvictionAPI")


def test_the_coordinator_is_deleted(space, operator, figures):
    job, _data, out, output = running(space, "beheaded", count=100, seconds=0.3)

    def delete():
        """The workers go on with what they hold: the longest time in which nothing is begun."""
        coordinator = job.pod("coordinator")
        moment = time.time()
        words = ["delete", "pod", pod_name(coordinator), "-n", space.name]
        space.kube.kubectl(*words, "--grace-period=0", "--force")
        new = wait_until(
            lambda: (
                (pod := job.pod("coordinator"))
                and pod["metadata"]["uid"] != coordinator["metadata"]["uid"]
                and pod
            ),
            lambda: f"a new coordinator\n{job.tell()}",
        )
        assert pod_name(new) != pod_name(coordinator)
        before = len(jobs.marks(out))
        wait_until(lambda: len(jobs.marks(out)) >= before + 5, lambda: f"work\n{job.tell()}")
        times = [mark[2] for mark in jobs.marks(out) if mark[2] > moment]
        return max(b - a for a, b in zip([moment, *times], times))

    seconds = repeated(delete, 5, job)
    job.succeeded()
    assert out.read(OUTPUT.format("beheaded")) == output
    assert job.status["nodes"]["restarts"] == 0
    figures.append(f"a deleted coordinator was leasing again after {seconds:.1f} s (< 5 s)")
    assert seconds < 5
    job.shows("Succeeded", "100% (100/100)", "0/2")
    job.tells("Warning CoordinatorRestarted: the coordinator was restarted 1 times so far")


def test_the_operator_is_killed(space, operator):
    job, _data, out, output = running(space, "orphan", count=30, seconds=0.3)
    space.kube.kubectl("delete", "pod", "-n", operator, "--all", "--grace-period=0", "--force")
    job.succeeded()
    assert out.read(OUTPUT.format("orphan")) == output
    job.shows("Succeeded", "100% (30/30)", "0/2")
    job.tells(
        "Normal Started: 2 nodes of 1 processes",
        "Normal Completed: Completed: all 30 mini-batches succeeded",
    )
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
    job.shows("Succeeded", "100% (30/30)", "0/2")
    job.tells("Normal Completed: Completed: all 30 mini-batches succeeded")
    names = [mark[0] for mark in jobs.marks(out)]
    assert len(names) == len(set(names))


def test_an_image_that_does_not_exist(space, operator):
    job, _data, _out, _output = space.run("noimage", environment={"image": "localhost/nothere:1"})
    condition = job.wait_for_condition("NodesReady", "ImagePullBackOff")
    assert "localhost/nothere:1" in condition["message"]
    job.shows("Starting", "0% (0/8)", "0/2")
    job.tells("Warning ImagePullBackOff: node ")
    assert 'image "localhost/nothere:1"' in job.describe()


def small_volume(cluster, folder, size):
    """A file system of its own, which a node sees as it sees this machine's folders."""
    words = f'mkdir -p "$1"; mount -t tmpfs -o size={size},mode=777 tmpfs "$1"'
    cluster.control.run("bash", "-ec", words, "-", folder)


def fill(cluster, folder):
    words = 'cat /dev/zero > "$1/filler" 2> /dev/null || true'
    cluster.control.run("bash", "-c", words, "-", folder)


@pytest.mark.own_cluster
def test_a_volume_that_is_full_from_the_start(space, operator, cluster):
    folder = space.folder / "small"
    small_volume(cluster, folder, "256k")
    fill(cluster, folder)
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
    job.tells("Warning Failed: CoordinatorCannotStart: ")


@pytest.mark.own_cluster
def test_a_volume_fills_while_the_job_runs(space, operator, cluster):
    """The job waits and says for what, and goes on by itself once there is room."""
    folder = space.folder / "small"
    small_volume(cluster, folder, "4m")
    # Each row is longer than what is left of a page, so that results need room.
    rows = {f"in/{index:04}.txt": b"%04d " % index + b"x" * 5000 for index in range(60)}
    data, marks = space.volume("data"), space.volume("marks")
    space.volume("out", folder=folder)
    data.write(rows)
    space.code()
    volumes = [jobs.volume("data", read_only=True), jobs.volume("out"), jobs.volume("marks")]
    arguments = ["--seconds", "0.3", "--marks", "/mnt/marks/marks"]
    job = space.apply(jobs.manifest(space.name, "squeezed", volumes=volumes, arguments=arguments))
    wait_until(lambda: len(jobs.marks(marks)) > 4, lambda: f"the first results\n{job.tell()}")
    fill(cluster, folder)
    condition = job.wait_for_condition("NodesReady", "CoordinatorPaused")
    assert "No space left on device" in condition["message"]
    assert "make room on the volume, and the job goes on by itself" in condition["message"]
    assert job.table()["STATUS"] == "Running"
    job.tells("Warning CoordinatorPaused: reserve room in /mnt/out/squeezed/state/")
    cluster.control.run("rm", folder / "filler")
    job.succeeded()
    written = cluster.control.run("cat", folder / OUTPUT.format("squeezed"))
    assert written.encode() == b"".join(content + b"\n" for _, content in sorted(rows.items()))
    assert job.status["nodes"]["restarts"] == 0
    assert job.status["coordinator"]["restarts"] == 0


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
    row = job.table()
    assert (row["STATUS"], row["NODES"]) == ("Pending", "0/2")
    job.tells(
        "Warning VolumeNotShared: PersistentVolumeClaim out is ReadWriteOncePod, but the "
        "coordinator and the nodes mount it: use a ReadWriteMany class, or "
        "output.mountOnNodes: false where only the output lies on it"
    )


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
    job.shows("Succeeded", "100% (12/12)", "0/2")


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
    job.shows("Succeeded", "100% (8/8)", "0/2")
    job.tells(f"Warning QuotaExceeded: pods/limited-{job.get()['metadata']['uid'][:5]}-")
    assert "exceeded quota: small, requested: pods=1, used: pods=1, limited: pods=1" in str(
        job.events()
    )
