"""Carries an operator's connections to the API server byte by byte, and cuts them all when a test
says so: what was asked is not answered, and every watch ends in the middle of a line."""

import contextlib
import select
import socket
import socketserver
import threading

PIECE = 1 << 16


class Wires:
    def __init__(self, plane):
        self._upstream = ("127.0.0.1", int(plane.url.rpartition(":")[2]))
        self._lock = threading.Lock()
        self._open = set()  # the operators' ends
        wires = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self):
                with contextlib.suppress(OSError):  # the API server is away, or somebody has left
                    wires._carry(self.request)

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"https://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def cut(self):
        """Returns how many there were."""
        with self._lock:
            for near in self._open:
                with contextlib.suppress(OSError):  # it has gone by itself
                    near.shutdown(socket.SHUT_RDWR)
            return len(self._open)

    def close(self):
        self._server.shutdown()
        self._server.server_close()
        self.cut()

    def _carry(self, near):
        with socket.create_connection(self._upstream, timeout=30) as far:
            with self._lock:
                self._open.add(near)
            try:
                while True:
                    for end in select.select([near, far], [], [])[0]:
                        data = end.recv(PIECE)
                        if not data:
                            return
                        (far if end is near else near).sendall(data)
            finally:
                with self._lock:
                    self._open.discard(near)
