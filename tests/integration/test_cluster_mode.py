"""Coordinator and agents as they run in pods: configuration files, TLS, control, last words."""

import os
import shutil
import signal
import socket
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from support import processes
from support.cluster import ClusterJob, make_bundle, on_host
from support.command import PATIENCE
from waits import wait_until

# Shows its environment, so that what must not be there is seen.
SHOW = """
import os
from steps import note, wait_for

def run(mini_batch):
    wait_for("go")
    note("environment", " ".join(sorted(os.environ)))
    note("variable", os.environ.get("LD_LIBRARY_PATH", "-"))
    return [open(path).read() for path in mini_batch]
"""

HELD = """
from steps import note, wait_for

def run(mini_batch):
    note("begun", mini_batch[0])
    wait_for("go")
    return [open(path).read() for path in mini_batch]
"""


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runtime") / "image"
    make_bundle(folder)
    return folder


def test_the_bundle_carries_no_cpprestsdk(bundle):
    """It stays where a client speaks to the API server, and to a coordinator from the command."""
    libraries = {path.name.split(".so")[0] for path in (bundle / "lib").iterdir()}
    assert {"ld", "libssl", "libcrypto"} <= libraries
    assert {"libcpprest", "libbrotlidec", "libbrotlicommon"} & libraries == set()


@pytest.fixture
def cluster(work):
    work.script()
    return ClusterJob(work)


@pytest.mark.parametrize("archive", [False, True])
def test_a_job_of_two_nodes(work, bundle, archive):
    """From the installed bundle, through its own loader, with the code as a ConfigMap mounts it."""
    target = work.root / "target"
    loader = [bundle / "lib" / "ld.so", "--library-path", bundle / "lib"]
    install = work.start(
        *loader[1:], bundle / "bin" / "parallelrun-agent", "install", target, program=loader[0]
    )
    assert install.wait_only().code == 0, install.output
    assert os.access(target / "bin" / "parallelrun-agent", os.X_OK)

    work.script(SHOW)
    rows = work.files(20)
    cluster = ClusterJob(work, target)
    cluster.mount_code(archive)
    env = [{"name": "GREETING", "value": "$(OTHER) hello"}]  # the kubelet's to fill in
    environment = {**cluster.job()["spec"]["environment"], "env": env}
    coordinator = cluster.start_coordinator(spec={"environment": environment})
    nodes = [cluster.start_node(index) for index in range(2)]
    cluster.wait_for_nodes(0, 1)
    work.make("go")
    assert coordinator.wait_only().code == 0, coordinator.output
    for node in nodes:
        assert node.wait_only().code == 0, node.output
    assert work.rows() == rows
    words = cluster.words()
    assert set(words) == {"progress"}
    assert words["progress"]["verdict"]["reason"] == "Complete"
    assert words["progress"]["output"]["rows"] == 20
    assert "nodes" not in words["progress"]
    assert "registered with epoch 1" in work.log_text("sys/node/*/_main.txt")
    assert set(work.noted("variable")) == {"-"}
    assert "GREETING" not in work.noted("environment")[0]


def test_who_may_read_what(cluster):
    cluster.work.files(1)
    coordinator = cluster.start_coordinator()
    cluster.wait_for(lambda progress: True, "it listens")

    def plain(path):
        url = f"http://127.0.0.1:{cluster.metrics_port}{path}"
        try:
            with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, ""

    assert plain("/healthz")[0] == 200
    assert plain("/readyz")[0] == 200
    crowd = [socket.create_connection(("127.0.0.1", cluster.metrics_port)) for _ in range(200)]
    assert plain("/healthz")[0] == 200
    assert plain("/readyz")[0] == 200
    for silent in crowd:
        with silent:
            assert silent.recv(1) == b"", "it is closed after a second"
    status, text = plain("/metrics")
    assert status == 200 and "parallelrun_mini_batches" in text
    for path in ("/v1/progress", "/v1/control", "/", "/v1/nodes/0/register"):
        assert plain(path)[0] == 404, path
    assert cluster.call("GET", "/v1/progress", role=None)[0] == 401
    assert cluster.call("GET", "/v1/progress", role="viewer")[0] == 200
    assert cluster.call("GET", "/metrics", role=None)[0] == 401
    assert cluster.call("PUT", "/v1/control", {"drain": True}, role="viewer")[0] == 403
    assert cluster.call("PUT", "/v1/control", {"nodes": 3})[0] == 400
    coordinator.send(signal.SIGTERM)
    assert coordinator.wait_only().code == 3
    assert "signal" in cluster.words()["ended"]


def test_scale_down(cluster):
    cluster.work.script(
        "import os\n"
        "from steps import wait_for\n"
        "def run(mini_batch):\n"
        "    wait_for('go-' + os.path.basename(os.path.dirname(os.getcwd())))\n"
        "    return [open(path).read() for path in mini_batch]\n"
    )
    rows = cluster.work.files(6)
    cluster.mount_code()
    coordinator = cluster.start_coordinator()
    first = cluster.start_node(0)
    second = cluster.start_node(1)
    cluster.wait_for(lambda p: [node["held"] > 0 for node in p["nodes"]] == [True] * 2, "both work")
    assert cluster.progress()["controlGeneration"] == 0
    progress = cluster.control(generation=7, nodeCount=1)
    assert progress["controlGeneration"] == 7
    # It finishes what runs, hands back the rest, and leaves.
    cluster.work.make("go-pod-2")
    assert second.wait_only().code == 3, second.output
    cluster.wait_for_nodes(0)
    cluster.work.make("go-pod-1")
    assert coordinator.wait_only().code == 0, coordinator.output
    assert first.wait_only().code == 0, first.output
    assert cluster.work.rows() == rows


def test_a_late_control_changes_nothing_and_no_nodes_pause(cluster):
    cluster.work.script(HELD)
    rows = cluster.work.files(3)
    cluster.mount_code()
    coordinator = cluster.start_coordinator()
    cluster.wait_for(lambda progress: True, "it listens")
    cluster.control(generation=9, nodeCount=0)
    early = cluster.start_node(0)
    assert early.wait_only().code == 3, early.output
    progress = cluster.control(generation=8, nodeCount=5)
    assert progress["controlGeneration"] == 9
    assert progress["state"] == "Starting"
    cluster.control(generation=10, nodeCount=1)
    cluster.work.make("go")
    node = cluster.start_node(0)
    assert coordinator.wait_only().code == 0, coordinator.output
    assert node.wait_only().code == 0, node.output
    assert cluster.work.rows() == rows


@pytest.mark.parametrize("signo", [signal.SIGKILL, signal.SIGTERM])
def test_the_next_epoch_goes_on_with_the_nodes_and_the_thresholds(cluster, signo):
    cluster.work.script(
        "from steps import first, note, wait_for\n"
        "def run(mini_batch):\n"
        "    text = open(mini_batch[0]).read()\n"
        "    if first('failed'):\n"
        "        note('lost', text)\n"
        "        raise ValueError('no')\n"
        "    if not first('succeeded'): wait_for('go')\n"
        "    return [text]\n"
    )
    rows = cluster.work.files(6)
    cluster.mount_code()
    spec = {"runMaxTry": 1, "errorThreshold": 0}
    coordinator = cluster.start_coordinator(spec={**spec})
    cluster.wait_for(lambda progress: True, "it listens")
    # One failed item is above the threshold of the configuration, and below this one.
    cluster.control(generation=2, errorThreshold=1)
    nodes = [cluster.start_node(index) for index in range(2)]
    cluster.wait_for(
        lambda p: p["miniBatches"]["failed"] == 1 and p["miniBatches"]["succeeded"] == 1, "two done"
    )
    coordinator.send(signo)
    assert coordinator.wait_only().code == (3 if signo == signal.SIGTERM else -9)
    # The same uid goes on, with a configuration of before the change, and whatever ifExists is.
    coordinator = cluster.start_coordinator(spec={**spec})
    progress = cluster.wait_for_nodes(0, 1)
    assert (progress["epoch"], progress["controlGeneration"]) == (2, 0)
    assert progress["generation"] == 1
    cluster.work.make("go")
    assert coordinator.wait_only().code == 0, coordinator.output
    for node in nodes:
        assert node.wait_only().code == 0, node.output
    [lost] = cluster.work.noted("lost")
    assert cluster.work.rows() == [row for row in rows if row != lost]
    assert cluster.words()["progress"]["verdict"]["reason"] == "CompletedWithFailures"


def test_a_finished_run_stays_finished(cluster):
    cluster.work.files(3)
    cluster.mount_code()
    coordinator = cluster.start_coordinator()
    node = cluster.start_node(0)
    assert coordinator.wait_only().code == 0, coordinator.output
    assert node.wait_only().code == 0
    before = cluster.work.output.stat()

    for uid, if_exists in (("uid-1", "Fail"), ("uid-2", "Resume"), ("uid-3", "Resume")):
        output = {"volume": "out", "ifExists": if_exists}
        again = cluster.start_coordinator(uid=uid, spec={"output": output})
        assert again.wait_only().code == 0, again.output  # without a node
        words = cluster.words()["progress"]
        assert (words["state"], words["output"]["rows"]) == ("Succeeded", 3)
    assert cluster.work.output.stat().st_ino == before.st_ino

    refused = cluster.start_coordinator(uid="uid-4")
    assert refused.wait_only().code == 2
    assert "finished already" in cluster.words()["error"]


def test_the_output_of_a_job_that_is_not_known_to_be_over(cluster):
    """Killed for good, as with its pods. The operator starts another job on the same volume only
    once that one is over; one that reaches the folder some other way cannot know."""
    cluster.work.files(2)
    cluster.mount_code()

    def start(uid, claim="o"):
        volumes = [{**volume} for volume in cluster.job()["spec"]["volumes"]]
        volumes[1]["persistentVolumeClaim"] = {"claimName": claim}
        state = {"volume": "out", "path": f"{uid}/state"}
        return cluster.start_coordinator(uid, spec={"volumes": volumes, "state": state})

    def serve_and_die(uid):
        coordinator = start(uid)
        coordinator.wait_for(cluster.progress, "it serves")
        coordinator.send(signal.SIGKILL)
        coordinator.wait_only()

    def expect_refused(uid, owner, **options):
        assert start(uid, **options).wait_only().code == 2
        error = cluster.words()["error"]
        assert f"job team/job (uid {owner}," in error
        assert "parallelrun-claim and start again" in error

    serve_and_die("uid-1")
    expect_refused("uid-2", "uid-1", claim="elsewhere")
    serve_and_die("uid-1")  # its own restart
    serve_and_die("uid-3")
    expect_refused("uid-1", "uid-3")  # what the operator knew is older than that


def test_a_new_job_on_the_same_folders_goes_on(cluster):
    """After one that has failed: with other thresholds, and not with other mini-batches."""
    cluster.work.script(
        "from steps import note\n"
        "def run(mini_batch):\n"
        "    text = open(mini_batch[0]).read()\n"
        "    note('calls', text)\n"
        "    if text == 'row 9': raise ValueError('no')\n"
        "    return [text]\n"
    )
    rows = cluster.work.files(10)
    cluster.mount_code()
    strict = {"runMaxTry": 1, "errorThreshold": 0}
    coordinator = cluster.start_coordinator(nodes=1, spec=strict)
    node = cluster.start_node(0)
    assert coordinator.wait_only().code == 1, coordinator.output
    assert node.wait_only().code in (0, 1)
    kept = cluster.words()["progress"]["miniBatches"]["succeeded"]
    tried = len(cluster.work.noted("calls"))

    resume = {"output": {"volume": "out", "ifExists": "Resume"}}
    other = cluster.start_coordinator(uid="uid-2", spec={**resume, "miniBatchSize": "2"})
    assert other.wait_only().code == 2
    assert "spec.miniBatchSize: 1 -> 2" in cluster.words()["error"]
    assert "output.ifExists: Overwrite" in cluster.words()["error"]

    coordinator = cluster.start_coordinator(
        uid="uid-3", nodes=1, spec={**resume, "runMaxTry": 2}, codeDigest="78"
    )
    node = cluster.start_node(0)
    assert coordinator.wait_only().code == 0, coordinator.output
    assert node.wait_only().code == 0, node.output
    progress = cluster.words()["progress"]
    assert progress["generation"] == 2
    assert "the code" in progress["warning"]
    assert cluster.work.rows() == rows[:9]
    # What was kept is not run again, and what failed has fresh tries.
    calls = cluster.work.noted("calls")[tried:]
    assert len(calls) == 10 - kept + 1
    assert calls.count("row 9") == 2


def test_a_canceled_job_is_continued_by_another_one(cluster):
    cluster.work.script(HELD)
    rows = cluster.work.files(3)
    cluster.mount_code()
    coordinator = cluster.start_coordinator(nodes=1)
    node = cluster.start_node(0)
    coordinator.wait_for(lambda: cluster.work.noted("begun"), "run() has begun")
    cluster.control(cancel=True)
    assert coordinator.wait_only().code == 1, coordinator.output
    assert node.wait_only().code in (0, 1)
    assert cluster.words()["progress"]["verdict"]["reason"] == "Canceled"
    assert not cluster.work.output.exists()
    cluster.work.make("go")
    resume = {"output": {"volume": "out", "ifExists": "Resume"}}
    coordinator = cluster.start_coordinator(uid="uid-2", nodes=1, spec=resume)
    node = cluster.start_node(0)
    assert coordinator.wait_only().code == 0, coordinator.output
    assert node.wait_only().code == 0, node.output
    assert cluster.work.rows() == rows


def test_what_cannot_start_says_why(cluster):
    cluster.work.files(1)
    wrong = cluster.start_coordinator(volumes={"data": str(cluster.work.data)})
    assert wrong.wait_only().code == 2
    assert '"out"' in cluster.words()["error"] or "out" in cluster.words()["error"]
    (cluster.secret / "tls.key").write_text("no key")
    wrong = cluster.start_coordinator()
    assert wrong.wait_only().code == 2
    assert "tls.key" in cluster.words()["error"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a host name of its own")
def test_an_oom_killed_pod_fails_its_only_mini_batch(cluster):
    cluster.work.script(HELD)
    rows = cluster.work.files(1)
    cluster.mount_code()
    coordinator = cluster.start_coordinator(nodes=1)
    node = cluster.start_node(0, before=on_host("j-1a2b3-node-0-5"))
    coordinator.wait_for(lambda: cluster.work.noted("begun"), "run() has begun")
    node.send(signal.SIGKILL)
    node.wait_only()
    pod = {"node": 0, "incarnation": 5, "reason": "OOMKilled", "exitCode": 137}

    def told():
        return cluster.control(podEnds=[pod])["errors"]

    wait_until(told, "the end is taken")
    error = told()[0]
    assert (error["kind"], error["count"]) == ("OOMKilled", 1)
    cluster.work.make("go")
    node = cluster.start_node(0)
    assert coordinator.wait_only().code == 0, coordinator.output
    assert node.wait_only().code == 0
    assert cluster.work.rows() == rows


def test_two_agents_of_one_node_do_not_take_turns(cluster):
    cluster.work.script(HELD)
    cluster.work.files(4)
    cluster.mount_code()
    coordinator = cluster.start_coordinator(nodes=1)
    farewell = cluster.work.root / "farewell"
    old = cluster.start_node(0, farewell=farewell)
    cluster.wait_for_nodes(0)
    new = cluster.start_node(0)
    assert old.wait_only().code == 1, old.output
    assert "another agent has taken the place of node 0's" in farewell.read_text()
    cluster.work.make("go")
    assert coordinator.wait_only().code == 0, coordinator.output
    assert new.wait_only().code == 0, new.output


def test_an_agent_without_a_coordinator_leaves_with_words(cluster):
    cluster.mount_code()
    farewell = cluster.work.root / "farewell"
    node = cluster.start_node(0, "--away-limit", "1", farewell=farewell)
    assert node.wait_only().code == 1
    assert "no coordinator answered for" in farewell.read_text()
    assert f"https://localhost:{cluster.port}" in farewell.read_text()
    assert farewell.read_text().count("\n") == 1


def test_code_that_cannot_be_used_is_named(cluster):
    cluster.code.mkdir()
    (cluster.code / "code.tar.gz").write_text("no archive")
    farewell = cluster.work.root / "farewell"
    node = cluster.start_node(0, farewell=farewell)
    assert node.wait_only().code == 2
    assert "code.tar.gz" in farewell.read_text()


def test_an_image_without_python_is_named_at_once(cluster):
    cluster.work.files(2)
    cluster.mount_code()
    environment = {"image": "registry.example/bare:1", "python": "python3.99"}
    coordinator = cluster.start_coordinator(nodes=1, spec={"environment": environment})
    node = cluster.start_node(0)
    assert coordinator.wait_only().code == 1
    assert node.wait_only().code in (0, 1)
    message = cluster.words()["progress"]["verdict"]["message"]
    for word in ("python3.99", "registry.example/bare:1", "spec.environment.python"):
        assert word in message


@pytest.mark.parametrize("version", ["3.6", "3.7"])
def test_an_old_python_is_named(cluster, version):
    found = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python{version}"))
    if not found:
        pytest.skip(f"there is no Python {version} here")
    cluster.work.files(2)
    cluster.mount_code()
    environment = {"image": "registry.example/old:1", "python": str(found[0])}
    coordinator = cluster.start_coordinator(nodes=1, spec={"environment": environment})
    node = cluster.start_node(0)
    assert coordinator.wait_only().code == 1, coordinator.output
    assert node.wait_only().code in (0, 1)
    assert (
        f"is Python {version}, and ParallelRun needs 3.8"
        in (cluster.words()["progress"]["verdict"]["message"])
    )


def test_nobody_owns_a_coordinator(cluster):
    cluster.work.files(2)
    coordinator = cluster.start_coordinator(ownerlessSeconds=1)
    assert coordinator.wait_only().code == 3
    assert "ownerlessSeconds" in cluster.words()["ended"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a PID namespace of its own")
def test_as_process_one(cluster):
    """The agent is process 1: orphans are reaped, SIGTERM drains, and nothing outlives it.

    A process is given two of these mini-batches at most, so that some are left after the drain.
    """
    if not shutil.which("unshare"):
        pytest.skip("there is no unshare")
    cluster.work.script(
        "import os, subprocess, time\n"
        "from steps import note, wait_for\n"
        "def zombies():\n"
        "    count = 0\n"
        "    for process in filter(str.isdigit, os.listdir('/proc')):\n"
        "        try: count += open(f'/proc/{process}/stat').read().split()[2] == 'Z'\n"
        "        except OSError: pass\n"
        "    return count\n"
        "def run(mini_batch):\n"
        "    for _ in range(5): subprocess.run(['sh', '-c', 'true & exit'])\n"
        "    if os.getppid() == 1: subprocess.Popen(['sleep', '1000'], start_new_session=True)\n"
        "    end = time.monotonic() + 30\n"
        "    left = zombies()\n"  # asked once: what ends a moment later is reaped a moment later
        "    while os.getppid() == 1 and left and time.monotonic() < end:\n"
        "        time.sleep(0.01)\n"
        "        left = zombies()\n"
        "    note('zombies', left)\n"
        "    note('parent', os.getppid())\n"
        "    if open(mini_batch[0]).read() == 'row 3': note('begun', 1), wait_for('go')\n"
        "    return [open(path).read() for path in mini_batch]\n"
    )
    rows = cluster.work.files(12)
    cluster.mount_code()
    coordinator = cluster.start_coordinator(nodes=1)
    space = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    node = cluster.start_node(0, before=space)
    coordinator.wait_for(lambda: cluster.work.noted("begun"), "the fourth one has begun")
    (agent,) = [p for p in processes.running() if "--log-json" in p.words and p.role == "agent"]
    agent.kill(signal.SIGTERM)
    node.wait_for_text("draining: running mini-batches have")
    cluster.work.make("go")
    assert node.wait_only().code == 3, node.output
    assert set(cluster.work.noted("parent")) == {"1"}
    assert set(cluster.work.noted("zombies")) == {"0"}
    wait_until(
        lambda: not [p for p in processes.running() if "sleep" in p.words], "nothing is left"
    )
    node = cluster.start_node(0)
    assert coordinator.wait_only().code == 0, coordinator.output
    assert node.wait_only().code == 0, node.output
    assert cluster.work.rows() == rows


@pytest.mark.skipif(os.geteuid() != 0, reason="needs host names of its own")
def test_a_replaced_pod_does_not_come_back(cluster):
    """Neither a coordinator's, which would supersede its successor, nor a node's."""
    cluster.work.script(HELD)
    rows = cluster.work.files(3)
    cluster.mount_code()
    coordinator = cluster.start_coordinator(nodes=1, before=on_host("j-1a2b3-coordinator-7"))
    node = cluster.start_node(0, before=on_host("j-1a2b3-node-0-9"))
    cluster.wait_for_nodes(0)
    old = cluster.start_coordinator(
        before=on_host("j-1a2b3-coordinator-3"),
        listen={"address": "127.0.0.1:0"},
        metricsListen=None,
    )
    assert old.wait_only().code == 4
    assert "pod 7" in cluster.words()["error"]
    old = cluster.start_node(0, before=on_host("j-1a2b3-node-0-8"))
    assert old.wait_only().code == 1
    # The end of the old pod is not that of the new one.
    pod = {"node": 0, "incarnation": 8, "reason": "OOMKilled", "exitCode": 137}
    nodes = cluster.control(podEnds=[pod])["nodes"]
    assert [(one["registered"], one["pod"]) for one in nodes] == [(True, 9)]
    cluster.work.make("go")
    assert coordinator.wait_only().code == 0, coordinator.output
    assert node.wait_only().code == 0, node.output
    assert cluster.work.rows() == rows


@pytest.fixture
def memory_group():
    """A memory cgroup of 256 MiB; its folder."""
    group = Path(f"/sys/fs/cgroup/memory/parallelrun-test-{os.getpid()}")
    if not (group.parent / "memory.limit_in_bytes").exists():
        pytest.skip("there is no cgroup v1 to write to")
    try:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(str(256 << 20))
    except OSError as error:
        pytest.skip(f"no cgroup can be made: {error}")
    yield group
    wait_until(lambda: not (group / "cgroup.procs").read_text(), "the group is empty")
    group.rmdir()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a cgroup and a PID namespace of its own")
def test_a_process_goes_before_the_container_does(cluster, memory_group):
    cluster.work.script(
        "import time\n"
        "from steps import wait_for\n"
        f"GROUP = '{memory_group}'\n"
        "def held():\n"
        "    stat = dict(line.split() for line in open(GROUP + '/memory.stat'))\n"
        "    cache = int(stat['total_inactive_file']) + int(stat['total_active_file'])\n"
        "    return int(open(GROUP + '/memory.usage_in_bytes').read()) - cache\n"
        "def run(mini_batch):\n"
        "    text = open(mini_batch[0]).read()\n"
        "    kept = []\n"
        # Into the last 16 MiB, where the agent ends it when it looks; at the end of them the kernel
        # would.
        "    while text == 'row 1':\n"
        "        kept.append(bytearray(b'x') * (1 << 20))\n"
        "        if held() > 244 << 20: wait_for('never')\n"
        "    return [text]\n"
    )
    rows = cluster.work.files(6)
    cluster.mount_code()
    coordinator = cluster.start_coordinator(nodes=1, spec={"runMaxTry": 2})
    enter = f'echo $$ > {memory_group}/cgroup.procs && exec "$@"'
    space = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    node = cluster.start_node(0, before=["sh", "-c", enter, "sh", *space])
    assert coordinator.wait_only().code == 0, coordinator.output + node.output
    assert node.wait_only().code == 0, node.output
    assert cluster.work.rows() == rows[:1] + rows[2:]
    errors = cluster.words()["progress"]["errors"]  # alike, but for how much was in use
    assert sum(error["count"] for error in errors) == 2
    for error in errors:
        assert "the container's limit is 256 MiB" in error["message"]
        assert "spec.resources.limits.memory" in error["message"]
    assert "oom_kill 0" in (memory_group / "memory.oom_control").read_text()
