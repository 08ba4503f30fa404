"""A node without any keys processes a job from a bucket, its side input included, and its script
finds none of them: neither the keys of the store nor a URL that was signed with them."""

import threading
from datetime import datetime, timedelta, timezone

import pytest
from s3_server import OWNER, Server
from support.cluster import ClusterJob
from support.faulty_store import FaultyStore
from waits import wait_until

# Keeps all that it can see: what it is given, its environment and that of whoever has started it,
# and each file of its pod.
LOOK = """
import os
import sys
from pathlib import Path

model = None

def init():
    global model
    folder = sys.argv[sys.argv.index("--model") + 1]
    model = Path(folder, "deep", "weights.txt").read_text()

def bytes_of(path):
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""

def ancestors():
    pid = os.getpid()
    while pid > 1:
        yield pid
        status = bytes_of(f"/proc/{pid}/status").decode()
        pid = int(status.split("PPid:")[1].split()[0]) if "PPid:" in status else 0

def run(mini_batch):
    seen = [repr(mini_batch).encode(), repr(dict(os.environ)).encode()]
    for pid in ancestors():
        seen += [bytes_of(f"/proc/{pid}/environ"), bytes_of(f"/proc/{pid}/cmdline")]
    for folder, _, names in os.walk(Path.cwd().parent):
        seen += [bytes_of(os.path.join(folder, name)) for name in names]
    name = f"seen-{os.getpid()}-{os.path.basename(mini_batch[0])}"
    Path(os.environ["TEST_FOLDER"], name).write_bytes(b"\\n".join(seen))
    return [f"{model} {Path(path).read_text()}" for path in mini_batch]
"""


@pytest.fixture
def server(tmp_path):
    running = Server(tmp_path / "s3")
    yield running
    running.close()


def test_a_node_without_keys(work, server):
    server.bucket("photos")
    reader = server.user("reader")
    server.allow("photos", (reader, "s3:ListBucket", ""), (reader, "s3:GetObject", "/*"))
    rows = [f"row {number}" for number in range(12)]
    for number, row in enumerate(rows):
        server.put("photos", f"in/a b/{number:02}+.txt", row.encode())
    server.put("photos", "in/empty.txt", b"")
    server.put("photos", "m/deep/weights.txt", b"weights")
    server.put("photos", "m/empty.txt", b"")
    keys = work.root / "keys"
    keys.mkdir()
    for name, text in zip(("accessKeyId", "secretAccessKey"), reader):
        (keys / name).write_text(text)

    work.environment.update(HOME=str(work.root / "home"), AWS_EC2_METADATA_DISABLED="true")
    work.script(LOOK)
    cluster = ClusterJob(work)
    cluster.mount_code()
    store = {
        "name": "photos",
        "url": "s3://photos",
        "region": "eu-west-1",
        "endpoint": server.url,
        "credentials": {"secretName": "photos-keys"},
    }
    spec = {
        "stores": [store],
        "inputs": [{"name": "files", "files": {"store": "photos", "path": "in"}}],
        "sideInputs": [{"name": "model", "store": "photos", "path": "m/"}],
        "arguments": ["--model", "$(sideInputs.model)"],
    }
    coordinator = cluster.start_coordinator(
        spec=spec, storeKeys={"photos": str(keys)}, presign=True
    )
    nodes = [cluster.start_node(index) for index in range(2)]
    assert coordinator.wait_only().code == 0, coordinator.output
    for node in nodes:
        assert node.wait_only().code == 0, node.output
    assert work.rows() == [f"weights {row}" for row in [*rows, ""]]

    seen = [path.read_bytes() for path in work.root.glob("seen-*")]
    assert len(seen) == len(rows) + 1
    written = [path.read_bytes() for path in work.out.rglob("*") if path.is_file()]
    told = [process.output.encode() for process in (coordinator, *nodes)]
    for secret in (reader[1], reader[0], "X-Amz-"):
        for text in (*seen, *written, *told):
            assert secret.encode() not in text, f"{secret} in {text[:2000]}"


class LateRequests:
    """Holds the first request by a URL for each object until that URL has ended, and then lets it
    go on to the server."""

    def __init__(self, between):
        self.refusals = []  # what the server said to them
        self._seen = set()
        self._lock = threading.Lock()
        between.fault = self._hold
        between.change = self._note

    def _hold(self, asked):
        asked.late = False
        if "X-Amz-Signature" not in asked.query:
            return
        with self._lock:
            asked.late = asked.path not in self._seen
            self._seen.add(asked.path)
        if not asked.late:
            return
        begun = datetime.strptime(asked.query["X-Amz-Date"][0], "%Y%m%dT%H%M%SZ")
        life = timedelta(seconds=int(asked.query["X-Amz-Expires"][0]) + 1)
        ends = begun.replace(tzinfo=timezone.utc) + life
        wait_until(lambda: datetime.now(timezone.utc) > ends, f"{asked.path} has ended")

    def _note(self, asked, body):
        if asked.late:
            self.refusals.append(body)
        return body


def test_urls_that_end_while_the_job_runs(work, server):
    """On their way to a server that says so: each is asked for anew, and nothing fails."""
    server.bucket("photos")
    rows = [f"row {number}" for number in range(8)]
    for number, row in enumerate(rows):
        server.put("photos", f"in/{number}.txt", row.encode())
    server.put("photos", "m/weights.txt", b"weights")
    keys = work.root / "keys"
    keys.mkdir()
    for name, text in zip(("accessKeyId", "secretAccessKey"), OWNER):
        (keys / name).write_text(text)

    work.environment.update(HOME=str(work.root / "home"), AWS_EC2_METADATA_DISABLED="true")
    work.script(
        "import sys\n"
        "def run(mini_batch):\n"
        "    folder = sys.argv[sys.argv.index('--model') + 1]\n"
        "    model = open(folder + '/weights.txt').read()\n"
        "    return [f'{model} {open(path).read()}' for path in mini_batch]\n"
    )
    cluster = ClusterJob(work)
    cluster.mount_code()
    with FaultyStore(server.port) as between:
        late = LateRequests(between)
        spec = {
            "stores": [
                {
                    "name": "photos",
                    "url": "s3://photos",
                    "region": "eu-west-1",
                    "endpoint": between.url,
                    "credentials": {"secretName": "photos-keys"},
                }
            ],
            "inputs": [{"name": "files", "files": {"store": "photos", "path": "in"}}],
            "sideInputs": [{"name": "model", "store": "photos", "path": "m/"}],
            "arguments": ["--model", "$(sideInputs.model)"],
            "miniBatchSize": "4",
            "nodeCount": 1,
            "runMaxTry": 1,
        }
        coordinator = cluster.start_coordinator(
            spec=spec, storeKeys={"photos": str(keys)}, presign=True, urlSeconds=5, nodes=1
        )
        node = cluster.start_node(0)
        assert coordinator.wait_only().code == 0, coordinator.output
        assert node.wait_only().code == 0, node.output
    assert work.rows() == [f"weights {row}" for row in rows]
    assert len(late.refusals) == len(rows) + 1
    for refusal in late.refusals:
        assert b"Request has expired" in refusal, refusal
