"""A Kubernetes control plane of plain processes on loopback, with its data in one folder.

etcd, kube-apiserver and, if asked for, kube-controller-manager and kube-scheduler, all from
tests/controlplane/build. There are no kubelets: pods stay as somebody's status patch leaves them.

A Plane belongs to the thread that made it. Its processes are killed when that thread's process
ends, however it ends, unless `detached`. Ports are free ones; several planes can run at once.
"""

import base64
import contextlib
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

from certificates import Authority, openssl
from ports import free_port
from waits import Limit

HERE = Path(__file__).resolve().parent.parent
START_SECONDS = 60
# Of kube-controller-manager's controllers, those whose work a job's life depends on. The ones that
# judge nodes (node lifecycle, taint eviction, pod garbage collection) are left out: there are no
# nodes that could renew their leases, and the tests play what these controllers do.
CONTROLLERS = (
    "garbage-collector-controller,namespace-controller,serviceaccount-controller,resourcequota-controller,"
    "root-ca-certificate-publisher-controller,job-controller,clusterrole-aggregation-controller"
)
# Everything that a service account of the operator's namespace asks for.
AUDIT_POLICY = """apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  userGroups: ["system:serviceaccounts:parallelrun-system"]
- level: None
"""


class PlaneFailed(Exception):
    """A program of the control plane did not start; the message has the end of its log."""


def build():
    """The folder of the programs, built if it has to be."""
    done = subprocess.run([HERE / "build"], stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise PlaneFailed(f"{HERE}/build ended with exit status {done.returncode}")
    return Path(done.stdout.strip())


def definitions():
    """The files of the project's CustomResourceDefinitions."""
    folder = HERE.parents[1] / "crds"
    return [
        file
        for file in sorted(folder.glob("*.yaml"))
        if "kind: CustomResourceDefinition" in file.read_text()
    ]


class Plane:
    def __init__(self, data, programs=None, detached=False, emulate=None):
        """`emulate`: the API server behaves as that older version, "1.32", would: its kinds, its
        feature gates and the functions that rules of a schema may use."""
        self.data = Path(data)
        self.emulate = emulate
        self.programs = Path(programs) if programs else build()
        self.detached = detached
        self.processes = {}
        self.kubeconfig = self.data / "kubeconfig"
        self.audit_log = self.data / "audit.log"
        self.url = None
        self._arguments = {}
        self._certificates = threading.Lock()

    # -- certificates ------------------------------------------------------------------------------

    def _make_keys(self):
        pki = self.data / "pki"
        self._authority = Authority(pki)
        key = ["-genkey", "-name", "prime256v1", "-noout", "-out", pki / "accounts.key"]
        openssl("ecparam", *key)
        self._authority.issue(
            "apiserver",
            "/CN=kube-apiserver",
            "DNS:localhost,DNS:kubernetes.default.svc,IP:127.0.0.1,IP:10.0.0.1",
        )

    def user(self, name, groups=()):
        """The kubeconfig of a user who has a certificate with this name and these groups."""
        with self._certificates:
            file = "user-" + "".join(c if c.isalnum() else "-" for c in name)
            subject = "".join(f"/O={group}" for group in groups) + f"/CN={name}"
            certificate, key = self._authority.issue(file, subject)
        return self._write_kubeconfig(
            self.data / f"{file}.kubeconfig",
            {
                "client-certificate-data": _base64(certificate),
                "client-key-data": _base64(key),
            },
        )

    def token_user(self, name, token):
        """The kubeconfig of somebody who shows a bearer token."""
        return self._write_kubeconfig(self.data / f"{name}.kubeconfig", {"token": token})

    def _write_kubeconfig(self, path, user):
        cluster = {
            "server": self.url,
            "certificate-authority-data": _base64(self.data / "pki" / "ca.crt"),
        }
        path.write_text(
            json.dumps(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "clusters": [{"name": "test", "cluster": cluster}],
                    "users": [{"name": "test", "user": user}],
                    "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
                    "current-context": "test",
                },
                indent=1,
            )
        )
        path.chmod(0o600)
        return path

    # -- processes ---------------------------------------------------------------------------------

    def _start(self, name, *arguments):
        (self.data / "log").mkdir(exist_ok=True)
        self._arguments[name] = arguments
        command = [self.programs / name, *arguments]
        if not self.detached:
            command = ["setpriv", "--pdeathsig", "KILL", "--", *command]
        with (self.data / "log" / name).open("ab") as log:
            self.processes[name] = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.data,
                start_new_session=self.detached,
            )

    def _wait(self, name, ready):
        limit = Limit(START_SECONDS)
        while not ready():
            status = self.processes[name].poll()
            if status is None and not limit.over():
                time.sleep(0.05)
                continue
            tail = "\n".join(
                (self.data / "log" / name).read_text(errors="replace").splitlines()[-8:]
            )
            happened = "is not ready" if status is None else f"ended with exit status {status}"
            raise PlaneFailed(f"{name} {happened}; {self.data}/log/{name} ends:\n{tail}")

    def start(self):
        """Starts etcd and the API server; returns when it is ready. A port that somebody took
        meanwhile: again."""
        self._make_keys()
        for attempt in range(3):
            try:
                self._start_api()
                break
            except PlaneFailed as e:
                self.kill()
                if attempt == 2 or "address already in use" not in str(e):
                    raise
        return self

    def _start_api(self):
        client, peer, secure = free_port(), free_port(), free_port()
        self.url = f"https://127.0.0.1:{secure}"
        self._etcd = f"http://127.0.0.1:{client}"
        self._start(
            "etcd",
            "--data-dir",
            "etcd",
            "--unsafe-no-fsync",
            "--log-level",
            "warn",
            "--listen-client-urls",
            self._etcd,
            "--advertise-client-urls",
            self._etcd,
            "--listen-peer-urls",
            f"http://127.0.0.1:{peer}",
            "--initial-advertise-peer-urls",
            f"http://127.0.0.1:{peer}",
            "--initial-cluster",
            f"default=http://127.0.0.1:{peer}",
            "--quota-backend-bytes",
            str(4 << 30),
        )
        (self.data / "audit.yaml").write_text(AUDIT_POLICY)
        self._start(
            "kube-apiserver",
            "--etcd-servers",
            self._etcd,
            "--bind-address",
            "127.0.0.1",
            "--secure-port",
            str(secure),
            "--advertise-address",
            "127.0.0.1",
            "--tls-cert-file",
            "pki/apiserver.crt",
            "--tls-private-key-file",
            "pki/apiserver.key",
            "--client-ca-file",
            "pki/ca.crt",
            "--service-account-issuer",
            "https://kubernetes.default.svc",
            "--service-account-key-file",
            "pki/accounts.key",
            "--service-account-signing-key-file",
            "pki/accounts.key",
            "--service-cluster-ip-range",
            "10.0.0.0/16",
            "--authorization-mode",
            "RBAC",
            "--allow-privileged=true",
            "--endpoint-reconciler-type",
            "none",
            "--max-requests-inflight",
            "0",
            "--max-mutating-requests-inflight",
            "0",
            "--enable-priority-and-fairness=false",
            "--profiling=false",
            "--audit-policy-file",
            "audit.yaml",
            "--audit-log-path",
            str(self.audit_log),
            "--audit-log-maxsize",
            "2000",
            *([f"--emulated-version={self.emulate}"] if self.emulate else []),
        )
        self.user("admin", ["system:masters"]).rename(self.kubeconfig)
        self._wait("etcd", lambda: _answers(self._etcd + "/health"))
        self._wait("kube-apiserver", lambda: _answers(self.url + "/readyz"))

    def start_controllers(self):
        """Starts kube-controller-manager: best after the CRDs are there, since its garbage
        collector looks for new kinds only every 30 seconds."""
        self._start(
            "kube-controller-manager",
            "--kubeconfig",
            str(self.kubeconfig),
            "--leader-elect=false",
            "--secure-port",
            "0",
            "--controllers",
            CONTROLLERS,
            "--root-ca-file",
            "pki/ca.crt",
            "--service-account-private-key-file",
            "pki/accounts.key",
            "--concurrent-gc-syncs",
            "20",
            "--concurrent-namespace-syncs",
            "20",
            "--concurrent-job-syncs",
            "20",
            "--kube-api-qps",
            "2000",
            "--kube-api-burst",
            "4000",
        )

    def start_scheduler(self):
        self._start(
            "kube-scheduler",
            "--kubeconfig",
            str(self.kubeconfig),
            "--leader-elect=false",
            "--secure-port",
            "0",
        )

    def stop_process(self, name):
        """Kills one program, as a crash would."""
        process = self.processes.pop(name)
        process.kill()
        process.wait()

    def start_again(self, name):
        """Starts a program that was killed as it was started before; the API server is awaited."""
        self._start(name, *self._arguments[name])
        if name == "kube-apiserver":
            self._wait(name, lambda: _answers(self.url + "/readyz"))

    def kill(self):
        """Ends everything at once; the data stays."""
        for process in self.processes.values():
            process.kill()
        for process in self.processes.values():
            process.wait()
        self.processes.clear()

    # -- use ---------------------------------------------------------------------------------------

    def kubectl(self, *arguments, stdin=None, check=True, kubeconfig=None):
        """Runs kubectl; returns the finished process with its text."""
        done = subprocess.run(
            [
                self.programs / "kubectl",
                "--kubeconfig",
                kubeconfig or self.kubeconfig,
                *map(str, arguments),
            ],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=240,  # ends a hang
        )
        if check and done.returncode != 0:
            raise AssertionError(f"kubectl {' '.join(map(str, arguments))}: {done.stderr.strip()}")
        return done


def kill_recorded(data):
    """Ends the processes of a detached plane in this folder."""
    for name, pid in json.loads((Path(data) / "processes.json").read_text()).items():
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if (
                Path(os.fsdecode(words[0])).name == name
                and Path(f"/proc/{pid}/cwd").resolve() == Path(data).resolve()
            ):
                os.kill(pid, signal.SIGKILL)


def _base64(path):
    return base64.b64encode(path.read_bytes()).decode()


def _answers(url):
    unverified = ssl.create_default_context()
    unverified.check_hostname = False
    unverified.verify_mode = ssl.CERT_NONE
    try:
        with urllib.request.urlopen(url, timeout=2, context=unverified) as answer:
            return answer.status == 200
    except (urllib.error.URLError, OSError, ValueError):
        return False
