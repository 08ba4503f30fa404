"""The container of a coordinator's pod: a real process on an address of its own."""

import http.client
import json
import os
import signal
import ssl
import subprocess
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

from support.client import ApiError
from support.pods import access_name, next_address, ports, secret_text, terminated_state

ROOT = Path(__file__).resolve().parents[3]
BIN = Path(os.environ.get("PARALLELRUN_BIN") or ROOT / "build/release/bin").resolve()
PROGRAM = BIN / "parallelrun-coordinator"


class Coordinator(threading.Thread):
    """A coordinator's container, restarted as restartPolicy OnFailure says."""

    def __init__(self, kubelet, pod):
        super().__init__(daemon=True, name=pod["metadata"]["name"])
        self.code = None
        self.process = None
        self.address = next_address()
        self._kubelet = kubelet
        self._pod = pod
        self._ending = threading.Event()
        self._silent = threading.Event()  # killed: nothing is reported any more

    def terminate(self):
        self._ending.set()
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)

    def kill(self):
        self._silent.set()
        self.crash()

    def crash(self):
        """The process dies; the kubelet starts it again."""
        if self.process and self.process.poll() is None:
            self.process.kill()

    def run(self):
        try:
            self._run()
        except (ApiError, OSError, http.client.HTTPException):
            self.code = self.code if self.code is not None else 137
        except Exception as e:
            self._kubelet.problems.append(e)

    def _run(self):
        restarts, last = 0, None
        while not self._ending.is_set() and not self._silent.is_set():
            command, said = self._prepare()
            with (self.folder / "log").open("ab") as log:
                # Started by this thread, which waits for it: the death signal is bound to the
                # thread.
                self.process = subprocess.Popen(
                    ["setpriv", "--pdeathsig", "KILL", "--", *command],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                )
            self._kubelet.running(
                self._pod, self.address, ready=False, restarts=restarts, last=last
            )
            ready = False
            while self.process.poll() is None:
                if self._silent.is_set():
                    self.process.kill()
                if self._ending.is_set():
                    self.process.send_signal(signal.SIGTERM)
                if not ready and self._probe():
                    ready = True
                    self._kubelet.running(self._pod, self.address, restarts=restarts, last=last)
                time.sleep(0.05 if not ready else 0.1)
            code = self.process.wait()
            self.code = 128 - code if code < 0 else code
            if self._silent.is_set():
                return
            message = said.read_text() or None
            if self.code == 0 or self._ending.is_set():
                self._kubelet.terminated(self._pod, self.code, message=message)
                return
            restarts += 1
            last = terminated_state(self.code, None, message)
            if restarts > 1:
                self._kubelet.waiting(
                    self._pod,
                    "CrashLoopBackOff",
                    "back-off restarting",
                    restarts=restarts,
                    last=last,
                )
            self._ending.wait(0.2 * restarts)

    @property
    def folder(self):
        return self._kubelet.folder / self._pod["metadata"]["name"]

    def _prepare(self):
        """The files that the pod's volumes would be; returns the command and the termination
        message's file."""
        folder = self.folder
        folder.mkdir(parents=True, exist_ok=True)
        secret = self._kubelet.client.get("Secret", self._kubelet.namespace, access_name(self._pod))
        config = json.loads(secret_text(secret, "coordinator.json"))
        for name in ("tls.crt", "tls.key"):
            (folder / name).write_text(secret_text(secret, name))
        port = config["listen"]["address"].rpartition(":")[2]
        config["listen"] = {
            "address": f"{self.address}:{port}",
            "certificate": str(folder / "tls.crt"),
            "privateKey": str(folder / "tls.key"),
        }
        if "metricsListen" in config:
            config["metricsListen"] = f"{self.address}:{config['metricsListen'].rpartition(':')[2]}"
        for name in config["volumes"]:
            volume = next(v for v in self._pod["spec"]["volumes"] if v["name"] == name)
            claim = volume.get("persistentVolumeClaim", {}).get(
                "claimName", f"{self._pod['metadata']['name']}-{name}"
            )
            place = self._kubelet.folder / "volumes" / claim
            place.mkdir(parents=True, exist_ok=True)
            config["volumes"][name] = str(place)
        said = folder / "termination-log"
        said.write_text("")
        config["terminationMessage"] = str(said)
        file = folder / "coordinator.json"
        file.write_text(json.dumps(config))
        command = self._pod["spec"]["containers"][0]["command"]
        arguments = command[command.index("--config") + 2 :]
        own = [self._here(argument) for argument in arguments]
        return [PROGRAM, "--config", file, *own], said

    def _here(self, argument):
        """A file that the container makes below its work folder, where it is on this machine."""
        work = "/var/lib/parallelrun/"
        return str(self.folder / argument[len(work) :]) if argument.startswith(work) else argument

    def _probe(self):
        probe = self._pod["spec"]["containers"][0].get("readinessProbe", {})
        if not probe:
            return True
        if "exec" in probe:  # it waits for a file
            return os.path.exists(self._here(probe["exec"]["command"][-1]))
        probe = probe["httpGet"]
        scheme = probe.get("scheme", "HTTP").lower()
        port = probe["port"]
        if isinstance(port, str):
            port = ports(self._pod)[port]
        unverified = ssl._create_unverified_context()  # as the kubelet's probes
        try:
            with urllib.request.urlopen(
                f"{scheme}://{self.address}:{port}{probe['path']}", timeout=1, context=unverified
            ) as answer:
                return answer.status == 200
        except (urllib.error.URLError, OSError, http.client.HTTPException):
            return False
