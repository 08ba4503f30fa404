"""What an empty run() costs: `python3 tests/python/hot_path.py`, microseconds per mini-batch.

Drives a real worker process as an agent would that always has work queued, with one-item
mini-batches of files whose size and time are checked, then one at a time.
"""

import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path

from fake_agent import RESULT, FakeAgent, batch, files_work, stamp_of

COUNT = 200_000
PING_PONGS = 2_000
STARTS = 20


def starts(folder):
    times = []
    # With compiled modules, as on a node.
    environment = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(folder / "compiled")}
    for _ in range(STARTS):
        began = time.perf_counter()
        agent = FakeAgent(folder, environment, entryScript="nothing.py")
        agent.ready()
        times.append(time.perf_counter() - began)
        agent.stop()
        agent.close()
    times.sort()
    print(f"start to ready: min {times[0] * 1e3:.1f} ms, median {times[STARTS // 2] * 1e3:.1f} ms")


def stream(agent, root, stamps, name):
    work = [batch(n + 1, files_work(root, ["item"], index=n, stamps=stamps)) for n in range(COUNT)]
    data = b"".join(work)
    began = time.perf_counter()
    sender = threading.Thread(target=agent.send, args=(data,))
    sender.start()
    result = 5 + 36 + len(root) + len("/item\n")
    missing = COUNT * result
    while missing:
        missing -= len(agent.socket.recv(1 << 20))
    took = time.perf_counter() - began
    sender.join()
    print(f"{name}: {took / COUNT * 1e6:.2f} us per mini-batch")


def ping_pong(agent, root):
    began = time.perf_counter()
    for sequence in range(1, PING_PONGS + 1):
        agent.send(batch(sequence, files_work(root, ["item"])))
        agent.expect(RESULT)
    took = time.perf_counter() - began
    print(f"one at a time: {took / PING_PONGS * 1e6:.1f} us per mini-batch, both ends")


def main():
    folder = Path(tempfile.mkdtemp(prefix="hot-path-"))
    try:
        shutil.copytree(Path(__file__).parent / "scripts", folder / "code")
        item = folder / "item"
        item.write_text("x")
        starts(folder)
        agent = FakeAgent(folder, entryScript="nothing.py")
        agent.ready()
        stream(agent, str(folder), None, "stream, sizes unknown")
        stream(agent, str(folder), [stamp_of(item)], "stream, files checked")
        ping_pong(agent, str(folder))
        agent.stop()
        agent.close()
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
