"""Suspend, scale, cancel, deadlines, deletion, and the operator's own death at any of these."""

import re
import time

import pytest
from support.client import ApiError
from support.job import spec


@pytest.fixture
def running(world):
    world.kubelet.work.may_finish.clear()
    world.submit()
    world.until_running()
    return world


def finish(world, name="digits", within=40):
    world.kubelet.work.may_finish.set()
    return world.until_condition("Complete", name=name, within=within)


def children(world, uid):
    """Names of everything that belongs to the job."""
    found = []
    for kind in ("Pod", "Secret", "Service", "ConfigMap", "NetworkPolicy"):
        for thing in world.client.list(kind, world.namespace):
            owners = [owner["uid"] for owner in thing["metadata"].get("ownerReferences", [])]
            found += [f"{kind}/{thing['metadata']['name']}"] * (uid in owners)
    return found


def test_a_node_that_nothing_is_left_for_gets_no_host(world):
    """Nobody schedules node 1, and node 0 has but the last mini-batch to do."""
    index = "parallelrun.dev/node"
    world.kubelet.hold = lambda pod: pod["metadata"]["labels"].get(index) == "1"
    world.kubelet.work.up_to = 19
    world.submit()
    ready = world.until_condition("NodesReady", "True", "AllReady", within=30)
    assert "1 of 2 nodes are ready; 1 node is not made" in ready["message"]
    assert [pod["metadata"]["labels"][index] for pod in world.nodes()] == ["0"]
    world.kubelet.work.up_to = None
    finish(world)
    assert world.status()["progress"]["miniBatches"]["succeeded"] == 20


# -- suspend ---------------------------------------------------------------------------------------


def test_suspend_and_resume(running):
    running.change(suspend=True)
    running.until_condition("Suspended", within=20)
    running.until(lambda: running.pods(live=False) == [], within=20)
    status = running.status()
    assert status["phase"] == "Suspended"
    assert "startTime" not in status
    running.change(suspend=False)
    running.until_running()
    assert running.condition("Suspended")["status"] == "False"
    assert running.status()["startTime"]
    finish(running)
    assert running.status()["progress"]["miniBatches"]["succeeded"] == 20


def test_results_survive_a_suspension(world):
    world.kubelet.work.up_to = 20  # the others wait
    world.submit(rankMiniBatchCount=60)
    volume = world.kubelet.folder / "volumes/results"
    world.until(lambda: world.status()["progress"]["miniBatches"]["succeeded"] > 0, within=30)
    world.change(suspend=True)
    world.until(lambda: world.pods(live=False) == [], within=30)
    assert any(volume.rglob("*"))  # the ledger stays
    world.kubelet.work.up_to = None
    world.change(suspend=False)
    world.until_condition("Complete", within=40)
    (result,) = volume.rglob("parallel_run_step.txt")
    assert sorted(result.read_text().split()) == sorted(
        " ".join(f"row of {i}" for i in range(60)).split()
    )


def test_created_suspended(world):
    world.submit(suspend=True)
    world.until_condition("Suspended")
    assert world.pods(live=False) == []
    world.change(nodeCount=1, resources={"requests": {"cpu": "1"}})
    world.change(suspend=False)
    world.until_condition("Complete", within=30)
    assert world.status()["nodes"]["desired"] == 1


# -- scale -----------------------------------------------------------------------------------------


def test_scale_up(running):
    running.plane.kubectl("-n", running.namespace, "scale", "prj/digits", "--replicas=4")
    running.until_running(nodes=4)
    assert running.status()["replicas"] == 4
    finish(running)


def test_scale_down_drains(running):
    running.change(nodeCount=1)

    def only_the_first():
        return [p["metadata"]["labels"]["parallelrun.dev/node"] for p in running.nodes()] == ["0"]

    running.until(only_the_first, within=30)
    running.until(
        lambda: (
            running.job()["status"]["observedGeneration"] == running.job()["metadata"]["generation"]
        )
    )
    assert running.status()["nodes"].get("restarts", 0) == 0
    finish(running)
    assert running.status()["progress"]["miniBatches"]["failed"] == 0


def test_scale_to_nothing_and_back(running):
    running.change(nodeCount=0)
    running.until(lambda: running.nodes() == [], within=30)
    assert len(running.coordinators()) == 1
    running.change(nodeCount=2)
    running.until_running()
    finish(running)


def test_observed_generation_waits_for_the_coordinator(running):
    (coordinator,) = running.coordinators()
    running.kubelet.body(coordinator).process.send_signal(19)  # SIGSTOP: it answers nothing
    try:
        before = running.status()["observedGeneration"]
        generation = running.change(errorThreshold=7)["metadata"]["generation"]
        running.until(
            lambda: re.search(rf'is told .*"generation":{generation}\b', running.operator.said())
        )
        running.until_passed()
        assert running.status()["observedGeneration"] == before
    finally:
        running.kubelet.body(coordinator).process.send_signal(18)
    running.until(
        lambda: running.status()["observedGeneration"] == running.job()["metadata"]["generation"],
        within=30,
    )
    finish(running)


# -- the end ---------------------------------------------------------------------------------------


def test_cancel(running):
    running.change(cancel=True)
    failed = running.until_condition("Failed", reason="Canceled", within=30)
    assert running.condition("FailureTarget")["reason"] == failed["reason"]
    assert running.pods() == []
    assert any((running.kubelet.folder / "volumes/results").rglob("*"))  # logs and ledger are kept
    assert running.phase() == "Failed"


def test_cancel_before_it_starts(world):
    world.submit(needed=False, cancel=True)
    world.until_condition("Failed", reason="Canceled", within=10)
    assert world.pods(live=False) == []


def test_cancel_while_suspended(world):
    world.submit(suspend=True)
    world.until_condition("Suspended")
    world.change(cancel=True)
    world.until_condition("Failed", reason="Canceled", within=10)


def test_active_deadline(running):
    running.change(activeDeadlineSeconds=1)
    running.until_condition("Failed", reason="DeadlineExceeded", within=30)
    assert running.pods() == []


def test_nothing_runs_after_the_end(running):
    finish(running)
    running.until(lambda: running.pods() == [])
    running.change(nodeCount=5)
    running.change(suspend=True)
    running.until_passed()
    assert running.pods() == []
    assert running.phase() == "Succeeded"


def test_time_to_live_of_the_pods(world):
    uid = world.submit(ttlSecondsAfterFinished=1)["metadata"]["uid"]
    world.until_condition("Complete", within=30)
    world.until(lambda: children(world, uid) == [], within=15)
    world.until(lambda: "cleanupTime" in world.status(), within=15)
    assert world.phase() == "Succeeded"


def test_time_to_live_of_the_job(world):
    uid = world.submit(ttlSecondsAfterFinished=1, deleteAfterFinished=True)["metadata"]["uid"]
    world.until(
        lambda: world.client.find("ParallelRunJob", world.namespace, "digits") is None, within=40
    )
    world.until(lambda: children(world, uid) == [], within=20)


# -- deletion --------------------------------------------------------------------------------------


def test_deleted_while_it_runs(running):
    """Everything of it is gone, by the garbage collector alone: there is no finalizer."""
    job = running.job()
    assert "finalizers" not in job["metadata"]
    running.client.delete("ParallelRunJob", running.namespace, "digits")
    running.until(lambda: children(running, job["metadata"]["uid"]) == [], within=30)
    assert running.client.find("ConfigMap", running.namespace, "code")  # the user's own stay


def test_deleted_in_the_foreground(running):
    job = running.job()
    running.client.delete(
        "ParallelRunJob", running.namespace, "digits", propagationPolicy="Foreground"
    )
    running.until(
        lambda: running.client.find("ParallelRunJob", running.namespace, "digits") is None,
        within=30,
    )
    assert children(running, job["metadata"]["uid"]) == []


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
def test_nodes_of_a_deleted_job_have_five_seconds(running, propagation):
    """Their coordinator is gone: in the minute that a pod has they would only look for it."""
    nodes = [pod["metadata"]["name"] for pod in running.nodes()]
    (coordinator,) = [pod["metadata"]["name"] for pod in running.coordinators()]
    running.kubelet.stuck.update([coordinator, *nodes])
    running.client.delete(
        "ParallelRunJob", running.namespace, "digits", propagationPolicy=propagation
    )

    def graces():
        return {
            pod["metadata"]["name"]: pod["metadata"].get("deletionGracePeriodSeconds")
            for pod in running.pods(live=False)
        }

    running.until(lambda: graces() == {coordinator: 30, **dict.fromkeys(nodes, 5)}, within=30)
    running.kubelet.stuck.clear()
    running.until(lambda: running.pods(live=False) == [], within=30)


def test_deleted_and_created_again_under_its_name(running):
    first = running.job()["metadata"]["uid"]
    running.client.delete("ParallelRunJob", running.namespace, "digits")
    second = running.client.create(
        "ParallelRunJob",
        running.namespace,
        {
            "metadata": {"name": "digits"},
            "spec": spec(output={"volume": "out", "ifExists": "Resume"}),
        },
    )["metadata"]["uid"]
    running.kubelet.work.may_finish.set()
    running.until_condition("Complete", within=60)
    assert running.job()["metadata"]["uid"] == second
    running.until(lambda: children(running, first) == [], within=30)
    assert running.status()["progress"]["miniBatches"]["succeeded"] == 20


def test_a_new_job_waits_for_the_pods_of_the_old(running):
    """Two coordinators must not meet in one state folder unless the second is told to continue."""
    (old,) = running.coordinators()
    running.kubelet.stuck.add(old["metadata"]["name"])
    running.client.delete("ParallelRunJob", running.namespace, "digits")
    running.client.create(
        "ParallelRunJob",
        running.namespace,
        {
            "metadata": {"name": "digits"},
            "spec": spec(output={"volume": "out", "ifExists": "Overwrite"}),
        },
    )
    running.until_passed()
    assert [p["metadata"]["uid"] for p in running.coordinators(live=False)] == [
        old["metadata"]["uid"]
    ]
    running.kubelet.stuck.clear()
    running.kubelet.work.may_finish.set()
    running.until_condition("Complete", within=60)


def test_output_exists_already(world):
    world.submit("digits")
    world.until_condition("Complete", within=30)
    world.client.delete("ParallelRunJob", world.namespace, "digits")
    world.until(lambda: world.pods(live=False) == [], within=30)
    world.submit("digits")
    failed = world.until_condition("Failed", within=60)
    assert "ifExists" in failed["message"]


def test_applied_again_when_it_was_finished(world):
    """GitOps re-creates what a TTL deleted: with ifExists Resume that is Succeeded at once."""
    output = {"volume": "out", "ifExists": "Resume"}
    world.submit(output=output)
    world.until_condition("Complete", within=30)
    world.client.delete("ParallelRunJob", world.namespace, "digits")
    world.until(lambda: world.pods(live=False) == [], within=30)
    world.kubelet.work.may_finish.clear()  # no node gets to work
    world.submit(output=output)
    world.until_condition("Complete", within=30)


# -- the operator's own death ----------------------------------------------------------------------


def test_the_job_goes_on_without_its_operator(running):
    running.operator.kill()
    (coordinator,) = running.coordinators()
    running.kubelet.work.may_finish.set()

    def over():
        return (
            running.client.get("Pod", running.namespace, coordinator["metadata"]["name"])["status"][
                "phase"
            ]
            == "Succeeded"
        )

    running.until(over, within=30)
    running.operator.start()
    running.until_condition("Complete", within=20)  # from the termination message
    assert running.status()["progress"]["miniBatches"]["succeeded"] == 20
    assert running.status()["output"]["rows"] == 20


def test_a_job_that_succeeded_is_complete_although_its_coordinators_pod_is_gone(running):
    """Its successor finds the verdict in the ledger, and no work."""
    running.operator.kill()
    (old,) = running.coordinators()
    running.kubelet.work.may_finish.set()
    running.until(lambda: running.coordinators() == [], within=30)
    running.kubelet.vanish(old)
    running.kubelet.work.may_finish.clear()
    running.operator.start()
    running.until_condition("Complete", within=60)
    assert running.status()["progress"]["miniBatches"]["succeeded"] == 20
    assert running.status()["output"]["rows"] == 20


@pytest.mark.parametrize(
    "change", [{"suspend": True}, {"cancel": True}, {"nodeCount": 1}, {"nodeCount": 4}]
)
def test_changed_while_the_operator_is_away(running, change):
    running.operator.kill()
    running.change(**change)
    running.operator.start()
    if "suspend" in change:
        running.until_condition("Suspended", within=20)
    elif "cancel" in change:
        running.until_condition("Failed", reason="Canceled", within=30)
    else:
        running.until(lambda: len(running.nodes()) == change["nodeCount"], within=30)
        finish(running)


def test_killed_again_and_again_while_a_job_starts(world):
    world.operator.kill()
    world.submit()
    for pause in (0.1, 0.2, 0.3, 0.4, 0.6):
        world.operator.start(wait=False)
        time.sleep(pause)
        world.operator.kill()
    world.operator.start()
    world.until_condition("Complete", within=40)
    seen = [(p["metadata"]["labels"].get("parallelrun.dev/node")) for p in world.pods(live=False)]
    assert len(seen) == len(set(seen))


def test_deleted_with_its_namespace_while_the_operator_is_away(running, admin):
    """Nothing waits for an operator to take a finalizer away."""
    running.operator.kill()
    admin.delete("Namespace", None, running.namespace)
    for kind in ("ParallelRunJob", "Pod", "Secret", "Service"):
        running.until(lambda kind=kind: admin.list(kind, running.namespace) == [], within=30)


def test_deleted_while_the_operator_is_away(running):
    uid = running.job()["metadata"]["uid"]
    running.operator.kill()
    running.client.delete("ParallelRunJob", running.namespace, "digits")
    running.until(lambda: children(running, uid) == [], within=30)
    running.operator.start()
    running.until_passed()
    assert children(running, uid) == []


def test_sigterm_ends_the_operator_and_nothing_else(running):
    before = [p["metadata"]["uid"] for p in running.pods()]
    assert running.operator.stop() == 0
    assert [p["metadata"]["uid"] for p in running.pods()] == before
    running.operator.start()
    finish(running)


def test_an_upgraded_operator_keeps_the_version_of_a_job(operators, running):
    """And its pods: none is replaced because the operator would make it otherwise by now."""
    running.operator.kill()
    old = running.node(0)
    kept = {p["metadata"]["uid"] for p in running.pods()} - {old["metadata"]["uid"]}
    operators("--job-labels=team=vision", runtime="images.test/runtime:2").start()
    running.kubelet.vanish(old)

    def replaced():
        now = {p["metadata"]["uid"] for p in running.pods()}
        return len(now) == 3 and old["metadata"]["uid"] not in now and kept < now

    running.until(replaced, within=25)
    assert running.node(0)["metadata"]["labels"]["team"] == "vision"
    for pod in running.pods():
        containers = pod["spec"].get("initContainers", []) + pod["spec"]["containers"]
        ours = [c["image"] for c in containers if "runtime" in c["image"]]
        assert ours == ["images.test/runtime:1"]
    running.until_running()


def test_a_deleted_secret_is_made_again_byte_for_byte(running):
    (access,) = [
        s
        for s in running.client.list("Secret", running.namespace)
        if s["metadata"]["name"].endswith("-access")
    ]
    running.client.delete("Secret", running.namespace, access["metadata"]["name"])
    running.kubelet.vanish(running.node(0))  # a new pod needs it
    again = running.until(
        lambda: running.client.find("Secret", running.namespace, access["metadata"]["name"]),
        within=20,
    )
    assert again["data"] == access["data"]
    running.until_running()


def test_a_deleted_service_is_made_again(running):
    """An operator that has seen it looks every half minute; one that starts looks at once."""
    running.operator.kill()
    (service,) = running.client.list("Service", running.namespace)
    running.client.delete("Service", running.namespace, service["metadata"]["name"])
    running.operator.start()
    again = running.until(
        lambda: running.client.find("Service", running.namespace, service["metadata"]["name"])
    )
    assert again["spec"]["selector"] == service["spec"]["selector"]
    finish(running)


def test_ended_jobs_refuse_to_be_revived(running):
    running.change(cancel=True)
    running.until_condition("Failed", within=30)
    with pytest.raises(ApiError):
        running.change(cancel=False)
    running.operator.kill()
    running.operator.start()
    running.until_passed()
    assert running.pods() == []
