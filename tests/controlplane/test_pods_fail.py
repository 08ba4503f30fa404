"""What happens to pods, and what the operator makes of it."""

import signal
from datetime import datetime

import pytest
from support.pods import ended


@pytest.fixture
def running(world):
    """A job of two nodes that goes on until its work may finish."""
    world.kubelet.work.may_finish.clear()
    world.submit()
    world.until_running()
    return world


def number(pod):
    return int(pod["metadata"]["labels"]["parallelrun.dev/incarnation"])


def replaced(world, old, index=0, within=25.0):
    """Waits until another pod is in the place of `old`; returns it."""

    def another():
        pods = [
            p
            for p in world.nodes()
            if p["metadata"]["labels"]["parallelrun.dev/node"] == str(index)
        ]
        return pods[0] if pods and pods[0]["metadata"]["uid"] != old["metadata"]["uid"] else None

    return world.until(another, within)


def finish(world, within=40):
    world.kubelet.work.may_finish.set()
    complete = world.until_condition("Complete", within=within)
    assert world.status()["progress"]["miniBatches"]["succeeded"] == 20
    return complete


def counts(world):
    nodes = world.status()["nodes"]
    return nodes.get("restarts", 0), nodes.get("disruptions", 0)


def until_counts(world, expected):
    world.until(lambda: counts(world) == expected)


def made(pod):
    return moment(pod["metadata"]["creationTimestamp"])


def ended_at(pod):
    (container,) = pod["status"]["containerStatuses"]
    return moment(container["state"]["terminated"]["finishedAt"])


def moment(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def test_a_node_that_fails_is_replaced_under_a_new_name(running):
    """After a pause, for it may be the job's own fault."""
    old = running.node(0)
    end = ended_at(running.kubelet.terminated(old, 1))
    new = replaced(running, old)
    assert made(new) - end >= 10
    assert new["metadata"]["name"] != old["metadata"]["name"]
    assert number(new) > number(old)
    running.until(lambda: counts(running) == (1, 0))
    finish(running)


def test_a_failure_is_remembered_while_its_pod_still_lingers(running):
    """The second failure in a row waits twice as long, and nobody is told another time."""
    old = running.node(0)
    for failures in (1, 2):
        pause = 10 * failures
        end = ended_at(running.kubelet.terminated(old, 1, lingers=True, ago=pause - 4))
        until_counts(running, (failures, 0))
        running.kubelet.terminated(old, 1, ago=pause - 4)
        new = replaced(running, old, within=45)
        assert made(new) - end >= pause
        assert new["metadata"]["annotations"]["parallelrun.dev/failures"] == str(failures)
        old = new
        running.until(lambda: running.status()["nodes"]["ready"] == 2)
    finish(running)


def test_one_bad_node_does_not_end_a_job_whose_other_node_works(world):
    world.kubelet.work.may_finish.clear()
    world.kubelet.scripted = lambda pod: (
        pod["metadata"]["labels"].get("parallelrun.dev/node") == "1"
    )
    world.submit(nodeRestartLimit=0)
    world.until_running()
    world.until(lambda: world.status()["progress"]["miniBatches"]["running"] > 0)
    old = world.node(1)
    for failures in (1, 2):
        world.kubelet.terminated(old, 1, message="init() failed", ago=10 * (failures - 1))
        until_counts(world, (failures, 0))
        told = world.until_condition("NodesReady", "False", reason="NodeBackOff")
        assert "the other nodes go on with its work" in told["message"]
        old = replaced(world, old, index=1, within=45)
    assert world.status()["nodes"]["againstLimit"] == 0
    finish(world)


def test_disruptions_do_not_count_as_restarts(world):
    """Each of these hits a node of its own."""
    world.kubelet.work.may_finish.clear()
    world.submit(nodeCount=8)
    world.until_running(nodes=8)
    old = [world.node(index) for index in range(8)]
    failures = [
        ("Evicted", "TerminationByKubelet"),  # its host ran short
        ("OutOfcpu", None),
        ("Terminated", "TerminationByKubelet"),  # a machine that shuts down
        ("Preempting", None),
        ("NodeShutdown", None),
    ]
    for pod, (reason, disruption) in zip(old, failures):
        world.kubelet.failed(pod, reason, "The node was low on resource: memory.", disruption)
    for pod, reason in zip(
        old[5:], ("PreemptionByScheduler", "EvictionByEvictionAPI", "DeletionByTaintManager")
    ):
        world.kubelet.disrupt(pod, reason)
    for index, pod in enumerate(old):
        replaced(world, pod, index, within=20)
    world.until(lambda: counts(world) == (0, 8))
    finish(world)


def told_of(world, reason):
    """The events of that reason, as (type, message)."""
    events = world.client.list(
        "Event", world.namespace, fieldSelector=f"involvedObject.name=digits,reason={reason}"
    )
    return [(e["type"], e["message"]) for e in events]


def node_pods_without_host(world):
    """The tests alone say what becomes of nodes."""
    world.kubelet.scripted = lambda pod: pod["metadata"]["labels"]["parallelrun.dev/role"] == "node"


def test_a_node_that_fills_its_own_disk_comes_back_later_each_time(world):
    """It was made again at once, for ever, without a Warning."""
    world.kubelet.work.may_finish.clear()
    node_pods_without_host(world)
    world.submit(nodeCount=1)
    world.until(lambda: world.status()["nodes"]["ready"] == 1)
    why = 'Usage of EmptyDir volume "work" exceeds the limit "1Gi". '
    old = world.node(0)
    for ends in (1, 2):
        pause = 10 * ends
        end = ended_at(world.kubelet.failed(old, "Evicted", why, containers=True, ago=pause - 10))
        until_counts(world, (0, ends))
        told = world.until_condition("NodesReady", "False", reason="NodeBackOff")
        assert 'Evicted: Usage of EmptyDir volume "work" exceeds the limit "1Gi"' in told["message"]
        assert "raise ephemeral-storage of resources.limits" in told["message"]
        new = replaced(world, old, within=45)
        assert made(new) - end >= pause
        assert new["metadata"]["annotations"]["parallelrun.dev/failures"] == str(ends)
        world.until(lambda: world.status()["nodes"]["ready"] == 1)
        old = new
    told = world.until(lambda: told_of(world, "NodeOutOfDisk"))
    assert {kind for kind, _ in told} == {"Warning"}
    assert told_of(world, "NodeDisrupted") == []


def test_a_host_that_runs_short_is_avoided(world):
    """Nobody's fault: free, but warned of, and elsewhere."""
    world.kubelet.work.may_finish.clear()
    node_pods_without_host(world)
    world.submit(nodeCount=1)
    world.until(lambda: world.status()["nodes"]["ready"] == 1)
    why = "The node was low on resource: memory. Container worker was using 18Gi, request is 0. "
    old = world.node(0)
    world.kubelet.failed(old, "Evicted", why, "TerminationByKubelet", containers=True, ago=6)
    new = replaced(world, old)
    until_counts(world, (0, 1))
    assert new["metadata"]["annotations"]["parallelrun.dev/failures"] == "0"
    assert new["metadata"]["annotations"]["parallelrun.dev/setbacks"] == "1"
    wish = new["spec"]["affinity"]["nodeAffinity"]
    (term,) = wish["preferredDuringSchedulingIgnoredDuringExecution"]
    assert term["preference"]["matchFields"][0]["values"] == [old["spec"]["nodeName"]]
    told = world.until(lambda: told_of(world, "NodeDisrupted"))
    for kind, message in told:
        assert kind == "Warning"
        assert "using 18Gi, request is 0; its host ran short" in message


def test_out_of_memory_of_the_whole_container(running):
    """The coordinator is told, so that what had started gets its loss; not the job's restart."""
    old = running.node(0)
    running.kubelet.terminated(old, 137, reason="OOMKilled", ago=9)
    replaced(running, old)
    running.until(lambda: counts(running) == (0, 1))
    finish(running)


def test_a_failed_pod_without_container_states(running):
    """As the pod garbage collector and disk pressure leave it."""
    old = running.node(0)
    running.kubelet.failed(old, "", "", containers=False)
    replaced(running, old)
    finish(running)


def test_pods_deleted_by_people(running):
    old = running.pods()
    for pod in old:
        running.client.delete("Pod", running.namespace, pod["metadata"]["name"])
    gone = {pod["metadata"]["uid"] for pod in old}

    def all_new():
        pods = running.pods()
        return len(pods) == 3 and not gone & {pod["metadata"]["uid"] for pod in pods}

    running.until(all_new, within=20)
    finish(running)


def test_pods_deleted_by_force(running):
    for pod in running.pods():
        running.kubelet.vanish(pod)
    running.until(lambda: len(running.pods()) == 3, within=20)
    finish(running)


def test_a_pod_stuck_terminating_does_not_block_its_successor(running):
    old = running.node(0)
    running.kubelet.die(old)
    running.client.delete("Pod", running.namespace, old["metadata"]["name"])
    new = replaced(running, old)
    assert running.client.get("Pod", running.namespace, old["metadata"]["name"])["metadata"][
        "deletionTimestamp"
    ]
    assert number(new) > number(old)
    finish(running)
    running.kubelet.confirm_deletion(old)


def test_the_coordinators_node_dies(running):
    (old,) = running.coordinators()
    running.kubelet.die(old)
    running.kubelet.disrupt(old, "DeletionByTaintManager")

    def moved():
        pods = running.coordinators()
        return pods and pods[0]["metadata"]["uid"] != old["metadata"]["uid"]

    running.until(moved, within=15)
    new = running.coordinators()[0]
    base = new["metadata"]["name"].rpartition("-")[0]

    def service_moved():
        service = running.client.get("Service", running.namespace, base)
        return service["spec"]["selector"]["parallelrun.dev/incarnation"] == str(number(new))

    running.until(service_moved)
    finish(running)


def test_the_coordinator_crashes_and_is_restarted_in_its_pod(running):
    (pod,) = running.coordinators()
    running.kubelet.body(pod).crash()
    running.until(
        lambda: running.coordinators()[0]["status"]["containerStatuses"][0]["restartCount"] == 1
    )
    finish(running)
    assert [p["metadata"]["uid"] for p in running.coordinators(live=False)] in (
        [],
        [pod["metadata"]["uid"]],
    )


def test_a_coordinator_that_cannot_start_gives_up(world):
    """Exit 2 again and again without any durable result: restartLimit 5, and its own words in the
    status."""
    world.kubelet.scripted = lambda pod: (
        pod["metadata"]["labels"]["parallelrun.dev/role"] == "coordinator"
    )
    world.submit()
    # Not before the kubelet has started it: that would write over what is said here.
    pod = world.until(
        lambda: [pod for pod in world.coordinators() if pod["status"]["phase"] == "Running"]
    )[0]
    said = '{"error": "/mnt/out/digits/state: Permission denied"}'
    last = {"terminated": {"exitCode": 2, "reason": "Error", "message": said}}
    world.kubelet.waiting(pod, "CrashLoopBackOff", "back-off 40s restarting", restarts=6, last=last)
    failed = world.until_condition("Failed", within=20)
    assert "Permission denied" in failed["message"]
    world.until(lambda: [e for e in world.events() if e[0] == "Failed"], 20)
    assert not [e for e in world.events() if e[0] == "CoordinatorRestarted"], "once is enough"


@pytest.mark.parametrize(
    "reason", ["ImagePullBackOff", "ErrImagePull", "CreateContainerConfigError", "InvalidImageName"]
)
def test_what_keeps_a_container_waiting(world, reason):
    world.kubelet.hold = lambda pod: pod["metadata"]["labels"]["parallelrun.dev/role"] == "node"
    world.submit()
    pods = world.until(lambda: world.nodes() if len(world.nodes()) == 2 else None)
    for pod in pods:
        world.kubelet.waiting(pod, reason, "Back-off pulling image images.test/digits:1: not found")
    shown = "ImagePullBackOff" if reason == "ErrImagePull" else reason  # the two take turns
    told = world.until_condition("NodesReady", "False", reason=shown, within=5)
    assert "images.test/digits:1" in told["message"]
    assert ("spec.environment.image" in told["message"]) == ("Image" in reason)
    world.kubelet.hold = lambda pod: False
    world.until_condition("Complete", within=30)


def test_unschedulable(world):
    world.kubelet.hold = lambda pod: pod["metadata"]["labels"]["parallelrun.dev/role"] == "node"
    world.submit()
    pods = world.until(lambda: world.nodes() if len(world.nodes()) == 2 else None)
    for pod in pods:
        world.kubelet.unschedulable(pod, "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.")
    told = world.until_condition("NodesReady", "False", reason="Unschedulable", within=5)
    assert "lower nvidia.com/gpu of spec.resources" in told["message"]
    world.kubelet.hold = lambda pod: False
    world.until_condition("Complete", within=30)


def test_what_only_events_tell(world):
    """FailedMount shows in no pod's status: for pods that are Pending for long, their events are
    read."""
    world.kubelet.hold = lambda pod: pod["metadata"]["labels"]["parallelrun.dev/role"] == "node"
    world.submit(nodeCount=1)
    pod = world.until(lambda: world.nodes())[0]
    world.kubelet.schedule(pod)
    world.kubelet.event(
        pod, "FailedMount", 'MountVolume.SetUp failed for volume "out": access denied by server'
    )
    told = world.until_condition("NodesReady", "False", reason="FailedMount", within=20)
    assert "access denied" in told["message"]


def test_node_restart_limit(world):
    """Failed, with the reason of the last failure."""
    world.kubelet.scripted = lambda pod: pod["metadata"]["labels"]["parallelrun.dev/role"] == "node"
    world.submit(nodeRestartLimit=1)
    world.until(lambda: world.status()["nodes"]["ready"] == 2)
    for index in (0, 1):
        world.kubelet.terminated(world.node(index), 1, message="cannot import name")
    failed = world.until_condition("Failed", within=20)
    assert "estart" in failed["reason"] + failed["message"]
    assert world.status()["nodes"]["restarts"] == 2
    assert [pod for pod in world.pods(live=False) if not ended(pod)] == []


def test_a_coordinator_that_the_operator_does_not_reach(running):
    """Told, and nothing is replaced for it; that it becomes a Warning after 30 s is in
    tests/traces."""
    pods = sorted(pod["metadata"]["uid"] for pod in running.pods())
    (coordinator,) = running.coordinators()
    running.kubelet.body(coordinator).process.send_signal(signal.SIGSTOP)  # it answers nothing
    try:
        told = running.until_condition("NodesReady", "True", "CoordinatorSilent", within=30)
        where = f"pod {coordinator['metadata']['name']} at {coordinator['status']['podIP']} port "
        assert f"the coordinator, {where}" in told["message"]
        status = running.status()
        assert status["display"]["status"] == "CoordinatorSilent"
        assert status["display"]["eta"] == ""
        assert "estimatedCompletionTime" not in status["progress"]
    finally:
        running.kubelet.body(coordinator).process.send_signal(signal.SIGCONT)
    running.until_condition("NodesReady", "True", "AllReady", within=60)
    assert sorted(pod["metadata"]["uid"] for pod in running.pods()) == pods
    finish(running, within=60)
    assert running.status()["coordinator"]["restarts"] == 0


def test_a_node_that_says_nothing_any_more(running):
    """Its pod is ready, as far as its kubelet knows."""
    pod = running.node(1)
    running.kubelet.body(pod).kill()
    told = running.until_condition("NodesReady", "True", "NodeSilent", within=30)
    assert told["message"] == (
        "node 1 has said nothing for 10 s: its host node-1 may be cut off, frozen or gone; its "
        "work goes on elsewhere, and the pod is made again if Kubernetes gives it up"
    )
    running.until(lambda: ("NodeSilent", told["message"], 1) in running.events())
    running.kubelet.fill(pod)
    running.until_condition("NodesReady", "True", "AllReady", within=20)
    finish(running)
    assert running.status()["nodes"]["restarts"] == 0
