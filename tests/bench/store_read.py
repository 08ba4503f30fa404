"""Measures how fast objects of 100 kB come out of a bucket into run(), which takes 5 ms for each:
`parallelrun run` beside a bare reader on the same server (versitygw on loopback), and beside the
same job from a folder, in turns.

The bare reader has as many processes, which have as many connections together as a node begins
with, read ahead, and wait 5 ms for each object; nothing is cached, tried again or written. Start
and end are in all of it. Prints a line per figure: the median, and the smallest and largest.
"""

import argparse
import collections
import concurrent.futures
import http.client
import multiprocessing
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from s3_server import OWNER, REGION, ROOT, Server

SIZE = 100_000
RUN_SECONDS = 0.005
PROCESSES = 2
CONNECTIONS = 16

SCRIPT = f"""import time

def run(mini_batch):
    rows = []
    for path in mini_batch:
        with open(path, "rb") as file:
            rows.append(str(len(file.read())))
        time.sleep({RUN_SECONDS})
    return rows
"""


def product(programs, work, source, environment, files):
    """Runs the job; seconds."""
    out = work / "out"
    words = [programs / "parallelrun", "run", work / "code/read.py", "--input", source]
    words += ["--output", out, "--mini-batch-size", "1", "--processes", PROCESSES, "--overwrite"]
    words += ["--python", sys.executable, "--quiet"]
    started = time.monotonic()
    subprocess.run([str(word) for word in words], check=True, cwd=work, env=environment)
    took = time.monotonic() - started
    (rows,) = out.glob("*.txt")
    assert rows.read_text() == f"{SIZE}\n" * files, "the rows are not those of the objects"
    return took


def read_some(server, names):
    """What one process of the bare reader does."""
    kept = threading.local()

    def fetch(name):
        if not hasattr(kept, "connection"):
            kept.connection = http.client.HTTPConnection(server.host, server.port, timeout=180)
        path = f"/bench/in/{name}"
        kept.connection.request("GET", path, headers=server.signed("GET", path))
        response = kept.connection.getresponse()
        bytes_read = len(response.read())
        assert (response.status, bytes_read) == (200, SIZE), (response.status, bytes_read)

    def run(fetched):
        fetched.result()
        time.sleep(RUN_SECONDS)

    ahead = collections.deque()
    connections = CONNECTIONS // PROCESSES
    with concurrent.futures.ThreadPoolExecutor(connections) as threads:
        for name in names:
            ahead.append(threads.submit(fetch, name))
            if len(ahead) > 2 * connections:
                run(ahead.popleft())
        while ahead:
            run(ahead.popleft())


def bare(server, names):
    """Seconds."""
    started = time.monotonic()
    # The server's object is inherited: it cannot be sent to another process.
    fork = multiprocessing.get_context("fork")
    readers = [
        fork.Process(target=read_some, args=(server, names[number::PROCESSES]))
        for number in range(PROCESSES)
    ]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    took = time.monotonic() - started
    assert all(reader.exitcode == 0 for reader in readers), "the bare reader failed"
    return took


def say(what, values, unit=""):
    middle = statistics.median(values)
    print(f"{what}: {middle:.2f}{unit} ({min(values):.2f} to {max(values):.2f})", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=Path, default=ROOT / "build/release/bin")
    parser.add_argument("--files", type=int, default=4000)
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()
    work = Path(tempfile.mkdtemp(prefix="read-"))
    server = Server(work / "s3")
    try:
        server.bucket("bench")
        (work / "in").mkdir()
        names = [f"{number:06}" for number in range(options.files)]
        data = os.urandom(SIZE)
        for name in names:
            (work / "in" / name).write_bytes(data)
            server.put("bench", f"in/{name}", data)
        (work / "code").mkdir()
        (work / "code/read.py").write_text(SCRIPT)
        environment = {
            **os.environ,
            "HOME": str(work),
            "AWS_ENDPOINT_URL_S3": server.url,
            "AWS_REGION": REGION,
            "AWS_ACCESS_KEY_ID": OWNER[0],
            "AWS_SECRET_ACCESS_KEY": OWNER[1],
        }
        ways = {
            "bucket": lambda: product(
                options.programs, work, "s3://bench/in/", environment, options.files
            ),
            "bare": lambda: bare(server, names),
            "folder": lambda: product(
                options.programs, work, work / "in", environment, options.files
            ),
        }
        took = {way: [] for way in ways}
        for turn in range(options.turns):
            order = list(ways) if turn % 2 == 0 else list(reversed(ways))
            for way in order:
                took[way].append(ways[way]())
        least = options.files * RUN_SECONDS / PROCESSES
        print(f"{options.files} objects of {SIZE / 1000:.0f} kB; run() alone: {least:.2f} s")
        say("from a bucket", took["bucket"], " s")
        say("a bare reader of that bucket", took["bare"], " s")
        say("from a folder", took["folder"], " s")
        for other, what in (("bare", "the bare reader"), ("folder", "the folder")):
            ratios = [one / two for one, two in zip(took[other], took["bucket"])]
            say(f"the speed from the bucket beside {what}", ratios)
    finally:
        server.close()
        shutil.rmtree(work)


if __name__ == "__main__":
    main()
