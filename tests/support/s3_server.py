"""A real server for S3, on a free port and in a folder of the test's own. What tests write to it
they sign by themselves."""

import datetime
import hashlib
import hmac
import http.client
import json
import os
import ssl
import subprocess
import time
import urllib.parse
from pathlib import Path

from waits import Limit, TooLate, wait_for_process

ROOT = Path(__file__).resolve().parents[2]

OWNER = ("AKIAOWNEROWNEROWNER0", "secret-of-the-owner")
REGION = "eu-west-1"


def program():
    """The path of the server; it is built at the first call ever."""
    return subprocess.run(
        [ROOT / "tests/support/versitygw"], check=True, text=True, stdout=subprocess.PIPE
    ).stdout.strip()


def listening_port(pid):
    """The port that a process of one listening socket has been given."""
    sockets = set()
    for entry in os.listdir(f"/proc/{pid}/fd"):
        try:
            link = os.readlink(f"/proc/{pid}/fd/{entry}")
        except FileNotFoundError:
            continue
        if link.startswith("socket:["):
            sockets.add(link[8:-1])
    for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[3] == "0A" and fields[9] in sockets:
            return int(fields[1].split(":")[1], 16)
    return None


class Server:
    def __init__(self, folder, *options, host="127.0.0.1"):
        """Options are those of the server; with `--cert` it speaks TLS."""
        self.host = host
        self.root = folder / "buckets"
        self.users = {}
        for name in ("buckets", "sidecar", "users"):
            (folder / name).mkdir(parents=True)
        self.tls = "--cert" in options
        command = [
            program(),
            "--port",
            f"{host}:0",
            "--quiet",
            "--region",
            REGION,
            "--iam-dir",
            folder / "users",
        ]
        # Files that a test lays into a bucket's folder are objects without an ETag of their own.
        command += [
            *options,
            "posix",
            "--sidecar",
            folder / "sidecar",
            "--default-etag",
            "laid-there",
            self.root,
        ]
        # Keys on a command line could be read by all.
        environment = {
            "PATH": os.environ["PATH"],
            "ROOT_ACCESS_KEY": OWNER[0],
            "ROOT_SECRET_KEY": OWNER[1],
        }
        self.log = (folder / "log").open("w")
        self.process = subprocess.Popen(
            command, env=environment, stdout=self.log, stderr=subprocess.STDOUT
        )
        wait = Limit(60)
        self.port = None
        while self.port is None:
            assert self.process.poll() is None, (folder / "log").read_text()
            if wait.over():
                raise TooLate(f"it does not listen: {(folder / 'log').read_text()}")
            self.port = listening_port(self.process.pid)
            time.sleep(0.01)
        self.url = f"{'https' if self.tls else 'http'}://{host}:{self.port}"

    def close(self):
        self.process.terminate()
        wait_for_process(self.process, "the server ends", 60)
        self.log.close()

    def signed(self, method, path, query="", body=b"", keys=OWNER):
        """The headers of a request that those keys sign; path and query are encoded already."""
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
        headers = {
            "host": f"{self.host}:{self.port}",
            "x-amz-content-sha256": hashlib.sha256(body).hexdigest(),
            "x-amz-date": now,
        }
        names = ";".join(sorted(headers))
        lines = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
        canonical = (
            f"{method}\n{path}\n{query}\n{lines}\n{names}\n{headers['x-amz-content-sha256']}"
        )
        scope = f"{now[:8]}/{REGION}/s3/aws4_request"
        text = f"AWS4-HMAC-SHA256\n{now}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
        key = ("AWS4" + keys[1]).encode()
        for part in [*scope.split("/"), text]:
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        headers["authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={keys[0]}/{scope}, SignedHeaders={names}, "
            f"Signature={key.hex()}"
        )
        return headers

    def request(self, method, path, query="", body=b"", expect=200, keys=OWNER):
        """A request that those keys sign; path and query are encoded already."""
        headers = self.signed(method, path, query, body, keys)
        if self.tls:
            connection = http.client.HTTPSConnection(
                self.host, self.port, context=ssl._create_unverified_context(), timeout=180
            )
        else:
            connection = http.client.HTTPConnection(self.host, self.port, timeout=180)
        connection.request(method, path + ("?" + query if query else ""), body, headers)
        response = connection.getresponse()
        answer = response.read()
        connection.close()
        assert response.status == expect, (response.status, answer)
        return answer

    def bucket(self, name):
        self.request("PUT", f"/{name}")
        return self.root / name

    def put(self, bucket, key, data):
        self.request("PUT", f"/{bucket}/{urllib.parse.quote(key, safe='/~')}", body=data)

    def delete(self, bucket, key):
        self.request("DELETE", f"/{bucket}/{urllib.parse.quote(key, safe='/~')}", expect=204)

    def user(self, name):
        """Keys of a new user, who may do nothing yet."""
        keys = (f"AKIA{name.upper():0<16}", f"secret-of-{name}")
        words = ["admin", "--endpoint-url", self.url, "create-user"]
        words += ["--access", keys[0], "--secret", keys[1], "--role", "user"]
        environment = {
            "ADMIN_ACCESS_KEY": OWNER[0],
            "ADMIN_SECRET_KEY": OWNER[1],
            "ADMIN_REGION": REGION,
        }
        subprocess.run(
            [program(), *words], env=environment, check=True, stdout=subprocess.DEVNULL, timeout=180
        )
        return keys

    def allow(self, bucket, *statements):
        """Each statement: (keys, action, resource below the bucket or "")."""
        policy = {
            "Version": "2012-10-17",
            "Statement": [
                {
                    "Effect": "Allow",
                    "Principal": {"AWS": [keys[0]]},
                    "Action": action,
                    "Resource": f"arn:aws:s3:::{bucket}{below}",
                }
                for keys, action, below in statements
            ],
        }
        self.request("PUT", f"/{bucket}", "policy=", json.dumps(policy).encode(), expect=204)
