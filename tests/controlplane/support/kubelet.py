"""Plays the kubelets of one namespace: brings pods up, reports how they end, confirms deletions.

A coordinator's pod is a real coordinator process on an address of its own within 127/8, with the
configuration from the job's Secret; a node's pod is a thread that speaks to it as an agent does
(node.py). What the cluster may do to a pod (eviction, OOM kill, a wrong image, ...) is a call of a
test. Until `hold` lets go of it, a pod stays Pending.
"""

import contextlib
import http.client
import json
import threading
from pathlib import Path

from support.client import ApiError
from support.coordinator import Coordinator
from support.node import Node, Work
from support.pods import (
    access_name,
    api_port,
    conditions_of,
    container_status,
    ended,
    next_address,
    now,
    role,
    secret_text,
    terminated_state,
)


class Kubelet:
    def __init__(self, client, namespace, folder, work=None):
        self.namespace = namespace
        self.work = work or Work()
        self.hold = lambda pod: False  # pods that nobody schedules
        self.scripted = lambda pod: False  # pods that run, but nothing is in them
        self.stuck = set()  # names of pods whose deletion is never confirmed: their node is dead
        self.problems = []
        self.client = client
        self.folder = Path(folder)
        self._known = {}  # pod's uid -> what runs for it, or None
        self._lock = threading.RLock()
        self._closing = threading.Event()
        self._thread = threading.Thread(
            target=self._watch, daemon=True, name=f"kubelet of {namespace}"
        )
        self._thread.start()

    def close(self):
        """Ends the processes of all pods, without a word to the API server."""
        self._closing.set()
        self._thread.join(15)
        with self._lock:
            running = [body for body in self._known.values() if body]
        for body in running:
            body.kill()
        for body in running:
            body.join(10)

    # -- the loop ----------------------------------------------------------------------------------

    def _watch(self):
        # A list every tenth of a second: there are few pods in a namespace, and nothing to miss.
        while not self._closing.is_set():
            try:
                for pod in self.client.list("Pod", self.namespace):
                    self._attend(pod)
            except (ApiError, OSError, http.client.HTTPException):
                pass  # the API server is away, or the pod changed under us: the next round sees it
            except Exception as e:  # a fault of this class: the test is to fail with it
                self.problems.append(e)
            self._closing.wait(0.1)

    def _attend(self, pod):
        uid, name = pod["metadata"]["uid"], pod["metadata"]["name"]
        if pod["metadata"].get("deletionTimestamp"):
            if name not in self.stuck:
                self._end_deleted(pod)
            return
        with self._lock:
            if uid in self._known or ended(pod) or self.hold(pod):
                return
            self._known[uid] = None
        try:
            self._begin(pod)
        except (ApiError, OSError, http.client.HTTPException):
            with self._lock:
                del self._known[uid]  # the next round begins again
            raise

    def _begin(self, pod):
        self.schedule(pod)
        body = None
        if not self.scripted(pod):
            body = Coordinator(self, pod) if role(pod) == "coordinator" else self._node(pod)
        with self._lock:
            self._known[pod["metadata"]["uid"]] = body  # who hears that it runs may end it
        if not isinstance(body, Coordinator):  # that tells by itself
            self.running(pod)
        if body:
            body.start()

    def fill(self, pod):
        """Starts a node in a pod that was scripted, or whose node was killed without a word."""
        body = self._node(pod)
        with self._lock:
            self._known[pod["metadata"]["uid"]] = body
        body.start()

    def _end_deleted(self, pod):
        uid = pod["metadata"]["uid"]
        with self._lock:
            body = self._known.get(uid)
        if body and body.is_alive():
            body.terminate()
            return  # when it has ended, the next round gets here again
        with self._lock:
            self._known[uid] = None
        if not ended(pod) and pod["spec"].get("nodeName"):
            code = body.code if body else 0
            self.terminated(pod, *self._end_of(pod, 0 if code is None else code))
        self.confirm_deletion(pod)

    def _node(self, pod):
        secret = self.client.get("Secret", self.namespace, access_name(pod))
        index = pod["metadata"]["labels"]["parallelrun.dev/node"]
        config = {
            **json.loads(secret_text(secret, "agent.json")),
            **json.loads(secret_text(secret, f"node-{index}.json")),
        }
        return Node(
            config,
            secret_text(secret, "ca.crt"),
            lambda: self.behind_service(pod),
            self.work,
            lambda code: self._node_ended(pod, code),
        )

    def _node_ended(self, pod, code):
        with contextlib.suppress(ApiError, OSError):
            self.terminated(pod, *self._end_of(pod, code))

    @staticmethod
    def _end_of(pod, code):
        """The exit code, reason and message of an agent that was told to go: `code` is 3."""
        if role(pod) == "node" and code == 3:
            return 0, None, "drained: it was told to go, and holds nothing more"
        return code, None, None

    def behind_service(self, pod):
        """The address of a ready pod that the Service of this pod's job selects, or None."""
        try:
            service = self.client.get(
                "Service", self.namespace, access_name(pod).removesuffix("access") + "coordinator"
            )
            selector = ",".join(f"{k}={v}" for k, v in service["spec"]["selector"].items())
            for candidate in self.client.list("Pod", self.namespace, labelSelector=selector):
                ready = any(
                    c["type"] == "Ready" and c["status"] == "True"
                    for c in candidate["status"].get("conditions", [])
                )
                if ready and not candidate["metadata"].get("deletionTimestamp"):
                    return candidate["status"]["podIP"], api_port(candidate)
        except (ApiError, OSError, http.client.HTTPException):
            pass
        return None

    # -- what a kubelet and its cluster do to pods -------------------------------------------------

    def status(self, pod, **fields):
        return self.client.strategic(
            "Pod", self.namespace, pod["metadata"]["name"], {"status": fields}, "status"
        )

    def schedule(self, pod, node=None):
        if pod["spec"].get("nodeName"):
            return
        name = pod["metadata"]["name"]
        node = node or f"{role(pod)}-{pod['metadata']['labels'].get('parallelrun.dev/node', 0)}"
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name},
            "target": {"kind": "Node", "name": node},
        }
        self.client.request(
            "POST", self.client.path("Pod", self.namespace, name, "binding"), binding
        )

    def running(self, pod, address=None, ready=True, restarts=0, last=None, ago=0):
        """`ago`: since so many seconds, which the kubelet tells late."""
        return self.status(
            pod,
            phase="Running",
            podIP=address or next_address(),
            hostIP="127.0.0.1",
            startTime=now(),
            conditions=conditions_of(
                ago, PodScheduled=True, Initialized=True, ContainersReady=ready, Ready=ready
            ),
            containerStatuses=[
                container_status(
                    pod,
                    {"running": {"startedAt": now(ago)}},
                    ready=ready,
                    restarts=restarts,
                    last=last,
                )
            ],
        )

    def waiting(self, pod, reason, message, restarts=0, last=None):
        """ImagePullBackOff, CreateContainerConfigError, CrashLoopBackOff, ..."""
        return self.status(
            pod,
            phase="Pending" if not last else "Running",
            startTime=now(),
            conditions=conditions_of(PodScheduled=True, ContainersReady=False, Ready=False),
            containerStatuses=[
                container_status(
                    pod,
                    {"waiting": {"reason": reason, "message": message}},
                    restarts=restarts,
                    last=last,
                )
            ],
        )

    def unschedulable(self, pod, message):
        return self.status(
            pod,
            conditions=[
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "reason": "Unschedulable",
                    "message": message,
                    "lastTransitionTime": now(),
                }
            ],
        )

    def event(self, pod, reason, message):
        """What no status of a pod shows, as a volume that cannot be mounted: one event each."""
        made = pod["metadata"]["creationTimestamp"]
        about = {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": pod["metadata"]["name"],
            "namespace": self.namespace,
            "uid": pod["metadata"]["uid"],
        }
        return self.client.create(
            "Event",
            self.namespace,
            {
                "metadata": {"generateName": f"{pod['metadata']['name']}-"},
                "type": "Warning",
                "reason": reason,
                "message": message,
                "involvedObject": about,
                "firstTimestamp": made,
                "lastTimestamp": made,
            },
        )

    def terminated(self, pod, code, reason=None, message=None, lingers=False, ago=0):
        """The container ended for good. `lingers`: the pod has not yet; a kubelet says so a moment
        later, when it knows that none of its containers runs. `ago`: it ended so many seconds ago,
        and the kubelet tells it late: what waits from its end on has so much less to wait."""
        self.forget(pod)
        phase = "Succeeded" if code == 0 else "Failed"
        return self.status(
            pod,
            phase="Running" if lingers else phase,
            conditions=conditions_of(
                PodScheduled=True, Initialized=True, ContainersReady=False, Ready=False
            ),
            containerStatuses=[container_status(pod, terminated_state(code, reason, message, ago))],
        )

    def failed(self, pod, reason, message, disruption=None, containers=False, ago=0):
        """The pod failed as a whole: Evicted, NodeShutdown, Preempting, UnexpectedAdmissionError,
        ... `containers`: they are killed by that, `ago` seconds before the kubelet tells."""
        self.forget(pod)
        conditions = conditions_of(PodScheduled=True, ContainersReady=False, Ready=False)
        if disruption:
            conditions.append(
                {
                    "type": "DisruptionTarget",
                    "status": "True",
                    "reason": disruption,
                    "message": message,
                    "lastTransitionTime": now(),
                }
            )
        more = (
            {
                "containerStatuses": [
                    container_status(pod, terminated_state(137, "Error", None, ago))
                ]
            }
            if containers
            else {}
        )
        return self.status(
            pod, phase="Failed", reason=reason, message=message, conditions=conditions, **more
        )

    def disrupt(
        self, pod, reason="PreemptionByScheduler", message="preempted to let somebody else run"
    ):
        """What the scheduler, the eviction API and the taint manager do: a condition, then a
        delete."""
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": reason,
            "message": message,
            "lastTransitionTime": now(),
        }
        self.status(pod, conditions=[condition])
        self.client.delete_if_there("Pod", self.namespace, pod["metadata"]["name"])

    def die(self, pod):
        """The machine of the pod is dead: so is what ran on it, and no deletion is confirmed."""
        self.stuck.add(pod["metadata"]["name"])
        self.forget(pod)

    def forget(self, pod):
        """Kills what runs for the pod."""
        with self._lock:
            body = self._known.get(pod["metadata"]["uid"])
        if body and body is not threading.current_thread():
            body.kill()

    def vanish(self, pod):
        """Somebody deletes it by force: nothing of it is left to be seen."""
        self.forget(pod)
        self.client.delete("Pod", self.namespace, pod["metadata"]["name"], gracePeriodSeconds=0)

    def confirm_deletion(self, pod):
        self.client.delete_if_there(
            "Pod",
            self.namespace,
            pod["metadata"]["name"],
            gracePeriodSeconds=0,
            preconditions={"uid": pod["metadata"]["uid"]},
        )

    def body(self, pod):
        """What runs for the pod: a Node or a coordinator's process."""
        with self._lock:
            return self._known.get(pod["metadata"]["uid"])
