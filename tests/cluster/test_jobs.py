"""What a job's fields do on a cluster, each seen by the script that runs there."""

import json

import pytest
from support import images, jobs, words
from support.kube import wait_until

# Tells what it sees of the pod that it runs in.
TELL = """\
import json
import os
import sys
from pathlib import Path


def run(mini_batch):
    seen = {
        "uid": os.getuid(),
        "home": os.environ["HOME"],
        "writes": sorted(f for f in ("/tmp", os.environ["HOME"], ".") if os.access(f, os.W_OK)),
        "token": os.environ.get("STORE_TOKEN"),
        "gpu": os.environ.get("CUDA_VISIBLE_DEVICES", "none"),
        "arguments": sys.argv[1:],
        "account": Path("/var/run/secrets/kubernetes.io/serviceaccount/token").exists(),
        "ours": [name for name in os.environ if "PARALLELRUN" in name.upper()],
        "mounted": Path("/models/one/model.txt").exists(),
        "python": list(sys.version_info[:2]),
    }
    return [json.dumps(seen, sort_keys=True) for _ in mini_batch]
"""


# Each of the four processes of the node works: the first mini-batches wait for each other.
TOGETHER = """\
import time


def meet():
    folder = Path("/tmp/together")
    folder.mkdir(exist_ok=True)
    (folder / str(os.getpid())).touch()
    while len(list(folder.iterdir())) < 4:
        time.sleep(0.05)
    time.sleep(0.2)


"""


# init() goes on when the file "begin" is in the input's volume.
SLOW_INIT = jobs.SCRIPT.replace(
    "    options, _ = parser.parse_known_args()\n",
    "    options, _ = parser.parse_known_args()\n"
    "    while not (options.data / 'begin').exists():\n"
    "        time.sleep(0.05)\n",
)


def is_ready(pod):
    return any(
        one["type"] == "Ready" and one["status"] == "True"
        for one in pod["status"].get("conditions", [])
    )


def told(out, name):
    return [
        json.loads(line) for line in out.read(f"{name}/output/parallel_run_step.txt").splitlines()
    ]


def test_a_script_authenticates_with_a_secret_and_an_account(space, operator):
    data, out = space.volume("data"), space.volume("out")
    data.write({"in/a": b"1", "in/b": b"2", "side/model.txt": b"model"})
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "store", "namespace": space.name},
        "stringData": {"token": "s3cret"},
    }
    account = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "reader", "namespace": space.name},
    }
    space.kube.apply(secret, account)
    space.code(TELL)
    token = {
        "name": "STORE_TOKEN",
        "valueFrom": {"secretKeyRef": {"name": "store", "key": "token"}},
    }
    manifest = jobs.manifest(
        space.name,
        "tell",
        environment={"image": "newer:1", "env": [token]},
        sideInputs=[
            {"name": "model", "volume": "data", "path": "side", "mountPath": "/models/one"}
        ],
        podTemplate={
            "spec": {"serviceAccountName": "reader", "automountServiceAccountToken": True}
        },
    )
    manifest["spec"]["arguments"] = [
        "--model",
        "$(sideInputs.model)/model.txt",
        "--literal",
        "$$(HOME)",
    ]
    job = space.apply(manifest)
    job.succeeded()
    for seen in told(out, "tell"):
        assert seen["uid"] == 65532
        assert len(seen["writes"]) == 3, seen
        assert seen["token"] == "s3cret"
        assert seen["account"]
        # The mark of what a process starts, and what its children begin with
        # (docs/worker-protocol.md); nothing else is ours.
        assert set(seen["ours"]) <= {"PARALLELRUN_PROCESS", "PARALLELRUN_START"}
        at = seen["arguments"].index("--model")
        assert seen["arguments"][at + 1] == "/models/one/model.txt"
        assert seen["mounted"]
        assert seen["arguments"][at + 2 : at + 4] == ["--literal", "$(HOME)"]
        assert seen["python"] >= [3, 13]


def test_summary_only_with_files_of_the_script(space, operator):
    script = """\
from pathlib import Path


def run(mini_batch):
    for path in mini_batch:
        (Path("outputs") / (Path(path).stem + ".upper")).write_text(Path(path).read_text().upper())
    return mini_batch
"""
    data, out = space.volume("data"), space.volume("out")
    files, _ = jobs.rows(6)
    data.write(files)
    space.code(script)
    job = space.apply(
        jobs.manifest(space.name, "sums", output={"volume": "out", "action": "SummaryOnly"})
    )
    job.succeeded()
    assert [out.read(file) for file in out.files("sums/output/*")] == [
        b"ROW %d" % index for index in range(6)
    ]


def test_gpus_are_given_to_processes(space, operator):
    for node in ("node-0", "node-1"):
        space.kube.kubectl(
            *("patch", "node", node, "--subresource=status", "--type=merge", "-p"),
            '{"status":{"capacity":{"nvidia.com/gpu":"2"},"allocatable":{"nvidia.com/gpu":"2"}}}',
        )
    data, out = space.volume("data"), space.volume("out")
    files, _ = jobs.rows(40)
    data.write(files)
    together = TELL.replace("def run", TOGETHER + "def run", 1)
    space.code(together.replace("    seen", "    meet()\n    seen", 1))
    limits = {"nvidia.com/gpu": 2, "memory": "512Mi"}
    # The device plugin of a real node sets this variable.
    devices = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "GPU-11111111,GPU-22222222"}]
    job = space.apply(
        jobs.manifest(
            space.name,
            "gpus",
            nodeCount=1,
            processCountPerNode=4,
            environment={"image": "newer:1", "env": devices},
            resources={"requests": {"cpu": "100m"}, "limits": limits},
        )
    )
    job.succeeded()
    assert {seen["gpu"] for seen in told(out, "gpus")} == {"GPU-11111111", "GPU-22222222", "none"}
    assert job.status["usage"]["gpuSeconds"] > 0


@pytest.mark.parametrize("user", [0, 1000, None])
def test_any_image_as_any_user(space, operator, user):
    """Debian's own Python of two releases; as ours, as another user, as root where it may be."""
    if user == 0:
        space.kube.kubectl(
            "label",
            "--overwrite",
            "namespace",
            space.name,
            "pod-security.kubernetes.io/enforce=baseline",
        )
    template = {}
    if user is not None:
        security = {"runAsUser": user, "runAsNonRoot": user != 0}
        template = {"podTemplate": {"spec": {"securityContext": security}}}
    data, out = space.volume("data"), space.volume("out")
    data.write({"in/a": b"1"})
    space.code(TELL)
    image = "digits:1" if user == 0 else "newer:1"
    job = space.apply(
        jobs.manifest(space.name, "who", nodeCount=1, environment={"image": image}, **template)
    )
    job.succeeded()
    (seen,) = told(out, "who")
    assert seen["uid"] == (65532 if user is None else user)
    assert len(seen["writes"]) == 3, seen


@pytest.mark.own_cluster
def test_an_image_with_no_python_and_no_c_library(space, operator):
    """One static program: the agent brings all that it needs, and says what the script lacks."""
    job, *_ = space.run("bare", environment={"image": images.PAUSE})
    missing = "ScriptUnusable: python3 is not in the PATH: use an image that has it, or name "
    missing += f"another one in spec.environment.python (the image is {images.PAUSE})"
    told = f"Warning Failed: {missing}"
    job.says("bare Failed <any> 0/2", words.failed(missing), told, limit=120)


def test_scale_while_it_runs(space, operator):
    pace = ["--wait", "go", "--seconds", "0.4"]
    job, data, out, output = space.run("scaled", count=300, arguments=pace, nodeCount=1)
    wait_until(lambda: jobs.marks(out), "the first run()")
    space.kube.kubectl("scale", "prj/scaled", "-n", space.name, "--replicas=2")
    wait_until(
        lambda: len({pod for _, pod, _ in jobs.marks(out)}) == 2,
        lambda: f"two nodes\n{job.tell()}",
    )
    space.kube.kubectl("scale", "prj/scaled", "-n", space.name, "--replicas=1")
    wait_until(lambda: len(job.pods("node", living=True)) == 1, lambda: f"one node\n{job.tell()}")
    data.write(jobs.GO)
    job.succeeded()
    assert out.read("scaled/output/parallel_run_step.txt") == output
    assert job.status["nodes"]["restarts"] == 0
    assert job.status["observedGeneration"] == 3


def test_suspend_and_cancel(space, operator):
    # There is work for minutes, and what is begun ends soon.
    job, _data, out, _output = space.run("held", count=600, arguments=["--seconds", "0.5"])
    wait_until(lambda: jobs.marks(out), "the first run()")
    space.kube.kubectl(
        "patch", "prj", "held", "-n", space.name, "--type=merge", "-p", '{"spec":{"suspend":true}}'
    )
    job.wait_for_phase("Suspended")
    wait_until(lambda: not job.pods(living=True), lambda: f"no pods\n{job.tell()}")
    space.kube.kubectl(
        "patch", "prj", "held", "-n", space.name, "--type=merge", "-p", '{"spec":{"suspend":false}}'
    )
    job.wait_for_phase("Running")
    space.kube.kubectl(
        "patch", "prj", "held", "-n", space.name, "--type=merge", "-p", '{"spec":{"cancel":true}}'
    )
    job.wait_for_phase("Failed")
    assert job.condition("Failed")["reason"] == "Canceled"
    assert out.files("held/output/*") == []
    assert out.files("held/logs/**/*")


def test_a_node_is_ready_once_init_has_ended_and_waiting_for_it_warns_of_nothing(space, operator):
    files, output = jobs.rows(8)
    data, out = space.volume("data"), space.volume("out")
    data.write(files)
    space.code(SLOW_INIT)
    job = space.apply(jobs.manifest(space.name, "slow", arguments=["--wait", "go"]))

    def all_run():
        nodes = [p for p in job.pods("node") if p["status"].get("phase") == "Running"]
        coordinator = job.pod("coordinator")
        return len(nodes) == 2 and coordinator and is_ready(coordinator)

    wait_until(all_run, lambda: f"three running pods\n{job.tell()}")
    assert not any(is_ready(pod) for pod in job.pods("node"))
    assert job.condition("NodesReady")["status"] == "False"
    data.write({"begin": b""})
    job.wait_for_condition("NodesReady", "AllReady")
    events = space.kube.list("events", space.name)
    assert [e["message"] for e in events if e["reason"] == "Unhealthy"] == []
    data.write(jobs.GO)
    job.succeeded()
    assert out.read("slow/output/parallel_run_step.txt") == output
