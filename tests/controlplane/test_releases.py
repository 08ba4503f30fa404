"""An operator that is upgraded while jobs run: the later release's is linked by tests/releases."""

import base64
import json

from support.coordinator import BIN
from support.operator_process import OPERATOR

LATER = BIN.parent / "later" / "bin" / "parallelrun-operator"


def config_of(world):
    """What the operator has written for the coordinators of the one job."""
    (secret,) = [
        one
        for one in world.client.list("Secret", world.namespace)
        if one["metadata"]["name"].endswith("-access")
    ]
    return json.loads(base64.b64decode(secret["data"]["coordinator.json"]))


def uids(pods):
    return {pod["metadata"]["uid"] for pod in pods}


def test_jobs_go_on_under_a_later_operator_and_under_the_old_one_again(world, operators):
    """With the pods and the image that they have, also where a coordinator is replaced, which
    then reads what the later operator wrote."""
    world.kubelet.work.may_finish.clear()
    world.submit()
    world.until_running()
    before = uids(world.pods())
    world.operator.stop()
    world.operator = operators(program=LATER, runtime="images.test/runtime:2").start()
    world.until(lambda: config_of(world).get("ofALaterRelease"))
    assert config_of(world)["release"] == "9.8.7"
    assert world.operator.metric("parallelrun_build_info", version="9.8.7") == 1
    assert uids(world.pods()) == before

    (coordinator,) = world.coordinators()
    world.client.delete("Pod", world.namespace, coordinator["metadata"]["name"])
    world.until(lambda: uids(world.coordinators()) not in (set(), uids([coordinator])))
    world.until_running()
    (coordinator,) = world.coordinators()
    assert "images.test/runtime:1" in json.dumps(coordinator["spec"])
    assert uids(world.nodes()) < before

    world.operator.stop()
    world.operator = operators(program=OPERATOR).start()
    world.until(lambda: "ofALaterRelease" not in config_of(world))
    world.kubelet.work.may_finish.set()
    world.until_condition("Complete", within=30)
    assert world.status()["output"]["rows"] == 20
