"""A node of the test cluster: kubelet, containerd and kube-proxy in a Machine of their own."""

import json
import shutil
import subprocess
import time

from waits import Limit

from support import cgroups, images
from support.namespaces import CannotStart, Machine

# What the kubelet would write into these; it finds them as it wants them, and this machine's stay.
_TUNABLES = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}


class Node:
    def __init__(self, cluster, index):
        self.name = f"node-{index}"
        self.index = index
        self._cluster = cluster
        self.folder = cluster.folder / self.name
        self.cgroup = f"{cluster.cgroup}{index}"
        self.machine = None
        self.address = cluster.network.node(index)
        for name in ("kubelet", "cni", "tunables", "pod-logs"):
            (self.folder / name).mkdir(parents=True)
        images.seed(self.folder / "containerd")
        names = f"DNS:{self.name},IP:{self.address}"
        self._certificate, self._key = cluster.authority.issue(
            f"{self.name}-server", f"/O=system:nodes/CN=system:node:{self.name}", names
        )
        self._kubeconfig = cluster.authority.kubeconfig(
            self.name, f"/O=system:nodes/CN=system:node:{self.name}"
        )
        self._write_configurations()

    @property
    def socket(self):
        return "/run/containerd.sock"  # inside the node

    def _write_configurations(self):
        network = self._cluster.network
        (self.folder / "cni" / "10-pods.conflist").write_text(
            json.dumps(
                {
                    "cniVersion": "1.0.0",
                    "name": "pods",
                    "plugins": [
                        {
                            "type": "ptp",
                            "ipam": {
                                "type": "host-local",
                                "dataDir": "/run/ipam",
                                "ranges": [[{"subnet": network.node_pods(self.index)}]],
                                "routes": [{"dst": "0.0.0.0/0"}],
                            },
                        },
                        {"type": "portmap", "capabilities": {"portMappings": True}},
                    ],
                }
            )
        )
        # Without CAP_SYS_RESOURCE, runc cannot lower oom_score_adj and no container would start.
        (self.folder / "containerd.toml").write_text(
            f"""version = 2
root = "{self.folder}/containerd"
state = "/run/containerd-state"
[grpc]
address = "{self.socket}"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "localhost/pause:1"
restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "/usr/lib/cni"
conf_dir = "{self.folder}/cni"
"""
        )
        authority = str(self._cluster.authority.certificate)
        kubelet = {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": self.address,
            "healthzBindAddress": "127.0.0.1",
            "failSwapOn": False,
            "failCgroupV1": False,
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{self.cgroup}",
            "enforceNodeAllocatable": [],
            "containerRuntimeEndpoint": f"unix://{self.socket}",
            # Else a node that the control plane has lost sight of says that it is there only once
            # its own watches have come back, up to a minute later.
            "nodeStatusUpdateFrequency": "4s",
            "nodeStatusReportFrequency": "4s",
            "nodeLeaseDurationSeconds": 10,
            "clusterDNS": [network.control],
            "clusterDomain": "cluster.local",
            "resolvConf": "",
            "podLogsDir": f"{self.folder}/pod-logs",
            "volumePluginDir": f"{self.folder}/plugins",
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": authority},
            },
            "authorization": {"mode": "Webhook"},
            "tlsCertFile": str(self._certificate),
            "tlsPrivateKeyFile": str(self._key),
            "localStorageCapacityIsolation": False,
            "evictionHard": {"memory.available": "50Mi"},
            "imageGCHighThresholdPercent": 100,
        }
        (self.folder / "kubelet.json").write_text(json.dumps(kubelet))
        proxy = {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "mode": "iptables",
            "clusterCIDR": network.pods,
            "hostnameOverride": self.name,
            "clientConnection": {"kubeconfig": str(self._cluster.proxy_kubeconfig)},
            "conntrack": {
                "maxPerCore": 0,
                "tcpEstablishedTimeout": "0s",
                "tcpCloseWaitTimeout": "0s",
            },
            "iptables": {"minSyncPeriod": "0s"},
        }
        (self.folder / "proxy.json").write_text(json.dumps(proxy))

    def start(self):
        """Switches the node on; after `lose`, on the same disk."""
        cgroups.make(self.cgroup)
        self.machine = Machine(self.name, self.folder, self._cluster.control)
        lines = [
            f"mount -t tmpfs -o mode=755 tmpfs {folder}"
            for folder in ("/run", "/var/lib", "/var/log")
        ]
        lines.append("mkdir -p /run/netns /run/lock /var/lib/kubelet")
        for name, value in _TUNABLES.items():
            file = self.folder / "tunables" / name.replace("/", "-")
            file.write_text(value + "\n")
            lines.append(f"mount --bind {file} /proc/sys/{name}")
        self.machine.run("bash", "-ec", "\n".join(lines))
        self._cluster.network.plug_in(self._cluster.control, self.machine, self.index)
        self.machine.start("containerd", "containerd", "-c", self.folder / "containerd.toml")
        limit = Limit(90)
        while not self._containerd_answers():
            if limit.over() or not self.machine.programs["containerd"].running:
                raise CannotStart(
                    f"containerd of {self.name}:\n{self.machine.programs['containerd'].tail()}"
                )
            time.sleep(0.1)

    def start_kubelet(self):
        self._run_kubelet()
        proxy = self._cluster.programs / "kube-proxy"
        self.machine.start("kube-proxy", proxy, "--config", self.folder / "proxy.json")

    def keep_kubelet(self):
        """It ends if a containerd that answers already has not yet loaded all that it is for."""
        if not self.machine.programs["kubelet"].running:
            self._run_kubelet()

    def _run_kubelet(self):
        self.machine.start(
            "kubelet",
            self._cluster.programs / "kubelet",
            *("--config", self.folder / "kubelet.json"),
            *("--kubeconfig", self._kubeconfig),
            *("--hostname-override", self.name),
            *("--root-dir", self.folder / "kubelet"),
            *("--node-ip", self.address),
        )

    def _containerd_answers(self):
        done = subprocess.run(
            self.machine.words_inside("ctr", "-a", self.socket, "version"),
            capture_output=True,
            timeout=60,
        )
        return done.returncode == 0

    def load(self, archive):
        self.machine.run("ctr", "-a", self.socket, "-n", "k8s.io", "images", "import", archive)

    def tag(self, name, other):
        """Another name for an image of docker.io."""
        words = ["ctr", "-a", self.socket, "-n", "k8s.io", "images", "tag", "--force"]
        self.machine.run(*words, f"docker.io/{name}", f"docker.io/{other}")

    def kill_container(self, container):
        words = ["ctr", "-a", self.socket, "-n", "k8s.io", "tasks", "kill", "--all"]
        self.machine.run(*words, "--signal", "SIGKILL", container)

    def lose(self):
        """The node's power fails: kubelet, containerd and every container end without a word."""
        self.machine.kill()
        cgroups.remove(self.cgroup)

    def forget(self):
        shutil.rmtree(self.folder, ignore_errors=True)
