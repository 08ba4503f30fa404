"""Inputs and output in a bucket, behind a store that fails at random, while every process of the
run is killed at random requests: the output is, byte for byte, that of an undisturbed run.

    STORE_CHAOS_SECONDS   of rounds, each a job of its own; one unless told (script/soak: more)
    STORE_CHAOS_SEED      what decides about them; the same unless told (script/soak), and printed
"""

import os
import random
import sys
import threading
import time
from collections import Counter

from s3_server import OWNER, REGION, Server
from support import processes
from support.faulty_store import FaultyStore
from support.processes import expect_nothing_running
from waits import wait_until

SECONDS = float(os.environ.get("STORE_CHAOS_SECONDS") or 0)
SEED = int(os.environ.get("STORE_CHAOS_SEED") or 1)
FILES = 40
KILLS = 12  # in a round, at most: the command is given the time to end after them

# Rows as large as an output of two parts needs.
SCRIPT = """
def run(mini_batch):
    texts = [open(path).read() for path in mini_batch]
    return [f"{number} {text}" for text in texts for number in range(5)]
"""

# Weights: the requests are the coordinator's and the agents'.
VICTIMS = {"worker": 3, "agent": 3, "guardian": 1, "coordinator": 6, "command": 2}


def set_up(work, url):
    for name in [name for name in work.environment if name.startswith("AWS_")]:
        del work.environment[name]
    work.environment.update(
        HOME=str(work.root),
        AWS_ENDPOINT_URL_S3=url,
        AWS_REGION=REGION,
        AWS_EC2_METADATA_DISABLED="true",
        AWS_ACCESS_KEY_ID=OWNER[0],
        AWS_SECRET_ACCESS_KEY=OWNER[1],
    )


def job(work, name):
    """Whose output, logs and state have that name."""
    work.job(
        stores=[{"name": "in", "url": "s3://chaos-in"}, {"name": "out", "url": "s3://chaos-out"}],
        inputs=[{"name": "files", "files": {"store": "in", "path": "in"}}],
        output={"store": "out", "path": name, "fileName": "rows.txt"},
        logs={"volume": "out", "path": f"{name}/logs"},
        state={"volume": "out", "path": f"{name}/state"},
        cache={"size": "2MB"},  # holds some of the objects
        runMaxTry=1000,  # a killed worker process is a failed attempt
        nodeRestartLimit=100_000,
        coordinator={"restartLimit": 1000},
    )


class Faults:
    """What becomes of each request."""

    def __init__(self, chance):
        self._chance = chance
        self._lock = threading.Lock()
        self.met = Counter()

    def __call__(self, asked):
        shares = {"busy": 4, "lost": 3, "cut": 3}
        if asked.what == "complete":  # nothing else is answered so
            shares["broken"] = 10
        shares[None] = 100 - sum(shares.values())
        with self._lock:
            (fault,) = self._chance.choices(list(shares), shares.values())
            self.met[fault] += 1
        return fault


def kill_one(chance):
    """The role of a process that was killed; None if there was none of it."""
    role = chance.choices(list(VICTIMS), VICTIMS.values())[0]
    candidates = sorted(processes.running(role), key=lambda process: process.pid)
    if not candidates:
        return None
    try:
        chance.choice(candidates).kill()
    except ProcessLookupError:  # it ended by itself
        return None
    return role


def disturbed(work, proxy, chance, killed):
    """The result of a run whose processes are killed, and which is resumed each time."""
    command = work.start_job("--nodes", 2)
    for _ in range(KILLS):
        reached = len(proxy.asked) + chance.randrange(1, 40)
        wait_until(
            lambda reached=reached, command=command: len(proxy.asked) >= reached or command.ended,
            lambda command=command: command.output,
            120.0,
        )
        if command.ended:
            break
        role = kill_one(chance)
        killed[role or "nobody"] += 1
        if role == "command":
            command.wait_only()
            expect_nothing_running(f"seed {SEED}")
            processes.reap()
            command = work.start_job("--resume", "--nodes", 2)
    return command.wait(240)


def test_every_row_once_though_store_and_processes_fail(work, capsys, tmp_path_factory):
    chance = random.Random(SEED)
    print(f"STORE_CHAOS_SEED={SEED}")  # beside each failure
    server = Server(tmp_path_factory.mktemp("s3"))
    try:
        for bucket in ("chaos-in", "chaos-out"):
            server.bucket(bucket)
        for index in range(FILES):
            text = f"{index} " + "".join(chance.choices("abcdefgh", k=100_000))
            server.put("chaos-in", f"in/{index:04}.txt", text.encode())
        work.script(SCRIPT)
        set_up(work, server.url)
        job(work, "undisturbed")
        result = work.run("--nodes", 2)
        assert result.code == 0, result
        results = server.root / "chaos-out"
        expected = (results / "undisturbed/rows.txt").read_bytes()
        assert len(expected) > 16 << 20, "more than a part"

        killed, end, rounds = Counter(), time.monotonic() + SECONDS, 0
        with FaultyStore(server.port) as proxy:
            proxy.fault = faults = Faults(random.Random(SEED))
            set_up(work, proxy.url)
            while rounds == 0 or time.monotonic() < end:
                name = f"round-{rounds}"
                job(work, name)
                result = disturbed(work, proxy, chance, killed)
                told = f"seed {SEED}, round {rounds}\n{result}"
                assert result.code == 0, told
                assert (results / name / "rows.txt").read_bytes() == expected, told
                names = sorted(path.name for path in (results / name).iterdir())
                assert names == ["rows.txt", "rows.txt.index.jsonl", "rows.txt.run"], told
                rounds += 1
        with capsys.disabled():
            print(
                f"\nstore chaos: seed {SEED}, {rounds} rounds; killed {dict(killed)}; "
                f"requests {dict(faults.met)}; 0 lost, 0 duplicate rows",
                file=sys.stderr,  # a worker of pytest has no stdout
            )
    finally:
        server.close()
