"""Shapes of pods and of their status, as kubelets read and write them."""

import base64
import threading
from datetime import datetime, timedelta, timezone

from ports import free_port

_addresses = []
_lock = threading.Lock()


def next_address():
    """An address of loopback that no other test run on this machine uses: a port that is this
    run's alone gives it a block of them."""
    with _lock:
        if not _addresses:
            own = free_port()
            _addresses.extend(f"127.{own >> 8}.{own & 255}.{n}" for n in range(254, 0, -1))
        return _addresses.pop()


def now(ago=0):
    """This moment, or so many seconds before it."""
    moment = datetime.now(timezone.utc) - timedelta(seconds=ago)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def role(pod):
    return pod["metadata"]["labels"].get("parallelrun.dev/role")


def ended(pod):
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


def ports(pod):
    return {
        port.get("name"): port["containerPort"]
        for port in pod["spec"]["containers"][0].get("ports", [])
    }


def api_port(pod):
    return ports(pod).get("https", 8443)


def access_name(pod):
    for volume in pod["spec"]["volumes"]:
        if volume.get("secret", {}).get("secretName", "").endswith("-access"):
            return volume["secret"]["secretName"]
    raise KeyError(f"pod {pod['metadata']['name']} mounts no access Secret")


def secret_text(secret, key):
    return base64.b64decode(secret["data"][key]).decode()


def conditions_of(ago=0, **states):
    return [
        {"type": t, "status": str(s), "lastTransitionTime": now(ago)} for t, s in states.items()
    ]


def terminated_state(code, reason, message, ago=0):
    state = {
        "exitCode": code,
        "reason": reason or ("Completed" if code == 0 else "Error"),
        "startedAt": now(ago),
        "finishedAt": now(ago),
        "containerID": "test://1",
    }
    if message:
        state["message"] = message
    return {"terminated": state}


def container_status(pod, state, ready=False, restarts=0, last=None):
    container = pod["spec"]["containers"][0]
    image = container["image"]
    return {
        "name": container["name"],
        "image": image,
        "imageID": f"{image.split(':')[0]}@sha256:{'1' * 64}",
        "ready": ready,
        "started": ready,
        "restartCount": restarts,
        "state": state,
        "lastState": last or {},
    }
