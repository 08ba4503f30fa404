"""Measures the operator on a real API server, beside the Job controller of Kubernetes, on this
machine.

1,000 jobs of 2 nodes (3 pods each) are created at once, as one list; the same number of Indexed
Jobs of 3 pods, through kube-controller-manager with its client's throttle lifted, is the measure.
Then all pods run, and the operator has nothing to do: what it writes then should be nothing.
Nothing is asserted: speed is judged by people. `--floor`: the objects that the operator has made of
one job, made again by plain clients, as often: what the API server takes for them by itself.
`--jobs 20 --nodes 500 --no-peer` is about the operator's memory with 10,000 pods.

No pods really run: their status is patched. PARALLELRUN_BIN is the folder of the programs
(build/release/bin).
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "controlplane"))

from support.client import Client, eventually
from support.coordinator import ROOT
from support.job import spec
from support.operator_process import SYSTEM, Operator
from support.plane import Plane, definitions

NAMESPACE = "bench"


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


class Seen(threading.Thread):
    """When objects of a kind were first seen, by the name of the job they belong to."""

    def __init__(self, kubeconfig, kind, job_of):
        super().__init__(daemon=True)
        self.client = Client(kubeconfig)
        self.kind = kind
        self.job_of = job_of
        self.times = {}  # job -> times of its objects
        self.uids = set()
        self.over = False  # its work is not to slow down what is measured next
        self.start()

    def run(self):
        while not self.over:
            query = {"watch": "1", "resourceVersion": "0", "timeoutSeconds": "600"}
            try:
                self.take(
                    self.client.stream(
                        Client.path(self.kind, NAMESPACE) + "?" + urllib.parse.urlencode(query)
                    )
                )
            except OSError:
                return  # the control plane has ended

    def take(self, events):
        for event in events:
            if self.over:
                return
            thing = event["object"]
            uid = thing["metadata"].get("uid")
            if event["type"] == "ADDED" and uid not in self.uids:
                self.uids.add(uid)
                self.times.setdefault(self.job_of(thing), []).append(time.monotonic())

    def count(self):
        return len(self.uids)


def kilobytes(pid, key="VmRSS"):
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1])
    return 0


def processor_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def creation(plane, kind, jobs, pods_each, create, job_of):
    """Seconds from a job's creation to that of its last pod, for each job."""
    seen_jobs = Seen(plane.kubeconfig, kind, lambda thing: thing["metadata"]["name"])
    seen_pods = Seen(plane.kubeconfig, "Pod", job_of)
    began = time.monotonic()
    create()
    listed = time.monotonic() - began
    until = time.monotonic() + 600
    while seen_pods.count() < jobs * pods_each and time.monotonic() < until:
        time.sleep(0.1)
    took = [
        max(times) - seen_jobs.times[job][0]
        for job, times in seen_pods.times.items()
        if len(times) >= pods_each and job in seen_jobs.times
    ]
    last = max(max(times) for times in seen_pods.times.values()) - began
    seen_jobs.over = seen_pods.over = True
    return listed, last, took


def report(name, jobs, listed, last, took):
    if not took:
        print(f"{name}: no job got all its pods")
        return
    print(
        f"{name}: {len(took)} of {jobs} jobs have all pods; job to its last pod"
        f" p50 {statistics.median(took):.2f} s, p99 {percentile(took, 0.99):.2f} s,"
        f" longest {max(took):.2f} s; the list created in {listed:.1f} s, all pods in {last:.1f} s"
    )


def indexed_job(number, pods):
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": f"plain-{number}", "namespace": NAMESPACE},
        "spec": {
            "completionMode": "Indexed",
            "completions": pods,
            "parallelism": pods,
            "template": {
                "spec": {
                    "restartPolicy": "Never",
                    "automountServiceAccountToken": False,
                    "containers": [{"name": "worker", "image": "images.test/digits:1"}],
                }
            },
        },
    }


def parallel_run_job(number, nodes):
    return {
        "apiVersion": "parallelrun.dev/v1alpha1",
        "kind": "ParallelRunJob",
        "metadata": {"name": f"job-{number}", "namespace": NAMESPACE},
        "spec": spec(nodeCount=nodes),
    }


def owner_name(pod):
    return pod["metadata"]["ownerReferences"][0]["name"]


def create_list(plane, items):
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    done = subprocess.run(
        [plane.programs / "kubectl", "--kubeconfig", plane.kubeconfig, "create", "-f", "-"],
        input=text,
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        sys.exit(f"kubectl create: {done.stderr[-2000:]}")


def run_all_pods(client):
    """Every pod is Running and Ready, as its kubelet would say."""
    at = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")

    def run(pod):
        container = pod["spec"]["containers"][0]
        status = {
            "phase": "Running",
            "podIP": "127.0.0.1",
            "startTime": at,
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": at}],
            "containerStatuses": [
                {
                    "name": container["name"],
                    "image": container["image"],
                    "imageID": "",
                    "ready": True,
                    "restartCount": 0,
                    "state": {"running": {"startedAt": at}},
                    "lastState": {},
                }
            ],
        }
        name = pod["metadata"]["name"]
        client.strategic("Pod", NAMESPACE, name, {"status": status}, "status")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(run, client.list("Pod", NAMESPACE)))


def objects_of(client, job):
    """What a job has, as it would be created: [(kind, object)], and its status."""
    made = client.get("ParallelRunJob", NAMESPACE, job)
    selector = f"parallelrun.dev/job={job}"
    found = []
    for kind in ("ConfigMap", "Secret", "Service", "Pod"):
        for thing in client.list(kind, NAMESPACE, labelSelector=selector):
            metadata = {key: thing["metadata"].get(key, {}) for key in ("labels", "annotations")}
            metadata["name"] = thing["metadata"]["name"]
            kept = {key: thing[key] for key in ("data", "type", "immutable") if key in thing}
            if "spec" in thing:
                kept["spec"] = {
                    key: value
                    for key, value in thing["spec"].items()
                    if not key.startswith(("clusterIP", "nodeName"))
                }
            found.append((kind, {"metadata": metadata, **kept}))
    return found, made["status"]


def floor(plane, client, objects, status, jobs, nodes, clients):
    """The same by plain clients, `clients` at a time."""
    client.create("Namespace", None, {"metadata": {"name": "floor"}})
    eventually(lambda: client.find("ServiceAccount", "floor", "default"))
    server = plane.processes["kube-apiserver"].pid

    def make(number):
        body = parallel_run_job(number, nodes)
        body["metadata"]["namespace"] = "floor"
        client.create("ParallelRunJob", "floor", body)
        for kind, thing in objects:
            name = f"{thing['metadata']['name']}-{number}"
            client.create(kind, "floor", {**thing, "metadata": {**thing["metadata"], "name": name}})
        name = body["metadata"]["name"]
        client.merge("ParallelRunJob", "floor", name, {"status": status}, "status")

    used, began = processor_seconds(server), time.monotonic()
    with ThreadPoolExecutor(clients) as pool:
        list(pool.map(make, range(jobs)))
    print(
        f"the same objects by {clients} plain clients: {time.monotonic() - began:.1f} s,"
        f" API server {processor_seconds(server) - used:.1f} s of processor time"
    )


def requests_since(audit, start):
    """Counts of (verb, resource) that the operator asked for after byte `start` of the log."""
    counts = {}
    with audit.open() as log:
        log.seek(start)
        for line in log:
            entry = json.loads(line)
            thing = entry.get("objectRef", {})
            names = (thing.get("resource"), thing.get("subresource"))
            key = (entry["verb"], "/".join(name for name in names if name))
            counts[key] = counts.get(key, 0) + 1
    return counts


def prepared(plane):
    """Starts it, with what jobs need; returns a client of it."""
    plane.start()
    for crd in definitions():
        plane.kubectl("apply", "--server-side", "-f", crd)
    plane.start_controllers()
    client = Client(plane.kubeconfig)
    for name in (SYSTEM, NAMESPACE):
        client.create("Namespace", None, {"metadata": {"name": name}})
        eventually(lambda name=name: client.find("ServiceAccount", name, "default"))
    plane.kubectl(
        "apply",
        "--server-side",
        "-n",
        SYSTEM,
        "-f",
        ROOT / "deploy/base/rbac-operator.yaml",
    )
    client.create(
        "ConfigMap",
        NAMESPACE,
        {"metadata": {"name": "code"}, "data": {"score.py": "def run(mini_batch): ..."}},
    )
    claim = {
        "accessModes": ["ReadWriteMany"],
        "resources": {"requests": {"storage": "1Gi"}},
    }
    client.create(
        "PersistentVolumeClaim", NAMESPACE, {"metadata": {"name": "results"}, "spec": claim}
    )
    return client


def peer(folder, jobs, pods_each):
    """The Job controller's figures, on a control plane of its own: what is left of so many jobs
    would slow down what is measured next."""
    plane = Plane(folder)
    try:
        prepared(plane)
        items = [indexed_job(i, pods_each) for i in range(jobs)]
        figures = creation(
            plane, "Job", jobs, pods_each, lambda: create_list(plane, items), owner_name
        )
        report("Indexed Jobs of kube-controller-manager", jobs, *figures)
    finally:
        plane.kill()


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--nodes", type=int, default=2, help="of each job")
    parser.add_argument("--no-peer", action="store_true", help="without the Job controller")
    parser.add_argument("--floor", action="store_true", help="the same objects by plain clients")
    parser.add_argument("--idle", type=int, default=30, help="seconds for which it is left alone")
    parser.add_argument("--workers", type=int, default=0, help="the operator's own flag")
    arguments = parser.parse_args()
    pods_each = arguments.nodes + 1

    with tempfile.TemporaryDirectory(prefix="bench.") as folder:
        if not arguments.no_peer:
            peer(Path(folder) / "peer", arguments.jobs, pods_each)
        plane = Plane(Path(folder) / "plane")
        operator = None
        try:
            client = prepared(plane)
            request = {
                "apiVersion": "authentication.k8s.io/v1",
                "kind": "TokenRequest",
                "spec": {"expirationSeconds": 7200},
            }
            path = Client.path("ServiceAccount", SYSTEM, "parallelrun-operator", "token")
            token = client.request("POST", path, request)["status"]["token"]
            user = plane.token_user("operator", token)
            flags = [f"--workers={arguments.workers}"] if arguments.workers else []
            operator = Operator(user, Path(folder) / "operator.log", *flags, level="info").start()
            empty = kilobytes(operator.process.pid)
            began = plane.audit_log.stat().st_size
            server = plane.processes["kube-apiserver"].pid
            used = processor_seconds(operator.process.pid), processor_seconds(server)
            items = [parallel_run_job(i, arguments.nodes) for i in range(arguments.jobs)]
            figures = creation(
                plane,
                "ParallelRunJob",
                arguments.jobs,
                pods_each,
                lambda: create_list(plane, items),
                owner_name,
            )
            report("ParallelRunJobs of the operator", arguments.jobs, *figures)
            print(
                "processor time until then:"
                f" operator {processor_seconds(operator.process.pid) - used[0]:.1f} s,"
                f" API server {processor_seconds(server) - used[1]:.1f} s"
            )
            pods = arguments.jobs * pods_each
            run_all_pods(client)
            time.sleep(10)
            counts = requests_since(plane.audit_log, began)
            print(f"requests of the operator for a pod: {sum(counts.values()) / pods:.2f}")
            for key, count in sorted(counts.items(), key=lambda item: -item[1])[:8]:
                print(f"  {count:7} {key[0]} {key[1]}")
            resident = kilobytes(operator.process.pid)
            highest = kilobytes(operator.process.pid, "VmHWM")
            print(
                f"memory of the operator: {empty / 1024:.1f} MB at first, {resident / 1024:.1f} MB"
                f" with {pods} pods ({(resident - empty) / pods:.1f} kB a pod),"
                f" highest {highest / 1024:.1f} MB"
            )
            idle = plane.audit_log.stat().st_size
            time.sleep(arguments.idle)
            writes = {
                key: count
                for key, count in requests_since(plane.audit_log, idle).items()
                if key[0] not in ("get", "list", "watch")
            }
            print(f"writes in {arguments.idle} s of rest: {sum(writes.values())} {writes or ''}")
            if arguments.floor:
                operator.kill()
                objects, status = objects_of(client, "job-0")
                floor(plane, client, objects, status, arguments.jobs, arguments.nodes, clients=8)
        finally:
            if operator:
                operator.kill()
            plane.kill()


main()
