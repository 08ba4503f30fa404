"""Where the time of an attempt went: what is measured, and what is said not to be."""

from fake_agent import batch, files_work
from parallelrun.worker.channel import NOT_KNOWN


def known(answer):
    """Of waited, read and wrote: which of them it knows."""
    return [ns != NOT_KNOWN for ns in (answer.waited_ns, answer.read_ns, answer.wrote_ns)]


def test_a_result_knows_all(launch):
    agent = launch("failing.py", "nowhere", "")
    agent.ready()
    agent.run_files(["good"])
    agent.run_files(["better"], sequence=2)
    assert [known(agent.result()) for _ in range(2)] == [[True, True, True]] * 2
    assert agent.stop() == (None, 0)


def test_a_run_that_raises_wrote_nothing(launch):
    agent = launch("failing.py", "run", "ValueError()")
    agent.ready()
    agent.run_files(["bad"])
    assert known(agent.failed()) == [True, True, False]
    agent.run_files(["good"], sequence=2)
    assert known(agent.result()) == [True, True, True]
    assert agent.stop() == (None, 0)


def test_what_could_not_be_read_has_the_time_of_reading(launch):
    agent = launch("failing.py", "nowhere", "")
    agent.ready()
    agent.send(batch(1, files_work("/in", ["gone"], stamps=[(1, 1)])))
    failed = agent.failed()
    assert failed.failure["kind"] in ("InputChanged", "InputUnreadable")
    assert (failed.run_ns, known(failed)) == (0, [True, True, False])
    assert agent.stop() == (None, 0)


def test_in_async_mode_nobody_waits_for_one(launch):
    agent = launch("async_score.py", "each", asyncMode=True)
    agent.ready()
    agent.send(batch(100, files_work("/in", ["0"])))
    assert known(agent.result()) == [False, False, True]
    assert agent.stop() == (None, 0)
