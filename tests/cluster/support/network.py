"""The network of a test cluster: one /16 of private addresses, a bridge, a link to this machine.

    10.X.0.1          the control plane, the cluster's DNS server, and the nodes' router
    10.X.0.(10+i)     node i
    10.X.(10+i).0/24  the pods of node i
    10.X.128.0/20     Services
    10.X.255.0/30     the link to this machine, which can so reach the API server and every pod, and
                      which pods reach at `here`

All but the link is inside the cluster's network namespaces, and the link ends with them.
"""

import subprocess

from support.namespaces import CannotStart

# Else a bridge takes the least address of its ports, hence another one when a node is lost, and a
# node that comes back has another: its neighbours talk to the old one for half a minute.
_ROUTER = "02:00:00:00:00:01"
_NODE = "02:00:00:00:01:{:02x}"
_FIRST = 200
_LAST = 231


class Network:
    def __init__(self, control):
        """Takes the first free range; `control` is the Machine of the control plane."""
        for number in range(_FIRST, _LAST + 1):
            self.link = f"prtest{number}"
            words = ["ip", "link", "add", self.link, "type", "veth"]
            words += ["peer", "name", "host", "netns", str(control.pid)]
            done = subprocess.run(words, capture_output=True, text=True)
            if done.returncode == 0:
                self._block = f"10.{number}"
                break
            if "exists" not in done.stderr:
                raise CannotStart(f"{' '.join(words)}: {done.stderr}")
        else:
            raise CannotStart(
                f"all ranges from 10.{_FIRST} to 10.{_LAST} are taken by other test clusters"
            )
        self.control = f"{self._block}.0.1"
        self.services = f"{self._block}.128.0/20"
        self.first_service = f"{self._block}.128.1"
        self.pods = f"{self._block}.0.0/17"
        here, there = f"{self._block}.255.1", f"{self._block}.255.2"
        self.here = here
        for line in (
            f"address add {here}/30 dev {self.link}",
            f"link set {self.link} up",
            f"route add {self._block}.0.0/16 via {there}",
        ):
            subprocess.run(["ip", *line.split()], check=True)
        commands = f"""
            ip link set lo up
            ip link add br0 address {_ROUTER} type bridge
            ip address add {self.control}/24 dev br0
            ip link set br0 up
            ip address add {there}/30 dev host
            ip link set host up
            ip route add default via {here}
            echo 1 > /proc/sys/net/ipv4/ip_forward
        """
        control.run("bash", "-ec", commands)

    def node(self, index):
        return f"{self._block}.0.{10 + index}"

    def node_pods(self, index):
        return f"{self._block}.{10 + index}.0/24"

    def plug_in(self, control, machine, index):
        """Connects the Machine of node `index` with the bridge."""
        name, pods = f"node{index}", self.node_pods(index)
        control.run(
            "bash",
            "-c",
            f"ip link delete {name} 2> /dev/null; ip route delete {pods} 2> /dev/null; true",
        )
        # From here, inside the control's network only: the process number is this machine's.
        words = ["nsenter", "--target", str(control.pid), "--net", "--"]
        words += ["ip", "link", "add", name, "type", "veth", "peer", "name", "lan"]
        words += ["address", _NODE.format(index), "netns", str(machine.pid)]
        subprocess.run(words, check=True)
        machine.run(
            "bash",
            "-ec",
            f"""
            ip link set lo up
            ip address add {self.node(index)}/24 dev lan
            ip link set lan up
            ip route add default via {self.control}
            echo 1 > /proc/sys/net/ipv4/ip_forward
            """,
        )
        control.run("ip", "link", "set", name, "master", "br0", "up")
        control.run("ip", "route", "add", pods, "via", self.node(index))
