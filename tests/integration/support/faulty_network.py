"""What stands between agents and a coordinator: a TCP proxy that delays, stalls, holds and cuts,
and network namespaces that can be unplugged."""

import asyncio
import ipaddress
import os
import random
import socket
import struct
import subprocess
import threading

from support.command import PATIENCE


class FaultyProxy:
    """Passes connections on to a port of this machine. All attributes may change on the way.

    delay     seconds that each byte is under way
    loss      the share of reads that are followed by a stall, as a lost packet makes TCP wait
    requests  how many records of data have come from below, by the heads of TLS's records
    withheld  how many reads of what a silenced connection was answered
    """

    def __init__(self, target, delay=0.0, loss=0.0, seed=0):
        self.target = target
        self.delay = delay
        self.loss = loss
        self.faults = 0
        self.requests = 0
        self.withheld = 0
        self._silent = False
        self._silenced = set()  # connections
        self._random = random.Random(seed)
        self._sockets = set()
        self._held = set()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def hold(self, *directions):
        """Nothing moves "up" (to the coordinator) or "down", and nobody is told."""
        self._call(lambda: self._held.update(directions))

    def silence(self):
        """Of each request that begins from now on the answer does not come. Connections are made
        as ever."""
        self._call(lambda: setattr(self, "_silent", True))

    def release(self):
        self._call(self._release)

    def cut(self):
        """Resets every connection; returns how many there were."""
        return self._call(self._cut)

    def close(self):
        self._call(lambda: (self._cut(), self._loop.call_soon(self._server.cancel)))
        self._thread.join()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # --- the rest runs on the loop's thread

    def _call(self, function):
        async def call():
            return function()

        return asyncio.run_coroutine_threadsafe(call(), self._loop).result(60)

    def _run(self):
        asyncio.set_event_loop(self._loop)
        self._server = self._loop.create_task(self._serve())
        try:
            self._loop.run_until_complete(self._server)
        except asyncio.CancelledError:
            pass
        left = asyncio.all_tasks(self._loop)
        for task in left:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        self._loop.close()
        self._listening.close()

    async def _serve(self):
        server = await asyncio.start_server(self._connect, sock=self._listening)
        async with server:
            await server.serve_forever()

    def _release(self):
        self._silent = False
        self._silenced.clear()
        self._held.clear()

    def _request(self, connection):
        self.requests += 1
        if self._silent:
            self._silenced.add(connection)

    def _cut(self):
        for writer in self._sockets:
            # With this option a close is a reset.
            linger = struct.pack("ii", 1, 0)
            try:
                one = writer.get_extra_info("socket")
                one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            except OSError:  # it has ended by itself
                pass
            writer.transport.abort()
        count = len(self._sockets) // 2
        self.faults += count
        self._sockets.clear()
        return count

    async def _connect(self, reader, writer):
        try:
            up = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.transport.abort()
            return
        self._sockets |= {writer, up[1]}
        connection = Records(self._request)
        try:
            await asyncio.gather(
                self._pass(reader, up[1], "up", connection),
                self._pass(up[0], writer, "down", connection),
            )
        finally:
            for one in (writer, up[1]):
                self._sockets.discard(one)
                one.transport.abort()

    async def _pass(self, reader, writer, direction, connection):
        waiting = asyncio.Queue(maxsize=64)

        async def deliver():
            while True:
                due, data = await waiting.get()
                await asyncio.sleep(due - self._loop.time())
                silent = direction == "down" and connection in self._silenced
                self.withheld += silent
                while direction in self._held or (
                    direction == "down" and connection in self._silenced
                ):
                    await asyncio.sleep(0.01)
                if not data:
                    writer.close()
                    return
                writer.write(data)
                await writer.drain()

        delivery = asyncio.ensure_future(deliver())
        try:
            due = 0.0
            while True:
                try:
                    data = await reader.read(1 << 16)
                except OSError:
                    data = b""
                if direction == "up":
                    connection.see(data)
                stall = 0.0
                if self._random.random() < self.loss:
                    stall = self._random.uniform(0.2, 0.6)
                    self.faults += 1
                due = max(due, self._loop.time() + self.delay + stall)
                await waiting.put((due, data))
                if not data:
                    break
            await delivery
        except OSError:
            pass
        finally:
            delivery.cancel()


class Records:
    """Sees the data of a client of TLS 1.3 pass; `request` is called with this at the beginning of
    each record of data. The first one of them ends the handshake, and is none."""

    def __init__(self, request):
        self._request = request
        self._head = b""
        self._left = 0  # bytes of the record that passes
        self._data = 0  # records

    def see(self, data):
        while data:
            if self._left > 0:
                taken = min(self._left, len(data))
                self._left -= taken
            else:
                taken = min(5 - len(self._head), len(data))
                self._head += data[:taken]
                if len(self._head) == 5:
                    kind, _, self._left = struct.unpack("!BHH", self._head)
                    self._head = b""
                    self._data += kind == 23
                    if kind == 23 and self._data > 1:
                        self._request(self)
            data = data[taken:]


class Namespace:
    """A network of its own, with a cable to this machine's. Needs root."""

    def __init__(self):
        pid = os.getpid()  # others may make such a network meanwhile
        self.name = f"prtest-{pid}"
        self.cable = f"prt{pid}"
        # 198.18.0.0/15 is for measurements and tests; it has room for one network of each number.
        network = ipaddress.ip_address("198.18.0.0") + pid % (1 << 15) * 4
        self.here, self.there = str(network + 1), str(network + 2)
        ip("netns", "add", self.name)
        try:
            ip("link", "add", self.cable, "type", "veth", "peer", "name", "lan", "netns", self.name)
            ip("address", "add", f"{self.here}/30", "dev", self.cable)
            ip("link", "set", self.cable, "up")
            for words in (
                ("link", "set", "lo", "up"),
                ("address", "add", f"{self.there}/30", "dev", "lan"),
                ("link", "set", "lan", "up"),
            ):
                ip("-netns", self.name, *words)
        except BaseException:
            self.close()
            raise

    @property
    def within(self):
        """Words in front of a program that runs there."""
        return ["ip", "netns", "exec", self.name]

    def unplug(self):
        ip("link", "set", self.cable, "down")

    def plug_in(self):
        ip("link", "set", self.cable, "up")

    def close(self):
        subprocess.run(["ip", "netns", "delete", self.name], check=False, timeout=PATIENCE)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def ip(*words):
    done = subprocess.run(["ip", *words], capture_output=True, text=True, timeout=PATIENCE)
    if done.returncode != 0:
        raise OSError(f"ip {' '.join(words)}: {done.stderr.strip()}")
