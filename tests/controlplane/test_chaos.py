"""Two operators over many jobs, while they, the API server and their connections to it are killed
at random: in the end every job is in the right state, there was never a pod too many, and nothing
is left of what was deleted."""

import http.client
import json
import math
import os
import random
import time

import pytest
from support.client import ApiError, Client, eventually
from support.job import spec
from support.kubelet import Kubelet
from support.pods import ended, role
from support.proxy import through
from support.wires import Wires
from waits import Limit

JOBS = int(os.environ.get("CHAOS_JOBS", "40"))
ROUNDS = max(6, JOBS // 10)  # of about 2 s
SEED = int(os.environ.get("CHAOS_SEED", "6"))
AWAY = (ApiError, OSError, http.client.HTTPException)
# What becomes of a job, by its number.
FATES = ("succeeds", "fails", "is canceled", "is suspended and resumed", "is deleted")


def fate(name):
    return FATES[int(name.partition("-")[2]) % len(FATES)]


def last_words(succeeds, reason="TooManyFailures"):
    outcome = "Succeeded" if succeeds else "Failed"
    batches = {
        "total": 20,
        "planned": 20,
        "succeeded": 20 if succeeds else 3,
        "failed": 0 if succeeds else 17,
    }
    return json.dumps(
        {
            "progress": {
                "state": outcome,
                "miniBatches": batches,
                "listingDone": True,
                "verdict": {
                    "outcome": outcome,
                    "reason": "" if succeeds else reason,
                    "message": "17 failed",
                },
            }
        }
    )


class Machine(Kubelet):
    """All pods of the namespace run; coordinators end after a while as their jobs' fates are,
    nodes fail at times."""

    def __init__(self, client, namespace, folder):
        self.rng = random.Random(SEED)  # its own: how often it draws is not the seed's
        self.ends = {}  # uid of a coordinator's pod -> when
        self.too_many = []
        super().__init__(client, namespace, folder)

    def _watch(self):
        while not self._closing.is_set():
            try:
                pods = self.client.list("Pod", self.namespace)
                self.judge(pods)
                for pod in pods:
                    try:
                        self.play(pod)
                    except ApiError:
                        pass  # it changed under us
            except AWAY:
                pass
            self._closing.wait(0.2)

    def judge(self, pods):
        places = {}
        for pod in pods:
            if ended(pod) or pod["metadata"].get("deletionTimestamp"):
                continue
            labels = pod["metadata"]["labels"]
            place = (
                labels["parallelrun.dev/job-uid"],
                role(pod),
                labels.get("parallelrun.dev/node"),
            )
            places.setdefault(place, []).append(pod["metadata"]["name"])
        self.too_many += [names for names in places.values() if len(names) > 1]

    def play(self, pod):
        meta, phase = pod["metadata"], pod.get("status", {}).get("phase")
        if meta.get("deletionTimestamp"):
            self.confirm_deletion(pod)
        elif ended(pod):
            pass
        elif phase == "Pending":
            self.schedule(pod)
            self.running(pod, address="127.0.0.1")
            self.ends[meta["uid"]] = time.monotonic() + self.rng.uniform(2, 12)
        elif self.ends.setdefault(meta["uid"], time.monotonic() + 5) < time.monotonic():
            job = meta["labels"]["parallelrun.dev/job"]
            if role(pod) == "coordinator" and fate(job) == "is canceled":
                # Nobody can tell it so: it looks.
                found = self.client.find("ParallelRunJob", self.namespace, job)
                if found and found["spec"]["cancel"]:
                    self.terminated(pod, 1, message=last_words(False, "Canceled"))
            elif role(pod) == "coordinator":
                succeeds = fate(job) != "fails"
                self.terminated(pod, 0 if succeeds else 1, message=last_words(succeeds))
            elif role(pod) == "node" and self.rng.random() < 0.05:
                self.failed(pod, "Evicted", "The node was low on resource: memory.")
            self.ends[meta["uid"]] = time.monotonic() + 3


def insist(action, within=30):
    """Does something although the API server may be away."""
    limit = Limit(within)
    while True:
        try:
            return action()
        except ApiError as e:
            if e.status in (404, 409, 422) or limit.over():
                raise
        except AWAY:
            if limit.over():
                raise
        time.sleep(0.2)


def wrong(client, namespace):
    """Jobs that are not what their fate says, with what they are."""
    found = {}
    for job in client.list("ParallelRunJob", namespace):
        name = job["metadata"]["name"]
        conditions = {
            c["type"]: c
            for c in job.get("status", {}).get("conditions", [])
            if c["status"] == "True"
        }
        right = {
            "succeeds": "Complete" in conditions,
            "fails": "Failed" in conditions,
            "is canceled": conditions.get("Failed", {}).get("reason") in ("Canceled", None),
            "is suspended and resumed": "Complete" in conditions,
            "is deleted": False,
        }[fate(name)]
        if not right or not {"Complete", "Failed"} & set(conditions):
            found[name] = (fate(name), sorted(conditions), job.get("status", {}).get("phase"))
    return found


@pytest.fixture
def wires(plane):
    made = Wires(plane)
    yield made
    made.close()


def test_two_operators_and_random_kills(
    plane, admin, namespace, operators, operator_user, no_leader, wires, tmp_path
):
    if "kube-apiserver" not in plane.processes:
        pytest.skip("the control plane was not started by this test run")
    rng = random.Random(SEED)
    print("CHAOS_SEED", SEED)
    for kind, body in (
        (
            "ConfigMap",
            {"metadata": {"name": "code"}, "data": {"score.py": "def run(mini_batch): ..."}},
        ),
        (
            "PersistentVolumeClaim",
            {
                "metadata": {"name": "results"},
                "spec": {
                    "accessModes": ["ReadWriteMany"],
                    "resources": {"requests": {"storage": "1Gi"}},
                },
            },
        ),
    ):
        admin.create(kind, namespace, body)
    flags = [
        "--leader-elect",
        "--leader-lease-duration=3s",
        "--leader-renew-deadline=2s",
        "--leader-retry-period=500ms",
    ]
    user = through(wires.url, operator_user, tmp_path / "wired")
    pair = [operators(*flags, level="info", user=user) for _ in range(2)]
    for operator in pair:
        operator.start(wait=False)
    machine = Machine(Client(plane.kubeconfig), namespace, tmp_path / "pods")
    try:
        names = [f"job-{number}" for number in range(JOBS)]
        for name in names:
            admin.create("ParallelRunJob", namespace, {"metadata": {"name": name}, "spec": spec()})
        wishes = [name for name in names if fate(name) not in ("succeeds", "fails")]
        rng.shuffle(wishes)
        at_once = math.ceil(len(wishes) / ROUNDS)
        resume = []
        for number in range(ROUNDS + 1):  # the last resumes what the one before it suspended
            if rng.random() < 0.5:
                print("connections cut:", wires.cut())
                time.sleep(rng.uniform(0, 0.5))
            operator = rng.choice(pair)
            operator.kill()
            time.sleep(rng.uniform(0, 0.5))
            operator.start(wait=False)
            if number in (ROUNDS // 3, 2 * ROUNDS // 3):
                plane.stop_process("kube-apiserver")
                time.sleep(rng.uniform(0, 1))
                plane.start_again("kube-apiserver")
            for name in resume[:]:
                insist(
                    lambda name=name: admin.merge(
                        "ParallelRunJob", namespace, name, {"spec": {"suspend": False}}
                    )
                )
                resume.remove(name)
            for name in [wishes.pop() for _ in range(min(len(wishes), at_once))]:
                if fate(name) == "is deleted":
                    insist(
                        lambda name=name: admin.delete_if_there("ParallelRunJob", namespace, name)
                    )
                else:
                    field = "cancel" if fate(name) == "is canceled" else "suspend"
                    insist(
                        lambda name=name, field=field: admin.merge(
                            "ParallelRunJob", namespace, name, {"spec": {field: True}}
                        )
                    )
                    if field == "suspend":
                        resume.append(name)
            time.sleep(rng.uniform(0.5, 2.5))

        def settled():
            # As their Deployment would: a leader that lost its lease on a busy machine has ended.
            for operator in pair:
                if operator.process.poll() is not None:
                    operator.start(wait=False)
            return wrong(admin, namespace) == {}

        eventually(
            settled,
            within=180,
            every=1,
            what=lambda: f"seed {SEED}, these as they should be: {wrong(admin, namespace)}",
        )
        assert machine.too_many == []
        eventually(
            lambda: [p for p in admin.list("Pod", namespace) if not ended(p)] == [], within=30
        )
        admin.request("DELETE", admin.path("ParallelRunJob", namespace))
        for kind in ("Pod", "Secret", "Service"):
            eventually(lambda kind=kind: admin.list(kind, namespace) == [], within=60, every=0.5)
        assert machine.problems == []
    finally:
        machine.close()
