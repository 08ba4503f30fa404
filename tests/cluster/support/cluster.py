"""A Kubernetes cluster of this machine's own processes: a control plane, DNS, and nodes.

Everything it makes is in `folder`, in namespaces of its own (namespaces.py) and in the control
groups that start with its name. Needs root. Not thread-safe, but `kubectl` is.
"""

import itertools
import json
import os
import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path

from waits import Limit

from support import cgroups, images, namespaces
from support.namespaces import CannotStart, Machine
from support.network import Network
from support.node import Node
from support.pki import Authority

HERE = Path(__file__).resolve().parents[1]
# What service accounts of the operator's namespace ask for, and who asks for Secrets.
_AUDIT = """apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  userGroups: ["system:serviceaccounts:parallelrun-system"]
- level: None
"""


_NEEDED = ("containerd", "runc", "ctr", "conntrack", "iptables", "ip", "openssl", "nsenter")
_NEEDED += ("unshare", "buildah", "mmdebstrap", "go")


def missing():
    """Why a cluster cannot be started here, in words; empty if it can."""
    if os.uname().sysname != "Linux":
        return "a cluster of this machine's own needs Linux"
    if os.geteuid() != 0:
        return "a cluster of this machine's own needs root"
    absent = [program for program in _NEEDED if not shutil.which(program)]
    if not Path("/usr/lib/cni/ptp").exists():
        absent.append("/usr/lib/cni/ptp")
    if absent:
        return f"not installed: {', '.join(absent)} (script/bootstrap test installs them)"
    return ""


def build_programs(folder):
    """One folder with links to all programs of a control plane and of a node."""
    folder.mkdir()
    for script in (HERE.parent / "controlplane" / "build", HERE / "build"):
        done = subprocess.run([script], stdout=subprocess.PIPE, text=True)
        if done.returncode != 0:
            raise CannotStart(f"{script} ended with exit status {done.returncode}")
        for program in Path(done.stdout.strip()).iterdir():
            if program.is_symlink():  # each is a name of the one file in that folder
                (folder / program.name).symlink_to(program)
    return folder


_numbers = itertools.count(1)


class Cluster:
    # Seconds without a word from a node until it is called lost; by default Kubernetes waits 50.
    grace = 25

    def __init__(self, folder, nodes=2):
        self.folder = Path(folder).resolve()
        self.cgroup = f"prtest-{os.getpid()}-{next(_numbers)}-"
        self.nodes = []
        self.control = None
        self._count = nodes
        self._apiserver_words = []

    # -- start -------------------------------------------------------------------------------------

    def start(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            self.programs = build_programs(self.folder / "bin")
            self.control = Machine("control", self.folder / "control")
            self.network = Network(self.control)
            self.server = f"https://{self.network.control}:6443"
            self.authority = Authority(self.folder / "pki", self.server)
            self.kubeconfig = self.authority.kubeconfig("admin", "/O=system:masters/CN=admin")
            self.proxy_kubeconfig = self.authority.kubeconfig("kube-proxy", "/CN=system:kube-proxy")
            self._start_control_plane()
            images.user_store()
            for index in range(self._count):
                self.nodes.append(Node(self, index))
            with ThreadPoolExecutor() as pool:
                list(pool.map(Node.start, self.nodes))
        except BaseException:
            self.close()
            raise

    def start_kubelets(self):
        """Once the images are there: the pause image has to be."""
        since = time.time()
        for node in self.nodes:
            node.start_kubelet()
        self.wait_for_nodes(since)

    def load(self, archives):
        for archive in archives:
            for node in self.nodes:
                node.load(archive)

    def _start_control_plane(self):
        authority, network = self.authority, self.network
        names = "DNS:kubernetes.default.svc,DNS:localhost,IP:127.0.0.1,"
        names += f"IP:{network.control},IP:{network.first_service}"
        certificate, key = authority.issue("apiserver", "/CN=kube-apiserver", names)
        client, client_key = authority.issue(
            "kubelet-client", "/O=system:masters/CN=kubelet-client", "DNS:client"
        )
        accounts = self.folder / "pki" / "accounts.key"
        subprocess.run(
            ["openssl", "genrsa", "-out", accounts, "2048"], check=True, capture_output=True
        )
        policy = self.folder / "audit-policy.yaml"
        policy.write_text(_AUDIT)
        self.audit_log = self.folder / "audit.log"
        self.control.start(
            "etcd",
            self.programs / "etcd",
            f"--data-dir={self.folder}/etcd",
            "--unsafe-no-fsync",
            "--listen-client-urls=http://127.0.0.1:2379",
            "--advertise-client-urls=http://127.0.0.1:2379",
            "--listen-peer-urls=http://127.0.0.1:2380",
        )
        self._apiserver_words = [
            self.programs / "kube-apiserver",
            "--etcd-servers=http://127.0.0.1:2379",
            "--secure-port=6443",
            f"--advertise-address={network.control}",
            f"--tls-cert-file={certificate}",
            f"--tls-private-key-file={key}",
            f"--client-ca-file={authority.certificate}",
            f"--service-account-key-file={accounts}",
            f"--service-account-signing-key-file={accounts}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-cluster-ip-range={network.services}",
            "--authorization-mode=Node,RBAC",
            "--allow-privileged=true",
            "--kubelet-preferred-address-types=InternalIP",
            f"--kubelet-client-certificate={client}",
            f"--kubelet-client-key={client_key}",
            f"--kubelet-certificate-authority={authority.certificate}",
            f"--audit-policy-file={policy}",
            f"--audit-log-path={self.audit_log}",
        ]
        self._start_api_server()
        self._start_controllers(accounts)
        self._start_dns()

    def _start_controllers(self, accounts):
        client = [
            f"--kubeconfig={self.kubeconfig}",
            f"--authentication-kubeconfig={self.kubeconfig}",
            f"--authorization-kubeconfig={self.kubeconfig}",
            "--leader-elect=false",
        ]
        self.control.start(
            "kube-controller-manager",
            self.programs / "kube-controller-manager",
            *client,
            f"--node-monitor-grace-period={self.grace}s",
            # A claim whose binding meets a conflict is looked at again so much later.
            "--pvclaimbinder-sync-period=1s",
            f"--service-account-private-key-file={accounts}",
            f"--root-ca-file={self.authority.certificate}",
            "--use-service-account-credentials",
        )
        self.control.start("kube-scheduler", self.programs / "kube-scheduler", *client)

    def _start_dns(self):
        corefile = self.folder / "Corefile"
        corefile.write_text(
            f""".:53 {{
  bind {self.network.control}
  errors
  kubernetes cluster.local {{
    kubeconfig {self.kubeconfig}
    ttl 5
  }}
}}
"""
        )
        self.control.start("coredns", self.programs / "coredns", "-conf", corefile)

    def _start_api_server(self):
        program = self.control.start("kube-apiserver", *self._apiserver_words)
        limit = Limit(120)
        while self.kubectl("get", "--raw", "/readyz", check=False).returncode != 0:
            if not program.running or limit.over():
                raise CannotStart(f"the API server did not start:\n{program.tail()}")
            time.sleep(0.2)

    def stop_api_server(self):
        self.control.programs["kube-apiserver"].kill()

    def restart_api_server(self):
        """With the controllers, which end with their lease where they are elected."""
        for name in ("kube-controller-manager", "kube-scheduler"):
            self.control.programs[name].kill()
        self._start_api_server()
        self._start_controllers(self.folder / "pki" / "accounts.key")

    def bring_back(self, node):
        """A lost one."""
        since = time.time()
        node.start()
        node.start_kubelet()
        self.wait_for_nodes(since)

    def wait_for_nodes(self, since):
        """Until each has said after that time that it is ready, and pods may come to it.

        How soon kubelets come back after a minute without an API server is Kubernetes' own.
        """
        limit = Limit(180)
        while not all(self._open(node, since) for node in self._known_nodes()):
            if limit.over():
                logs = "\n".join(node.machine.programs["kubelet"].tail() for node in self.nodes)
                raise CannotStart(f"the nodes were not ready within {limit.seconds} s:\n{logs}")
            for node in self.nodes:
                node.keep_kubelet()
            time.sleep(0.3)

    def _known_nodes(self):
        """As the API server knows them; None for one that it does not know yet."""
        known = json.loads(self.kubectl("get", "nodes", "-o", "json").stdout)["items"]
        return known + [None] * (len(self.nodes) - len(known))

    @staticmethod
    def _open(node, since):
        if node is None or node["spec"].get("taints"):
            return False
        found = {c["type"]: c for c in node["status"].get("conditions", [])}.get("Ready", {})
        if found.get("status") != "True":
            return False
        said = datetime.fromisoformat(found["lastHeartbeatTime"].replace("Z", "+00:00"))
        return said.timestamp() >= int(since)

    # -- use ---------------------------------------------------------------------------------------

    def kubectl(self, *words, check=True, text=None):
        done = subprocess.run(
            [self.programs / "kubectl", "--kubeconfig", self.kubeconfig, *map(str, words)],
            input=text,
            capture_output=True,
            text=True,
            timeout=120,
        )
        if check and done.returncode != 0:
            raise AssertionError(f"kubectl {' '.join(map(str, words))}: {done.stderr}{done.stdout}")
        return done

    def node_of(self, pod):
        return next(node for node in self.nodes if node.name == pod["spec"]["nodeName"])

    def kill_worker(self, pod):
        """Its container ends without a word, as when the kernel kills all of it."""
        container = pod["status"]["containerStatuses"][0]["containerID"].split("//")[1]
        self.node_of(pod).kill_container(container)

    # -- end ---------------------------------------------------------------------------------------

    def close(self):
        """Ends everything and deletes the folder; returns what could not be removed."""
        for node in self.nodes:
            if node.machine:
                node.machine.kill()
        if self.control:
            self.control.kill()
        namespaces.kill_left(self.folder)
        left = [str(group) for group in cgroups.remove(self.cgroup)]
        shutil.rmtree(self.folder, ignore_errors=True)
        if self.folder.exists():
            left.append(str(self.folder))
        return left
