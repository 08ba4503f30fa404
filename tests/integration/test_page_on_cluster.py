"""parallelrun page JOB: the live page of a job on a cluster.

The coordinator is a real one, with TLS, as its pod starts it. In place of kubectl stands a program
that forwards as kubectl does (tests/cluster has the real one).
"""

import http.client
import json
import re
import signal
import sys

import browser
import pytest
from browser import Browser
from support.cluster import ClusterJob, token
from support.command import PATIENCE

needs_browser = pytest.mark.skipif(
    browser.PROGRAM is None or browser.AXE is None, reason="script/bootstrap test installs them"
)

HELD = """
from steps import wait_for

def run(mini_batch, context):
    if context.minibatch_index == 2:
        raise ValueError("<b>bold</b>")
    wait_for("go" if context.minibatch_index < 5 else "rest")
    return [open(path).read() for path in mini_batch]
"""

KUBECTL = """
import json, os, socket, sys, threading
from pathlib import Path

home, words = Path(HOME), sys.argv[1:]
with open(home / "words", "a") as file:
    file.write(json.dumps(words) + "\\n")

def fail(text):
    print(text, file=sys.stderr, flush=True)
    os._exit(1)

def give(name):
    path = home / name
    if not path.exists():
        fail(f'Error from server (NotFound): {name} not found')
    print(path.read_text(), end="")

def forward():
    def carry(source, target):
        try:
            while data := source.recv(65536):
                target.sendall(data)
        except OSError:
            pass
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    listening = socket.create_server(("127.0.0.1", 0))
    print(f"Forwarding from 127.0.0.1:{listening.getsockname()[1]} -> 8443", flush=True)
    while True:
        near, _ = listening.accept()
        print("Handling connection", flush=True)
        try:
            far = socket.create_connection(("127.0.0.1", int((home / "port").read_text())))
        except OSError:
            fail("error: lost connection to pod")
        threading.Thread(target=carry, args=(near, far)).start()
        threading.Thread(target=carry, args=(far, near)).start()

if (home / "refuses").exists() and (home / "refuses").read_text() in words:
    what = "secrets" if "get" in words else "pods/portforward"
    who = "Error from server (Forbidden)" if "get" in words else "error: error upgrading connection"
    fail(who + f': {what} "job" is forbidden: User "viewer" cannot get resource')
elif "get" in words:
    give("secret" if any(word.startswith("secret/") for word in words) else "job")
else:
    try:
        int((home / "port").read_text())
    except (OSError, ValueError):
        fail("error: unable to forward port because pod is not running. Current status=Pending")
    forward()
"""


class Cluster:
    """A job whose third mini-batch fails and whose others wait, and what kubectl says of it."""

    UID = "0a1b2c3d-0000-4000-8000-000000000001"

    def __init__(self, work):
        self.work = work
        work.script(HELD)
        self.rows = work.files(12)
        self.job = ClusterJob(work)
        self.job.mount_code()
        self.home = work.root / "cluster"
        self.home.mkdir()
        folder = work.root / "bin"
        folder.mkdir()
        program = folder / "kubectl"
        program.write_text(f"#!{sys.executable}\nHOME = {str(self.home)!r}\n{KUBECTL}")
        program.chmod(0o755)
        work.environment["PATH"] = f"{folder}:/usr/bin:/bin"
        self.secret = f"{token('viewer')} {(self.job.secret / 'ca.crt').read_text()}"
        (self.home / "secret").write_text(self.secret)
        self.become("Running")
        self.started = []

    def become(self, phase):
        status = {"phase": phase, "logs": "volume out, logs"}
        job = {"metadata": {"name": "job", "uid": self.UID}, "status": status}
        (self.home / "job.new").write_text(json.dumps(job))
        (self.home / "job.new").rename(self.home / "job")

    def start(self):
        """The coordinator; the port forwarded leads to it."""
        spec = {"allowedFailedCount": 1, "runMaxTry": 1}
        coordinator = self.job.start_coordinator(spec=spec, page=True)
        self.started.append(coordinator)
        self.job.wait_for(lambda progress: True, "it answers")
        (self.home / "port").write_text(str(self.job.port))
        return coordinator

    def page(self, *words):
        command = self.work.start("page", "job", *words)
        self.started.append(command)
        return command

    def close(self):
        """Ctrl-C for the command, as its user ends it."""
        for command in reversed(self.started):
            if not command.ended:
                command.send(signal.SIGINT)
                command.wait_only()

    def words(self):
        return [json.loads(line) for line in (self.home / "words").read_text().splitlines()]


class Shown:
    def __init__(self, command):
        self.command = command
        command.wait_for_text("page: http")
        self.url = re.search(r"page: (\S+)", command.output)[1]
        self.port = int(re.search(r":(\d+)/", self.url)[1])
        self.token = self.url.partition("#t=")[2]

    def ask(self, path, bearer=""):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        connection.request("GET", path, headers={"Authorization": f"Bearer {bearer}"})
        return connection.getresponse()

    def first_event(self):
        """The first document; None while the coordinator is out of reach."""
        try:
            answer = self.ask("/v1/events", self.token)
            for line in answer:
                if line.startswith(b"data: "):
                    return json.loads(line[6:])
        except (OSError, http.client.HTTPException):
            return None


@pytest.fixture
def cluster(work):
    cluster = Cluster(work)
    yield cluster
    cluster.close()


def test_the_page_of_a_job_on_a_cluster(work, cluster):
    coordinator = cluster.start()
    nodes = [cluster.job.start_node(index) for index in range(2)]
    shown = Shown(cluster.page("-n", "team", "--context", "lab"))
    assert shown.token == token("viewer")
    assert b"page.js" in shown.ask("/").read()
    assert shown.ask("/v1/events").status == 401
    assert shown.ask("/v1/control", shown.token).status in (401, 403, 404, 405)
    assert shown.first_event()["live"] is True
    # It asks as its user has said, for this job alone, and no secret stands on a command line.
    for words in cluster.words():
        assert words[:2] == ["--context=lab", "--namespace=team"]
        assert token("viewer") not in " ".join(words)
    first, second, third = cluster.words()
    assert first[2:4] == ["get", "parallelrunjobs.parallelrun.dev/job"]
    assert second[2:4] == ["get", "secret/job-0a1b2-access"]
    assert third[2] == "port-forward" and "service/job-0a1b2-coordinator" in third
    assert "--address=127.0.0.1" in third

    work.make("go")
    work.make("rest")
    assert coordinator.wait_only().code == 0, coordinator.output
    for node in nodes:
        node.wait_only()
    cluster.become("Succeeded")
    shown.first_event()  # a browser goes on asking, so that kubectl finds the pod gone
    result = shown.command.wait_only()
    assert result.code == 0
    assert "job job is over: Succeeded" in result.output
    assert "report.html in its log folder, volume out, logs" in result.output


def test_another_coordinator_is_found_under_the_same_address(work, cluster):
    coordinator = cluster.start()
    shown = Shown(cluster.page())
    assert shown.first_event()["live"] is True
    coordinator.send(signal.SIGKILL)
    coordinator.wait_only()
    shown.command.wait_for(
        lambda: shown.first_event() is None and "out of reach" in shown.command.output,
        "it says that the coordinator is out of reach",
    )
    cluster.start()
    shown.command.wait_for(lambda: shown.first_event(), "events come again")
    assert "within reach again" in shown.command.output
    assert shown.command.output.count("page: http") == 1


def test_it_waits_for_a_coordinator_that_is_not_there_yet(work, cluster):
    cluster.become("Pending")
    (cluster.home / "secret").write_text("")
    command = cluster.page()
    command.wait_for_text("job job is Pending: waiting for its coordinator")
    (cluster.home / "secret").write_text(cluster.secret)
    command.wait_for_text("pod is not running. Current status=Pending")
    cluster.start()
    assert Shown(command).first_event()["live"] is True


@pytest.mark.parametrize("what", ["job", "secret", "forward", "over", "kubectl"])
def test_what_it_cannot_show_it_says(work, cluster, what):
    words = {
        "job": "(NotFound)",
        "over": "is over: Failed",
        "kubectl": "kubectl is not on the path",
    }
    words |= {"secret": "needs the right to get Secret job-0a1b2-access"}
    if what == "job":
        (cluster.home / "job").unlink()
    elif what == "secret":
        (cluster.home / "refuses").write_text("secret/job-0a1b2-access")
    elif what == "forward":
        cluster.start()
        (cluster.home / "refuses").write_text("port-forward")
    elif what == "over":
        cluster.become("Failed")
    else:
        work.environment["PATH"] = str(work.root)
    result = cluster.page().wait_only(60)
    assert result.code == 2, result
    assert words.get(what, "pods/portforward") in result.output
    assert "page: http" not in result.output


@needs_browser
def test_a_browser_sees_it_through_the_tunnel(work, cluster, tmp_path):
    coordinator = cluster.start()
    nodes = [cluster.job.start_node(index) for index in range(2)]
    shown = Shown(cluster.page())
    with Browser(tmp_path / "browser") as opened:
        tab = opened.open(shown.url, width=1280)
        state = "document.querySelector('.state').textContent"
        tab.wait_for(f"document.querySelector('.state') && {state}.includes('Running')")
        work.make("go")
        tab.wait_for("document.querySelector('.errors details') !== null")
        work.make("rest")
        tab.wait_for(f"{state}.includes('Succeeded')")
        assert "11 succeeded" in tab.text()
        assert tab.accessibility() == []
        assert tab.complaints() == []
    assert coordinator.wait_only().code == 0, coordinator.output
    for node in nodes:
        node.wait_only()
