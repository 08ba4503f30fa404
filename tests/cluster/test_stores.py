"""A job whose input and output lie in buckets: it mounts a ReadWriteOnce claim, or nothing."""

import base64
import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

import pytest
from s3_server import Server
from support import jobs
from support.kube import wait_until

# Each run() asks the test, which answers when they may go on, and tells it what init() found: all
# readable files, environments and command lines that hold a word of one of these SHA-256, and all
# that begin as a log of a ledger does.
SCRIPT = """\
import hashlib
import json
import os
import re
import sys
import urllib.parse
import urllib.request
from pathlib import Path

SYSTEM = ("/proc", "/sys", "/dev", "/usr")


def files():
    for folder, folders, names in os.walk("/"):
        folders[:] = [name for name in folders if os.path.join(folder, name) not in SYSTEM]
        yield from (os.path.join(folder, name) for name in names)
    for process in filter(str.isdigit, os.listdir("/proc")):
        yield from (f"/proc/{process}/{name}" for name in ("environ", "cmdline"))


def init():
    global found
    wanted = sys.argv[2:]
    found = {word: [] for word in (*wanted, "ledger")}
    for path in files():
        try:
            if not os.path.isfile(path):
                continue
            with open(path, "rb") as file:
                data = file.read(1 << 20)
        except OSError:
            continue
        if data.startswith(b"PRLEDGER"):
            found["ledger"].append(path)
        digests = {hashlib.sha256(word).hexdigest() for word in re.findall(rb"[\\w-]+", data)}
        for word in digests.intersection(wanted):
            found[word].append(path)


def run(mini_batch):
    said = urllib.parse.quote(json.dumps(found))
    urllib.request.urlopen(sys.argv[1] + "?" + said, timeout=900).read()
    return [Path(path).read_text() for path in mini_batch]
"""


@pytest.fixture
def server(cluster, tmp_path):
    if cluster is None:
        pytest.skip("it needs a server that the pods reach: not with --kubeconfig")
    server = Server(tmp_path, host=cluster.network.here)
    yield server
    server.close()


@pytest.fixture
def gate(cluster):
    """Counts those who ask, keeps what they say, and holds them until `go` is set."""

    class Held(BaseHTTPRequestHandler):
        def do_GET(self):
            self.server.said.append(json.loads(unquote(self.path.partition("?")[2])))
            self.server.asked += 1
            self.server.go.wait(600)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    listening = ThreadingHTTPServer((cluster.network.here, 0), Held)
    listening.daemon_threads = True
    listening.asked = 0
    listening.said = []
    listening.go = threading.Event()
    listening.url = f"http://{cluster.network.here}:{listening.server_port}/"
    threading.Thread(target=listening.serve_forever, daemon=True).start()
    yield listening
    listening.go.set()
    listening.shutdown()
    listening.server_close()


def keys_of(space, name, keys):
    data = {"AWS_ACCESS_KEY_ID": keys[0], "AWS_SECRET_ACCESS_KEY": keys[1]}
    metadata = {"name": name, "namespace": space.name}
    space.kube.apply(
        {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": data}
    )


def nobody_but_the_reader(server, said, digests, reader):
    """A script of a node finds no keys. Those of the input would only read, if it had them."""
    for found in list(said):
        assert found[digests[2]], "it looks into files"
        assert found[digests[0]] == found[digests[1]] == [], "keys of stores"
        assert found["ledger"] == []
    for path in ("/results/2026/rows.txt", "/photos/in/0000.txt"):
        server.request("PUT", path, body=b"another", expect=403, keys=reader)
        server.request("DELETE", path, expect=403, keys=reader)
    server.request("GET", "/results", "uploads=", expect=403, keys=reader)


@pytest.mark.parametrize("state", ["volume", "store"])
def test_a_job_of_stores_outlives_its_pods(space, operator, server, gate, state):
    files, output = jobs.rows(8)
    for bucket in ("photos", "results"):
        server.bucket(bucket)
    reader, writer = server.user("reader"), server.user("writer")
    server.allow("photos", (reader, "s3:ListBucket", ""), (reader, "s3:GetObject", "/*"))
    writes = ["s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"]
    server.allow("results", (writer, "s3:ListBucket", ""), (writer, writes, "/*"))
    for name, content in files.items():
        server.put("photos", name, content)
    keys_of(space, "reader-keys", reader)
    keys_of(space, "writer-keys", writer)
    kept = space.volume("run", mode="ReadWriteOnce") if state == "volume" else None
    places = {
        "volume": {
            "volumes": [jobs.volume("run")],
            "logs": {"volume": "run", "path": "logs"},
            "state": {"volume": "run", "path": "state"},
        },
        "store": {"volumes": None},  # where the output is
    }
    space.code(SCRIPT)
    manifest = jobs.manifest(
        space.name,
        "stores",
        stores=[
            {
                "name": name,
                "url": f"s3://{name}",
                "endpoint": server.url,
                "region": "eu-west-1",
                "credentials": {"secretName": secret},
            }
            for name, secret in (("photos", "reader-keys"), ("results", "writer-keys"))
        ],
        inputs=[{"name": "rows", "files": {"store": "photos", "path": "in"}}],
        output={"store": "results", "path": "2026", "fileName": "rows.txt"},
        **places[state],
    )
    words = (reader[1], writer[1], "root")  # the last one stands in /etc/passwd
    digests = [hashlib.sha256(word.encode()).hexdigest() for word in words]
    manifest["spec"]["arguments"] = [gate.url, *digests]
    job = space.apply(manifest)
    nodes = job.workers(2)
    wait_until(lambda: gate.asked >= 2, lambda: f"two mini-batches that run\n{job.tell()}", 120)
    assert not job.status["effective"]["oneHost"], "nodes mount no claim"
    for secret in ("reader-keys", "writer-keys"):
        assert secret not in json.dumps(nodes), f"{secret}: a script could read them"
    nobody_but_the_reader(server, gate.said, digests, reader)

    at_once = ["-n", space.name, "--grace-period=0", "--force"]
    for pod in (job.pod("coordinator"), nodes[0]):
        space.kube.kubectl("delete", "pod", pod["metadata"]["name"], *at_once)
    gate.go.set()
    job.succeeded()
    # The job has its verdict before its coordinator gives the output back, the last thing it does.
    wait_until(lambda: not job.pod("coordinator"), lambda: f"its end\n{job.tell()}", 60)

    root = server.root / "results"
    found = sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())
    uid = job.get()["metadata"]["uid"]
    in_store = (f"2026/.parallelrun/stores-{uid}/", "stores/logs/")
    for place in in_store if state == "store" else ():
        assert any(name.startswith(place) for name in found), place
    assert [name for name in found if not name.startswith(in_store)] == [
        "2026/rows.txt",
        "2026/rows.txt.index.jsonl",
        "2026/rows.txt.run/job_result.txt",
        "2026/rows.txt.run/report.html",
    ]
    assert (server.root / "results/2026/rows.txt").read_bytes() == output
    assert job.status["output"]["path"] == "s3://results/2026/rows.txt"
    told = json.dumps([job.get(), job.pods()]) + job.describe()
    if kept:
        told += "".join(kept.read(name).decode(errors="replace") for name in kept.files())
    told += "".join((root / name).read_text(errors="replace") for name in found)
    for secret in (reader[1], writer[1]):
        assert secret not in told and base64.b64encode(secret.encode()).decode() not in told
