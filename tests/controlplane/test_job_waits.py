"""Jobs that the schema lets through but that cannot run yet: the reason and the mend stand in the
status within 5 seconds, and the job starts by itself once it is mended."""

import json
import re

import yaml
from support.bad_specs import cases, job_of
from support.job import spec

SOON = 5.0  # on a machine that is not busy with anything else: waits.Limit


def nothing_runs(world):
    return world.pods() == []


def told(world, *words, name="digits"):
    """Some condition names all these words; returns it."""
    for condition in world.status(name).get("conditions", []):
        if all(word in f"{condition['reason']} {condition['message']}" for word in words):
            return condition
    return None


def until_told(world, *words, name="digits", within=SOON):
    return world.until(
        lambda: told(world, *words, name=name),
        within,
        what=lambda: f"a condition that says {words}\n{world.told(name)}",
    )


def test_missing_code(world):
    world.claim()
    world.submit(needed=False)
    until_told(world, "code", "NotFound")
    assert nothing_runs(world)
    world.code()
    world.until_condition("Complete", within=40)


def test_missing_claim(world):
    world.code()
    world.submit(needed=False)
    until_told(world, "results", "NotFound")
    assert nothing_runs(world)
    world.claim()
    world.until_condition("Complete", within=40)


def test_missing_image_pull_secret(world):
    """Named, but nobody waits for it: the kubelet tries without, and the image may be public."""
    world.kubelet.hold = lambda pod: pod["metadata"]["labels"]["parallelrun.dev/role"] == "node"
    world.submit(
        environment={"image": "images.test/digits:1", "imagePullSecrets": [{"name": "pull"}]}
    )
    until_told(world, "pull", "Secret")
    world.kubelet.hold = lambda pod: False
    world.until_condition("Complete", within=40)


def test_init_that_takes_long_says_for_how_long_and_where(world):
    """And a model that takes longer than mini-batches may is loaded in the end."""
    world.kubelet.work.may_start.clear()
    world.submit()
    until_told(world, "init() has been running for ", "s on 2 nodes", within=30)
    # It is asked for the first time after half a minute.
    until_told(world, "init() has been running for ", ": init score.py:3 (score.py:3)", within=60)
    world.kubelet.work.may_start.set()
    world.until_condition("Complete", within=40)
    assert told(world, "init()") is None


def test_init_that_hangs_ends_the_job_and_is_named(world):
    world.kubelet.work.may_start.clear()
    world.submit(initTimeoutSeconds=2)
    failed = world.until_condition("Failed", reason="InitTimeout", within=40)
    assert "no process has come through init() within 2.0s, on " in failed["message"]
    assert "raise spec.initTimeoutSeconds" in failed["message"]


def test_missing_environment_source(world):
    world.submit(
        environment={
            "image": "images.test/digits:1",
            "envFrom": [{"configMapRef": {"name": "settings"}}],
        }
    )
    until_told(world, "settings", "NotFound")
    world.client.create("ConfigMap", world.namespace, {"metadata": {"name": "settings"}})
    world.until_condition("Complete", within=40)


def test_missing_keys_of_a_store(world):
    """And once they are there, pods mount those that are named, and nobody else says them."""
    keys = {"AWS_ACCESS_KEY_ID": "AKIAPHOTOS0000000000", "AWS_SECRET_ACCESS_KEY": "very-secret"}
    world.kubelet.work.may_finish.clear()
    world.submit(
        stores=[
            {"name": "photos", "url": "s3://photos", "credentials": {"secretName": "photos-keys"}}
        ]
    )
    until_told(world, "SecretNotFound", "Secret photos-keys", "spec.stores: photos")
    assert nothing_runs(world)
    secret = {"metadata": {"name": "photos-keys"}, "stringData": {**keys, "other": "not-named"}}
    world.client.create("Secret", world.namespace, secret)
    world.until_running()
    (coordinator,) = world.coordinators()
    mounted = [volume.get("secret", {}) for volume in coordinator["spec"]["volumes"]]
    (secret,) = [one for one in mounted if one.get("secretName") == "photos-keys"]
    assert [item["key"] for item in secret["items"]] == list(keys)
    assert "photos-keys" not in json.dumps(world.nodes()), "no input lies there"
    world.kubelet.work.may_finish.set()
    world.until_condition("Complete", within=40)
    everything = json.dumps([world.job(), world.client.list("Pod", world.namespace)])
    configurations = list(world.kubelet.folder.rglob("coordinator.json"))
    assert configurations
    everything += "".join(path.read_text() for path in configurations)
    assert [key for key in keys.values() if key in everything] == []


def test_a_key_that_the_secret_of_a_store_lacks(world):
    """The operator reads no Secret, so the kubelet's event is what it knows."""
    world.kubelet.hold = lambda pod: True
    secret = {"metadata": {"name": "photos-keys"}, "stringData": {"AWS_ACCESS_KEY_ID": "AKIA"}}
    world.client.create("Secret", world.namespace, secret)
    world.submit(
        stores=[
            {"name": "photos", "url": "s3://photos", "credentials": {"secretName": "photos-keys"}}
        ]
    )
    (pod,) = world.until(lambda: world.coordinators())
    world.kubelet.schedule(pod)
    (volume,) = [
        volume["name"]
        for volume in pod["spec"]["volumes"]
        if volume.get("secret", {}).get("secretName") == "photos-keys"
    ]
    world.kubelet.event(
        pod,
        "FailedMount",
        f'MountVolume.SetUp failed for volume "{volume}" : '
        "references non-existent secret key: AWS_SECRET_ACCESS_KEY",
    )
    words = ("Secret photos-keys", "spec.stores: photos", "no key AWS_SECRET_ACCESS_KEY", "add it")
    told = until_told(world, "FailedMount", *words, within=20)
    assert "stores[].credentials.secretAccessKey" in told["message"]

    def event():
        events = [message for reason, message, _ in world.events() if reason == "FailedMount"]
        return [message for message in events if all(word in message for word in words)]

    world.until(event, 20, what=lambda: f"an event that says {words}\n{world.told()}")
    world.kubelet.hold = lambda pod: False
    world.until_condition("Complete", within=40)


def test_pod_template_that_the_server_refuses(world):
    world.submit(podTemplate={"spec": {"activeDeadlineSeconds": -5}})
    until_told(world, "activeDeadlineSeconds")
    assert nothing_runs(world)
    world.change(suspend=True)
    world.until_condition("Suspended")
    world.change(podTemplate={"spec": {"activeDeadlineSeconds": 500}})
    world.change(suspend=False)
    world.until_condition("Complete", within=40)


def test_pod_template_with_a_misspelt_field(world):
    world.submit(podTemplate={"spec": {"nodeSelektor": {"a": "b"}}})
    until_told(world, "nodeSelektor")


def test_pod_template_with_a_field_of_the_wrong_type(world):
    world.submit(podTemplate={"spec": {"nodeSelector": {"gpu": True}}})
    until_told(world, "InvalidPodTemplate", "spec.nodeSelector: text belongs here, not true or")
    assert "Go struct" not in json.dumps(world.status())


def test_pod_security(world):
    world.submit(podTemplate={"spec": {"hostNetwork": True}})
    until_told(world, "PodSecurity")


def test_missing_service_account(world):
    world.submit(podTemplate={"spec": {"serviceAccountName": "runner"}})
    until_told(world, "runner", "not found")
    world.client.create("ServiceAccount", world.namespace, {"metadata": {"name": "runner"}})
    world.until_condition("Complete", within=40)


def test_quota(world):
    world.client.create(
        "ResourceQuota",
        world.namespace,
        {"metadata": {"name": "few"}, "spec": {"hard": {"pods": "2"}}},
    )
    world.until(
        lambda: (
            world.client.get("ResourceQuota", world.namespace, "few").get("status", {}).get("used")
        )
    )
    world.kubelet.work.may_finish.clear()
    world.submit()
    until_told(world, "quota")
    assert len(world.pods()) == 2
    world.client.merge("ResourceQuota", world.namespace, "few", {"spec": {"hard": {"pods": "9"}}})
    world.kubelet.work.may_finish.set()
    world.until_condition("Complete", within=40)


def test_quota_on_cpu_counts_every_container(world):
    """All our containers have requests and limits, so that a quota on them lets the pods in (rule
    6)."""
    world.client.create(
        "ResourceQuota",
        world.namespace,
        {
            "metadata": {"name": "cpu"},
            "spec": {
                "hard": {
                    "requests.cpu": "20",
                    "limits.cpu": "20",
                    "requests.memory": "20Gi",
                    "limits.memory": "20Gi",
                }
            },
        },
    )
    world.until(
        lambda: (
            world.client.get("ResourceQuota", world.namespace, "cpu").get("status", {}).get("used")
        )
    )
    limits = {"cpu": "1", "memory": "1Gi"}
    world.submit(resources={"requests": limits, "limits": limits})
    world.until_condition("Complete", within=30)


def test_a_quota_on_limits_that_the_job_does_not_name(world):
    """There is room; what helps is the field."""
    hard = {"limits.cpu": "20", "limits.memory": "20Gi"}
    quota = {"metadata": {"name": "limits"}, "spec": {"hard": hard}}
    world.client.create("ResourceQuota", world.namespace, quota)
    world.until(
        lambda: (
            world.client.get("ResourceQuota", world.namespace, "limits")
            .get("status", {})
            .get("used")
        )
    )
    world.submit(resources={"requests": {"cpu": "50m", "memory": "64Mi"}})
    fields = "write spec.resources.limits.cpu and spec.resources.limits.memory"
    until_told(world, "QuotaExceeded", "must specify", fields)
    world.change(suspend=True)
    world.until_condition("Suspended")
    amounts = {"cpu": "50m", "memory": "64Mi"}
    world.change(resources={"requests": amounts, "limits": amounts})
    world.change(suspend=False)
    world.until_condition("Complete", within=40)


def limit_range(world, **limits):
    """A LimitRange on containers, once the API server knows of it."""
    world.client.create(
        "LimitRange",
        world.namespace,
        {"metadata": {"name": "bounds"}, "spec": {"limits": [{"type": "Container", **limits}]}},
    )
    security = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    container = {"name": "probe", "image": "images.test/probe", "securityContext": security}
    probe = {"metadata": {"name": "probe"}, "spec": {"containers": [container]}}

    def known():
        made = world.client.create("Pod", world.namespace, probe, dryRun="All")
        return made["spec"]["containers"][0]["resources"].get("limits")

    world.until(known)


def test_a_limit_range_that_allows_less(world):
    """The coordinator's limit of one CPU, which the job does not name, is above it."""
    limit_range(world, max={"cpu": "500m"})
    world.submit()
    words = ("Forbidden", "cpu at most 500m", "write so in spec.coordinator.resources")
    until_told(world, *words)
    world.client.delete("LimitRange", world.namespace, "bounds")
    world.until_condition("Complete", within=40)


def test_a_limit_range_that_gives_a_limit_below_the_request(world):
    limit_range(world, max={"memory": "32Mi"})
    small = {"cpu": "50m", "memory": "32Mi"}
    world.submit(
        resources={"requests": {"cpu": "50m", "memory": "64Mi"}},
        coordinator={"resources": {"requests": small, "limits": small}},
    )
    words = ("a LimitRange of the namespace", "lower spec.resources.requests.memory to 32Mi")
    until_told(world, *words)
    world.client.delete("LimitRange", world.namespace, "bounds")
    world.until_condition("Complete", within=40)


def test_claim_that_cannot_be_shared(world):
    world.code()
    world.claim(mode="ReadWriteOncePod")
    world.submit(needed=False)
    until_told(world, "VolumeNotShared", "results")
    assert nothing_runs(world)


def event_of_a_claim(world, claim, kind, reason, message):
    """What the controller of volumes, which is not among those that run here, says of it."""
    world.client.create(
        "Event",
        world.namespace,
        {
            "metadata": {"generateName": "results."},
            "type": kind,
            "reason": reason,
            "message": message,
            "involvedObject": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "name": claim["metadata"]["name"],
                "namespace": world.namespace,
                "uid": claim["metadata"]["uid"],
            },
            "firstTimestamp": claim["metadata"]["creationTimestamp"],
            "lastTimestamp": claim["metadata"]["creationTimestamp"],
        },
    )


def test_a_claim_whose_class_is_missing(world):
    """No pod says so, but the claim's events do; the job goes on by itself once it is bound."""
    world.kubelet.hold = lambda pod: True
    world.code()
    wanted = {
        "accessModes": ["ReadWriteMany"],
        "storageClassName": "nosuch",
        "resources": {"requests": {"storage": "1Gi"}},
    }
    claim = world.client.create(
        "PersistentVolumeClaim", world.namespace, {"metadata": {"name": "results"}, "spec": wanted}
    )
    world.submit(needed=False)
    (pod,) = world.until(lambda: world.coordinators())
    world.kubelet.unschedulable(
        pod, "0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims."
    )
    what = 'storageclass.storage.k8s.io "nosuch" not found'
    event_of_a_claim(world, claim, "Warning", "ProvisioningFailed", what)
    words = ("VolumeNotBound", "PersistentVolumeClaim results", '"nosuch" not found', "create that")
    until_told(world, *words, within=20)
    world.until_condition("Stalled", reason="VolumeNotBound")

    def warned():
        about = world.client.list(
            "Event", world.namespace, fieldSelector="involvedObject.name=digits,type=Warning"
        )
        return [event for event in about if event["reason"] == "VolumeNotBound"]

    world.until(warned, 20)
    bound = {"status": {"phase": "Bound"}}
    world.client.merge("PersistentVolumeClaim", world.namespace, "results", bound, "status")
    world.until_condition("Stalled", "False", within=40)
    world.kubelet.hold = lambda pod: False
    world.until_condition("Complete", within=40)


def test_a_claim_for_several_hosts_of_a_class_that_makes_none(world):
    """As kind and minikube come: a volume is made for the first pod's host, and for it alone. The
    scheduler, which waits for that volume, says nothing."""
    world.kubelet.hold = lambda pod: True
    world.code()
    wanted = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = world.client.create(
        "PersistentVolumeClaim", world.namespace, {"metadata": {"name": "results"}, "spec": wanted}
    )
    world.submit(needed=False)
    waits = (
        "Waiting for a volume to be created either by the external provisioner "
        "'rancher.io/local-path' or manually by the system administrator."
    )
    event_of_a_claim(world, claim, "Normal", "ExternalProvisioning", waits)
    until_told(world, "VolumeNotBound", "PersistentVolumeClaim results", waits, within=20)
    assert world.condition("Stalled")["status"] == "False", "it may yet be made"
    refused = (
        'failed to provision volume with StorageClass "standard": '
        "NodePath only supports ReadWriteOnce and ReadWriteOncePod (1.22+) access modes"
    )
    event_of_a_claim(world, claim, "Warning", "ProvisioningFailed", refused)
    cure = "use a ReadWriteOnce claim, and all pods run on one host"
    until_told(world, "VolumeNotBound", refused, cure, within=40)
    world.until_condition("Stalled", reason="VolumeNotBound")


def test_claim_of_one_host_keeps_the_pods_together(world):
    world.code()
    world.claim(mode="ReadWriteOnce")
    world.kubelet.work.may_finish.clear()
    world.submit(needed=False)

    def placed():
        if told(world, "VolumeNotShared"):
            return True
        return len(world.nodes()) == 2 and all(
            "podAffinity" in p["spec"].get("affinity", {}) for p in world.nodes()
        )

    world.until(placed)
    assert all("topologySpreadConstraints" not in pod["spec"] for pod in world.pods())


def test_another_job_has_the_output(world):
    shared = {"volume": "out", "path": "shared"}
    world.kubelet.work.may_finish.clear()
    world.submit(output=shared)
    world.until(lambda: len(world.nodes("digits")) == 2)
    world.submit(name="second", output=shared)
    other = f"job {world.namespace}/digits"
    until_told(world, "OutputTaken", other, "only if that one leaves no output", name="second")
    assert world.pods("second") == []
    world.client.delete("ParallelRunJob", world.namespace, "digits")
    world.until(lambda: len(world.nodes("second")) == 2, 20)


def test_a_job_that_would_rather_fail_than_wait_for_an_output(world):
    shared = {"volume": "out", "path": "shared"}
    world.kubelet.work.may_finish.clear()
    world.submit(output=shared)
    world.until(lambda: len(world.nodes("digits")) == 2)
    world.submit(name="second", output=shared, onOutputTaken="Fail")
    failed = world.until_condition("Failed", "True", "OutputTaken", "second", within=SOON)
    assert f"job {world.namespace}/digits publishes" in failed["message"]
    assert "onOutputTaken is Fail" in failed["message"]
    assert world.pods("second") == []
    assert len(world.nodes("digits")) == 2, "the other goes on"


def test_the_label_of_a_queue_that_nobody_admits_from(world):
    label = "kueue.x-k8s.io/queue-name"
    world.code()
    world.claim()
    job = {"metadata": {"name": "digits", "labels": {label: "team"}}, "spec": spec()}
    world.client.create("ParallelRunJob", world.namespace, job)
    until_told(
        world, "Queued", "queue team", "does not speak to Kueue", f"Remove its label {label}"
    )
    assert nothing_runs(world)

    def warned():
        about = world.client.list(
            "Event", world.namespace, fieldSelector="involvedObject.name=digits,type=Warning"
        )
        return [event for event in about if event["reason"] == "Queued"]

    world.until(warned, 20)
    world.client.merge(
        "ParallelRunJob", world.namespace, "digits", {"metadata": {"labels": {label: None}}}
    )
    world.until_condition("Complete", within=40)


def test_specs_that_only_the_operator_refuses(world):
    table = {f"bad-{number}": case for number, case in enumerate(cases("api"))}
    for name, case in table.items():
        world.client.create(
            "ParallelRunJob", world.namespace, {**job_of(case), "metadata": {"name": name}}
        )
    for name, case in table.items():
        refused = world.until_condition("Accepted", "False", "Invalid", name, within=SOON)
        assert case["says"] in refused["message"], case["name"]
        assert world.condition("Stalled", name)["status"] == "True"
    assert nothing_runs(world)


def test_specs_that_only_the_cluster_refuses(world):
    """All in one: what of them the cluster misses is named, one after the other."""
    world.code("digits-code")
    for claim in ("digits", "results"):
        world.claim(claim)
    table = {f"bad-{number}": case for number, case in enumerate(cases("cluster"))}
    for name, case in table.items():
        world.client.create(
            "ParallelRunJob", world.namespace, {**job_of(case), "metadata": {"name": name}}
        )
    words = {"not found": "NotFound"}
    for name, case in table.items():
        until_told(world, words.get(case["says"], case["says"]), name=name)
    assert nothing_runs(world)


def test_somebody_elses_object_under_our_name(world):
    """Found, named, never adopted, never changed."""
    world.claim()
    job = world.submit(needed=False)  # waits for its code
    until_told(world, "code", "NotFound")
    base = f"digits-{job['metadata']['uid'].replace('-', '')[:5]}"
    world.client.create(
        "Service",
        world.namespace,
        {
            "metadata": {"name": f"{base}-coordinator"},
            "spec": {"ports": [{"port": 1}], "selector": {"app": "other"}},
        },
    )
    world.code()
    until_told(world, "NameTaken", f"{base}-coordinator", within=20)
    service = world.client.get("Service", world.namespace, f"{base}-coordinator")
    assert service["spec"]["selector"] == {"app": "other"}
    assert "ownerReferences" not in service["metadata"]
    world.client.delete("Service", world.namespace, f"{base}-coordinator")
    world.until_condition("Complete", within=60)


def test_another_controllers_job(world):
    world.submit(managedBy="kueue.x-k8s.io/multikueue")
    world.submit("ours", rankMiniBatchCount=2)
    world.until_condition("Complete", name="ours", within=20)
    assert world.status() == {}
    assert world.pods("digits", live=False) == []


def test_startup_deadline(world):
    def no_room(pod):
        if pod["metadata"]["labels"]["parallelrun.dev/role"] == "node":
            reason = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
            world.kubelet.unschedulable(pod, reason)
            return True
        return False

    world.kubelet.hold = no_room
    world.submit(startupDeadlineSeconds=10)
    failed = world.until_condition("Failed", reason="StartupDeadlineExceeded", within=30)
    assert "nvidia.com/gpu" in failed["message"]
    assert world.pods() == []


def test_a_network_that_denies(world):
    """Nodes run, and what they send to their coordinator is dropped, while the operator reaches it.
    The containers have run for a minute: the kubelet tells it late."""

    def is_node(pod):
        return pod["metadata"]["labels"]["parallelrun.dev/role"] == "node"

    world.kubelet.scripted = is_node
    world.submit()
    world.until(lambda: world.status().get("nodes", {}).get("ready") == 2, 20)
    (coordinator,) = world.coordinators()
    address, _ = world.until(lambda: world.kubelet.behind_service(coordinator), 20)
    nodes = world.nodes()
    for pod in nodes:
        world.kubelet.running(pod, pod["status"]["podIP"], ready=False, ago=60)
    world.kubelet.running(coordinator, address, ago=60)
    both = "nodes 0 and 1 have run for more than 15 s without a word to the coordinator"
    said = until_told(world, "CoordinatorUnreachable", both, within=20)["message"]
    assert world.condition("NodesReady")["status"] == "False"
    host = world.status()["url"].removeprefix("https://").removesuffix("/")
    assert f"the coordinator at {host} ({address} port {host.rpartition(':')[2]})" in said
    assert world.status()["display"]["status"] == "CoordinatorUnreachable"
    assert world.condition("Stalled")["status"] == "False"
    world.until(lambda: "CoordinatorUnreachable" in [reason for reason, _, _ in world.events()])
    # What is to be written is what a server takes, and means those pods.
    policy = yaml.safe_load(re.search(r"\{podSelector.*\}", said)[0])
    policy = world.client.create(
        "NetworkPolicy",
        world.namespace,
        {"metadata": {"name": "let-nodes-out"}, "spec": policy},
        fieldValidation="Strict",
    )["spec"]
    for pod in nodes:
        assert policy["podSelector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    to = policy["egress"][0]["to"][0]["podSelector"]["matchLabels"]
    assert to.items() <= coordinator["metadata"]["labels"].items()
    assert policy["egress"][0]["ports"][0]["port"] in [
        port["containerPort"] for port in coordinator["spec"]["containers"][0]["ports"]
    ]
    # It lifts by itself.
    for pod in nodes:
        world.kubelet.running(pod, pod["status"]["podIP"])
        world.kubelet.fill(pod)
    world.until_condition("Complete", within=40)
    assert world.status()["nodes"]["restarts"] == 0
