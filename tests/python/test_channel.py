"""When results are sent: the rule of docs/worker-protocol.md, without a clock."""

import socket
import struct
import time

import pytest
from parallelrun.worker.channel import AgentGone, Channel

SHORT, LONG = 99_999, 100_000
MS = 1_000_000


@pytest.fixture
def ends():
    ours, theirs = socket.socketpair()
    channel = Channel(theirs.detach())
    yield channel, ours
    ours.close()


def add(channel, run_ns, now, data=b"row\n"):
    channel.result(1, run_ns, 0, 1, 0, 1, data, now)


def arrived(end):
    end.setblocking(False)
    data = b""
    try:
        while True:
            data += end.recv(1 << 20)
    except BlockingIOError:
        pass
    count = 0
    while data:
        (size,) = struct.unpack_from("<I", data)
        data = data[5 + size :]
        count += 1
    return count


def test_short_runs_are_held_until_flush(ends):
    channel, agent = ends
    add(channel, SHORT, 0)
    add(channel, SHORT, MS - 1)
    assert arrived(agent) == 0
    channel.flush()
    assert arrived(agent) == 2
    channel.flush()
    assert arrived(agent) == 0


def test_a_run_of_a_tenth_of_a_millisecond_sends(ends):
    channel, agent = ends
    add(channel, SHORT, 0)
    add(channel, LONG, 1)
    assert arrived(agent) == 2


def test_the_oldest_being_a_millisecond_old_sends(ends):
    channel, agent = ends
    add(channel, SHORT, 5)
    add(channel, SHORT, 5 + MS - 1)
    assert arrived(agent) == 0
    add(channel, SHORT, 5 + MS)
    assert arrived(agent) == 3
    add(channel, SHORT, 6 + MS)
    assert arrived(agent) == 0


def test_before_run_only_old_results_are_sent(ends):
    channel, agent = ends
    add(channel, SHORT, time.monotonic_ns() + 1_000_000 * MS)
    channel.flush_if_old()
    assert arrived(agent) == 0
    channel.flush()
    add(channel, SHORT, time.monotonic_ns() - MS)
    assert arrived(agent) == 1
    channel.flush_if_old()
    assert arrived(agent) == 1


def test_256_kib_send(ends):
    channel, agent = ends
    add(channel, SHORT, 0, b"x" * (128 << 10))
    assert arrived(agent) == 0
    agent.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    channel._write = sizes = Sizes()
    add(channel, SHORT, 0, b"x" * (128 << 10))
    assert sizes == [2 * (5 + 60 + (128 << 10))]


class Sizes(list):
    """Takes the place of a write, and keeps the sizes."""

    def __call__(self, data):
        self.append(len(data))


def test_end_of_stream(ends):
    channel, agent = ends
    agent.close()
    with pytest.raises(AgentGone):
        channel.fill()
