"""`--events jsonl` (docs/events.md): what programs hear of a run, and readers that are slow."""

import fcntl
import json
import os
import re
import signal
import subprocess

import pytest
from support.command import PROGRAM, ROOT
from support.json_schema import problems
from support.processes import expect_nothing_running
from support.workspace import drains, rows_without
from waits import wait_for_process, wait_until

PAGE = (ROOT / "docs/events.md").read_text()
SCHEMA = json.loads((ROOT / "docs/events.schema.json").read_text())

FAILS_ONE = """
from steps import note, wait_for

def run(mini_batch, context):
    note("calls", context.minibatch_index)
    if context.minibatch_index == 1:
        raise ValueError("bad\\n\\x1b[31m" + chr(0x2028))
    if context.minibatch_index == 2:
        wait_for("go")
    return [open(path).read() for path in mini_batch]
"""

HELD = """
from steps import note, wait_for

def run(mini_batch):
    note("held", 1)
    wait_for("go")
    return [open(path).read() for path in mini_batch]
"""


class Events:
    """The command with its events in a file."""

    def __init__(self, work, *words):
        self.path = work.root / f"events-{len(work.commands)}.jsonl"
        # Its stdout is the file; what people read goes where it always does.
        shell = f'exec "$0" "$@" > {self.path}'
        self.command = work.start("-c", shell, PROGRAM, "run", work.job_file.name, *words,
                                  "--events", "jsonl", program="/bin/sh")  # fmt: skip

    def read(self):
        """Those that are whole."""
        lines = self.path.read_bytes().split(b"\n")[:-1] if self.path.exists() else []
        return [json.loads(line) for line in lines]

    def of(self, name):
        return [event for event in self.read() if event["event"] == name]

    def wait(self):
        result = self.command.wait()
        events = self.read()
        assert [event["event"] for event in events].count("end") == 1
        assert events[-1]["event"] == "end"
        assert events[-1]["exitStatus"] == result.code
        assert [problems(event, SCHEMA) for event in events if problems(event, SCHEMA)] == []
        return result, events


def documented(name):
    """The keys that the page gives an event."""
    (row,) = re.findall(rf"^\| `{name}`(?:, `\w+`)? \| .* \|(.*)\|$", PAGE, re.M)
    return set(re.findall(r"`(\w+)`", row))


def table_behind(words):
    """The names in the first column of the page's table that follows these words."""
    rows = PAGE.split(words)[1].split("|---|---|\n")[1].split("\n\n")[0].splitlines()
    return {name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])}


def test_the_schema_has_what_the_page_says():
    """Each event, and the keys of those that have a table of their own."""
    of = {
        one["if"]["properties"]["event"]["const"]: one["then"]["$ref"].rpartition("/")[2]
        for one in SCHEMA["allOf"]
    }
    events = PAGE.split("| event | comes | has |\n")[1].split("\n\n")[0]
    assert set(of) == set(re.findall(r"^\| `(\w+)` ", events, re.M))

    def known(name):
        return set(SCHEMA["$defs"][of[name]]["properties"])

    assert known("progress") == table_behind("`progress` has these keys")
    assert known("failure") == table_behind("`failure` is one attempt")
    assert known("end") == table_behind("`end` says how it ended")
    assert documented("start") <= known("start")


def test_the_schema_refuses_what_is_none():
    node = {"event": "node", "seconds": 1.5, "node": 0, "change": "lost", "text": ""}
    assert problems(node, SCHEMA) == []
    assert problems({**node, "event": "of a later release", "node": "x"}, SCHEMA) == []
    assert problems({**node, "later": 1}, SCHEMA) == []
    assert problems({**node, "node": -1}, SCHEMA) == ["$.node is -1, less than 0"]
    assert problems({**node, "node": True}, SCHEMA) == ["$.node is True, and not integer"]
    assert problems({"event": "node", "seconds": 1}, SCHEMA)[:1] == ["$ has no node"]


def test_a_run_from_start_to_end(work):
    rows = work.files(5)
    work.script()
    work.job()
    result, events = Events(work).wait()
    assert result.code == 0
    assert events[0]["event"] == "start"
    start, end = events[0], events[-1]
    assert documented("start") <= set(start)
    assert (start["version"], start["job"], start["processes"]) == (1, "job", 2)
    assert (start["logs"], start["output"]) == (str(work.logs), str(work.output.parent))
    assert (end["state"], end["reason"], end["losses"]) == ("Succeeded", "Complete", None)
    assert end["miniBatches"]["succeeded"] == end["items"]["succeeded"] == end["rows"] == 5
    assert end["output"]["path"] == str(work.output)
    assert end["output"]["bytes"] == len("\n".join(rows)) + 1
    phases = [event["phase"] for event in events if event["event"] == "phase"]
    assert phases[-1] == "Succeeded"
    last = [event for event in events if event["event"] == "progress"][-1]
    assert last["miniBatches"]["total"] == last["miniBatches"]["succeeded"] == 5
    # People read on.
    assert "Succeeded (Complete)" in result.output
    notes = [event["text"] for event in events if event["event"] == "note"]
    assert any("Python " in note for note in notes), notes


def test_a_failure_is_told_while_the_job_runs_and_once(work):
    work.files(4)
    (work.data / "000001.txt").unlink()
    hostile = os.fsencode(work.data) + b"/000001 \n\xff\x1b.txt"
    with open(hostile, "w") as file:
        file.write("x")
    work.script(FAILS_ONE)
    work.job(runMaxTry=2)
    events = Events(work)
    events.command.wait_for(lambda: len(events.of("failure")) == 2, "both attempts are told")
    events.command.wait_for(
        lambda: any((event["slowest"] or {}).get("item") for event in events.of("progress")),
        "the slowest is named",
    )
    work.make("go")
    result, told = events.wait()
    assert result.code == 3
    failures = [event for event in told if event["event"] == "failure"]
    assert [(one["attempt"], one["final"]) for one in failures] == [(1, False), (2, True)]
    one = failures[1]
    assert (one["miniBatch"], one["type"], one["items"]) == (1, "ValueError", 1)
    assert one["message"].startswith("bad")
    assert one["location"] == "score.py:7"
    assert [os.fsencode(path) for path in one["paths"]] == [hostile]
    assert (work.logs / one["log"]).is_file()
    assert told[-1]["losses"] == 1
    # No name and no message can break a line, or reach a terminal.
    assert not re.search(rb"[\x00-\x09\x0b-\x1f]", events.path.read_bytes())


def test_init_that_takes_long_is_told(work):
    rows = work.files(2)
    work.script(
        "from steps import wait_for\n\n"
        "def init():\n    wait_for('go')\n\n"
        "def run(mini_batch):\n    return [open(path).read() for path in mini_batch]\n"
    )
    work.job()
    events = Events(work)
    events.command.wait_for(
        lambda: any(
            event["init"].startswith("init() has been running for ")
            and " on 1 node" in event["init"]
            for event in events.of("progress")
        ),
        "init() is told",
    )
    work.make("go")
    result, told = events.wait()
    assert result.code == 0
    assert work.rows() == rows
    assert [event for event in told if event["event"] == "progress"][-1]["init"] == ""


def test_what_is_known_at_the_end_only_is_told_then(work):
    """Also where nobody was fast enough to ask while it ran."""
    work.files(6)
    work.script("def run(mini_batch):\n    return [1]\n")
    work.job(miniBatchSize="3", errorThreshold=-1)
    _, told = Events(work).wait()
    failures = [event for event in told if event["event"] == "failure"]
    if not failures:  # the job's rule says that this is no loss
        assert told[-1]["losses"] is None
    work.script("def run(mini_batch):\n    raise KeyError('a')\n")
    work.job(miniBatchSize="3", runMaxTry=1)
    _, told = Events(work, "--overwrite").wait()
    failures = [event for event in told if event["event"] == "failure"]
    assert sorted((one["miniBatch"], one["items"]) for one in failures) == [(0, 3), (1, 3)]
    assert all(one["final"] and len(one["paths"]) == 3 for one in failures)
    assert told[-1]["state"] == "Failed"
    assert told[-1]["reason"]


def test_a_reader_that_goes_away_ends_nothing(work):
    rows = work.files(50)
    work.script()
    work.job()
    words = [str(PROGRAM), "run", str(work.job_file), "--events", "jsonl"]
    with open(work.root / "said.txt", "wb") as said:
        run = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=said, env=work.environment)
        assert json.loads(run.stdout.readline())["event"] == "start"
        run.stdout.close()
        told = work.root / "said.txt"
        assert wait_for_process(run, told.read_text, 120.0) == 0, told.read_text()
    expect_nothing_running()
    assert work.rows() == rows


def test_people_who_read_one_line_end_nothing(work):
    rows = work.files(50)
    work.script()
    work.job()
    shell = f"{PROGRAM} run {work.job_file.name} 2>&1 | head -n 1; exit ${{PIPESTATUS[0]}}"
    assert work.start("-c", shell, program="/bin/bash").wait().code == 0
    assert work.rows() == rows


def test_a_reader_that_does_not_read_holds_up_nothing(work):
    """The pipe is full, and all mini-batches are finished; the rest is there when it reads."""
    work.files(3)
    work.script(HELD)
    work.job()
    reads, writes = os.pipe()
    fcntl.fcntl(writes, 1031, 4096)  # F_SETPIPE_SZ: as small as a pipe can be
    with open(work.root / "said.txt", "wb") as said:
        words = [str(PROGRAM), "run", str(work.job_file), "--events", "jsonl"]
        run = subprocess.Popen(words, stdout=writes, stderr=said, env=work.environment)
        os.close(writes)
        wait_until(lambda: len(work.noted("held")) == 2, lambda: "two are held")
        os.set_blocking(reads, False)
        work.make("go")
        wait_until(work.output.exists, lambda: "the output is published", 60)
        os.set_blocking(reads, True)
        with os.fdopen(reads, "rb") as events:
            told = [json.loads(line) for line in events]
        assert wait_for_process(run, "the command ends", 60.0) == 0
    expect_nothing_running()
    assert told[0]["event"] == "start"
    assert told[-1]["event"] == "end"


@pytest.mark.parametrize("signo", [signal.SIGINT, signal.SIGTERM])
def test_one_that_is_stopped_says_so(work, signo):
    rows = work.files(4)
    work.script(HELD)
    work.job()
    events = Events(work)
    events.command.wait_for(lambda: len(work.noted("held")) == 2, "two are held")
    events.command.send(signo)
    events.command.wait_for(lambda: events.of("stopping"), "it says that it stops")
    events.command.wait_for(lambda: drains(work.logs), "the node has heard of it")
    work.make("go")
    result, told = events.wait()
    end = told[-1]
    assert (result.code, end["state"], end["reason"]) == (128 + signo, "Stopped", "")
    assert end["resume"] == f"{PROGRAM} run job.yaml --events jsonl --resume"
    _, again = Events(work, "--resume").wait()
    assert again[-1]["state"] == "Succeeded"
    progress = [event for event in again if event["event"] == "progress"]
    assert progress[0]["miniBatches"]["before"] == end["miniBatches"]["succeeded"]
    assert work.rows() == rows


def test_one_that_cannot_start_says_why(work):
    work.files(1)
    work.job()
    (work.code / "score.py").write_text("def ran(mini_batch):\n    return []\n")
    result, told = Events(work).wait()
    assert result.code == 2
    assert [event["event"] for event in told] == ["start", "note", "end"]
    assert told[-1]["state"] == "NotStarted"
    assert "score.py" in told[-1]["message"]
    assert told[-1]["miniBatches"] is None


def test_a_node_that_ends_is_told(work):
    work.files(3)
    work.script(
        """
import os, signal
from steps import note

def run(mini_batch, context):
    if not os.path.exists(os.path.join(os.environ["TEST_FOLDER"], "killed")):
        note("killed", 1)
        os.kill(os.getppid(), signal.SIGKILL)
    return [open(path).read() for path in mini_batch]
"""
    )
    work.job(processCountPerNode=1)
    result, told = Events(work).wait()
    assert result.code == 0, result
    nodes = [event for event in told if event["event"] == "node"]
    assert [(one["node"], one["change"]) for one in nodes] == [(0, "lost")]
    assert work.rows() == rows_without(3)
