"""`parallelrun logs`: what scripts have written, while a run goes on and after it."""

import signal

import pytest
from support.command import PROGRAM
from support.terminal import Terminal

SCRIPT = """
import sys
from steps import note, wait_for

def run(mini_batch, context):
    index = context.minibatch_index
    print("out of", index, flush=True)
    print("err of", index, file=sys.stderr, flush=True)
    if index == 3:
        print("before \\x1b[31m it fails", flush=True)
        raise ValueError("bad")
    if index == 5:
        note("held", 1)
        wait_for("go")
        print("the last word", end="", flush=True)
    return [open(path).read() for path in mini_batch]
"""


@pytest.fixture
def job(work):
    work.files(6)
    work.script(SCRIPT)
    work.job(runMaxTry=2)
    return work


def lines(work, *words):
    result = work.start("logs", "out/job", *words).wait_only()
    assert result.code == 0, result
    return result.output.splitlines()


def test_all_that_was_written_with_whose_it_is(job):
    job.make("go")
    assert job.run("--nodes", "2").code == 3
    every = lines(job)
    for index in range(6):
        assert any(line.endswith(f" out | out of {index}") for line in every), every
        assert any(line.endswith(f" err | err of {index}") for line in every), every
    assert any(" error | " in line and "ValueError: bad" in line for line in every)
    assert any("| the last word" in line for line in every)
    for node in ("0", "1"):
        of_one = lines(job, "--node", node)
        assert of_one and all(line.startswith(f"{node}/") for line in of_one)
        assert any(line.startswith(f"{node}/agent | ") for line in of_one)
    assert lines(job, "--node", "7") == []


def test_what_the_attempts_of_an_item_wrote(job):
    job.make("go")
    assert job.run().code == 3
    text = "\n".join(lines(job, "--item", "000003.txt"))
    for attempt in (1, 2):
        assert f"== mini-batch 3, attempt {attempt}: failed on node 0, process" in text
    assert text.count("before \x1b[31m it fails") == 2
    assert text.count("err of 3") == 2
    assert text.count("Traceback (most recent call last)") == 2
    assert "out of 2" not in text
    assert "== mini-batch 2: succeeded on node 0" in "\n".join(lines(job, "--item", "000002.txt"))
    missing = job.call("logs", "out/job", "--item", "nothing.txt")
    assert missing.code == 2, missing
    assert "no mini-batch of the run has nothing.txt" in missing.output


def test_it_follows_a_run_to_its_end(job):
    run = job.start_job()
    run.wait_for(lambda: job.noted("held"), "the last mini-batch is held")
    run.wait_for((job.root / "out/job/state/run.json").exists, "what was run is noted")
    follow = job.start("logs", "-f", "out/job")
    follow.wait_for_text("out | out of 5")
    assert "the last word" not in follow.output
    job.make("go")
    assert run.wait_only().code == 3
    result = follow.wait()
    assert result.code == 0, result
    assert result.output.count("| out of 5\n") == 1
    assert "| the last word" in result.output


def test_who_stops_following_leaves_the_run_alone(job):
    run = job.start_job()
    run.wait_for(lambda: job.noted("held"), "the last mini-batch is held")
    run.wait_for((job.root / "out/job/state/run.json").exists, "what was run is noted")
    follow = job.start("logs", "-f", "out/job")
    follow.wait_for_text("out | out of 5")
    follow.send(signal.SIGINT)
    assert follow.wait_only().code == -signal.SIGINT
    assert not run.ended
    job.make("go")
    assert run.wait().code == 3


def test_on_a_terminal_a_line_does_no_harm(job):
    job.make("go")
    assert job.run().code == 3
    terminal = Terminal([PROGRAM, "logs", "out/job"], job.root, job.environment)
    assert terminal.wait() == 0
    terminal.close()
    assert "before \\x1b[31m it fails" in terminal.output
    assert "\x1b[31m" not in terminal.output


def test_there_is_no_run(work):
    result = work.call("logs", "out")
    assert result.code == 2, result
