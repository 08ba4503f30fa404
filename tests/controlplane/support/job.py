"""Jobs for the tests, and short words for what tests do with them and look at."""

import copy
import itertools
import json

from support.client import eventually
from support.pods import ended, role

MARKER = "marker-"  # names of the jobs of until_passed begin so


def spec(**changes):
    """A job of 20 mini-batches without input, on two nodes; `changes` replace top-level fields of
    it."""
    made = {
        "entryScript": "score.py",
        "code": {"configMap": {"name": "code"}},
        "environment": {"image": "images.test/digits:1"},
        "volumes": [{"name": "out", "persistentVolumeClaim": {"claimName": "results"}}],
        "output": {"volume": "out"},
        "rankMiniBatchCount": 20,
        "nodeCount": 2,
        "processCountPerNode": 2,
    }
    made.update(copy.deepcopy(changes))
    return {key: value for key, value in made.items() if value is not None}


class World:
    def __init__(self, plane, client, namespace, kubelet, operator):
        self.plane = plane
        self.client = client
        self.namespace = namespace
        self.kubelet = kubelet
        self.operator = operator
        self._markers = itertools.count(1)

    # -- making things -----------------------------------------------------------------------------

    def code(self, name="code"):
        return self.client.create(
            "ConfigMap",
            self.namespace,
            {
                "metadata": {"name": name},
                "data": {"score.py": "def run(mini_batch):\n    return mini_batch\n"},
            },
        )

    def claim(self, name="results", mode="ReadWriteMany"):
        return self.client.create(
            "PersistentVolumeClaim",
            self.namespace,
            {
                "metadata": {"name": name},
                "spec": {"accessModes": [mode], "resources": {"requests": {"storage": "1Gi"}}},
            },
        )

    def submit(self, name="digits", needed=True, **changes):
        """Creates a job, and first what it needs."""
        if needed:
            if not self.client.find("ConfigMap", self.namespace, "code"):
                self.code()
            if not self.client.find("PersistentVolumeClaim", self.namespace, "results"):
                self.claim()
        return self.client.create(
            "ParallelRunJob",
            self.namespace,
            {"metadata": {"name": name}, "spec": spec(**changes)},
            fieldValidation="Strict",
        )

    def change(self, name="digits", **fields):
        return self.client.merge("ParallelRunJob", self.namespace, name, {"spec": fields})

    # -- looking -----------------------------------------------------------------------------------

    def job(self, name="digits"):
        return self.client.get("ParallelRunJob", self.namespace, name)

    def status(self, name="digits"):
        return self.job(name).get("status", {})

    def told(self, name="digits"):
        """All of its status, for people."""
        return json.dumps(self.status(name), indent=1)

    def phase(self, name="digits"):
        return self.status(name).get("phase")

    def condition(self, kind, name="digits"):
        found = [c for c in self.status(name).get("conditions", []) if c["type"] == kind]
        return found[0] if found else {"status": "Unknown", "reason": None, "message": ""}

    def pods(self, name=None, which=None, live=True):
        """Pods of the namespace (of a job, of a role), without those that ended or are being
        deleted if `live`."""
        found = []
        for pod in self.client.list("Pod", self.namespace):
            if name and pod["metadata"]["labels"].get("parallelrun.dev/job") != name:
                continue
            if which and role(pod) != which:
                continue
            if live and (ended(pod) or pod["metadata"].get("deletionTimestamp")):
                continue
            found.append(pod)
        return sorted(found, key=lambda pod: pod["metadata"]["name"])

    def nodes(self, name=None, live=True):
        return self.pods(name, "node", live)

    def coordinators(self, name=None, live=True):
        return self.pods(name, "coordinator", live)

    def node(self, index, name=None):
        """The one live pod of a node."""
        (found,) = [
            p
            for p in self.nodes(name)
            if p["metadata"]["labels"]["parallelrun.dev/node"] == str(index)
        ]
        return found

    def events(self, name="digits"):
        """The events about a job, oldest first: (reason, message, how often)."""
        found = self.client.list(
            "Event", self.namespace, fieldSelector=f"involvedObject.name={name}"
        )
        found.sort(
            key=lambda e: (
                e["metadata"]["creationTimestamp"],
                int(e["metadata"]["resourceVersion"]),
            )
        )
        return [
            (
                e["reason"],
                e.get("message", ""),
                (e.get("series") or {}).get("count") or e.get("count") or 1,
            )
            for e in found
        ]

    # -- waiting -----------------------------------------------------------------------------------

    def until(self, check, within=10.0, what=None):
        return eventually(check, within, what=what)

    def until_passed(self):
        """Waits until the operator has done what follows from all that it has heard of jobs so far,
        and told its events: another job is suspended and then changed, which comes after that in
        its watch, its queue and its events."""
        name = f"{MARKER}{next(self._markers)}"
        self.submit(name, needed=False, suspend=True)
        self.until(lambda: [e for e in self.events(name) if e[0] == "Suspended"], within=20)
        self.change(name, nodeCount=3)

        def seen():
            job = self.job(name)
            return job["status"]["observedGeneration"] == job["metadata"]["generation"]

        self.until(seen, within=20)
        self.until(self.operator.idle, within=20)

    def until_condition(self, kind, status="True", reason=None, name="digits", within=10.0):
        """Waits for a condition; returns it. Fails with all of the status."""

        def holds():
            found = self.condition(kind, name)
            return (
                found
                if found["status"] == status and (reason is None or found["reason"] == reason)
                else None
            )

        return eventually(
            holds, within, what=lambda: f"{kind}={status} {reason or ''}\n{self.told(name)}"
        )

    def until_running(self, name="digits", nodes=2, within=15.0):
        """Waits until the coordinator and so many nodes are ready."""

        def runs():
            status = self.status(name)
            return (
                status.get("nodes", {}).get("ready") == nodes and status.get("phase") == "Running"
            )

        eventually(runs, within, what=lambda: f"running\n{self.told(name)}")
