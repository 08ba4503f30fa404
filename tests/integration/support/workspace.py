"""One job in a folder of its own: code, data, job file, output, temporary files."""

import copy
import json
import os
import shutil
import sys
from pathlib import Path

from support import processes
from support.command import PROGRAM, Command

STEPS = Path(__file__).with_name("steps.py")

# Gives back its files' contents, one row each, and notes the mini-batches it was called with.
ECHO = """
from steps import note

def run(mini_batch, context):
    note("calls", context.minibatch_index)
    return [open(path).read() for path in mini_batch]
"""


def rows_without(count, *missing):
    """The rows that so many files make, but for those."""
    return [f"row {index}" for index in range(count) if index not in missing]


def drains(logs):
    """How often nodes have heard that they are to drain, and so begin nothing more."""
    texts = [path.read_text() for path in logs.glob("sys/node/*/_main.txt")]
    return "".join(texts).count("draining, as the coordinator asks")


class Workspace:
    def __init__(self, root):
        self.root = root
        self.code = root / "code"
        self.data = root / "data"
        self.out = root / "out"
        self.temporary = root / "tmp"
        self.runtime = root / "runtime"
        for folder in (self.code, self.data, self.temporary, self.runtime):
            folder.mkdir()
        shutil.copy(STEPS, self.code)
        self.environment = {
            **os.environ,
            "TMPDIR": str(self.temporary),
            "XDG_RUNTIME_DIR": str(self.runtime),
            "TEST_FOLDER": str(root),
        }
        self.job_file = root / "job.yaml"
        self.commands = []

    # --- what goes in

    def script(self, text=ECHO, name="score.py"):
        (self.code / name).write_text(text)

    def files(self, count, text="row {}"):
        """Files whose names sort as their numbers do; returns the rows that ECHO makes of them."""
        rows = [text.format(index) for index in range(count)]
        for index, row in enumerate(rows):
            (self.data / f"{index:06}.txt").write_text(row)
        return rows

    def spec(self, **fields):
        # Two processes; one for tables, for each imports pandas, which is most of the CPU that such
        # a test costs. What is decided about a table comes with each mini-batch.
        tables = any("tabular" in one for one in fields.get("inputs") or [])
        spec = {
            "entryScript": "score.py",
            "code": {"path": "code"},
            "environment": {"python": sys.executable},
            "volumes": [
                {"name": "data", "hostPath": {"path": str(self.data)}},
                {"name": "out", "hostPath": {"path": str(self.out)}},
            ],
            "inputs": [{"name": "files", "files": {"volume": "data"}}],
            "output": {"volume": "out"},
            "processCountPerNode": 1 if tables else 2,
            "miniBatchSize": "1",
        }
        spec.update(copy.deepcopy(fields))
        return {name: value for name, value in spec.items() if value is not None}

    def job(self, **fields):
        """Writes the job file (JSON is YAML); a field that is None is left out."""
        job = {
            "apiVersion": "parallelrun.dev/v1alpha1",
            "kind": "ParallelRunJob",
            "metadata": {"name": "job"},
            "spec": self.spec(**fields),
        }
        self.job_file.write_text(json.dumps(job, indent=2))

    def make(self, name):
        """A file that an entry script waits for."""
        (self.root / name).touch()

    # --- the command

    def start(self, *words, terminal=False, program=PROGRAM):
        log = self.root / f"command-{len(self.commands)}.txt"
        command = Command(
            [str(program), *map(str, words)], self.root, self.environment, log, terminal
        )
        self.commands.append(command)
        return command

    def start_job(self, *words, **options):
        return self.start("run", self.job_file.name, *words, **options)

    def call(self, *words, limit=240.0):
        return self.start(*words).wait(limit)

    def run(self, *words, limit=240.0):
        return self.start_job(*words).wait(limit)

    def close(self):
        """Ends what runs; returns what that was. Whose parent was killed may be about to end."""
        if all(command.ended for command in self.commands):
            processes.left_after()
        left = processes.kill_all()
        for command in self.commands:
            command.close()
        processes.reap()
        return left

    # --- what comes out

    @property
    def output(self):
        return self.out / "job" / "output" / "parallel_run_step.txt"

    @property
    def logs(self):
        return self.out / "job" / "logs"

    def beside_index(self, name="parallel_run_step.txt"):
        """What lies in the folder of a published output, but for its index, which must be there."""
        names = sorted(path.name for path in self.output.parent.iterdir())
        names.remove(f"{name}.index.jsonl")
        return names

    def rows(self):
        return self.output.read_text().splitlines()

    def noted(self, name):
        """The lines that entry scripts noted in a file."""
        path = self.root / name
        return path.read_text().splitlines() if path.exists() else []

    def log_text(self, pattern):
        """The log files that match, one after the other."""
        return "".join(path.read_text() for path in sorted(self.logs.glob(pattern)))
