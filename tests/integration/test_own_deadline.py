"""Without speculation no two nodes are in run() of one mini-batch at once, not even when the one
that has it is cut off and cannot be told."""

from support import processes
from support.cluster import ClusterJob
from support.faulty_network import FaultyProxy
from waits import stalled

# Mini-batch 3 writes down that it runs, and where, until the test lets it go.
SCRIPT = """
import os, time
from steps import note, there

def run(mini_batch, context):
    while context.minibatch_index == 3 and not there("go"):
        note("runs", os.getppid(), time.monotonic())
        time.sleep(0.01)
    return [open(path).read() for path in mini_batch]
"""


def when(work):
    """By agent: the times at which run() of mini-batch 3 went on there."""
    times = {}
    for line in work.noted("runs"):
        agent, at = line.split()
        times.setdefault(agent, []).append(float(at))
    return times


def test_a_node_that_is_cut_off_ends_run_before_another_one_begins(work):
    rows = work.files(6)
    work.script(SCRIPT)
    cluster = ClusterJob(work)
    cluster.mount_code()
    coordinator = cluster.start_coordinator(spec={"speculation": False})
    cluster.wait_for(lambda progress: True, "it listens")
    with FaultyProxy(cluster.port) as proxy:
        nodes = [cluster.start_node(0, url=f"https://localhost:{proxy.port}")]
        coordinator.wait_for(lambda: when(work), "the first node runs it")
        before = stalled()
        proxy.hold("up", "down")
        nodes.append(cluster.start_node(1))
        coordinator.wait_for(lambda: len(when(work)) == 2, "the other node runs it")
        coordinator.wait_for(
            lambda: all(len(times) > 10 for times in when(work).values()), "it goes on"
        )
        first, second = when(work).values()  # in this order in the file
        # An agent that had to wait for a processor is late by that, and no more.
        assert max(first) - min(second) < stalled() - before, "both at once"
        proxy.release()
        cluster.wait_for(
            lambda p: [node["registered"] for node in p["nodes"]] == [True, True], "it comes back"
        )
        work.make("go")
        assert coordinator.wait_only().code == 0, coordinator.output
        for node in nodes:
            assert node.wait_only().code == 0, node.output
    processes.expect_nothing_running()
    assert work.output.read_text() == "".join(f"{row}\n" for row in rows)
