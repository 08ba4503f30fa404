"""Plays the agent of one node in a thread: speaks docs/coordinator-api.md over TLS, verified as the
agent verifies it, with made-up results."""

import http.client
import json
import secrets
import socket
import ssl
import struct
import threading
import time
import urllib.parse


class Work:
    """What the nodes of one job do with their mini-batches."""

    def __init__(self, seconds=0.0, fails=(), processes=2):
        self.seconds = seconds
        self.fails = frozenset(fails)
        self.processes = processes
        self.may_finish = threading.Event()
        self.may_finish.set()
        self.may_start = threading.Event()  # cleared: init() hangs
        self.may_start.set()
        self.up_to = None  # mini-batches from this number on do not finish

    def may(self, mini_batch):
        return self.may_finish.is_set() and (self.up_to is None or mini_batch < self.up_to)


class _Connection(http.client.HTTPSConnection):
    """Goes to an address, and expects the certificate of a name."""

    def __init__(self, address, name, context):
        super().__init__(*address, context=context, timeout=30)
        self._name = name

    def connect(self):
        plain = socket.create_connection((self.host, self.port), self.timeout)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock = self._context.wrap_socket(plain, server_hostname=self._name)


class Superseded(Exception):
    """409: another epoch or incarnation is in force."""


class Gone(Exception):
    """The coordinator cannot be reached, or is not ready."""


class Node(threading.Thread):
    """`config` is the agent's configuration, `find` returns the address behind the Service or None,
    `ended` is called with the exit code when the agent's process would end by itself."""

    def __init__(self, config, authority, find, work, ended):
        super().__init__(daemon=True, name=f"node-{config['node']}")
        self._token = config["token"]
        self._index = config["node"]
        self._name = urllib.parse.urlsplit(config["url"]).hostname
        self._context = ssl.create_default_context(cadata=authority)
        self._find = find
        self._work = work
        self._ended = ended
        self._draining = threading.Event()
        self._killed = threading.Event()
        self._connection = None
        self._run_id = None
        self._instance = secrets.token_hex(8)
        self.code = None

    def terminate(self):
        """SIGTERM: hands back what it holds and leaves, with exit code 3."""
        self._draining.set()

    def kill(self):
        """SIGKILL: leaves without a word."""
        self._killed.set()

    def run(self):
        code = None
        while code is None and not self._killed.is_set():
            address = self._find()
            if address is None:
                if self._draining.is_set():
                    code = 3
                self._killed.wait(0.05)
                continue
            try:
                self._connection = _Connection(address, self._name, self._context)
                code = self._session()
            except (OSError, http.client.HTTPException, Gone):
                self._killed.wait(0.1)
            except Superseded:
                pass
            finally:
                self._connection.close()
        if code is not None and not self._killed.is_set():
            self.code = code
            self._ended(code)

    def _call(self, what, body, content_type):
        self._connection.request(
            "POST",
            f"/v1/nodes/{self._index}/{what}",
            body,
            {"Authorization": f"Bearer {self._token}", "Content-Type": content_type},
        )
        answer = self._connection.getresponse()
        data = answer.read()
        if answer.status == 409:
            raise Superseded
        if answer.status != 200:
            raise Gone(f"{answer.status} {data[:200]}")
        return data

    def _say(self, what, **body):
        return json.loads(self._call(what, json.dumps(body), "application/json") or b"{}")

    def _session(self):
        identity = {"runId": self._run_id} if self._run_id else {}
        heard = self._say(
            "register",
            protocol=9,
            processes=self._work.processes,
            host=f"node-{self._index}",
            pid=1,
            instance=self._instance,
            **identity,
        )
        self._run_id = heard["runId"]
        epoch, number = heard["epoch"], heard["incarnation"]
        head = struct.pack("<IIQ", epoch, number, int(heard["settingsDigest"], 16))
        first_process = heard["firstProcess"]
        held = {}  # (id, epoch, number) -> when it is finished
        finished = {}
        ready = False
        events = []
        while not self._killed.is_set():
            draining = self._draining.is_set()
            if not ready and self._work.may_start.is_set():
                ready = True
                events.append(struct.pack("<IB", first_process, 3) + _text(b"") + _text(b"1"))
            now = time.monotonic()
            for lease, due in list(held.items()):
                if draining:
                    finished[lease] = struct.pack("<QIQB", *lease, 3)
                    del held[lease]
                elif due <= now and self._work.may(lease[0]):
                    finished[lease] = self._result(lease, first_process)
                    del held[lease]
            want = 0 if draining or not ready else max(0, self._work.processes - len(held))
            park = 50 if held or finished or draining else 300
            reply = self._call(
                "exchange",
                head
                + struct.pack("<QQB", 0, 0, 0)  # one request at a time, none is given up
                + struct.pack("<II", want, park)
                + _list([struct.pack("<QIQB", *lease, 1) for lease in (*held, *finished)])
                + _list([])
                + _list([])
                + _list(list(finished.values()))
                + _list(events),
                "application/octet-stream",
            )
            events = []
            directive, settled, refused, leased = _reply(reply)
            for lease in settled + refused:
                finished.pop(lease, None)
                held.pop(lease, None)
            for lease in leased:
                held[lease] = time.monotonic() + self._work.seconds
            if directive == 1:
                self._draining.set()
            if directive == 4 and not ready:
                where = _text(b"init score.py:3 (score.py:3)")
                events.append(struct.pack("<IB", first_process, 16) + where + _text(b""))
            if directive == 2 or (self._draining.is_set() and not held and not finished):
                reason = "finished" if directive == 2 else "drained"
                self._say("leave", epoch=epoch, incarnation=number, reason=reason)
                return 0 if directive == 2 else 3
        return None

    def _result(self, lease, process):
        took = int(self._work.seconds * 1e9)
        times = [took] * 3 + [2**64 - 1] * 3  # that of run() alone was measured
        if lease[0] in self._work.fails:
            told = (
                struct.pack("<B", 1)
                + _text(b"ValueError")
                + _text(b"made up")
                + _text(b"user/error/0/process001.txt")
                + struct.pack("<4Q", 0, 0, 0, 0)  # which of its output is not known
            )
            return struct.pack("<QIQBI6Q", *lease, 2, process, *times) + told
        rows = f"row of {lease[0]}\n".encode()
        return (
            struct.pack("<QIQBI6Q", *lease, 1, process, *times)
            + struct.pack("<IIIQ", 1, 0, 1, 0)
            + _text(rows)
        )


def _text(data):
    return struct.pack("<I", len(data)) + data


def _list(entries):
    return struct.pack("<I", len(entries)) + b"".join(entries)


def _reply(data):
    _, directive = struct.unpack_from("<IB", data)
    at = 5

    def names():
        nonlocal at
        (count,) = struct.unpack_from("<I", data, at)
        found = [struct.unpack_from("<QIQ", data, at + 4 + 20 * i) for i in range(count)]
        at += 4 + 20 * count
        return found

    settled, refused = names(), names()
    (count,) = struct.unpack_from("<I", data, at)
    at += 4 + 32 * count  # adopted: nothing is ever offered
    (count,) = struct.unpack_from("<I", data, at)
    at += 4
    leased = []
    for _ in range(count):
        leased.append(struct.unpack_from("<QIQ", data, at))
        (length,) = struct.unpack_from("<I", data, at + 28)
        at += 32 + length
    return directive, settled, refused, leased
