"""Prometheus on this machine, set up as docs/monitoring.md says, which scrapes the test cluster.

Debian's has no service discovery for Kubernetes: `discover` tells it of the pods, with the labels
that this discovery gives them.
"""

import json
import os
import re
import subprocess
import textwrap
import urllib.error
import urllib.parse
import urllib.request

import yaml
from ports import free_port

from support import images
from support.kube import wait_until


def scrape_configs():
    """The page's own."""
    page = (images.ROOT / "docs/monitoring.md").read_text()
    block = page.split("    scrape_configs:\n")[1].split("\n\n")[0]
    return yaml.safe_load(textwrap.dedent(block))


def queries(namespace, job):
    """Each query of the dashboards, by dashboard and panel, with its variables filled in."""
    found = []
    for path in sorted((images.ROOT / "deploy/monitoring/dashboards").glob("*.json")):
        for panel in json.loads(path.read_text())["panels"]:
            for target in panel["targets"]:
                expression = target["expr"].replace("$namespace", namespace).replace("$job", job)
                found.append((f"{path.stem}: {panel['title']}", expression))
    return found


def targets(pod):
    """A target for each port of the pod's containers, as Prometheus' role `pod` has them."""
    metadata = pod["metadata"]
    labels = {
        "__meta_kubernetes_namespace": metadata["namespace"],
        "__meta_kubernetes_pod_name": metadata["name"],
    }
    for name, value in metadata.get("labels", {}).items():
        labels["__meta_kubernetes_pod_label_" + re.sub(r"\W", "_", name)] = value
    address = pod["status"].get("podIP")
    for container in pod["spec"]["containers"] if address else ():
        for port in container.get("ports", ()):
            name = {"__meta_kubernetes_pod_container_port_name": port.get("name", "")}
            yield {"targets": [f"{address}:{port['containerPort']}"], "labels": {**labels, **name}}


class Prometheus:
    def __init__(self, folder):
        folder.mkdir(parents=True)
        configs = scrape_configs()
        self._files = {}  # the pods of a scrape configuration, and its namespaces; None: all
        for config in configs:
            (discovery,) = config.pop("kubernetes_sd_configs")
            assert discovery["role"] == "pod"
            file = folder / f"{config['job_name']}.json"
            config["file_sd_configs"] = [{"files": [str(file)], "refresh_interval": "1s"}]
            self._files[file] = discovery.get("namespaces", {}).get("names")
        self.discover([])
        rules = str(images.ROOT / "deploy/monitoring/rules.yaml")
        file = folder / "prometheus.yml"
        short = {"scrape_interval": "1s", "evaluation_interval": "1s"}
        file.write_text(
            yaml.safe_dump({"global": short, "rule_files": [rules], "scrape_configs": configs})
        )
        address = f"127.0.0.1:{free_port()}"
        self._url = f"http://{address}"
        self._log = folder / "log"
        words = ["prometheus", f"--config.file={file}", f"--storage.tsdb.path={folder / 'data'}"]
        with open(self._log, "w") as log:
            self._process = subprocess.Popen(
                [*words, f"--web.listen-address={address}"], stdout=log, stderr=log
            )
        wait_until(self._ready, self.tell, 60)

    def discover(self, pods):
        for file, namespaces in self._files.items():
            seen = [
                p for p in pods if namespaces is None or p["metadata"]["namespace"] in namespaces
            ]
            new = file.with_suffix(".new")
            new.write_text(json.dumps([target for pod in seen for target in targets(pod)]))
            os.replace(new, file)

    def tell(self):
        return f"prometheus: {self._log.read_text()[-3000:]}"

    def _ready(self):
        assert self._process.poll() is None, self.tell()
        try:
            urllib.request.urlopen(f"{self._url}/-/ready", timeout=10).close()
        except (urllib.error.URLError, ConnectionError):
            return False
        return True

    def ask(self, path, **query):
        url = f"{self._url}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        try:
            with urllib.request.urlopen(url, timeout=20) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{url}: {error.read().decode()}") from None

    def query(self, expression):
        return self.ask("query", query=expression)["result"]

    def close(self):
        self._process.terminate()
        self._process.wait(20)
