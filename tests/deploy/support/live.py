"""A coordinator of a job that waits for its nodes, and a Prometheus that scrapes it."""

import contextlib
import json
import os
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import yaml
from ports import free_port
from waits import wait_until

from support.render import ROOT

BIN = Path(os.environ.get("PARALLELRUN_BIN", ROOT / "build/release/bin"))


def get(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read().decode()


def wait_for(condition, process, log, seconds=60):
    """Calls the condition until it is true; fails if the process ends, or after some time."""

    def holds():
        with contextlib.suppress(urllib.error.URLError, ConnectionError, TimeoutError):
            if condition():
                return True
        assert process.poll() is None, f"{process.args[0]} ended: {log.read_text()}"
        return False

    wait_until(holds, lambda: log.read_text()[-3000:], seconds, pause=0.1)


@contextlib.contextmanager
def running(command, log, **options):
    with log.open("w") as out:
        process = subprocess.Popen(
            [str(word) for word in command], stdout=out, stderr=out, **options
        )
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextlib.contextmanager
def coordinator(folder):
    """The port of the metrics of a coordinator with five files to hand out, and no node."""
    (folder / "in").mkdir(parents=True)
    (folder / "out").mkdir()
    for number in range(5):
        (folder / f"in/{number}.txt").write_text("x")
    (folder / "score.py").write_text("def run(mini_batch):\n    return mini_batch\n")
    port = free_port()
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        config = {
            "job": {
                "apiVersion": "parallelrun.dev/v1alpha1",
                "kind": "ParallelRunJob",
                "metadata": {"name": "digits", "namespace": "team"},
                "spec": {
                    "entryScript": "score.py",
                    "code": {"path": "."},
                    "volumes": [
                        {"name": name, "persistentVolumeClaim": {"claimName": name}}
                        for name in ("in", "out")
                    ],
                    "inputs": [{"name": "files", "files": {"volume": "in"}}],
                    "output": {"volume": "out"},
                    "miniBatchSize": 1,
                },
            },
            "volumes": {"in": str(folder / "in"), "out": str(folder / "out")},
            "key": "0" * 64,
            "listen": {"fd": listener.fileno()},
            "metricsListen": f"127.0.0.1:{port}",
            "resourceUid": "1",
            "nodes": 1,
            "processes": 1,
        }
        path = folder / "coordinator.json"
        path.write_text(json.dumps(config))
        log = folder / "coordinator.log"
        command = [BIN / "parallelrun-coordinator", "--config", path]
        with running(command, log, pass_fds=[listener.fileno()]) as process:
            wait_for(lambda: get(f"http://127.0.0.1:{port}/readyz"), process, log)
            yield port


@contextlib.contextmanager
def prometheus(folder, targets):
    """A function that runs an instant query; targets are (port, labels)."""
    port = free_port()
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(ROOT / "deploy/monitoring/rules.yaml")],
        "scrape_configs": [
            {
                "job_name": "parallelrun",
                "honor_labels": True,
                "static_configs": [
                    {"targets": [f"127.0.0.1:{target}"], "labels": labels}
                    for target, labels in targets
                ],
            }
        ],
    }
    path = folder / "prometheus.yml"
    path.write_text(yaml.safe_dump(config))
    log = folder / "prometheus.log"
    command = [
        "prometheus",
        f"--config.file={path}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]

    def query(expression):
        parameters = urllib.parse.urlencode({"query": expression})
        try:
            answer = json.loads(get(f"http://127.0.0.1:{port}/api/v1/query?{parameters}"))
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{expression}: {error.read().decode()}") from error
        return answer["data"]["result"]

    with running(command, log) as process:
        wait_for(lambda: get(f"http://127.0.0.1:{port}/-/ready"), process, log)
        query.process, query.log = process, log
        yield query
