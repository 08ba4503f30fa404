"""The same end whatever the operator misses: crashes between any two writes, news that comes late,
watches that are cut while things happen."""

import random
import time

import pytest
from support.job import World
from support.proxy import Proxy
from support.proxy import through as kubeconfig_through
from waits import Limit


@pytest.fixture
def proxy(plane):
    if not (plane.data / "pki").exists():
        pytest.skip("the control plane was not started by this test run")
    made = Proxy(plane)
    yield made
    made.close()


@pytest.fixture
def through(operators, operator_user, proxy, tmp_path):
    """An operator behind the proxy."""
    return operators(user=kubeconfig_through(proxy.url, operator_user, tmp_path / "proxied"))


@pytest.fixture
def world(plane, admin, namespace, kubelet, through):
    return World(plane, admin, namespace, kubelet, through)


def nothing_doubled(world, miniBatches=20):  # noqa: N803
    (result,) = (world.kubelet.folder / "volumes/results").rglob("parallel_run_step.txt")
    assert sorted(result.read_text().splitlines()) == sorted(
        f"row of {i}" for i in range(miniBatches)
    )
    world.until(lambda: world.pods() == [], within=20)


def until_crashed_through(world, proxy, over, limit=60):
    """Lets the operator make one write at a time, and kills it before it hears the answer."""

    def one_write(_, __):
        world.operator.process.kill()
        return True

    proxy.after_write = one_write
    for _ in range(limit):
        world.operator.kill()
        if over():
            break
        written = len(proxy.writes)
        world.operator.start(wait=False)
        wait = Limit(20)
        while world.operator.process.poll() is None and not over() and not wait.over():
            time.sleep(0.05)
        if len(proxy.writes) == written and over():
            break
    world.operator.kill()
    proxy.after_write = lambda *_: False
    world.operator.start()


def test_a_crash_after_every_write(world, proxy):
    world.submit()
    until_crashed_through(world, proxy, lambda: world.condition("Complete")["status"] == "True")
    world.until_condition("Complete", within=30)
    nothing_doubled(world)
    names = [
        path.rpartition("/")[2]
        for verb, path, status in proxy.writes
        if (verb, status) == ("POST", 201)
    ]
    assert len(names) >= 5  # it did crash between the objects


def test_a_crash_after_every_write_of_a_suspension(world, proxy):
    world.operator.start()
    world.kubelet.work.may_finish.clear()
    world.submit()
    world.until_running()
    world.change(suspend=True)
    until_crashed_through(world, proxy, lambda: world.condition("Suspended")["status"] == "True")
    world.until_condition("Suspended", within=20)
    world.until(lambda: world.pods(live=False) == [])
    world.kubelet.work.may_finish.set()
    world.change(suspend=False)
    world.until_condition("Complete", within=40)
    nothing_doubled(world)


def test_a_crash_after_every_write_of_a_cancellation(world, proxy):
    world.operator.start()
    world.kubelet.work.may_finish.clear()
    world.submit()
    world.until_running()
    world.change(cancel=True)
    until_crashed_through(world, proxy, lambda: world.condition("Failed")["status"] == "True")
    world.until_condition("Failed", reason="Canceled", within=30)
    assert world.pods() == []


def test_news_that_come_late(world, proxy):
    """A cache that is a second behind makes no second pod for a place, and no wrong status."""
    proxy.watch_delay = 1.0
    world.operator.start()
    world.kubelet.work.may_finish.clear()
    world.submit()
    world.until_running(within=40)
    made = [p["metadata"]["labels"].get("parallelrun.dev/node") for p in world.pods(live=False)]
    assert len(made) == len(set(made)) == 3
    old = world.node(0)
    world.kubelet.failed(old, "Evicted", "The node was low on resource: memory.")
    world.until(lambda: len(world.nodes()) == 2, within=30)
    world.kubelet.work.may_finish.set()
    world.until_condition("Complete", within=40)
    assert world.status()["nodes"]["disruptions"] == 1
    nothing_doubled(world)


def test_nothing_is_made_before_all_pods_are_known(world, proxy):
    """An operator that has just started and does not know yet what there is makes nothing."""
    proxy.hold = lambda method, path: path.endswith("/pods")
    world.operator.start(wait=False)
    world.submit()

    def tells():
        status, text = world.operator.get("readyz")
        return status == 503 and "caches" in text

    world.until(tells)
    world.until(lambda: world.operator.metric("workqueue_depth") == 1)  # it knows of the job
    assert (world.pods(live=False), world.status()) == ([], {})
    proxy.hold = lambda method, path: False
    world.until_condition("Complete", within=30)


def test_an_api_server_that_refuses_every_third_request(world, proxy):
    rng = random.Random(19)
    refused = []

    def refuse(method, path):
        if path.endswith("/status"):  # as if somebody else wrote it all the time
            answers = (409, 409, 429, 500, 504)
        else:
            answers = (429, 500, 504)
        if rng.random() > 0.3:
            return None
        refused.append(rng.choice(answers))
        return refused[-1]

    proxy.refuse = refuse
    world.operator.start(wait=False)
    world.kubelet.work.may_finish.clear()
    world.submit()
    world.until_running(within=60)
    world.change(nodeCount=3)
    world.until_running(nodes=3, within=60)
    places = [p["metadata"]["labels"].get("parallelrun.dev/node") for p in world.pods(live=False)]
    assert len(places) == len(set(places)) == 4
    world.kubelet.work.may_finish.set()
    world.until_condition("Complete", within=60)
    nothing_doubled(world)
    assert refused


def test_what_happens_while_the_watches_are_cut(world, proxy):
    world.operator.start()
    world.kubelet.work.may_finish.clear()
    world.submit()
    world.until_running()
    proxy.watches_refused = True
    world.until(lambda: proxy.watches == 0)
    old = world.nodes()
    world.kubelet.failed(old[0], "Evicted", "The node was low on resource: memory.")
    world.kubelet.vanish(old[1])
    world.change(nodeCount=3)
    refused = proxy.refused_watches
    world.until(lambda: proxy.refused_watches > refused, within=40)
    proxy.watches_refused = False
    gone = {pod["metadata"]["uid"] for pod in old}

    def replaced():
        now = {pod["metadata"]["uid"] for pod in world.nodes()}
        return len(now) == 3 and not now & gone

    world.until(replaced, within=40)
    world.kubelet.work.may_finish.set()
    world.until_condition("Complete", within=40)
    nothing_doubled(world)
