"""Coordinator and agents apart, with a network between them that is slow, loses, cuts and parts;
clocks that jump; a coordinator that was frozen. After each: every row once, in order, from calls
of run() that did return, by a history that the entry script wrote; and nothing runs any more."""

import json
import os
import shutil
import signal
import subprocess
import time
import urllib.request
from collections import Counter
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from support import processes
from support.cluster import ClusterJob, make_certificates
from support.command import PATIENCE
from support.faulty_network import FaultyProxy, Namespace
from waits import stalled, wait_until

LEASE_SECONDS = 10

# Each call is written down. Nobody begins before all nodes are there; at each of `gates`, (number,
# name), the rows from this number on wait for the test.
SCRIPT = """
import time
from steps import note, wait_for

wait_for("all")

def run(mini_batch):
    (row,) = [open(path).read() for path in mini_batch]
    number = int(row.split()[1])
    note("called", number)
    for first, name in {gates}:
        if number >= first:
            wait_for(name)
    note("clock", time.time())
    time.sleep({pace})
    note("returned", number)
    return [row]
"""


class Faults:
    """A job of two nodes, two processes each."""

    def __init__(self, work):
        self.work = work
        self.cluster = ClusterJob(work)

    def start(self, count, pace=0.0, gates=(), before=(), **keys):
        self.rows = self.work.files(count)
        self.work.script(SCRIPT.format(pace=pace, gates=tuple(gates)))
        self.cluster.mount_code()
        spec = {"processCountPerNode": 2}
        self.coordinator = self.cluster.start_coordinator(
            spec=spec, processes=2, before=before, **keys
        )
        self.progress()
        self.nodes = []
        self.stalled = stalled()

    def node(self, index, **keys):
        self.nodes.append(self.cluster.start_node(index, **keys))
        if len(self.nodes) == 2:
            self.cluster.wait_for_nodes(0, 1)
            self.work.make("all")

    def wait_for_gate(self, first):
        """Until all processes wait there."""
        self.coordinator.wait_for(
            lambda: sum(int(number) >= first for number in self.work.noted("called")) >= 4,
            f"4 processes are at the gate of {first}",
        )

    def progress(self):
        return self.wait_for(lambda progress: True, "it answers")

    def wait_for(self, condition, what, limit=60.0):
        return self.cluster.wait_for(condition, what, limit)

    def refused(self, reason):
        """What this coordinator did not take, by its metrics."""
        url = f"http://127.0.0.1:{self.cluster.metrics_port}/metrics"
        with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
            text = answer.read().decode()
        label = f'parallelrun_refused_reports_total{{reason="{reason}"}} '
        return next(
            int(float(line.removeprefix(label)))
            for line in text.splitlines()
            if line.startswith(label)
        )

    def expect_all_once(self, limit=240.0):
        """The job ends well; returns how many calls of run() were repeated."""
        assert self.coordinator.wait_only(limit).code == 0, self.coordinator.output
        for node in self.nodes:
            assert node.wait_only().code == 0, node.output
        processes.expect_nothing_running()
        assert self.work.output.read_text() == "".join(f"{row}\n" for row in self.rows)
        assert self.work.beside_index() == [self.work.output.name]
        called = Counter(map(int, self.work.noted("called")))
        returned = Counter(map(int, self.work.noted("returned")))
        assert sorted(returned) == list(range(len(self.rows))), "rows of calls that never returned"
        return sum(called.values()) - len(self.rows)

    def expect_nothing_repeated(self):
        """As expect_all_once, and no call of run() was repeated: but by a node that the machine
        kept from saying anything for about as long as a lease lives, and that had to come back."""
        repeated = self.expect_all_once()
        came_back = any(node.output.count("registered with epoch") > 1 for node in self.nodes)
        starved = came_back and stalled() - self.stalled > LEASE_SECONDS / 2
        assert repeated == 0 or starved, f"{repeated} calls were repeated"


@pytest.fixture
def faults(work):
    return Faults(work)


def succeeded(progress):
    return progress["miniBatches"]["succeeded"]


def test_a_slow_network_that_loses(faults):
    """300 ms there and back, and 5 % of what is sent stalls, as TCP does when a packet is lost."""
    faults.start(300, pace=0.005)
    with FaultyProxy(faults.cluster.port, delay=0.15, loss=0.05, seed=1) as proxy:
        for index in range(2):
            faults.node(index, url=f"https://localhost:{proxy.port}")
        # Nothing takes as long as a lease lives.
        faults.expect_nothing_repeated()
    assert proxy.faults > 0


def test_connections_that_are_cut(faults):
    # The end is not for an agent that is never let in.
    faults.start(200, pace=0.02, gates=[(160, "go")])
    with FaultyProxy(faults.cluster.port) as proxy:
        for index in range(2):
            faults.node(index, url=f"https://localhost:{proxy.port}")
        # First in the midst of what is said to begin with; then each time after a little more.
        pause, next_cut = 2, 2

        def enough(progress):
            nonlocal pause, next_cut
            if proxy.requests >= next_cut:
                proxy.cut()
                pause += 1
                next_cut = proxy.requests + min(pause, 30)
            return succeeded(progress) > 140 and proxy.faults > 10

        faults.wait_for(enough, "they get on all the same", 150)
        faults.work.make("go")
        faults.expect_all_once()


def test_answers_that_are_lost(faults):
    """What agents report is committed, and they do not hear of it; then their connections end, and
    they report it again."""
    gates = range(20, 120, 20)
    faults.start(140, pace=0.02, gates=[(first, str(first)) for first in gates])
    with FaultyProxy(faults.cluster.port) as proxy:
        for index in range(2):
            faults.node(index, url=f"https://localhost:{proxy.port}")
        for first in gates:
            faults.wait_for_gate(first)
            # Until the first fault all is done in order: nothing of before waits behind this gate.
            if first == gates[0]:
                faults.wait_for(lambda p: succeeded(p) == gates[0], "what was returned is told")
            proxy.silence()
            before = proxy.withheld
            faults.work.make(str(first))
            if first == gates[0]:
                faults.wait_for(lambda p: succeeded(p) > gates[0], "what is not answered counts")
            wait_until(lambda before=before: proxy.withheld > before, "an answer is withheld")
            proxy.cut()
            proxy.release()
        faults.expect_all_once()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may make a network namespace")
def test_a_node_that_is_cut_off_for_longer_than_a_lease(faults):
    """What it held is done by the other one; then it comes back with results.

    At this pace nothing waits in a process's socket, behind the one that is held to the end.
    """
    try:
        network = Namespace()
    except (OSError, FileNotFoundError) as error:
        pytest.skip(f"no network namespace can be made here: {error}")
    with network:
        names = f"DNS:localhost,IP:{network.here}"
        make_certificates(faults.cluster.secret, names)
        faults.cluster.use_certificates()
        count = 60
        faults.start(count, pace=0.03, gates=[(10, "go"), (count - 1, "end")])
        url = f"https://{network.here}:{faults.cluster.port}"
        faults.node(0, url=url, before=network.within)
        faults.node(1)
        faults.wait_for_gate(10)
        network.unplug()
        faults.work.make("go")
        faults.wait_for(
            lambda p: (
                succeeded(p) == count - 1
                and [node["registered"] for node in p["nodes"]] == [False, True]
                and [node.get("silent") for node in p["nodes"]] == [True, None]
            ),
            "it is given up, and the other one does all but one",
        )
        network.plug_in()
        faults.wait_for(
            lambda p: (
                [(node["registered"], node.get("silent")) for node in p["nodes"]]
                == [(True, None)] * 2
            ),
            "it comes back",
        )
        faults.wait_for(lambda _: faults.refused("settled") >= 2, "its late results are counted")
        faults.work.make("end")
        faults.expect_all_once()
    said = [json.loads(line)["message"] for line in faults.coordinator.output.splitlines()]
    told = "refused of node 0, as another attempt has settled it: "
    assert any(line.startswith(told) for line in said), said


def test_a_coordinator_that_was_frozen_takes_nothing_from_anybody(faults):
    """Longer than every lease. When it wakes, all nodes are still there: nothing runs twice."""
    faults.start(24, gates=[(4, "go")])
    for index in range(2):
        faults.node(index)
    faults.wait_for_gate(4)
    faults.coordinator.send(signal.SIGSTOP)
    time.sleep(LEASE_SECONDS * 1.2)  # the fault itself
    faults.coordinator.send(signal.SIGCONT)
    faults.wait_for(lambda p: p["miniBatches"]["running"] >= 4, "it goes on")
    faults.work.make("go")
    faults.expect_nothing_repeated()


@pytest.fixture
def clock(work):
    """(words in front of a program whose wall clock is moved, function that moves it)"""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        pytest.skip("there is no C compiler")
    shim = work.root / "clock_shim.so"
    source = Path(__file__).parent / "support" / "clock_shim.c"
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", "-o", shim, source], check=True, timeout=PATIENCE
    )
    step = work.root / "step"

    def move(hours):
        new = step.with_suffix(".new")
        new.write_text(str(int(hours * 3600)))
        new.replace(step)

    move(12)
    # The address sanitizer wants to come before all others, and needs it for the memory only.
    options = f"ASAN_OPTIONS={work.environment.get('ASAN_OPTIONS', '')}:verify_asan_link_order=0"
    return ["env", options, f"LD_PRELOAD={shim}", f"CLOCK_STEP={step}"], move


def test_clocks_that_jump(faults, clock):
    """Of coordinator and one node, by hours, there and back: leases and time-outs do not notice."""
    words, move = clock
    steps = {30: 24, 80: 2, 130: 30, 180: 12}
    faults.start(240, pace=0.01, gates=[(first, str(first)) for first in steps], before=words)
    faults.node(0, before=words)
    faults.node(1)
    for first, hours in steps.items():
        faults.wait_for_gate(first)
        move(hours)
        faults.work.make(str(first))
    faults.expect_nothing_repeated()
    seen = [float(time) for time in faults.work.noted("clock")]
    assert max(seen) - min(seen) > 27 * 3600, "the clock of the node did not move"
    said = json.loads(faults.coordinator.output.splitlines()[0])["time"]
    ahead = datetime.fromisoformat(said.replace("Z", "+00:00")) - datetime.now(timezone.utc)
    assert ahead > timedelta(hours=11), "the clock of the coordinator was not moved"
