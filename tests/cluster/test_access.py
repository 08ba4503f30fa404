"""Who may ask whom for what: tokens of jobs, and what the operator asks the API server for."""

import base64
import contextlib
import http.client
import json
import socket
import ssl
import urllib.error
import urllib.request
from pathlib import Path

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


def greet(space, job, authority, newest=None):
    """The version of TLS of a connection to the job's coordinator, or what goes wrong."""
    context = ssl.create_default_context(cadata=authority)
    if newest:
        context.set_ciphers("DEFAULT@SECLEVEL=0")  # else this end has no version below 1.2
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = newest
    address = job.pod("coordinator")["status"]["podIP"]
    uid = job.get()["metadata"]["uid"][:5]
    name = f"{job.name}-{uid}-coordinator.{space.name}.svc"
    with socket.create_connection((address, 8443), timeout=10) as plain:
        try:
            with context.wrap_socket(plain, server_hostname=name) as connection:
                return connection.version()
        except ssl.SSLError as error:
            return error.reason


def ask_in_the_clear(address, port, path, method="GET"):
    """Status code of a call without TLS; None if there is no answer."""
    connection = http.client.HTTPConnection(address, port, timeout=10)
    with contextlib.closing(connection):
        try:
            connection.request(method, path)
            return connection.getresponse().status
        except (http.client.HTTPException, ConnectionError):
            return None


def processes_of(cluster):
    """Words and environments of all processes of all pods, by process."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended
            if cluster.cgroup in (folder / "cgroup").read_text():
                words, variables = (folder / name for name in ("cmdline", "environ"))
                found[folder.name] = (words.read_bytes(), variables.read_bytes())
    return {
        process: (words.decode(errors="replace"), variables.decode(errors="replace"))
        for process, (words, variables) in found.items()
    }


def running(processes, program):
    return [variables for words, variables in processes.values() if program in words]


STORE = "c4naryOfTheDataSource"


@pytest.mark.own_cluster
@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")  # older ones are the point
def test_a_token_is_good_for_one_job_and_one_node(space, operator, cluster):
    metadata = {"name": "store", "namespace": space.name}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}
    space.kube.apply({**secret, "stringData": {"token": STORE}})
    reference = {"secretKeyRef": {"name": "store", "key": "token"}}
    environment = {"image": "newer:1", "env": [{"name": "STORE_TOKEN", "valueFrom": reference}]}
    first, data, out, _ = space.run("one", arguments=["--wait", "go"], environment=environment)
    second = space.apply(jobs.manifest(space.name, "two", arguments=["--wait", "go"]))
    for job in (first, second):
        wait_until(lambda job=job: job.phase == "Running", lambda job=job: job.tell())
    wait_until(lambda: len({mark[1] for mark in jobs.marks(out)}) >= 4, "all nodes at work")
    secrets = secret_of(space, first)

    authority = secrets["ca.crt"]
    assert greet(space, first, authority) == "TLSv1.3"
    assert greet(space, first, authority, ssl.TLSVersion.TLSv1_2) == "TLSv1.2"
    assert greet(space, first, authority, ssl.TLSVersion.TLSv1_1) == "TLSV1_ALERT_PROTOCOL_VERSION"
    assert greet(space, second, authority) == "CERTIFICATE_VERIFY_FAILED"
    coordinator = first.pod("coordinator")["status"]["podIP"]
    assert ask_in_the_clear(coordinator, 8443, "/healthz") is None
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
    # The operator has nothing but metrics and its health for whoever reaches it.
    address = space.kube.list("pods", operator)[0]["status"]["podIP"]
    for port, open_path in ((8080, "/metrics"), (8081, "/readyz")):
        assert ask_in_the_clear(address, port, open_path) == 200
        assert ask_in_the_clear(address, port, open_path, "POST") == 405
        for path in ("/", "/v1/progress", "/debug/pprof/"):
            assert ask_in_the_clear(address, port, path) == 404

    processes = processes_of(cluster)
    data.write(jobs.GO)
    first.succeeded()
    second.succeeded()

    key = json.loads(secrets["coordinator.json"])["key"]
    tokens = [viewer, key, node, json.loads(secrets["node-1.json"])["token"]]
    tokens += secrets["tls.key"].splitlines()[1:2]
    assert all(len(token) > 20 for token in tokens)
    (kept,) = space.kube.get("secrets", operator, "parallelrun-operator-key")["data"].values()
    tokens += [kept, base64.b64decode(kept).hex()]
    said = {"metrics": metrics, **everything_said(space, first, out, operator)}
    assert len(said) > 10
    for place, text in said.items():
        assert [token for token in [*tokens, STORE] if token in text] == [], place
    assert len(running(processes, "/parallelrun-coordinator")) >= 2
    assert len(running(processes, "/parallelrun-operator")) >= 1
    assert len(running(processes, "/parallelrun-agent")) >= 4
    assert len([one for one in running(processes, "python3") if STORE in one]) >= 2
    for words, variables in processes.values():
        assert [token for token in tokens if token in words + variables] == [], words
        assert STORE not in words
        # The script's own Secret is in the containers of the job that names it.
        assert STORE not in variables or "HOSTNAME=one-" in variables, words


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
    (calls,) = policy["ingress"]  # no namespace is named that may read the metrics
    assert [port["port"] for port in calls["ports"]] == [8443]
    for pod in everybody:
        ours = pod["metadata"]["name"].startswith(("fenced-", "parallelrun-operator-"))
        assert lets_in(calls, pod, space.name) == ours, pod["metadata"]["name"]
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
