"""Who may ask whom for what: tokens of jobs, and what the operator asks the API server for."""

import base64
import json
import ssl
import urllib.error
import urllib.request

import pytest
from support import jobs
from support.kube import wait_until


def ask(job, token, path="/v1/progress", method="GET", body=None):
    """Status code of a call to the job's coordinator, by the address of its pod."""
    pod = job.pod("coordinator")
    url = f"https://{pod['status']['podIP']}:8443{path}"
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    request = urllib.request.Request(
        url, data=body, method=method, headers={"Authorization": f"Bearer {token}"}
    )
    try:
        with urllib.request.urlopen(request, timeout=10, context=context) as answer:
            answer.read()
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def secret_of(space, job):
    uid = job.get()["metadata"]["uid"].replace("-", "")[:5]
    data = space.kube.get("secrets", space.name, f"{job.name}-{uid}-access")["data"]
    return {name: base64.b64decode(text).decode() for name, text in data.items()}


@pytest.mark.own_cluster
def test_a_token_is_good_for_one_job_and_one_node(space, operator):
    first, data, out, _ = space.run("one", arguments=["--wait", "go"])
    second = space.apply(jobs.manifest(space.name, "two", arguments=["--wait", "go"]))
    for job in (first, second):
        wait_until(lambda job=job: job.phase == "Running", lambda job=job: job.tell())
    secrets = secret_of(space, first)
    viewer = secrets["viewer"].strip()
    node = json.loads(secrets["node-0.json"])["token"]
    assert ask(first, viewer) == 200
    refused = (401, 403)
    assert ask(second, viewer) in refused
    assert ask(first, node) in refused
    assert ask(first, "") in refused
    assert ask(first, viewer, "/v1/control", "PUT", b"{}") in refused
    assert ask(first, node, "/v1/nodes/1/register", "POST", b"{}") in refused
    # Metrics without a token are on a port of their own, and nothing else is there.
    address = first.pod("coordinator")["status"]["podIP"]
    with urllib.request.urlopen(f"http://{address}:9102/metrics", timeout=10) as answer:
        metrics = answer.read().decode()
    assert "parallelrun" in metrics
    with pytest.raises(urllib.error.HTTPError) as answer:
        urllib.request.urlopen(f"http://{address}:9102/v1/progress", timeout=10)
    assert answer.value.code == 404
    data.write(jobs.GO)
    first.succeeded()
    second.succeeded()

    key = json.loads(secrets["coordinator.json"])["key"]
    tokens = [viewer, key, node, json.loads(secrets["node-1.json"])["token"]]
    tokens += secrets["tls.key"].splitlines()[1:2]
    assert all(len(token) > 20 for token in tokens)
    said = {"metrics": metrics, **everything_said(space, first, out, operator)}
    assert len(said) > 10
    for place, text in said.items():
        assert [token for token in tokens if token in text] == [], place


def everything_said(space, job, out, operator):
    """What anybody may come to see of a job and of the operator, by where it stands."""
    said = {"job": json.dumps(job.get()), "description": job.describe()}
    for namespace in (space.name, operator):
        for resource in ("pods", "events"):
            found = space.kube.list(resource, namespace)
            said[f"{resource} of {namespace}"] = json.dumps(found)
        for pod in space.kube.list("pods", namespace):
            name = pod["metadata"]["name"]
            said[f"log of {name}"] = space.kube.log(namespace, name)
    for file in out.files("**/*"):
        said[file] = out.read(file).decode(errors="replace")
    return said


def selects(selector, labels):
    return selector.get("matchLabels", {}).items() <= labels.items()


def lets_in(rule, pod, home):
    """Whether a rule of a NetworkPolicy that is in the namespace `home` lets this pod in."""
    for peer in rule["from"]:
        space = {"kubernetes.io/metadata.name": pod["metadata"]["namespace"]}
        if "namespaceSelector" in peer:
            inside = selects(peer["namespaceSelector"], space)
        else:
            inside = pod["metadata"]["namespace"] == home
        if inside and selects(peer.get("podSelector", {}), pod["metadata"]["labels"]):
            return True
    return False


def test_the_network_policy_of_a_job_means_its_pods(space, operator):
    """The objects alone: the test cluster's network enforces none."""
    job, data, _out, _ = space.run("fenced", arguments=["--wait", "go"])
    other = space.apply(jobs.manifest(space.name, "other", arguments=["--wait", "go"]))
    for one in (job, other):
        one.wait_for_phase("Running")
    coordinator = job.pod("coordinator")
    uid = job.get()["metadata"]["uid"].replace("-", "")[:5]
    path = f"/apis/networking.k8s.io/v1/namespaces/{space.name}/networkpolicies"
    policy = space.kube.raw(f"{path}/fenced-{uid}-coordinator")["spec"]
    assert policy["policyTypes"] == ["Ingress"]
    operators = space.kube.list("pods", operator)
    assert operators
    assert (len(job.pods()), len(other.pods())) == (3, 3)
    everybody = [*job.pods(), *other.pods(), *operators]
    meant = [p for p in job.pods() if selects(policy["podSelector"], p["metadata"]["labels"])]
    assert [p["metadata"]["uid"] for p in meant] == [coordinator["metadata"]["uid"]]
    calls, metrics = policy["ingress"]
    assert [port["port"] for port in calls["ports"]] == [8443]
    assert [port["port"] for port in metrics["ports"]] == [9102]
    for pod in everybody:
        ours = pod["metadata"]["name"].startswith(("fenced-", "parallelrun-operator-"))
        assert lets_in(calls, pod, space.name) == ours, pod["metadata"]["name"]
        assert lets_in(metrics, pod, space.name)
    data.write(jobs.GO)
    job.succeeded()
    other.succeeded()


@pytest.mark.own_cluster
def test_the_operator_never_lists_secrets(space, operator, cluster):
    (pod,) = (p["metadata"]["name"] for p in space.kube.list("pods", operator))
    job, *_ = space.run("audited")
    job.succeeded()
    seen = set()
    *lines, _being_written = cluster.audit_log.read_text().split("\n")
    for line in lines:
        event = json.loads(line)
        # Since its start; releases that came and went left their marks there too.
        if event["user"].get("extra", {}).get("authentication.kubernetes.io/pod-name") != [pod]:
            continue
        reference = event.get("objectRef", {})
        seen.add((event["verb"], reference.get("resource", event["requestURI"])))
        decision = event.get("annotations", {}).get("authorization.k8s.io/decision")
        assert decision != "forbid", line
    assert {("create", "pods"), ("get", "secrets"), ("watch", "pods")} <= seen
    assert (
        not {
            ("list", "secrets"),
            ("watch", "secrets"),
            ("list", "configmaps"),
            ("watch", "configmaps"),
        }
        & seen
    )
