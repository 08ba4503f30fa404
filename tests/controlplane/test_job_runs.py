"""A job from apply to Complete, with real coordinators."""

import base64
import json
import re

import pytest
from support.coordinator import ROOT
from support.pods import role


def labels_of(thing):
    return thing["metadata"]["labels"]


def test_from_apply_to_complete(world, plane):
    made = world.submit()
    world.until_condition("Complete", within=20)
    status = world.status()
    assert status["phase"] == "Succeeded"
    assert status["progress"]["miniBatches"] == {
        "total": 20,
        "succeeded": 20,
        "failed": 0,
        "running": 0,
    }
    assert status["output"]["rows"] == 20
    assert status["observedGeneration"] == made["metadata"]["generation"]
    assert status["startTime"] <= status["completionTime"]
    done = plane.kubectl(
        "-n", world.namespace, "wait", "--for=condition=Complete", "prj/digits", "--timeout=5s"
    )
    assert "condition met" in done.stdout
    columns = plane.kubectl("-n", world.namespace, "get", "prj").stdout.splitlines()
    assert columns[0].split() == ["NAME", "STATUS", "DONE", "FAILED", "NODES", "ETA", "AGE"]
    assert columns[1].split()[:5] == ["digits", "Succeeded", "100%", "(20/20)", "0"]
    (result,) = (world.kubelet.folder / "volumes/results").rglob("parallel_run_step.txt")
    assert sorted(result.read_text().split("\n")) == sorted(
        [*(f"row of {i}" for i in range(20)), ""]
    )
    world.until(lambda: world.pods() == [])  # nothing of it holds resources any more


def test_its_objects(world):
    world.kubelet.work.may_finish.clear()
    job = world.submit()
    world.until_running()
    uid = job["metadata"]["uid"]
    base = f"digits-{uid.replace('-', '')[:5]}"
    everything = [
        world.client.get("Secret", world.namespace, f"{base}-access"),
        world.client.get("Service", world.namespace, f"{base}-coordinator"),
        world.client.get("ConfigMap", world.namespace, f"{base}-code"),
        *world.pods(),
    ]
    for thing in everything:
        (owner,) = thing["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"], owner["uid"]) == ("ParallelRunJob", "digits", uid)
        assert owner["controller"]
        assert owner["blockOwnerDeletion"]
        labels = labels_of(thing)
        assert labels["app.kubernetes.io/managed-by"] == "parallelrun"
        assert labels["parallelrun.dev/job"] == "digits"
        assert labels["parallelrun.dev/job-uid"] == uid
    assert everything[2]["immutable"]
    pods = world.pods()
    assert sorted(role(pod) for pod in pods) == ["coordinator", "node", "node"]
    assert sorted(labels_of(pod).get("parallelrun.dev/node", "-") for pod in pods) == [
        "-",
        "0",
        "1",
    ]
    assert len({pod["metadata"]["name"] for pod in pods}) == 3
    for pod in pods:
        assert pod["metadata"]["name"].startswith(base + "-")
        assert pod["metadata"]["name"].endswith("-" + labels_of(pod)["parallelrun.dev/incarnation"])
        assert pod["spec"]["restartPolicy"] == (
            "OnFailure" if role(pod) == "coordinator" else "Never"
        )
        assert pod["spec"]["automountServiceAccountToken"] is False
    service = everything[1]
    (coordinator,) = world.coordinators()
    assert service["spec"]["selector"].items() <= labels_of(coordinator).items()
    assert "parallelrun.dev/incarnation" in service["spec"]["selector"]
    assert [(p["name"], p["port"]) for p in service["spec"]["ports"]] == [("https", 8443)]


def test_its_pods_are_spread_over_hosts_that_may_go(world):
    world.kubelet.work.may_finish.clear()
    uid = world.submit()["metadata"]["uid"]
    world.until(lambda: len(world.pods()) == 3)
    for pod in world.pods():
        (spread,) = pod["spec"]["topologySpreadConstraints"]
        assert spread["topologyKey"] == "kubernetes.io/hostname"
        assert spread["whenUnsatisfiable"] == "ScheduleAnyway"
        wanted = {"parallelrun.dev/job-uid": uid, "parallelrun.dev/role": "node"}
        assert spread["labelSelector"]["matchLabels"] == wanted
        assert wanted.items() <= labels_of(pod).items() or role(pod) == "coordinator"
        annotations = pod["metadata"]["annotations"]
        assert annotations["cluster-autoscaler.kubernetes.io/safe-to-evict"] == "true"
        assert "karpenter.sh/do-not-disrupt" not in annotations


def test_a_spread_of_the_users_own_wins_and_hosts_are_kept(world):
    zones = {
        "topologyKey": "topology.kubernetes.io/zone",
        "maxSkew": 1,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"parallelrun.dev/role": "node"}},
    }
    world.kubelet.work.may_finish.clear()
    own = {"spec": {"topologySpreadConstraints": [zones]}}
    world.submit(podTemplate=own, disruption="Avoid")
    world.until(lambda: len(world.pods()) == 3)
    for pod in world.pods():
        assert pod["spec"]["topologySpreadConstraints"] == [zones]
        annotations = pod["metadata"]["annotations"]
        assert annotations["cluster-autoscaler.kubernetes.io/safe-to-evict"] == "false"
        assert annotations["karpenter.sh/do-not-disrupt"] == "true"


def test_the_claim_of_the_state(world):
    size = {"resources": {"requests": {"storage": "1Gi"}}}
    uid = world.submit(state={"volumeClaimTemplate": {"spec": size}})["metadata"]["uid"]
    world.until_condition("Complete", within=20)
    name = f"digits-{uid.replace('-', '')[:5]}-state"
    claim = world.client.get("PersistentVolumeClaim", world.namespace, name)
    assert [owner["uid"] for owner in claim["metadata"]["ownerReferences"]] == [uid]
    assert claim["spec"]["accessModes"] == ["ReadWriteOnce"]
    assert claim["spec"]["resources"] == size["resources"]
    assert list((world.kubelet.folder / "volumes" / name / "state").rglob("*.log"))


def test_arguments_are_not_in_the_pods(world):
    world.kubelet.hold = lambda pod: True  # pods of a job that is over are gone
    world.submit(arguments=["--greeting", "$(output)/x", "--price", "$5"])
    world.until(lambda: len(world.pods()) == 3)
    for pod in world.pods():
        assert "--greeting" not in json.dumps(pod["spec"])
    (access,) = [
        s
        for s in world.client.list("Secret", world.namespace)
        if s["metadata"]["name"].endswith("-access")
    ]
    config = json.loads(base64.b64decode(access["data"]["coordinator.json"]))
    assert config["job"]["spec"]["arguments"] == ["--greeting", "$(output)/x", "--price", "$5"]


def test_a_node_sees_only_its_own_token(world):
    world.kubelet.work.may_finish.clear()
    world.submit()
    pods = world.until(lambda: world.nodes() if len(world.nodes()) == 2 else None)
    for pod in pods:
        (mounted,) = [v["secret"] for v in pod["spec"]["volumes"] if "secret" in v]
        index = labels_of(pod)["parallelrun.dev/node"]
        assert sorted((i["key"], i["path"]) for i in mounted["items"]) == [
            ("agent.json", "agent.json"),
            ("ca.crt", "ca.crt"),
            (f"node-{index}.json", "node.json"),
        ]


def test_progress_is_told_while_it_runs(world):
    world.kubelet.work.seconds = 0.4
    world.submit(rankMiniBatchCount=200)
    world.until_running()

    def moves():
        progress = world.status()["progress"]
        return progress["miniBatches"]["total"] == 200 and progress["miniBatches"]["succeeded"] > 0

    world.until(moves, within=25)
    assert world.status()["display"]["done"].endswith("/200)")


def test_failed_mini_batches_within_the_thresholds(world):
    world.kubelet.work.fails = {3, 5}
    world.submit(runMaxTry=1)
    complete = world.until_condition("Complete", reason="CompletedWithFailures", within=25)
    assert "2" in complete["message"]
    status = world.status()
    assert status["progress"]["miniBatches"]["failed"] == 2
    assert status["display"]["failed"] == "2"


def test_a_job_that_fails_says_why_in_two_steps(world):
    world.kubelet.work.fails = set(range(20))
    world.submit(runMaxTry=1, errorThreshold=3)
    seen = world.until_condition("FailureTarget", within=25)
    failed = world.until_condition("Failed", within=15)
    assert failed["reason"] == seen["reason"]
    assert world.pods() == []  # Failed only once its pods are gone
    failure = world.status()["failure"]
    assert failure["reason"] == failed["reason"]
    first = failure["errors"][0]
    assert first["message"] == "made up"
    assert first["count"] >= 3
    assert world.phase() == "Failed"


def test_nothing_succeeded(world):
    world.kubelet.work.fails = set(range(4))
    world.submit(rankMiniBatchCount=4, runMaxTry=1)
    world.until_condition("Failed", reason="NothingSucceeded", within=25)


def test_conditions_obey_the_conventions(world):
    """As kubectl wait, kstatus and people read them."""
    generation = world.submit()["metadata"]["generation"]
    world.until_condition("Complete", within=25)
    conditions = world.status()["conditions"]
    assert len({c["type"] for c in conditions}) == len(conditions)
    for condition in conditions:
        assert condition["status"] in ("True", "False", "Unknown")
        assert re.fullmatch(r"[A-Z][A-Za-z]+", condition["reason"])
        assert 0 < len(condition["message"]) <= 1024
        assert condition["lastTransitionTime"].endswith("Z")
        assert condition.get("observedGeneration", generation) <= generation
    states = {c["type"]: c["status"] for c in conditions}
    assert (states["Reconciling"], states["Stalled"]) == ("False", "False")
    assert world.status()["observedGeneration"] == world.job()["metadata"]["generation"]


def test_two_jobs_at_once(world):
    world.submit("first")
    world.submit("second")
    world.until_condition("Complete", name="first", within=25)
    world.until_condition("Complete", name="second", within=25)


def test_no_nodes_wait_for_a_scale_up(world):
    world.submit(nodeCount=0)
    world.until(lambda: len(world.coordinators()) == 1)
    assert world.nodes() == []
    world.change(nodeCount=1)
    world.until_condition("Complete", within=25)


def wait_commands():
    """Those of docs/gitops.md: for the end, and whether it is a success."""
    page = (ROOT / "docs/gitops.md").read_text()
    command = r"^    kubectl (wait .*parallelrunjob/)score (.*)$"
    finished, succeeded = re.findall(command, page, re.M)
    return finished, succeeded


@pytest.mark.parametrize("end", ["Complete", "Failed", "Invalid"])
def test_kubectl_hears_of_every_end(world, plane, end):
    spec = {
        "Complete": {},
        "Failed": {"cancel": True},
        # What is refused only once its operator reads it.
        "Invalid": {"arguments": ["$(inputs.nothing)"]},
    }[end]
    world.submit(**spec)
    told = []
    for command, time_out in wait_commands():
        arguments = [*f"{command}digits {time_out}".split(), "-n", world.namespace]
        told.append(plane.kubectl(*arguments, check=False))
    finished, succeeded = told
    assert finished.returncode == 0, finished.stderr
    assert (succeeded.returncode == 0) == (end == "Complete"), succeeded.stderr
