"""What stands between the programs and a server for S3: a proxy on loopback that looks at each
request, and may fail it as stores do."""

import http.client
import http.server
import socket
import threading
import urllib.parse

from support.command import PATIENCE

BUSY = b"<Error><Code>SlowDown</Code><Message>Reduce your request rate.</Message></Error>"
BROKEN = b"<Error><Code>InternalError</Code><Message>We met an error.</Message></Error>"


class Asked:
    """One request."""

    def __init__(self, number, method, target, body):
        self.number = number
        self.method = method
        self.path, _, query = target.partition("?")
        self.query = urllib.parse.parse_qs(query, keep_blank_values=True)
        self.size = len(body)
        if "uploads" in self.query:
            self.what = "begin" if method == "POST" else "uploads"
        elif "partNumber" in self.query:
            self.what = "part"
        elif "uploadId" in self.query:
            self.what = {"POST": "complete", "DELETE": "end"}.get(method, method)
        else:
            put = "report" if ".run/" in self.path else "put"
            self.what = {"PUT": put, "HEAD": "look", "DELETE": "remove"}.get(method, "read")

    @property
    def of_claim(self):
        return self.path.endswith(".parallelrun-claim")


class FaultyStore:
    """`fault(asked)` runs on the request's thread, and says what becomes of it:

    None      it is passed on
    "busy"    503, after `retry_after` seconds if that is set, and it does not happen
    "broken"  an error in an answer 200, and it does not happen
    "lost"    it happens, and the connection is closed without an answer
    "cut"     it happens, and the answer ends in its midst
    "ignore"  it happens; a condition that was not met is answered with 200

    `change(asked, body)` says what the answer holds instead: names that no server on a disk
    can have, say.
    """

    def __init__(self, target):
        self.target = target
        self.fault = lambda asked: None
        self.retry_after = None
        self.change = lambda asked, body: body
        self.asked = []
        self._lock = threading.Lock()
        proxy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = 60

            def pass_on(self):
                proxy._handle(self)

            do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = pass_on  # noqa: N815

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, *_):
                pass  # whoever was killed has closed its connection

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def count(self, what):
        with self._lock:
            return sum(asked.what == what for asked in self.asked)

    def _handle(self, handler):
        body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        with self._lock:
            asked = Asked(len(self.asked), handler.command, handler.path, body)
            self.asked.append(asked)
        fault = self.fault(asked)
        if fault in ("busy", "broken"):
            status, answer = (503, BUSY) if fault == "busy" else (200, BROKEN)
            wait = {"Retry-After": str(self.retry_after)} if self.retry_after else {}
            self._answer(handler, status, answer, wait if fault == "busy" else {}, False)
            return
        connection = http.client.HTTPConnection("127.0.0.1", self.target, timeout=PATIENCE)
        try:
            connection.putrequest(
                handler.command, handler.path, skip_host=True, skip_accept_encoding=True
            )
            for name, value in handler.headers.items():  # with the Host that was signed
                connection.putheader(name, value)
            connection.endheaders(body)
            response = connection.getresponse()
            answer = self.change(asked, response.read())
            headers = dict(response.getheaders())
            status = response.status
        finally:
            connection.close()
        if fault == "lost":
            handler.close_connection = True
            handler.connection.shutdown(socket.SHUT_RDWR)
            return
        if fault == "ignore" and status == 412:
            status, answer, headers = 200, b"", {"ETag": '"ignored"'}
            if asked.what == "complete":
                answer = b"<CompleteMultipartUploadResult></CompleteMultipartUploadResult>"
        self._answer(handler, status, answer, headers, fault == "cut")

    def _answer(self, handler, status, body, headers, cut):
        handler.send_response_only(status)
        length = headers.get("Content-Length", str(len(body)))
        for name, value in headers.items():
            if name.lower() not in ("content-length", "connection", "transfer-encoding"):
                handler.send_header(name, value)
        handler.send_header(
            "Content-Length", length if handler.command == "HEAD" else str(len(body))
        )
        handler.end_headers()
        if handler.command == "HEAD":
            return
        handler.wfile.write(body[: len(body) // 2] if cut else body)
        if cut:
            handler.close_connection = True
