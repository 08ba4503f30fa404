"""What a job does when something breaks.

The output is exactly that of an undisturbed run, or the cause is said.
"""

import contextlib
import json
import re
import time
from datetime import datetime

import pytest
from support import images, jobs, words
from support.kube import wait_until
from support.words import WORKS

OUTPUT = "{}/output/parallel_run_step.txt"

# Mini-batches of a job that is at work until it is told to go on: for minutes, whatever its pace.
MANY = 300

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
    return pod["spec"].get("nodeName")


def pod_name(pod):
    return pod["metadata"]["name"]


def running(space, name, seconds=0.4, **fields):
    """A job of which both nodes have begun something.

    Each mini-batch takes so long, until jobs.GO is written: then the rest is done at once.
    """
    arguments = ["--wait", "go", "--seconds", str(seconds)]
    job, data, out, output = space.run(
        name, count=MANY, arguments=arguments, speculation=False, **fields
    )
    wait_until(
        lambda: len({mark[1] for mark in jobs.marks(out)}) == 2,
        lambda: f"both nodes\n{job.tell()}",
    )
    return job, data, out, output


def test_a_worker_pod_is_deleted(space, operator):
    job, data, out, output = running(space, "deleted")
    pod = job.pod("node", 0)
    space.kube.kubectl("delete", "pod", pod_name(pod), "-n", space.name, "--wait=false")
    wait_until(lambda: job.status["nodes"]["disruptions"] == 1, job.tell)
    data.write(jobs.GO)
    job.succeeded()
    assert out.read(OUTPUT.format("deleted")) == output
    # It drains: what it had begun it ended, and nothing is begun twice.
    assert not jobs.begun_twice(out), job.tell()
    # A deletion is a disruption: it does not count against the limit.
    nodes = job.status["nodes"]
    assert (nodes["restarts"], nodes["disruptions"]) == (0, 1)
    job.says_it_succeeded(
        MANY,
        f"Normal NodeDisrupted: node 0 ({pod_name(pod)}): Deleted",
        lines=["Nodes: Disruptions: 1", "Nodes: Restarts: 0"],
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
    # By the agent that sees it come, or by the kernel.
    killed = "Errors: Message: process000 was killed "
    killed += "<either>before it would have taken the whole container with it, out of memory: the "
    killed += "container's limit is 256 MiB, <n> MiB are in use and cannot be reclaimed; raise "
    killed += "spec.resources.limits.memory, or lower spec.miniBatchSize"
    killed += (
        "<or>by signal 9 (SIGKILL) by the kernel's out-of-memory killer: <any>the container's "
    )
    killed += "limit is 256 MiB<any><end>"
    job.says_it_succeeded(12, lines=["Errors: Kind: ProcessEnded", "Errors: Mini Batch: 3", killed])


@pytest.mark.own_cluster
def test_a_worker_is_killed(space, operator, cluster, figures):
    """Its container ends without a word, as when the kernel kills all of it."""
    job, data, out, output = running(space, "killed", seconds=1)
    killed = []

    def kill():
        """Seconds until what it held is begun again; None if that was ended just before."""
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

        def again():
            return [m[2] for m in jobs.marks(out) if m[0] == name and m[2] > when]

        def much_else():
            return len([m for m in jobs.marks(out) if m[2] > moment]) > 30

        wait_until(lambda: again() or much_else(), lambda: f"work elsewhere\n{job.tell()}")
        return again()[0] - moment if again() else None

    while (seconds := kill()) is None:
        assert len(killed) < 4, "what it held was never begun again"
    wait_until(lambda: job.status["nodes"]["restarts"] == len(killed), job.tell)
    data.write(jobs.GO)
    job.succeeded()
    assert out.read(OUTPUT.format("killed")) == output
    figures.append(f"a killed worker's work went on elsewhere after {seconds:.1f} s (aim: 5 s)")
    assert job.status["nodes"]["restarts"] == len(killed)
    told = [f"Warning NodeFailed: <node> ({pod}): Killed, exit code 137<any>" for pod in killed]
    job.says_it_succeeded(
        MANY, *told, lines=["Nodes: Disruptions: 0", f"Nodes: Restarts: {len(killed)}"]
    )


# Cannot start on the second node, from when the test says so.
BAD_NODE = """

begin = init


def init():
    begin()
    if "-node-1-" in os.uname().nodename:
        while not (options.data / "bad").exists():
            time.sleep(0.05)
        raise OSError("the scratch disk is gone")
"""


def succeeded_in(status):
    return status.get("progress", {}).get("miniBatches", {}).get("succeeded", 0)


def test_one_bad_node_is_waited_for_ever_longer(space, operator):
    """The job goes on with the other node; 10, 20 and 40 s lie between the failures."""
    data, out = space.volume("data"), space.volume("out")
    files, output = jobs.rows(MANY)
    data.write(files)
    space.code(jobs.SCRIPT + BAD_NODE)
    job = space.apply(
        jobs.manifest(
            space.name,
            "badnode",
            arguments=["--wait", "go", "--seconds", "1"],
            nodeRestartLimit=0,
            speculation=False,
        )
    )
    # No failure counts while another node works: the operator must have seen that it does.
    wait_until(lambda: succeeded_in(job.status), job.tell)
    data.write({"bad": b""})
    ended = {}

    def failed_four_times():
        for pod in job.pods("node"):
            for container in pod["status"].get("containerStatuses", []):
                if "terminated" in container["state"]:
                    ended[pod_name(pod)] = pod, container["state"]["terminated"]["finishedAt"]
        return len(ended) == 4

    wait_until(failed_four_times, lambda: f"four failures\n{job.tell()}", 300)
    pods = [ended[name][0] for name in sorted(ended)]
    failures = [pod["metadata"]["annotations"]["parallelrun.dev/failures"] for pod in pods]
    assert failures == ["0", "1", "2", "3"]
    for before, after, pause in zip(pods, pods[1:], (10, 20, 40)):
        finished = seconds_of(ended[pod_name(before)][1])
        assert seconds_of(after["metadata"]["creationTimestamp"]) - finished >= pause
    assert "the other nodes go on with its work" in job.tell()
    nodes = job.status["nodes"]
    assert (nodes["restarts"], nodes["againstLimit"]) == (4, 0)
    data.write(jobs.GO)
    job.succeeded()
    assert out.read(OUTPUT.format("badnode")) == output


def seconds_of(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


@contextlib.contextmanager
def dropped(cluster, *words):
    """What the hosts forward to the port of coordinators, and what these words match, is dropped.

    The network plug-in here enforces no NetworkPolicy; one that does drops the same.
    """
    rule = ["FORWARD", "-p", "tcp", "--dport", "8443", *words, "-j", "DROP"]
    for node in cluster.nodes:
        node.machine.run("iptables", "-w", "-I", *rule)
    try:
        yield
    finally:
        for node in cluster.nodes:
            node.machine.run("iptables", "-w", "-D", *rule)


@pytest.mark.own_cluster
def test_a_network_that_denies_nodes_their_coordinator(space, operator, cluster):
    """Nodes ask a Service, whose address is translated; the operator asks the pod itself."""
    with dropped(cluster, "-m", "conntrack", "--ctstate", "DNAT"):
        job, _data, out, output = space.run("denied")
        denied = "CoordinatorUnreachable: nodes 0 and 1 have run for more than 15 s without a word "
        denied += f"to the coordinator at denied-<hex>-coordinator.{space.name}.svc:8443 (<any> "
        denied += "port 8443), which answers the operator; where a NetworkPolicy denies it, write "
        denied += f"one more in namespace {space.name} with spec <any>"
        job.says(
            "denied CoordinatorUnreachable 0% (0/8) 0 0/2",
            {**WORKS, "NodesReady": f"False {denied}"},
            "Warning CoordinatorUnreachable: <any>",
            limit=120,
        )
    job.succeeded()
    assert out.read(OUTPUT.format("denied")) == output
    job.says_it_succeeded(8, lines=["Nodes: Restarts: 0"])


@pytest.mark.own_cluster
def test_a_coordinator_that_the_operator_does_not_reach(space, operator, cluster):
    job, data, out, output = running(space, "unheard", seconds=1)
    known = {pod["metadata"]["uid"] for pod in job.pods()}
    callers = [
        pod["status"]["podIP"]
        for pod in space.kube.list("pods", operator)
        if not pod["metadata"].get("deletionTimestamp")
    ]
    with dropped(cluster, "--source", ",".join(callers)):
        silent = "CoordinatorSilent: the coordinator, pod <pod> at <any> port 8443, has not "
        silent += "answered the operator for 30 s; what it does with its nodes goes on, and "
        silent += "nothing is replaced; where a NetworkPolicy is in the way, let the operator in "
        silent += f"namespace {operator} reach that port (<any>)"
        job.says(
            f"unheard CoordinatorSilent <n>% (<n>/{MANY}) 0 2/2",
            {**WORKS, "NodesReady": f"True {silent}"},
            f"Warning {silent}",
            limit=120,
        )
        assert {pod["metadata"]["uid"] for pod in job.pods()} == known
        data.write(jobs.GO)
    job.succeeded()
    assert out.read(OUTPUT.format("unheard")) == output
    job.says_it_succeeded(MANY, f"Warning {silent}", lines=["Nodes: Restarts: 0"])


@pytest.mark.own_cluster
def test_a_node_is_lost(space, operator, cluster, figures):
    job, data, out, output = running(space, "lost", seconds=1, podTemplate=APART)
    coordinator = job.pod("coordinator")
    lost = next(pod for pod in job.pods("node") if node_of(pod) != node_of(coordinator))
    machine = cluster.node_of(lost)
    keep_operator_from(space, operator, node_of(lost))
    known = len(jobs.marks(out))
    wait_until(
        lambda: any(mark[1] == pod_name(lost) for mark in jobs.marks(out)[known:]),
        lambda: f"the node in the middle of something\n{job.tell()}",
    )
    moment = time.time()
    machine.lose()
    try:
        held = {mark[0] for mark in jobs.marks(out) if mark[1] == pod_name(lost)}

        def again():
            found = (mark for mark in jobs.marks(out) if mark[0] in held)
            return [m[2] for m in found if m[1] != pod_name(lost) and m[2] > moment]

        wait_until(again, lambda: f"what the lost node held is begun again\n{job.tell()}")
        seconds = min(again()) - moment
        figures.append(f"a lost node's work went on elsewhere after {seconds:.1f} s (aim: 20 s)")
        index = lost["metadata"]["labels"]["parallelrun.dev/node"]
        silent = f"HostNotReady: node {index}: its host {node_of(lost)} does not answer; its work "
        silent += "goes on elsewhere, and the pod is made again if the host stays away"
        job.says(
            f"lost Running <n>% (<n>/{MANY}) 0 1/2<eta>",
            {**WORKS, "NodesReady": f"False {silent}"},
            f"Warning {silent}",
        )
        data.write(jobs.GO)
        job.succeeded()
        assert out.read(OUTPUT.format("lost")) == output
        job.says_it_succeeded(MANY, f"Warning {silent}", lines=["Nodes: Restarts: 0"])
    finally:
        cluster.bring_back(machine)


@pytest.mark.own_cluster
def test_the_coordinators_node_is_lost(space, operator, cluster, figures):
    job, data, out, output = running(space, "headless", seconds=1, podTemplate=APART)
    coordinator = job.pod("coordinator")
    keep_operator_from(space, operator, node_of(coordinator))
    machine = cluster.node_of(coordinator)
    moment = time.time()
    machine.lose()
    try:
        known = coordinator["metadata"]["uid"]
        seconds = leasing_again(job, out, moment, lambda pod: pod["metadata"]["uid"] != known)
        # With the time that Kubernetes waits by default before it calls a node lost.
        usual = seconds - cluster.grace + 50
        figures.append(
            f"a coordinator on a lost node was leasing again after {seconds:.0f} s, where a node "
            f"is called lost after {cluster.grace} s; with the default of 50 s after {usual:.0f} s "
            "(aim: 90 s)"
        )
        data.write(jobs.GO)
        job.succeeded()
        assert out.read(OUTPUT.format("headless")) == output
        job.says_it_succeeded(MANY, RESTARTED)
    finally:
        cluster.bring_back(machine)


RESTARTED = "Warning CoordinatorRestarted: the coordinator was restarted 1 time so far, "
RESTARTED += "0 of them since the last new result"


def leasing_again(job, out, moment, successor):
    """Seconds from then without a lease, once there is a coordinator that `successor` says is new.

    The workers go on with what they hold: it is the longest time in which nothing is begun.
    """
    wait_until(
        lambda: (pod := job.pod("coordinator")) and successor(pod),
        lambda: f"a new coordinator\n{job.tell()}",
        120,
    )
    before = len(jobs.marks(out))
    wait_until(lambda: len(jobs.marks(out)) >= before + 5, lambda: f"work\n{job.tell()}", 120)
    times = [mark[2] for mark in jobs.marks(out) if mark[2] > moment]
    return max(b - a for a, b in zip([moment, *times], times))


def keep_operator_from(space, namespace, node):
    """Moves the operator if it is on that node: its own absence is another test."""
    if all(node_of(pod) != node for pod in space.kube.list("pods", namespace)):
        return
    space.kube.kubectl("cordon", node)
    try:
        space.kube.kubectl("delete", "pod", "-n", namespace, "--all")
        rolled = ["rollout", "status", "-n", namespace, "deployment/parallelrun-operator"]
        space.kube.kubectl(*rolled, "--timeout=280s", limit=300)
    finally:
        space.kube.uncordon(node)


def test_a_node_is_drained(space, operator):
    job, data, out, output = running(space, "drained", podTemplate=APART)
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
        space.kube.kubectl("drain", node, *drain, "--timeout=280s", limit=300)
        wait_until(lambda: job.status["nodes"]["disruptions"] == 1, job.tell)
        data.write(jobs.GO)
        job.succeeded()
    finally:
        space.kube.uncordon(node)
    assert out.read(OUTPUT.format("drained")) == output
    nodes = job.status["nodes"]
    assert nodes["restarts"] == 0, job.tell()
    # Nothing was begun twice: what it held was finished or handed back.
    assert not jobs.begun_twice(out), job.tell()
    job.says_it_succeeded(
        MANY,
        f"Normal NodeDisrupted: node {index} ({pod_name(pod)}): EvictionByEvictionAPI: it was "
        "evicted, as when its host is drained",
        lines=["Nodes: Disruptions: 1", "Nodes: Restarts: 0"],
    )


def test_a_budget_of_ones_own_keeps_the_coordinator(space, operator):
    """As docs/platforms.md has it; without it, an eviction is taken."""
    page = (images.ROOT / "docs/platforms.md").read_text()
    blocks = re.findall(r"```yaml\n(.*?)```", page, re.S)
    (budget,) = [block for block in blocks if "PodDisruptionBudget" in block]
    job, data, out, output = running(space, "sizes")
    space.kube.kubectl("apply", "-n", space.name, "-f", "-", text=budget)
    name = pod_name(job.pod("coordinator"))
    metadata = {"name": name, "namespace": space.name}
    eviction = json.dumps(
        {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata},
    )
    path = f"/api/v1/namespaces/{space.name}/pods/{name}/eviction"

    def evict():
        return space.kube.kubectl("create", "--raw", path, "-f", "-", text=eviction, check=False)

    def counted():
        figures = "jsonpath={.status.expectedPods}/{.status.currentHealthy}"
        return space.kube.kubectl(
            "get", "pdb", "sizes-coordinator", "-n", space.name, "-o", figures
        )

    wait_until(lambda: counted() == "1/1", lambda: f"the budget counts it: {counted()}")
    refused = evict()
    assert refused.returncode != 0
    assert "disruption budget" in refused.stderr
    assert pod_name(job.pod("coordinator")) == name
    space.kube.kubectl("delete", "pdb", "sizes-coordinator", "-n", space.name)
    wait_until(lambda: evict().returncode == 0, "its eviction is taken")
    data.write(jobs.GO)
    job.succeeded()
    assert out.read(OUTPUT.format("sizes")) == output


def test_a_job_is_deleted_while_it_runs(space, operator, figures):
    job, _data, _out, _output = running(space, "dropped")
    moment = time.time()
    space.kube.kubectl("delete", "prj", job.name, "-n", space.name, "--wait=false")
    wait_until(lambda: job.pods() == [], lambda: f"the end of its pods\n{job.tell()}")
    seconds = time.time() - moment
    figures.append(f"the pods of a deleted job were gone after {seconds:.1f} s (aim: 10 s)")


def test_the_coordinator_is_deleted(space, operator, figures):
    job, data, out, output = running(space, "beheaded", seconds=0.3)

    old = pod_name(job.pod("coordinator"))
    moment = time.time()
    space.kube.kubectl("delete", "pod", old, "-n", space.name, "--grace-period=0", "--force")
    seconds = leasing_again(job, out, moment, lambda pod: pod_name(pod) != old)
    data.write(jobs.GO)
    job.succeeded()
    assert out.read(OUTPUT.format("beheaded")) == output
    figures.append(f"a deleted coordinator was leasing again after {seconds:.1f} s (aim: 5 s)")
    job.says_it_succeeded(MANY, RESTARTED, lines=["Nodes: Disruptions: 0", "Nodes: Restarts: 0"])


def test_the_operator_is_killed(space, operator):
    job, data, out, output = running(space, "orphan", seconds=0.3)
    space.kube.kubectl("delete", "pod", "-n", operator, "--all", "--grace-period=0", "--force")
    data.write(jobs.GO)
    job.succeeded()
    assert out.read(OUTPUT.format("orphan")) == output
    job.says_it_succeeded(
        MANY, lines=["Coordinator: Incarnation: 1", "Nodes: Disruptions: 0", "Nodes: Restarts: 0"]
    )
    assert len(job.pods("coordinator")) <= 1


@pytest.mark.own_cluster
@pytest.mark.last
def test_the_api_server_is_down_for_a_minute(space, operator, cluster):
    job, data, out, output = running(space, "alone", seconds=0.3)
    cluster.stop_api_server()
    moment = time.time()
    data.write(jobs.GO)
    try:
        # The job goes on and ends without it.
        wait_until(lambda: out.files("alone/output/parallel_run_step.txt"), "the output")
        time.sleep(max(0, 60 - (time.time() - moment)))
    finally:
        cluster.restart_api_server()
    job.succeeded()
    assert out.read(OUTPUT.format("alone")) == output
    job.says_it_succeeded(MANY, lines=["Nodes: Disruptions: 0", "Nodes: Restarts: 0"])
    assert not jobs.begun_twice(out), job.tell()


def test_an_image_that_does_not_exist(space, operator):
    job, _data, _out, _output = space.run("noimage", environment={"image": "localhost/nothere:1"})
    # What follows are the words of the node's containerd.
    pull = 'ImagePullBackOff: <node>: <any>image "localhost/nothere:1": <any>'
    job.says(
        "noimage ImagePullBackOff 0% (0/8) 0 0/2",
        {**WORKS, "NodesReady": f"False {pull}"},
        "Normal Started: 2 nodes of 1 process",
        f"Warning {pull}",
        limit=120,
    )


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
    full = "CoordinatorCannotStart: write /mnt/out/full/state/pod.json.tmp-<hex>: No space left on "
    full += "device; make room on the volume, then delete the job and apply it again"
    told = "Warning Failing: CoordinatorCannotStart: its pods end", f"Warning Failed: {full}"
    job.says("full Failed 0/2", words.failed(full), *told, limit=120)


@pytest.mark.own_cluster
def test_a_volume_fills_while_the_job_runs(space, operator, cluster):
    """The job waits and says for what, and goes on by itself once there is room."""
    folder = space.folder / "small"
    small_volume(cluster, folder, "4m")  # too little for the ledger to take room for long
    # Each row is longer than what is left of a page, so that results need room.
    rows = {f"in/{index:04}.txt": b"%04d " % index + b"x" * 5000 for index in range(200)}
    data, marks = space.volume("data"), space.volume("marks")
    space.volume("out", folder=folder)
    data.write(rows)
    space.code()
    volumes = [jobs.volume("data", read_only=True), jobs.volume("out"), jobs.volume("marks")]
    arguments = ["--wait", "go", "--seconds", "0.3", "--marks", "/mnt/marks/marks"]
    job = space.apply(jobs.manifest(space.name, "squeezed", volumes=volumes, arguments=arguments))
    wait_until(lambda: len(jobs.marks(marks)) > 4, lambda: f"the first results\n{job.tell()}")
    fill(cluster, folder)
    paused = "CoordinatorPaused: the disk of /mnt/out/squeezed/state/epochs is full, <n> KiB "
    paused += "more are needed (reserve room in /mnt/out/squeezed/state/epochs/<n>.log: No space "
    paused += "left on device); make room on the volume, and the job goes on by itself"
    job.says(
        "squeezed CoordinatorPaused <n>% (<n>/200) 0 2/2<eta>",
        {**WORKS, "NodesReady": f"True {paused}"},
        f"Warning {paused}",
        limit=120,
    )
    cluster.control.run("rm", folder / "filler")
    data.write(jobs.GO)
    job.succeeded()
    written = cluster.control.run("cat", folder / OUTPUT.format("squeezed"))
    assert written.encode() == b"".join(content + b"\n" for _, content in sorted(rows.items()))
    job.says_it_succeeded(
        200, f"Warning {paused}", lines=["Coordinator: Restarts: 0", "Nodes: Restarts: 0"]
    )


def test_a_claim_that_cannot_be_shared(space, operator):
    data = space.volume("data")
    space.volume("out", mode="ReadWriteOncePod")
    files, _ = jobs.rows(4)
    data.write(files)
    space.code()
    job = space.apply(jobs.manifest(space.name, "unshared"))
    unshared = "VolumeNotShared: PersistentVolumeClaim out is ReadWriteOncePod, but the "
    unshared += "coordinator and the nodes mount it: use a ReadWriteMany class, or "
    unshared += "output.mountOnNodes: false where only the output lies on it"
    job.says(
        "unshared VolumeNotShared 0/2",
        {
            **WORKS,
            "NodesReady": f"False {unshared}",
            "Reconciling": "True CreatingPods: the job's pods are not all created",
            "Stalled": f"True {unshared}",
        },
        f"Warning {unshared}",
        lines=["Status: Phase: Pending"],
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

    wait_until(ended, lambda: job.tell())
    assert job.phase == "Succeeded", job.tell()
    assert len(seen) == 1
    assert out.read(OUTPUT.format("together")) == output
    job.says_it_succeeded(12, lines=["Effective: One Host: true"])


def test_nodes_of_a_job_are_on_different_hosts(space, operator):
    data = space.volume("data")
    space.volume("out")
    files, _ = jobs.rows(4)
    data.write(files)
    space.code()
    waiting = {"arguments": ["--wait", "go"]}
    six = [space.apply(jobs.manifest(space.name, f"spread-{i}", **waiting)) for i in range(6)]
    for job in six:
        assert len({node_of(pod) for pod in job.workers(2)}) == 2, job.tell()
    data.write(jobs.GO)
    for job in six:
        job.succeeded()


def test_a_quota_that_is_too_small(space, operator):
    limit = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "small", "namespace": space.name},
        "spec": {"hard": {"pods": "1"}},
    }
    space.kube.apply(limit)
    job, _data, out, output = space.run("limited")
    quota = f'QuotaExceeded: pods/<pod>: create pods {space.name}/<pod>: pods "<pod>" is '
    quota += "forbidden: exceeded quota: small, requested: pods=1, used: pods=1, limited: pods=1 "
    quota += "(Forbidden); raise the quota, or lower nodeCount or resources, and the job goes on "
    quota += "by itself<more>"
    job.says(
        "limited QuotaExceeded 0% (0/8) 0 0/2",
        {
            **WORKS,
            "NodesReady": f"False {quota}",
            "Reconciling": "True CreatingPods: the job's pods are not all created",
        },
        f"Warning {quota}",
        limit=120,
    )
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
    job.says_it_succeeded(8, f"Warning {quota}")
