"""The operator's process under test."""

import http.client
import os
import re
import signal
import subprocess
import threading
import urllib.error
import urllib.request

from ports import free_port
from waits import wait_for_process

from support.client import eventually
from support.coordinator import BIN

OPERATOR = BIN / "parallelrun-operator"
SYSTEM = "parallelrun-system"


class Operator:
    """Runs with the rights of `kubeconfig`; what it says goes to `log`."""

    def __init__(
        self,
        kubeconfig,
        log,
        *arguments,
        level="debug",
        runtime="images.test/runtime:1",
        pod_uid=None,
        program=OPERATOR,
    ):
        self.log = log
        self._health = free_port()
        self._metrics = free_port()
        self._command = [
            program,
            f"--kubeconfig={kubeconfig}",
            f"--namespace={SYSTEM}",
            f"--runtime-image={runtime}",
            f"--metrics-address=127.0.0.1:{self._metrics}",
            f"--health-address=127.0.0.1:{self._health}",
            "--log-format=text",
            f"--log-level={level}",
            *arguments,
        ]
        self.process = None
        self._environment = {**os.environ, **({"POD_UID": pod_uid} if pod_uid else {})}

    def start(self, wait=True):
        assert threading.current_thread() is threading.main_thread(), (
            "the death signal is bound to the thread"
        )
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "--", *self._command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._environment,
            )
        if wait:
            eventually(self.ready, within=60)
        return self

    def ready(self):
        """/readyz answers 200"""
        status = self.process.poll()
        if status is not None:
            raise RuntimeError(f"the operator ended with exit status {status}:\n{self.tail()}")
        return self.get("readyz")[0] == 200

    def get(self, path):
        """Status and text of /healthz, /readyz or /metrics; status 0 if nobody answers."""
        port = self._metrics if path == "metrics" else self._health
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as e:
            return e.code, e.read().decode()
        except (OSError, http.client.HTTPException):
            return 0, ""

    def metric(self, name, **labels):
        """The sum of the series of this name that have these labels."""
        total = 0.0
        for line in self.get("metrics")[1].splitlines():
            match = re.fullmatch(r"(\w+)(?:\{(.*)\})? (\S+)", line)
            if match and match[1] == name:
                have = dict(re.findall(r'(\w+)="([^"]*)"', match[2] or ""))
                if all(have.get(k) == v for k, v in labels.items()):
                    total += float(match[3])
        return total

    def looks(self):
        """How often it has looked at a job."""
        return self.metric("controller_runtime_reconcile_total")

    def until_looked(self, times=2):
        """Waits until it has looked at its jobs so many times more: at one that runs it does so
        every 5 seconds. What it began before this call may count as the first."""
        before = eventually(self.looks)
        eventually(lambda: self.looks() >= before + times, within=60)

    def idle(self):
        """nothing is in its queue, and nothing is worked on"""
        text = self.get("metrics")[1]
        return all(
            re.search(rf"^{name}(\{{.*\}})? 0$", text, re.MULTILINE)
            for name in ("workqueue_depth", "controller_runtime_active_workers")
        )

    def said(self):
        return self.log.read_text(errors="replace")

    def tail(self, lines=15):
        return "\n".join(self.said().splitlines()[-lines:])

    def kill(self):
        """As a crash: SIGKILL."""
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def stop(self):
        """As a pod's deletion: SIGTERM; returns the exit status."""
        self.process.send_signal(signal.SIGTERM)
        return wait_for_process(self.process, "the end of the operator after SIGTERM", 60)
