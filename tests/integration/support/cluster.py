"""A job as its pods see it: the configuration files that the operator mounts, and the two programs.

Nothing here needs a cluster: coordinator and agents are processes, "pods" differ by their
configuration and by what they are told on the command line.
"""

import hashlib
import hmac
import json
import os
import shutil
import ssl
import subprocess
import sys
import tarfile
import urllib.error
import urllib.request

from certificates import Authority
from ports import free_port
from waits import wait_until

from support.command import BIN, PATIENCE

KEY = "5e" * 32
PACKAGE = BIN.parent / "lib" / "parallelrun" / "python"


def token(role):
    return hmac.new(KEY.encode(), role.encode(), hashlib.sha256).hexdigest()


def make_certificates(folder, names="DNS:localhost"):
    """ca.crt, tls.crt and tls.key, the latter two for `names`."""
    Authority(folder, "/CN=job ca").issue("tls", "/CN=coordinator", names)


def make_bundle(folder):
    """The runtime image's content: programs, their libraries, one loader, the Python package."""
    for name in ("bin", "lib"):
        (folder / name).mkdir(parents=True)
    for program in ("parallelrun-agent", "parallelrun-coordinator"):
        shutil.copy(BIN / program, folder / "bin")
        listed = subprocess.run(["ldd", BIN / program], check=True, capture_output=True, text=True)
        for line in listed.stdout.splitlines():
            for word in line.split():
                if not word.startswith("/"):
                    continue
                loader = os.path.basename(word).startswith("ld-")
                shutil.copy(word, folder / "lib" / ("ld.so" if loader else os.path.basename(word)))
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(PACKAGE, folder / "python", ignore=ignored)


def mount_config_map(source, folder, archive=False):
    """`source` as the kubelet mounts a ConfigMap: links to a folder with the time in its name."""
    data = folder / "..2026_11_21_09_00_00.1"
    data.mkdir(parents=True)
    if archive:
        with tarfile.open(data / "code.tar.gz", "w:gz") as tar:
            tar.add(source, arcname=".")
    else:
        for path in source.iterdir():
            if path.is_file():
                shutil.copy(path, data)
    (folder / "..data").symlink_to(data.name)
    for path in data.iterdir():
        (folder / path.name).symlink_to(f"..data/{path.name}")


def on_host(name):
    """The words in front of a program that make its host name `name`; needs root."""
    return ["unshare", "--uts", "sh", "-c", f'hostname {name} && exec "$@"', "sh"]


class ClusterJob:
    def __init__(self, work, bundle=None):
        self.work = work
        self.bundle = bundle
        self.port = free_port()
        self.metrics_port = free_port()
        self.secret = work.root / "secret"
        self.secret.mkdir()
        make_certificates(self.secret)
        self.use_certificates()
        self.code = work.root / "mounted"
        self.last_words = work.root / "termination-log"
        self.pods = 0

    def use_certificates(self):
        self.context = ssl.create_default_context(cafile=self.secret / "ca.crt")

    def mount_code(self, archive=False):
        mount_config_map(self.work.code, self.code, archive)

    def job(self, **fields):
        spec = {
            "entryScript": "score.py",
            "code": {"configMap": {"name": "code"}},
            "environment": {"image": "registry.example/digits:1", "python": sys.executable},
            "volumes": [
                {"name": "data", "persistentVolumeClaim": {"claimName": "d", "readOnly": True}},
                {"name": "out", "persistentVolumeClaim": {"claimName": "o"}},
            ],
            "inputs": [{"name": "files", "files": {"volume": "data"}}],
            "output": {"volume": "out"},
            "nodeCount": 2,
            "processCountPerNode": 1,
            "miniBatchSize": "1",
        }
        return {
            "apiVersion": "parallelrun.dev/v1alpha1",
            "kind": "ParallelRunJob",
            "metadata": {"name": "job", "namespace": "team"},
            "spec": {**spec, **fields},
        }

    def program(self, name):
        if self.bundle is None:
            return [BIN / name]
        lib = self.bundle / "lib"
        return [lib / "ld.so", "--library-path", lib, self.bundle / "bin" / name]

    def start_coordinator(self, uid="uid-1", spec=None, before=(), **keys):
        """`keys` replace keys of coordinator.json; one that is None is left out."""
        config = {
            "job": self.job(**(spec or {})),
            "volumes": {"data": str(self.work.data), "out": str(self.work.out)},
            "key": KEY,
            "listen": {
                "address": f"0.0.0.0:{self.port}",
                "certificate": str(self.secret / "tls.crt"),
                "privateKey": str(self.secret / "tls.key"),
            },
            "metricsListen": f"0.0.0.0:{self.metrics_port}",
            "resourceUid": uid,
            "codeDigest": "77",
            "nodes": 2,
            "processes": 1,
            "terminationMessage": str(self.last_words),
            **keys,
        }
        config = {key: value for key, value in config.items() if value is not None}
        path = self.secret / "coordinator.json"
        path.write_text(json.dumps(config))
        self.last_words.write_text("x" * 5000)  # as the kubelet makes it, but not empty
        program, *words = [*before, *self.program("parallelrun-coordinator")]
        return self.work.start(*words, "--config", path, "--json-log", program=program)

    def start_node(self, index, *words, before=(), farewell=None, **keys):
        """`before`: words in front of the program, as `unshare --pid`."""
        self.pods += 1
        config = {
            "url": f"https://localhost:{self.port}",
            "token": token(f"node:{index}"),
            "certificateAuthority": str(self.secret / "ca.crt"),
            "node": index,
            "codeFolder": str(self.code),
            "workFolder": str(self.work.root / f"pod-{self.pods}" / "work"),
            "pythonPath": str(self.bundle / "python" if self.bundle else PACKAGE),
            **keys,
        }
        path = self.secret / f"node-{index}-{self.pods}.json"
        path.write_text(json.dumps(config))
        program, *more = [*before, *self.program("parallelrun-agent")]
        if farewell is not None:
            farewell.touch()
            words = (*words, "--termination-message", farewell)
        return self.work.start(*more, "--config", path, "--log-json", *words, program=program)

    # --- the operator's side

    def call(self, method, path, body=None, role="operator"):
        """(status, body)"""
        request = urllib.request.Request(f"https://localhost:{self.port}{path}", method=method)
        if role:
            request.add_header("Authorization", f"Bearer {token(role)}")
        data = None if body is None else json.dumps(body).encode()
        try:
            with urllib.request.urlopen(
                request, data, timeout=PATIENCE, context=self.context
            ) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def control(self, **keys):
        status, progress = self.call("PUT", "/v1/control", keys)
        assert status == 200, progress
        return progress

    def progress(self):
        """None while nobody answers."""
        try:
            status, progress = self.call("GET", "/v1/progress")
        except OSError:
            return None
        return progress if status == 200 else None

    def wait_for_nodes(self, *indices):
        """Until they are registered. A node that comes when the job is over finds nobody."""

        def there(progress):
            return {node["index"] for node in progress["nodes"] if node["registered"]} == {*indices}

        return self.wait_for(there, f"registered are {indices}")

    def wait_for(self, condition, what, limit=60.0):
        """Until condition(progress) is true."""

        def holds():
            progress = self.progress()
            return progress is not None and condition(progress) and progress

        return wait_until(holds, lambda: f"{what}: {self.progress()}", limit)

    def words(self):
        text = self.last_words.read_bytes()
        assert len(text) <= 4096
        return json.loads(text)
