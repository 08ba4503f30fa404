"""One `kill -9` of one worker amid 2,000 tasks of 2 ms on 2 workers: what becomes of the rest?

Asks multiprocessing.Pool, ProcessPoolExecutor, Ray, Dask and Celery, each as its documentation has
it and without settings of its own, and then ParallelRun, also with its agent and its coordinator
killed. Each task appends a line to a file, by which calls are counted. Prints a table. Run by hand:
it installs the peers into build/peers (400 MB), and Celery needs redis-server on the path.

    /usr/bin/python3 tests/bench/kill_demo.py [--programs build/release/bin] [NAME...]
"""

import argparse
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PEERS = ROOT / "build" / "peers"
PINNED = ["ray==2.60.0", "dask==2026.8.0", "distributed==2026.8.0", "celery==5.7.0", "redis==8.1.0"]
TASKS = 2000
KILL_AT = 500
LIMIT = 60  # seconds after the kill; whoever has not ended by then hangs

TASK = f"""
import os, time
TASKS = {TASKS}
history = os.open(os.environ["HISTORY"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)

def work(number):
    time.sleep(0.002)
    os.write(history, b"%d %d\\n" % (os.getpid(), number))
    return number

def tell(results):
    got = 0
    try:
        for _ in results:
            got += 1
    finally:
        print("got", got, flush=True)
"""

PROGRAMS = {
    "multiprocessing.Pool.imap_unordered": """
import multiprocessing
from kill_task import TASKS, tell, work
with multiprocessing.Pool(2) as pool:
    tell(pool.imap_unordered(work, range(TASKS)))
""",
    "ProcessPoolExecutor.map": """
from concurrent.futures import ProcessPoolExecutor
from kill_task import TASKS, tell, work
with ProcessPoolExecutor(2) as pool:
    tell(pool.map(work, range(TASKS)))
""",
    "Ray ActorPool": """
import ray
from kill_task import TASKS, tell, work
from ray.util import ActorPool
ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)

@ray.remote
class Worker:
    def work(self, number):
        return work(number)

pool = ActorPool([Worker.remote() for _ in range(2)])
tell(pool.map_unordered(lambda actor, number: actor.work.remote(number), range(TASKS)))
""",
    "Ray tasks": """
import ray
from kill_task import TASKS, tell, work
ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
remote = ray.remote(work)
tell(ray.get(reference) for reference in [remote.remote(n) for n in range(TASKS)])
""",
    "Dask distributed": """
from dask.distributed import Client, as_completed
from kill_task import TASKS, tell, work
if __name__ == "__main__":
    client = Client(n_workers=2, threads_per_worker=1, dashboard_address=None)
    tell(f.result() for f in as_completed(client.map(work, range(TASKS))))
    client.close()
""",
    "Celery + Redis": """
import os, subprocess, sys, tempfile
from celery_app import work
from kill_task import TASKS, tell
port = os.environ["REDIS_PORT"]
quiet = dict(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
command = ["redis-server", "--port", port, "--bind", "127.0.0.1", "--save", ""]
redis = subprocess.Popen(command, cwd=tempfile.gettempdir(), **quiet)
command = [sys.executable, "-m", "celery", "-A", "celery_app", "worker", "-c", "2"]
worker = subprocess.Popen(command, **quiet)
try:
    import time
    while subprocess.run(["redis-cli", "-p", port, "ping"], **quiet).returncode: time.sleep(0.1)
    results = [work.delay(n) for n in range(TASKS)]
    tell(result for result in results if (result.get(propagate=False), result.successful())[1])
finally:
    worker.terminate(), redis.terminate()
""",
}

CELERY_APP = """
import os, kill_task
from celery import Celery
url = "redis://127.0.0.1:" + os.environ["REDIS_PORT"]
app = Celery("kill", broker=url, backend=url)

@app.task(name="work")
def work(number):
    return kill_task.work(number)
"""

OURS = """
import os
from kill_task import work

def run(mini_batch):
    return [work(int(os.path.basename(path))) for path in mini_batch]
"""


def below(pid):
    """Processes below `pid`, by id, with their command lines."""
    parents, words = {}, {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            stat = (entry / "stat").read_text()
            words[int(entry.name)] = (entry / "cmdline").read_text().split("\0")
        except OSError:
            continue
        parents[int(entry.name)] = int(stat[stat.rindex(")") + 2 :].split()[1])
    found = {pid}
    while more := {p for p, parent in parents.items() if parent in found} - found:
        found |= more
    return {p: words[p] for p in found - {pid}}


def lines(history):
    return history.read_text().splitlines() if history.exists() else []


def kill_one(child, history, role):
    """Waits for the middle and kills; says whom, or None when the program ended before."""
    while len(done := lines(history)) < KILL_AT:
        if child.poll() is not None:
            return None
        time.sleep(0.005)
    if role == "worker":
        victim = int(done[-1].split()[0])
    else:
        victim = next(
            pid
            for pid, words in below(child.pid).items()
            if words[0].endswith(f"parallelrun-{role}") and "guard" not in words
        )
    os.kill(victim, signal.SIGKILL)
    return victim


def measure(name, command, folder, role="worker", output=None):
    history = folder / "history"
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    environment = {
        **os.environ,
        "HISTORY": str(history),
        "REDIS_PORT": port,
        "PYTHONPATH": str(folder),
        "RAY_DEDUP_LOGS": "0",
    }
    started = time.monotonic()
    with open(folder / "log", "w") as log:
        child = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=log, stderr=log, start_new_session=True
        )
    killed = kill_one(child, history, role)
    try:
        code = child.wait(LIMIT)
        end = "ended well" if code == 0 else f"failed ({code})"
    except subprocess.TimeoutExpired:
        end = "hangs"
        for pid in [*below(child.pid), child.pid]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        child.wait()
    seconds = time.monotonic() - started
    text = (folder / "log").read_text(errors="replace").splitlines()
    if output:
        rows = output.read_text().split() if output.exists() else []
        got, twice = len(set(rows)), len(rows) - len(set(rows))
    else:
        said = [line.split()[1] for line in text if line.startswith("got ")]
        got, twice = (int(said[-1]) if said else "told of none"), 0
    calls = Counter(line.split()[1] for line in lines(history))
    again = sum(calls.values()) - len(calls)
    errors = [line for line in text if "Error" in line or "Broken" in line]
    if end == "ended well":
        errors = []
    why = errors[-1].strip()[:70] if errors else ""
    if killed is None:
        end, why = "ended before the kill", "\n".join(text[-5:])
    print(
        f"| {name} | {end} | {got} of {TASKS} | {twice} | {again} | {seconds:.1f} s | {why} |",
        flush=True,
    )


def prepare_peers():
    python = PEERS / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", PEERS], check=True)
    subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PINNED],
        check=True,
    )
    return python


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--programs", type=Path, default=ROOT / "build" / "release" / "bin")
    parser.add_argument("names", nargs="*", help="of the table; default: all")
    arguments = parser.parse_args()
    ours = {
        "ParallelRun, worker process": "worker",
        "ParallelRun, agent": "agent",
        "ParallelRun, coordinator": "coordinator",
    }
    names = arguments.names or [*PROGRAMS, *ours]
    python = prepare_peers() if any(name in PROGRAMS for name in names) else None
    print("| killed with 2,000 tasks to do | end | results | twice | calls again | in all | says |")
    print("|---|---|---|---|---|---|---|")
    for name in names:
        folder = Path(tempfile.mkdtemp(prefix="kill-demo-"))
        try:
            (folder / "kill_task.py").write_text(TASK)
            (folder / "celery_app.py").write_text(CELERY_APP)
            if name in PROGRAMS:
                if name.startswith("Celery") and not shutil.which("redis-server"):
                    print(f"| {name} | not asked: there is no redis-server | | | | | |")
                    continue
                (folder / "program.py").write_text(PROGRAMS[name])
                measure(name, [python, folder / "program.py"], folder)
                continue
            data = folder / "data"
            data.mkdir()
            for number in range(TASKS):
                (data / f"{number:06}").touch()
            (folder / "score.py").write_text(OURS)
            command = [arguments.programs / "parallelrun", "run", "score.py", "--input", "data"]
            command += ["--output", "out", "--mini-batch-size", "1", "--processes", "2"]
            command += ["--set", f"spec.environment.python={sys.executable}"]
            output = folder / "out" / "parallel_run_step.txt"
            measure(name, command, folder, ours[name], output)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
