"""Each row of the table of exit statuses in docs/cli.md, by a run that ends so."""

import re
import signal
from pathlib import Path

import pytest
from support.workspace import drains

PAGE = Path(__file__).resolve().parents[2] / "docs/cli.md"

BAD_FILE = """
def run(mini_batch, context):
    if context.minibatch_index == 1:
        raise ValueError("bad")
    return [open(path).read() for path in mini_batch]
"""

ALL_BAD = """
def run(mini_batch):
    raise ValueError("bad")
"""

HELD = """
from steps import note, wait_for

def run(mini_batch, context):
    note("held", context.minibatch_index)
    wait_for("go")
    return [open(path).read() for path in mini_batch]
"""


def succeeds(work):
    work.script()
    return work.run()


def fails(work):
    work.script(ALL_BAD)
    work.job(runMaxTry=1)
    return work.run()


def cannot_start(work):
    work.script()
    return work.run("--no-such-flag")


def loses(work):
    work.script(BAD_FILE)
    work.job(runMaxTry=1)
    return work.run()


def stopped_by(signo):
    def stopped(work):
        work.script(HELD)
        command = work.start_job()
        command.wait_for(lambda: work.noted("held"), "a process is held")
        command.send(signo)
        # Before that, its processes would begin what is left.
        command.wait_for_text("Ctrl-C again stops at once")
        command.wait_for(lambda: drains(work.logs), "the node has heard of it")
        work.make("go")
        return command.wait()

    return stopped


RUNS = {
    0: (succeeds, "Succeeded"),
    1: (fails, "NothingSucceeded"),
    2: (cannot_start, "--no-such-flag"),
    3: (loses, "Finished with losses"),
    130: (stopped_by(signal.SIGINT), "To continue: "),
    143: (stopped_by(signal.SIGTERM), "To continue: "),
    129: (stopped_by(signal.SIGHUP), "To continue: "),
}


def rows_of_the_page():
    section = PAGE.read_text().split("## Exit statuses\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| ([\d, ]+) \|", section, re.M)
    return [int(status) for row in rows for status in row.split(",")]


def test_the_page_has_the_rows_that_are_run():
    assert rows_of_the_page() == list(RUNS)


@pytest.mark.parametrize("status", RUNS)
def test_exit_status(work, status):
    ends, says = RUNS[status]
    work.files(30)
    work.job()
    result = ends(work)
    assert result.code == status, result
    assert says in result.output, result
