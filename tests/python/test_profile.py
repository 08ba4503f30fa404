"""The profile of a worker process, contract sections 12 and 17."""

import os
import pstats
import signal

import pytest

SCRIPT = """
import os, select, signal, sys
def used():
    return 1
def init():
    used()
def run(mini_batch):
    used()
    if mini_batch[0].endswith("wait"):
        open(sys.argv[1], "w").close()
        while True:  # a signal right before a longer wait would be seen after it
            select.select([], [], [], 0.01)
    return mini_batch
"""


def functions(agent):
    path = agent.code / "logs/sys/node/0/process000.profile"
    stats = pstats.Stats(str(path)).stats
    return {name: calls[1] for (_, _, name), calls in stats.items()}


@pytest.mark.parametrize("module", ["cProfile", "profile"])
def test_s17_profile_at_shutdown(launch, module):
    agent = launch("score.py", files={"score.py": SCRIPT}, profiling=module)
    agent.ready()
    for sequence in (1, 2):
        agent.run_files(sequence=sequence)
        agent.result()
    assert agent.stop() == (None, 0)
    calls = functions(agent)
    assert (calls["init"], calls["run"], calls["used"]) == (1, 2, 3)


@pytest.mark.parametrize("module", ["cProfile", "profile"])
def test_s17_profile_when_the_process_is_told_to_stop(launch, module):
    gate = launch.folder / "gate"
    os.mkfifo(gate)
    agent = launch("score.py", str(gate), files={"score.py": SCRIPT}, profiling=module)
    agent.ready()
    agent.run_files(["wait"])
    gate.read_bytes()
    agent.process.send_signal(signal.SIGTERM)
    assert agent.wait() == -signal.SIGTERM
    assert functions(agent)["used"] == 2


WITHIN_THE_PROFILER = """
import gc, os, profile, signal
(profiler,) = [each for each in gc.get_objects() if isinstance(each, profile.Profile)]
clock = profiler.timer
def timer():
    profiler.timer = clock
    os.kill(os.getpid(), signal.SIGTERM)
    return COUNT
def used():
    return 1
def run(mini_batch):
    used()
    profiler.timer = timer
    used()
    raise SystemExit("not ended")
"""


@pytest.mark.parametrize(("count", "used"), [("clock()", 2), ("1 / 0", 1)])
def test_s17_told_to_stop_while_the_profiler_counts(launch, count, used):
    text = WITHIN_THE_PROFILER.replace("COUNT", count)
    agent = launch("score.py", files={"score.py": text}, profiling="profile")
    agent.ready()
    agent.run_files(["x"])
    assert agent.wait() == -signal.SIGTERM
    assert functions(agent)["used"] == used


def test_s17_the_scripts_own_handler_still_runs(launch):
    text = SCRIPT + "signal.signal(signal.SIGTERM, lambda *_: os._exit(5))\n"
    agent = launch("score.py", files={"score.py": text}, profiling="cProfile")
    agent.ready()
    agent.process.send_signal(signal.SIGTERM)
    assert agent.wait() == 5
    assert functions(agent)["init"] == 1


@pytest.mark.parametrize("module", ["cProfile", "profile"])
def test_s17_profiling_changes_no_traceback(launch, module):
    agent = launch("failing.py", "run", "ValueError('x')", profiling=module)
    agent.ready()
    agent.run_files(["bad"])
    failure = agent.failed().failure
    assert failure["location"] == "failing.py:10"
    assert "rofile" not in failure["traceback"]
    agent.stop()
    failure = launch("failing.py", "init", "ValueError('x')", profiling=module).init_failure()
    assert failure["location"] == "failing.py:10"
    assert "rofile" not in failure["traceback"]


def test_s17_async_functions_are_profiled(launch):
    agent = launch("async_score.py", "all", asyncMode=True, profiling="cProfile")
    agent.ready()
    agent.run_files()
    agent.result()
    agent.stop()
    calls = functions(agent)
    # From 3.12 on cProfile mixes other threads in, and counts a call twice that starts one.
    assert calls["enqueue"] in (1, 2)
    assert calls["shutdown"] == 1


def test_s12_an_unknown_profiling_module(launch):
    failure = launch("nothing.py", profiling="other").init_failure()
    assert failure["fatal"] is True
    assert "cProfile, profile" in failure["message"]
