"""Async mode, contract section 4.2: several mini-batches in flight in one process."""

import pytest
from fake_agent import (
    HEADER,
    HEADER_OF_JOB,
    RUNNING,
    STOP,
    STOPPED,
    WAITING,
    batch,
    files_work,
    frame,
)
from waits import wait_until


def start(launch, how):
    agent = launch("async_score.py", how, asyncMode=True)
    agent.ready()
    return agent


def send(agent, count, first=0):
    work = [
        batch(100 + index, files_work("/in", [str(index)], index=index))
        for index in range(first, first + count)
    ]
    agent.send(b"".join(work))


def test_s4_2_several_in_flight_are_answered_in_any_order(launch):
    agent = start(launch, "reversed")
    send(agent, 3)
    results = [agent.result() for _ in range(3)]
    assert [(r.sequence, r.data) for r in results] == [
        (102, b"/in/2\n"),
        (101, b"/in/1\n"),
        (100, b"/in/0\n"),
    ]
    assert all(result.run_ns > 0 and result.succeeded == 1 for result in results)
    assert agent.finished() == 3
    assert agent.stop() == (None, 0)
    assert agent.stdout_path.read_text() == "init\nshutdown\n"


def test_s4_2_the_status_page_shows_the_oldest(launch):
    agent = start(launch, "reversed")
    send(agent, 2)
    wait_until(lambda: agent.phase() == (100, RUNNING), "the oldest one runs")
    since = agent.entered()
    send(agent, 1, first=2)
    for _ in range(3):
        agent.result()
    wait_until(lambda: agent.phase() == (0, WAITING), "nothing runs")
    assert agent.entered() > since


def test_s4_2_ids_may_come_back_as_strings(launch):
    agent = start(launch, "strings")
    send(agent, 1)
    assert agent.result().data == b"/in/0\n"


def test_s4_2_stop_waits_for_what_is_in_flight(launch):
    agent = start(launch, "reversed")
    send(agent, 3)
    agent.send(frame(STOP))
    assert sorted(agent.result().sequence for _ in range(3)) == [100, 101, 102]
    assert agent.expect(STOPPED) == b""
    assert agent.wait() == 0


def test_s4_2_an_exception_fails_its_mini_batch_only(launch):
    agent = start(launch, "raise")
    send(agent, 1)
    assert agent.result().sequence == 100
    send(agent, 1, first=1)
    failed = agent.failed()
    assert failed.sequence == 101
    assert (failed.failure["kind"], failed.failure["message"]) == ("Exception", "bad batch")
    assert "|mini-batch 1, attempt 1: " in agent.log("user/error/0/process000.txt")
    send(agent, 1, first=2)
    assert agent.result().sequence == 102


def test_s4_2_enqueue_that_raises_fails_the_mini_batch(launch):
    agent = start(launch, "refuse")
    send(agent, 1, first=1)
    failure = agent.failed().failure
    assert failure["message"] == "not now"
    assert failure["location"].startswith("async_score.py:")


def test_s4_2_a_lost_mini_batch_fails(launch):
    agent = start(launch, "lose")
    send(agent, 1)
    failure = agent.failed().failure
    assert failure["kind"] == "BadReturn"
    assert "check_all_tasks_processed() returned True" in failure["message"]


@pytest.mark.parametrize(
    ("returned", "kind", "message"),
    [
        ("{0: {'exception': None}}", "BadReturn", "no result for this mini-batch"),
        ("{0: {'ret': None, 'exception': None}}", "BadReturn", "returned None"),
        ("{0: {'ret': [], 'exception': 'why'}}", "Exception", "why"),
        ("{0: []}", "BadReturn", "no result for this mini-batch"),
        ("1 / 0", "Exception", "division by zero"),
        ("7", "Exception", "not iterable"),
    ],
)
def test_s4_2_bad_results(launch, returned, kind, message):
    text = (
        "def enqueue(data, context): pass\n"
        "def check_all_tasks_processed(): return False\n"
        "def get_processing_batch_number(): return 1\n"
        f"def get_finished_batch_result(): return {returned}\n"
    )
    agent = launch("score.py", files={"score.py": text}, asyncMode=True)
    agent.ready()
    send(agent, 1)
    failure = agent.failed().failure
    assert failure["kind"] == kind
    assert message in failure["message"]
    assert agent.stop() == (None, 0)


def test_s4_2_missing_functions_are_named(launch):
    failure = launch("nothing.py", asyncMode=True).init_failure()
    assert failure["fatal"] is True
    assert "there is no function enqueue, check_all_tasks_processed" in failure["message"]


def test_s4_2_the_agent_gone_ends_the_process(launch):
    agent = start(launch, "reversed")
    send(agent, 1)
    agent.socket.close()
    assert agent.wait() == 1


def test_s4_2_the_same_mini_batch_twice_is_a_protocol_error(launch):
    agent = start(launch, "hold")
    send(agent, 1)
    send(agent, 1)
    assert agent.wait() == 1
    assert "mini-batch 0 was sent while it is in flight" in agent.stderr_path.read_text()


def test_c10_frames_come_in_front_of_the_header_of_the_job(launch):
    script = (
        "import pandas\n"
        "done = {}\n"
        "def enqueue(data, context):\n"
        "    done[context.minibatch_index] = {'ret': pandas.DataFrame({'a': [1], 'b': [2]})}\n"
        "def check_all_tasks_processed(): return not done\n"
        "def get_processing_batch_number(): return len(done)\n"
        "def get_finished_batch_result():\n"
        "    global done\n"
        "    finished, done = done, {}\n"
        "    return finished\n"
    )
    start = {"asyncMode": True, "appendRowDataframeHeader": True, "headers": True}
    agent = launch("frames.py", files={"frames.py": script}, **start)
    agent.ready()
    send(agent, 1)
    received = agent.receive()
    assert received == (HEADER, b"a b\n")
    send(agent, 1, first=1)  # the process waits, and nothing follows this one
    agent.send(frame(HEADER_OF_JOB, b"b a\n"))
    assert [agent.result().data for _ in range(2)] == [b"2 1\n"] * 2
    assert agent.stop() == (None, 0)
