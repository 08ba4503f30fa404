"""How the operator behaves towards the API server, Prometheus and its cluster."""

import json
import re
import shutil
import signal
import subprocess
from collections import Counter

import pytest
import yaml
from conftest import account_user
from support.client import ApiError, eventually
from support.coordinator import ROOT
from support.job import MARKER, World, spec
from support.operator_process import SYSTEM

# For a lease that is renewed in time on a busy machine, too.
ELECTION = [
    "--leader-elect",
    "--leader-lease-duration=60s",
    "--leader-renew-deadline=40s",
    "--leader-retry-period=500ms",
]


@pytest.fixture
def running(world):
    world.kubelet.work.may_finish.clear()
    world.submit()
    world.until_running()
    return world


@pytest.fixture
def audit(plane, namespace):
    """What operators asked the API server for in the test's namespace, since `mark`."""
    if not plane.audit_log.exists():
        pytest.skip("the control plane was not started by this test run: there is no audit log")

    class Audit:
        def __init__(self):
            self.mark()

        def mark(self):
            self._from = plane.audit_log.stat().st_size

        def entries(self, start):
            with plane.audit_log.open() as log:
                log.seek(start)
                for line in log:
                    # Some are being written: the last one now, the first one when it was marked.
                    if line.startswith('{"kind":"Event"') and line.endswith("\n"):
                        yield json.loads(line)

        def requests(self):
            for entry in self.entries(self._from):
                thing = entry.get("objectRef", {})
                if thing.get("namespace") in (namespace, None):
                    if thing.get("name", "").startswith(MARKER):
                        continue  # World.until_passed
                    resource = "/".join(
                        x for x in (thing.get("resource"), thing.get("subresource")) if x
                    )
                    yield entry["verb"], resource, entry.get("responseStatus", {}).get("code")

        def writes(self):
            return [r for r in self.requests() if r[0] not in ("get", "list", "watch")]

        def until_quiet(self, world, within=60.0):
            """Waits until the operator looks and writes nothing: what was to be told is told."""

            def quiet():
                self.mark()
                world.until_passed()
                return self.writes() == []

            eventually(quiet, within)

    return Audit()


def test_an_idle_operator_writes_nothing(running, audit, admin):
    """Nor does it when others write to the job what is no business of its."""
    audit.until_quiet(running)
    audit.mark()
    metadata = {"metadata": {"finalizers": ["example.com/wait"]}}
    admin.merge("ParallelRunJob", running.namespace, "digits", metadata)
    running.operator.until_looked()
    metadata["metadata"]["finalizers"] = None
    admin.merge("ParallelRunJob", running.namespace, "digits", metadata)
    running.until_passed()
    assert audit.writes() == []


def test_nothing_is_written_about_a_job_that_is_over(running, audit):
    running.kubelet.work.may_finish.set()
    running.until_condition("Complete", within=30)
    running.until(lambda: running.status()["nodes"]["ready"] == 0)  # counts may come later
    audit.until_quiet(running)
    version = running.job()["metadata"]["resourceVersion"]
    audit.mark()
    running.operator.kill()
    running.operator.start()
    running.until_passed()
    assert audit.writes() == []
    assert running.job()["metadata"]["resourceVersion"] == version


def test_secrets_are_never_listed(running, audit):
    running.kubelet.vanish(running.node(0))
    running.until(lambda: len(running.nodes()) == 2, within=20)
    asked = {(verb, resource) for verb, resource, _ in audit.requests()}
    assert ("get", "secrets") in asked
    assert not [
        e
        for e in audit.entries(0)
        if e.get("objectRef", {}).get("resource") == "secrets"
        and e["verb"] not in ("get", "create", "patch", "delete")
    ]


def test_the_shipped_rights_are_enough(world, audit):
    """In all that a job's life asks for, from its start over a lost node to its end."""
    world.kubelet.work.may_finish.clear()
    world.submit()
    world.until_running()
    world.kubelet.failed(world.node(1), "Evicted", "The node was low on resource: memory.")
    world.change(nodeCount=1)
    world.until(lambda: len(world.nodes()) == 1, within=30)
    world.kubelet.work.may_finish.set()
    world.until_condition("Complete", within=30)
    asked = list(audit.requests())
    assert len(asked) > 10
    assert [request for request in asked if request[2] in (401, 403)] == []
    # The spec is the user's, and of whoever scales and suspends: the operator never writes it.
    writes = {r[:2] for r in asked if r[0] not in ("get", "list", "watch")}
    assert [w for w in writes if w[1] == "parallelrunjobs"] == []
    assert ("patch", "parallelrunjobs/status") in writes


def test_no_right_is_granted_in_vain(operators, world, audit):
    """All that the shipped role allows is used within a job's life, or there is a need for it that
    this job does not know."""
    (role,) = [
        d
        for d in yaml.safe_load_all((ROOT / "deploy/base/rbac-operator.yaml").read_text())
        if d["kind"] == "ClusterRole"
    ]
    granted = {
        (verb, resource)
        for rule in role["rules"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    in_need = {
        ("get", "pods"),  # after a create whose answer was lost
        ("list", "pods"),  # from API servers that cannot begin a watch with all there is
        ("list", "parallelrunjobs"),
        ("patch", "events"),  # what is told once more is counted
        ("update", "parallelrunjobs/finalizers"),  # for OwnerReferencesPermissionEnforcement
    }
    world.operator.kill()
    first = operators("--network-policies").start()

    def on_a_host(pod):
        world.kubelet.schedule(pod)
        return True

    world.kubelet.hold = on_a_host  # so that its events are read
    size = {"resources": {"requests": {"storage": "1Gi"}}}
    world.submit(ttlSecondsAfterFinished=1, state={"volumeClaimTemplate": {"spec": size}})
    world.until(lambda: ("list", "events") in {r[:2] for r in audit.requests()}, within=30)
    first.kill()
    operators("--network-policies", "--job-labels=team=vision").start()  # all is to look otherwise
    annotation = {"metadata": {"annotations": {"note": "to be seen by the script"}}}
    world.client.merge("ParallelRunJob", world.namespace, "digits", annotation)
    world.until(lambda: ("patch", "networkpolicies") in {r[:2] for r in audit.requests()})
    world.kubelet.hold = lambda pod: False
    world.submit("gone", ttlSecondsAfterFinished=1, deleteAfterFinished=True)

    def unused():
        return sorted(granted - in_need - {r[:2] for r in audit.requests()})

    world.until(lambda: not unused(), within=30, what=lambda: f"the use of {unused()}")


def test_a_start_asks_for_each_thing_once(world, audit):
    """Each is made once, and asked for once, or once more where an answer did not come in time. A
    start that takes half a minute looks again at what it has made."""
    world.kubelet.hold = lambda pod: True
    world.code()
    world.claim()
    audit.mark()
    world.submit(needed=False)
    world.until(lambda: world.phase() == "Starting")
    world.until_passed()  # nor again, once that status is in its cache
    asked = [
        request
        for request in audit.requests()
        if request[0] != "watch" and request[1] not in ("", "events", "leases")
    ]
    made = Counter(resource for verb, resource, code in asked if (verb, code) == ("create", 201))
    assert made == {"configmaps": 1, "secrets": 1, "services": 1, "pods": 3}
    most = {
        ("patch", "parallelrunjobs/status"): 2,
        ("get", "persistentvolumeclaims"): 2,
        ("get", "configmaps"): 2,
        ("create", "configmaps"): 2,
        ("create", "secrets"): 2,
        ("create", "services"): 2,
        ("create", "pods"): 6,
        ("get", "secrets"): 1,
        ("get", "services"): 1,
        ("get", "pods"): 3,
    }
    counts = Counter(request[:2] for request in asked)
    assert [(what, count) for what, count in counts.items() if count > most.get(what, 0)] == []


def test_a_network_policy_of_each_job(operators, world):
    """Where the installation wants them."""
    world.operator.kill()
    operators("--network-policies").start()
    world.kubelet.work.may_finish.clear()
    job = world.submit()
    world.until_running()
    (policy,) = world.client.list("NetworkPolicy", world.namespace)
    assert [owner["uid"] for owner in policy["metadata"]["ownerReferences"]] == [
        job["metadata"]["uid"]
    ]
    (coordinator,) = world.coordinators()
    labels = coordinator["metadata"]["labels"]
    assert policy["spec"]["podSelector"]["matchLabels"].items() <= labels.items()
    world.client.delete("ParallelRunJob", world.namespace, "digits")
    world.until(lambda: world.client.list("NetworkPolicy", world.namespace) == [], within=20)


def test_a_disruption_budget_of_a_job_that_asks_for_one(world, admin):
    """The chart gives the right on request: without it the job runs, and says what it lacks."""
    world.kubelet.work.may_finish.clear()
    world.submit(disruption="Budget")
    said = world.until_condition("NodesReady", "True", "Forbidden", within=30)
    assert "jobs.disruptionBudgets" in said["message"] or "poddisruptionbudgets" in said["message"]
    verbs = ["get", "create", "patch", "delete"]
    rule = {"apiGroups": ["policy"], "resources": ["poddisruptionbudgets"], "verbs": verbs}
    named = {"metadata": {"name": "budgets"}}
    admin.create("Role", world.namespace, {**named, "rules": [rule]})
    account = {"kind": "ServiceAccount", "name": "parallelrun-operator", "namespace": SYSTEM}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "budgets"}
    admin.create("RoleBinding", world.namespace, {**named, "roleRef": role, "subjects": [account]})
    (budget,) = world.until(lambda: world.client.list("PodDisruptionBudget", world.namespace), 60)
    (coordinator,) = world.coordinators()
    labels = coordinator["metadata"]["labels"]
    assert budget["spec"].pop("selector")["matchLabels"].items() <= labels.items()
    assert budget["spec"] == {"minAvailable": 1, "unhealthyPodEvictionPolicy": "AlwaysAllow"}
    world.kubelet.work.may_finish.set()
    world.until_condition("Complete", within=60)
    world.until(lambda: world.client.list("PodDisruptionBudget", world.namespace) == [], 90)


def test_requests_of_a_pods_life(running, audit):
    """At most 5 for a pod, from its creation to its end."""
    audit.mark()
    running.change(nodeCount=12)
    running.until_running(nodes=12, within=30)
    asked = [r for r in audit.requests() if r[1] in ("pods", "secrets", "services", "configmaps")]
    assert len(asked) <= 5 * 10 + 10


def test_events_are_told_once(running):
    running.kubelet.terminated(running.node(0), 1, message="out of luck")
    running.until(lambda: len(running.nodes()) == 2, within=20)
    running.kubelet.work.may_finish.set()
    running.until_condition("Complete", within=30)
    running.until(lambda: "Completed" in [reason for reason, _, _ in running.events()])
    running.until_passed()
    events = running.events()
    assert len(events) >= 3
    assert len(events) == len({(reason, message) for reason, message, _ in events})
    assert all(count == 1 for _, _, count in events)
    assert all(re.fullmatch(r"[A-Z][A-Za-z]+", reason) for reason, _, _ in events)


def test_an_event_is_not_repeated_while_something_is_missing(world):
    world.claim()
    world.submit(needed=False)
    world.until(lambda: [e for e in world.events() if "code" in e[1]], within=10)
    for word in ("seen", "seen again"):
        annotation = {"metadata": {"annotations": {"note": word}}}
        world.client.merge("ParallelRunJob", world.namespace, "digits", annotation)
        world.until_passed()
    about = [e for e in world.events() if "code" in e[1]]
    assert len(about) == 1
    assert about[0][2] == 1


def test_describe_tells_the_story(running):
    running.until(running.events)  # they are written after what they tell of
    text = running.plane.kubectl("-n", running.namespace, "describe", "prj", "digits").stdout
    assert "Conditions:" in text
    assert "Events:" in text
    assert "<none>" not in text[text.index("Events:") :]


def test_applying_the_same_file_again_changes_nothing(world):
    job = {
        "apiVersion": "parallelrun.dev/v1alpha1",
        "kind": "ParallelRunJob",
        "metadata": {"name": "digits", "namespace": world.namespace},
        "spec": spec(),
    }
    world.code()
    world.claim()
    world.kubelet.work.may_finish.clear()
    world.plane.kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(job))
    world.until_running()
    generation = world.job()["metadata"]["generation"]
    world.plane.kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(job))
    assert world.job()["metadata"]["generation"] == generation
    assert (
        world.plane.kubectl(
            "diff", "--server-side", "-f", "-", stdin=json.dumps(job), check=False
        ).stdout
        == ""
    )
    job["spec"]["nodeCount"] = 3
    world.plane.kubectl(
        "apply", "--server-side", "-f", "-", stdin=json.dumps(job)
    )  # no conflict: it writes no spec
    world.until_running(nodes=3)


def test_metrics_obey_prometheus(running):
    # The gauge follows the operator's informer, which hears of the new status after its writer.
    one_runs = re.compile(r'^parallelrun_jobs\{[^}]*phase="Running"[^}]*\} 1', re.MULTILINE)
    running.until(lambda: one_runs.search(running.operator.get("metrics")[1]))
    status, text = running.operator.get("metrics")
    assert status == 200
    for name in ("workqueue_depth", "leader_election_master_status", "rest_client_requests_total"):
        assert name in text
    assert "digits" not in text  # nothing per job unless asked for
    if not shutil.which("promtool"):
        pytest.skip("promtool is not installed")
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=text, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_metrics_per_job_are_dropped_with_the_job(operators, world):
    world.operator.kill()
    operator = operators("--per-job-metrics").start()
    world.kubelet.work.may_finish.clear()
    world.submit()
    world.until_running()
    world.until(
        lambda: (
            'name="digits"' in operator.get("metrics")[1]
            or 'job="digits"' in operator.get("metrics")[1]
        )
    )
    world.client.delete("ParallelRunJob", world.namespace, "digits")
    world.until(lambda: '"digits"' not in operator.get("metrics")[1])


def test_health_and_readiness(operator):
    assert operator.get("healthz")[0] == 200
    assert operator.get("readyz")[0] == 200


def test_not_ready_while_the_definition_is_older(admin, operators, no_leader):
    """It names the mend, and leads nothing, rather than act on fields that the server prunes."""
    name = "parallelrunjobs.parallelrun.dev"
    crd = admin.get("CustomResourceDefinition", None, name)
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"][
        "properties"
    ]
    older = json.loads(json.dumps(crd))
    del older["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"][
        "properties"
    ]["deleteAfterFinished"]
    rules = older["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"][
        "x-kubernetes-validations"
    ]
    rules[:] = [rule for rule in rules if "deleteAfterFinished" not in rule["rule"]]
    assert "deleteAfterFinished" in schema
    for thing in (older, crd):
        thing["metadata"].pop("resourceVersion", None)
    operator = operators(*ELECTION)
    try:
        serve(admin, name, older)
        operator.start(wait=False)

        def tells():
            status, text = operator.get("readyz")
            return status >= 500 and "deleteAfterFinished" in text

        eventually(tells)
        assert admin.find("Lease", SYSTEM, "parallelrun-operator") is None
        serve(admin, name, crd)
        eventually(operator.ready, within=15)
        eventually(lambda: operator.metric("leader_election_master_status") == 1)
    finally:
        serve(admin, name, crd)


def serve(admin, name, crd):
    """Puts the definition, and waits until the schema that is served is its schema."""
    path = admin.path("CustomResourceDefinition", None, name)
    wanted = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]

    def put():
        version = admin.get("CustomResourceDefinition", None, name)["metadata"]["resourceVersion"]
        body = {**crd, "metadata": {**crd["metadata"], "resourceVersion": version}}
        try:
            return admin.request("PUT", path, body)
        except ApiError as e:
            if e.status != 409:  # its controllers write its status
                raise
        return None

    def served():
        shown = admin.request("GET", "/openapi/v3/apis/parallelrun.dev/v1alpha1")
        job = shown["components"]["schemas"]["dev.parallelrun.v1alpha1.ParallelRunJob"]
        return set(job["properties"]["spec"]["properties"]) == set(wanted["properties"])

    eventually(put)
    eventually(served, within=30)


def test_one_namespace_without_any_cluster_role(plane, admin, operators, world):
    """The rights of deploy/overlays/namespaced, for a service account that has no others."""
    world.operator.kill()
    account = f"only-{world.namespace}"
    admin.create("ServiceAccount", SYSTEM, {"metadata": {"name": account}})
    shipped = list(
        yaml.safe_load_all((ROOT / "deploy/overlays/namespaced/watched.yaml").read_text())
    )
    own = [
        d
        for d in yaml.safe_load_all((ROOT / "deploy/base/rbac-operator.yaml").read_text())
        if d["kind"] in ("Role",)
    ]
    for document, target in [(d, world.namespace) for d in shipped] + [(d, SYSTEM) for d in own]:
        if document["kind"] not in ("Role", "RoleBinding"):
            continue
        document["metadata"] = {"name": f"{account}-{document['metadata']['name']}"}
        for subject in document.get("subjects", []):
            subject["name"] = account
        if document["kind"] == "RoleBinding":
            document["roleRef"]["name"] = f"{account}-{document['roleRef']['name']}"
        admin.create(document["kind"], target, document)
        if document["kind"] == "Role" and target == SYSTEM:
            admin.create(
                "RoleBinding",
                SYSTEM,
                {
                    "metadata": {"name": f"{account}-own"},
                    "roleRef": {
                        "apiGroup": "rbac.authorization.k8s.io",
                        "kind": "Role",
                        "name": document["metadata"]["name"],
                    },
                    "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": SYSTEM}],
                },
            )
    world.operator = operators(user=account_user(plane, admin, account)).start()
    world.submit()
    world.until_condition("Complete", within=30)


def test_all_namespaces(operators, world, admin):
    """Jobs of one name in two namespaces have nothing to do with each other."""
    world.operator.kill()
    operators(watch=None).start()
    other = f"{world.namespace}-other"
    admin.create("Namespace", None, {"metadata": {"name": other}})
    try:
        eventually(lambda: admin.find("ServiceAccount", other, "default"))
        there = World(world.plane, admin, other, None, None)
        uid = there.submit()["metadata"]["uid"]
        world.submit()
        world.until_condition("Complete", within=30)
        there.until(lambda: len(there.pods()) == 3)
        world.client.delete("ParallelRunJob", world.namespace, "digits")
        world.until(lambda: world.pods(live=False) == [], within=20)
        owners = {p["metadata"]["ownerReferences"][0]["uid"] for p in there.pods()}
        assert (len(there.pods()), owners) == (3, {uid})
    finally:
        admin.delete("Namespace", None, other)


def test_two_operators_one_leader(operators, world, no_leader):
    world.operator.kill()
    first = operators(*ELECTION).start()
    world.until(lambda: first.metric("leader_election_master_status") == 1)
    second = operators(*ELECTION).start()
    world.kubelet.work.may_finish.clear()
    world.submit()
    world.until_running()
    assert second.metric("leader_election_master_status") == 0
    # It is frozen for longer than its lease lasts: what it wakes up to is another leader. The lease
    # itself says how long others wait for it, so that this is not a minute.
    first.process.send_signal(signal.SIGSTOP)
    short = {"spec": {"leaseDurationSeconds": 1}}
    world.client.merge("Lease", SYSTEM, "parallelrun-operator", short)
    world.until(lambda: second.metric("leader_election_master_status") == 1, within=20)
    before = {p["metadata"]["uid"] for p in world.pods()}
    first.process.send_signal(signal.SIGCONT)
    world.until(lambda: first.process.poll() == 1, within=20)
    assert {p["metadata"]["uid"] for p in world.pods()} == before
    world.kubelet.work.may_finish.set()
    world.until_condition("Complete", within=30)


def test_an_operator_that_is_killed_in_its_pod_leads_again_at_once(operators, world, no_leader):
    """The kubelet starts it again once it has ended: the lease is its pod's still."""
    world.operator.kill()
    # No test waits for so long a lease.
    flags = ["--leader-elect", "--leader-lease-duration=900s", "--leader-renew-deadline=600s"]
    operator = operators(*flags, pod_uid="8f14e45f-ceea-467f-a0e6-bd0c1a5b8f11").start()
    world.until(lambda: operator.metric("leader_election_master_status") == 1)
    operator.kill()
    operator.start()
    world.until(lambda: operator.metric("leader_election_master_status") == 1)
    operator.kill()


def unanswered(operator):
    """How many of its requests nobody has answered."""
    return operator.metric("rest_client_requests_total", code="<error>")


def test_the_api_server_goes_away_and_comes_back(running, plane):
    if not plane.processes:
        pytest.skip("the control plane was not started by this test run")
    before = unanswered(running.operator)
    plane.stop_process("kube-apiserver")
    running.until(lambda: unanswered(running.operator) > before, within=30)
    plane.start_again("kube-apiserver")
    running.kubelet.vanish(running.node(0))
    running.until(lambda: len(running.nodes()) == 2, within=60)
    running.kubelet.work.may_finish.set()
    running.until_condition("Complete", within=60)
    assert running.operator.process.poll() is None
