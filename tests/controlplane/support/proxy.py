"""Stands between an operator and the API server, to do to the one what the other never does on
demand: die after a write, be late, be cut off.

Every request is passed on as it is, with the operator's own token.
"""

import http.client
import http.server
import json
import ssl
import threading
import time

WRITES = ("POST", "PATCH", "PUT", "DELETE")


class Proxy:
    """`after_write(method, path)` is called when the API server has answered a write (of anything
    but events and leases); if it returns True the operator never hears the answer. While
    `hold(method, path)` is true a request is not passed on. A status that `refuse(method, path)`
    returns is the answer to it in place of the API server's. `watch_delay` is how many seconds late
    watches tell what happens; `watches_refused` ends and refuses them. `watches` is how many there
    are, `refused_watches` how many were refused so far.
    """

    def __init__(self, plane):
        self.after_write = lambda method, path: False
        self.hold = lambda method, path: False
        self.refuse = lambda method, path: None
        self.watch_delay = 0.0
        self.watches_refused = False
        self.watches = 0
        self.refused_watches = 0
        self.writes = []
        self._lock = threading.Lock()
        pki = plane.data / "pki"
        proxy = self

        class Handler(_Handler):
            owner = proxy
            upstream = ("127.0.0.1", int(plane.url.rpartition(":")[2]))
            trust = ssl.create_default_context(cafile=pki / "ca.crt")

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(pki / "apiserver.crt", pki / "apiserver.key")
        self._server.socket = tls.wrap_socket(
            self._server.socket, server_side=True, do_handshake_on_connect=False
        )
        self.url = f"https://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def count(self, watches=0, refused=0):
        with self._lock:
            self.watches += watches
            self.refused_watches += refused

    def close(self):
        self._server.shutdown()
        self._server.server_close()


def through(url, original, path):
    """A user's kubeconfig that leads to this address."""
    text = json.loads(original.read_text())
    text["clusters"][0]["cluster"]["server"] = url
    path.write_text(json.dumps(text))
    return path


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def handle(self):
        try:
            super().handle()
        except (OSError, http.client.HTTPException):
            self.close_connection = True  # the operator is gone

    def _pass_on(self):
        watch = "watch=1" in self.path or "watch=true" in self.path
        if watch and self.owner.watches_refused:
            self.owner.count(refused=1)
            self.close_connection = True
            return
        while self.owner.hold(self.command, self.path.partition("?")[0]):
            time.sleep(0.05)
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length) if length else None
        if status := self.owner.refuse(self.command, self.path.partition("?")[0]):
            self._refuse(status)
            return
        server = http.client.HTTPSConnection(*self.upstream, context=self.trust, timeout=600)
        try:
            headers = {
                k: v for k, v in self.headers.items() if k.lower() not in ("host", "connection")
            }
            server.request(self.command, self.path, body, headers)
            answer = server.getresponse()
            if watch and answer.status == 200:
                self.owner.count(watches=1)
                try:
                    self._stream(answer)
                finally:
                    self.owner.count(watches=-1)
            else:
                self._answer(answer)
        finally:
            server.close()

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _pass_on  # noqa: N815

    def _refuse(self, status):
        reason = {409: "Conflict", 429: "TooManyRequests", 500: "InternalError", 504: "Timeout"}
        told = {"kind": "Status", "status": "Failure", "reason": reason[status], "code": status}
        data = json.dumps({"apiVersion": "v1", "message": "made up", **told}).encode()
        self.send_response_only(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        if status == 429:
            self.send_header("Retry-After", "1")
        self.end_headers()
        self.wfile.write(data)

    def _answer(self, answer):
        data = answer.read()
        path = self.path.partition("?")[0]
        if self.command in WRITES and "/events" not in path and "/leases" not in path:
            self.owner.writes.append((self.command, path, answer.status))
            if self.owner.after_write(self.command, path):
                self.close_connection = True
                return
        self._head(answer)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _head(self, answer):
        self.send_response_only(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("transfer-encoding", "content-length", "connection"):
                self.send_header(name, value)

    def _stream(self, answer):
        self._head(answer)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.close_connection = True
        waiting = []  # (when it is told, line)
        ended = threading.Event()

        def read():
            try:
                waiting.extend((time.monotonic() + self.owner.watch_delay, line) for line in answer)
            except (OSError, http.client.HTTPException, ValueError, AttributeError):
                pass  # closed below
            ended.set()

        threading.Thread(target=read, daemon=True).start()
        while not self.owner.watches_refused and not (ended.is_set() and not waiting):
            if waiting and waiting[0][0] <= time.monotonic():
                line = waiting.pop(0)[1]
                self.wfile.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
            else:
                time.sleep(0.01)
        if ended.is_set():
            self.wfile.write(b"0\r\n\r\n")
