"""A real server for Azure Blob Storage, on a free port and with all of it in memory. What tests
write to it they sign by themselves."""

import base64
import datetime
import hashlib
import hmac
import http.client
import os
import subprocess
import time
import urllib.parse
import xml.etree.ElementTree
from pathlib import Path

from s3_server import listening_port
from waits import Limit, TooLate, wait_for_process

ROOT = Path(__file__).resolve().parents[2]

ACCOUNT = "parallelrundata"
KEY = base64.b64encode(b"the key of the account of the tests").decode()
OTHER_KEY = base64.b64encode(b"a key that is of no account").decode()
VERSION = "2021-12-02"


def program():
    """The path of the server; it is installed at the first call ever."""
    return subprocess.run(
        [ROOT / "tests/support/azurite"], check=True, text=True, stdout=subprocess.PIPE
    ).stdout.strip()


def mac(text, key=KEY):
    digest = hmac.new(base64.b64decode(key), text.encode(), hashlib.sha256).digest()
    return base64.b64encode(digest).decode()


class Server:
    def __init__(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        command = [program(), "--blobPort", "0", "--inMemoryPersistence"]
        command += ["--extentMemoryLimit", "512", "--silent", "--disableTelemetry"]
        # Keys on a command line could be read by all.
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "AZURITE_ACCOUNTS": f"{ACCOUNT}:{KEY}",
        }
        self.log = (folder / "log").open("w")
        self.process = subprocess.Popen(
            command, env=environment, cwd=folder, stdout=self.log, stderr=subprocess.STDOUT
        )
        wait = Limit(120)
        self.port = None
        while self.port is None:
            assert self.process.poll() is None, (folder / "log").read_text()
            if wait.over():
                raise TooLate(f"it does not listen: {(folder / 'log').read_text()}")
            try:
                self.port = listening_port(self.process.pid)
            except FileNotFoundError:  # it has ended, and its log says why
                wait_for_process(self.process, "the server ends", 60)
            time.sleep(0.01)
        self.endpoint = f"http://127.0.0.1:{self.port}/{ACCOUNT}"

    def close(self):
        self.process.terminate()
        wait_for_process(self.process, "the server ends", 60)
        self.log.close()

    def connection_string(self, key=KEY):
        return (
            f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={key};"
            f"BlobEndpoint={self.endpoint};"
        )

    @staticmethod
    def url(container, prefix=""):
        return f"abfss://{container}@{ACCOUNT}.dfs.core.windows.net/{prefix}"

    @staticmethod
    def sas(container, permissions, ends="2099-01-01T00:00:00Z", key=KEY):
        """What allows a container to whoever has it."""
        fields = {"sp": permissions, "se": ends, "sv": VERSION, "sr": "c"}
        lines = [permissions, "", ends, f"/blob/{ACCOUNT}/{container}", "", "", "", VERSION, "c"]
        fields["sig"] = mac("\n".join(lines + [""] * 7), key)
        return urllib.parse.urlencode(fields)

    def request(self, method, path, query=None, body=b"", headers=None, expect=200):
        """A signed request of the owner; a path of text, and a query of names and texts."""
        query = query or {}
        path = f"/{ACCOUNT}/{urllib.parse.quote(path, safe='/~')}"
        now = datetime.datetime.now(datetime.timezone.utc)
        all_headers = {
            "x-ms-date": now.strftime("%a, %d %b %Y %H:%M:%S GMT"),
            "x-ms-version": VERSION,
            **(headers or {}),
        }
        length = str(len(body)) if body else ""
        lines = [method, "", "", length, "", "", "", "", "", "", "", ""]
        lines += [
            f"{name}:{all_headers[name]}"
            for name in sorted(all_headers)
            if name.startswith("x-ms-")
        ]
        lines += [f"/{ACCOUNT}{path}", *(f"{name}:{query[name]}" for name in sorted(query))]
        all_headers["Authorization"] = f"SharedKey {ACCOUNT}:{mac(chr(10).join(lines))}"
        target = path + ("?" + urllib.parse.urlencode(query) if query else "")
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=180)
        connection.request(method, target, body, all_headers)
        response = connection.getresponse()
        answer = response.read()
        connection.close()
        assert response.status == expect, (response.status, answer)
        return answer

    def container(self, name):
        self.request("PUT", name, {"restype": "container"}, expect=201)

    def put(self, container, name, data, **metadata):
        headers = {f"x-ms-meta-{key}": value for key, value in metadata.items()}
        headers["x-ms-blob-type"] = "BlockBlob"
        self.request("PUT", f"{container}/{name}", {}, data, headers, expect=201)

    def delete(self, container, name):
        self.request("DELETE", f"{container}/{name}", expect=202)

    def names(self, container):
        answer = self.request("GET", container, {"restype": "container", "comp": "list"})
        root = xml.etree.ElementTree.fromstring(answer)
        return [node.text for node in root.iterfind("Blobs/Blob/Name")]
