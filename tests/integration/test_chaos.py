"""kill -9 and freezes, at random moments, of every process of a running job.

The entry script keeps a history of its own of each call of run(), by appending a line to a file,
and writes a side file now and then, of another content in each call. At the end the output is
compared, byte for byte, with what an undisturbed run writes, and with that history; and what the
job and its ledger count, with both. Of each side file that of one call is there, whole, and nothing
else.

    CHAOS_SECONDS   of faults; 20 unless told (script/soak: more), and in proportion fewer
                    mini-batches for less than 120
    CHAOS_SEED      what decides about them; the same unless told (script/soak), and printed
"""

import json
import os
import random
import re
import signal
import sys
import time
from collections import Counter

from support import processes
from support.processes import expect_nothing_running

SECONDS = float(os.environ.get("CHAOS_SECONDS") or 20)
SEED = int(os.environ.get("CHAOS_SEED") or 1)
MINI_BATCHES = round(50_000 * min(1, SECONDS / 120))
NODES = 3
LEASE_SECONDS = 10

# A call takes longer as the time for faults does, so that the job never ends before them.
SCRIPT = """
import os, time
from azureml_user.parallel_run import EntryScript
from steps import FOLDER, there

side_files = EntryScript().output_dir

history = os.open(os.path.join(FOLDER, "history"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
pace = float(open(os.path.join(FOLDER, "pace")).read())
over = False

def run(mini_batch):
    global over
    number = mini_batch[0]["number"]
    os.write(history, b"called %d\\n" % number)
    over = over or there("over")
    if not over:
        time.sleep(pace)
    if number % 100 == 0:
        with open(os.path.join(side_files, f"{number}.txt"), "w") as file:
            file.write(f"{number} " * 1000)
            file.flush()
            file.write(f"{os.getpid()} {time.monotonic_ns()}")
    os.write(history, b"returned %d\\n" % number)
    return [f"{number} {number * number}"]
"""

# Weights: worker processes die most often, whole nodes less, and rarely the command itself.
VICTIMS = {"worker": 12, "agent": 3, "guardian": 1, "coordinator": 3, "command": 1}


class Chaos:
    def __init__(self, work):
        self.work = work
        self.random = random.Random(SEED)
        self.faults = Counter()
        self.frozen = []  # (time of thawing, process)
        self.command = work.start_job("--nodes", NODES)

    def act(self, process, signo):
        try:
            process.kill(signo)
        except ProcessLookupError:  # it ended by itself
            return False
        return True

    def thaw(self, all_of_them=False):
        now = time.monotonic()
        for until, process in self.frozen[:]:
            if all_of_them or until <= now:
                self.act(process, signal.SIGCONT)
                self.frozen.remove((until, process))

    def strike(self):
        roles = list(VICTIMS)
        role = self.random.choices(roles, VICTIMS.values())[0]
        candidates = sorted(processes.running(role), key=lambda process: process.pid)
        if not candidates:
            return
        victim = self.random.choice(candidates)
        # A frozen command is one that a shell stopped; its children go on.
        if self.random.random() < 0.3:
            # Most are short; some outlive every deadline of the protocol.
            seconds = self.random.choice([0.05, 0.5, 2, LEASE_SECONDS * 1.5])
            if self.act(victim, signal.SIGSTOP):
                self.frozen.append((time.monotonic() + seconds, victim))
                self.faults["stopped " + role] += 1
        elif self.act(victim, signal.SIGKILL):
            self.faults["killed " + role] += 1
            if role == "command":
                self.go_on()

    def go_on(self):
        """The command was killed: everything below it ends, and the user resumes."""
        self.thaw(all_of_them=True)
        self.command.wait_only()
        expect_nothing_running(f"seed {SEED}")
        processes.reap()
        self.command = self.work.start_job("--resume", "--nodes", NODES)

    def run(self):
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            # How often: sometimes a burst, sometimes seconds of peace. This is no synchronisation.
            time.sleep(self.random.choice([0.02, 0.2, 0.5, 1.5]))
            self.thaw()
            if self.command.ended:
                raise AssertionError(f"ended under faults (seed {SEED}):\n{self.command.output}")
            self.strike()
        self.thaw(all_of_them=True)


def test_every_row_once_under_random_kills_and_freezes(work, capsys):
    (work.data / "numbers.jsonl").write_text(
        "".join(json.dumps({"number": number}) + "\n" for number in range(MINI_BATCHES))
    )
    processes_in_all = NODES * 2
    pace = max(0.002, 1.3 * SECONDS * processes_in_all / MINI_BATCHES)
    (work.root / "pace").write_text(str(pace))
    work.script(SCRIPT)
    work.job(
        inputs=[{"name": "numbers", "jsonLines": {"volume": "data"}}],
        runMaxTry=1000,  # a killed worker process is a failed attempt
        nodeRestartLimit=100_000,
        coordinator={"restartLimit": 1000},
        output={"volume": "out", "sideFiles": "Staged"},
    )
    print(f"CHAOS_SEED={SEED}")  # beside each failure
    chaos = Chaos(work)
    chaos.run()
    work.make("over")  # no more waiting
    result = chaos.command.wait(240)
    assert result.code == 0, f"seed {SEED}\n{result}"

    expected = "".join(f"{number} {number * number}\n" for number in range(MINI_BATCHES))
    assert work.output.read_text() == expected, f"seed {SEED}"
    written = range(0, MINI_BATCHES, 100)
    names = sorted([work.output.name, *(f"{number}.txt" for number in written)])
    assert work.beside_index() == names, f"seed {SEED}"
    for number in written:
        text = (work.output.parent / f"{number}.txt").read_text()
        whole = re.escape(f"{number} " * 1000) + r"\d+ \d+"
        assert re.fullmatch(whole, text), f"{number}.txt (seed {SEED})"
    verified = work.call("verify", work.output)
    assert verified.code == 0, f"seed {SEED}\n{verified}"
    assert f"whole: {len(written)} side files" in verified.output

    counts = f"{MINI_BATCHES} succeeded, 0 failed"
    assert f"{counts}, of {MINI_BATCHES}" in result.output, f"seed {SEED}\n{result}"
    ledger = work.call("ledger", work.out / "job" / "state")
    assert ledger.code == 0, ledger
    assert f"{counts}, 0 open, of {MINI_BATCHES}" in ledger.output, f"seed {SEED}\n{ledger}"

    called, returned = Counter(), Counter()
    for line in work.noted("history"):
        what, number = line.split()
        (called if what == "called" else returned)[int(number)] += 1
    never = [number for number in range(MINI_BATCHES) if returned[number] == 0]
    assert never == [], f"rows of calls that never returned (seed {SEED}): {never[:10]}"
    with capsys.disabled():
        again = sum(called.values()) - MINI_BATCHES
        told = ", ".join(f"{count} {what}" for what, count in sorted(chaos.faults.items()))
        print(
            f"\nchaos: seed {SEED}, {SECONDS:.0f} s, {sum(chaos.faults.values())} faults ({told}); "
            f"{MINI_BATCHES} mini-batches, 0 lost, 0 duplicate rows, {again} calls repeated",
            file=sys.stderr,  # a worker of pytest has no stdout
        )
