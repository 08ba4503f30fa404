"""The process around the script: its streams, logs, status page, start and end."""

import os
import re

import fake_agent
import pytest
from fake_agent import (
    BATCH,
    ENCODING,
    IMPORTING,
    RUNNING,
    STARTING,
    STOP,
    STOPPING,
    WAITING,
    batch,
    files_work,
    frame,
)
from waits import wait_until

LOG_LINE = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\|%s\|\d+\|\d+\|%s"


def test_status_page(launch, tmp_path):
    here, go = str(tmp_path / "here"), str(tmp_path / "go")
    os.mkfifo(here)
    os.mkfifo(go)

    def at(name):
        with open(here) as file:
            assert file.read() == name

    def let_go():
        with open(go, "w"):
            pass

    agent = launch("gate.py", here, go)
    times = []
    assert agent.phase()[1] in (STARTING, IMPORTING)
    at("init")
    assert agent.phase() == (0, IMPORTING)
    times.append(agent.entered())
    let_go()
    agent.ready()
    assert agent.phase()[1] == WAITING
    times.append(agent.entered())
    agent.run_files(sequence=300)
    at("run")
    assert agent.phase() == (300, RUNNING)
    times.append(agent.entered())
    let_go()
    at("row")
    assert agent.phase() == (300, ENCODING)
    times.append(agent.entered())
    assert agent.finished() == 0
    let_go()
    assert agent.result().data == b"row\n"
    assert agent.finished() == 1
    agent.send(frame(STOP))
    at("shutdown")
    assert agent.phase()[1] == STOPPING
    times.append(agent.entered())
    let_go()
    agent.expect(fake_agent.STOPPED)
    assert times == sorted(set(times))


def test_stop_comes_after_the_mini_batches_sent(launch):
    agent = launch("lifetime.py")
    agent.ready()
    agent.run_files(sequence=1)
    agent.run_files(sequence=2)
    agent.send(frame(STOP))
    assert [agent.result().sequence, agent.result().sequence] == [1, 2]
    assert agent.expect(fake_agent.STOPPED) == b""
    assert agent.receive() is None
    assert agent.wait() == 0


def test_agent_gone_ends_the_process_without_shutdown(launch):
    agent = launch("lifetime.py")
    agent.ready()
    agent.socket.close()
    assert agent.wait() == 1
    assert "the agent closed the connection" in agent.stderr_path.read_text()
    assert agent.stdout_path.read_text() == ""


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (frame(99), "a frame of type 99"),
        (frame(BATCH, b"short"), "a frame of type 2 with 5 bytes"),
        (b"\xff\xff\xff\xff\2", "a frame of 4294967295 bytes"),
    ],
)
def test_protocol_errors(launch, bad, message):
    agent = launch("returns.py", "mini_batch")
    agent.ready()
    agent.send(bad)
    assert agent.receive() is None
    assert agent.wait() == 1
    assert f"parallelrun: {message}" in agent.stderr_path.read_text()


def test_release_mismatch(launch):
    agent = launch("returns.py", "mini_batch", release="9.9.9")
    assert agent.receive() is None
    assert agent.wait() == 1
    assert "the agent is release 9.9.9" in agent.stderr_path.read_text()


def test_frames_in_pieces_and_bigger_than_the_buffer(launch):
    agent = launch("returns.py", "[len(mini_batch)]")
    agent.ready()
    names = ["n" * 100 + str(number) for number in range(20000)]
    data = batch(1, files_work("/in", names)) + batch(2, files_work("/in", ["a"]))
    for position in range(0, len(data), 300_001):
        agent.send(data[position : position + 300_001])
    assert agent.result().data == b"20000\n"
    assert agent.result().data == b"1\n"
    for byte in batch(3, files_work("/in", ["a", "b"])):
        agent.send(bytes([byte]))
    assert agent.result().data == b"2\n"


def test_a_result_does_not_wait_for_the_next_run(launch, tmp_path):
    here, go = str(tmp_path / "here"), str(tmp_path / "go")
    os.mkfifo(here)
    os.mkfifo(go)
    script = """
import sys, time
def run(mini_batch):
    if mini_batch[0] == "/in/first":
        time.sleep(0.001)
    else:
        open(sys.argv[2]).read()
    return mini_batch
"""
    agent = launch("score.py", here, go, files={"score.py": script})
    agent.ready()
    # In one piece, so that the second is there when the first is done.
    work = [files_work("/in", [name]) for name in ("first", "second")]
    agent.send(batch(1, work[0]) + batch(2, work[1]))
    assert agent.result().sequence == 1
    with open(go, "w"):
        pass
    assert agent.result().sequence == 2


def test_user_output(launch):
    agent = launch("noisy.py")
    agent.ready()
    agent.run_files()
    assert agent.result().data == b"/in/a\n"
    agent.run_files(sequence=2)
    assert agent.result().sequence == 2
    assert agent.stop() == (None, 0)
    lines = agent.stdout_path.read_text(encoding="utf-8").splitlines()
    assert re.fullmatch(LOG_LINE % ("INFO", "at import"), lines[0])
    assert lines[1] == "print in init, no ASCII: \u00e9 \\ud800"
    assert re.fullmatch(LOG_LINE % ("WARNING", "in run"), lines[2])
    assert len(lines) == 4
    assert agent.stderr_path.read_text() == "to stderr\n"


@pytest.mark.parametrize(("level", "count"), [("DEBUG", 5), ("INFO", 4), ("WARNING", 2)])
def test_logging_level(launch, level, count):
    agent = launch("noisy.py", loggingLevel=level)
    agent.ready()
    agent.run_files()
    agent.result()
    agent.run_files()
    agent.result()
    lines = agent.stdout_path.read_text(encoding="utf-8").splitlines()
    assert len(lines) == count + (level == "WARNING")


def test_entry_script_members(launch):
    agent = launch("members.py", node=2, process="process017")
    agent.ready()
    agent.run_files()
    folder = agent.code / "logs/user/entry_script_log/2"
    row = f"process017 {folder} {agent.folder / 'output'} True\n"
    assert agent.result().data.decode() == row
    lines = (folder / "process017.log.txt").read_text().splitlines()
    assert re.fullmatch(LOG_LINE % ("INFO", "from init"), lines[0])
    assert re.fullmatch(LOG_LINE % ("WARNING", "from run"), lines[1])
    assert len(lines) == 2
    assert (folder / "own.txt").read_text() == "own log"
    assert agent.stdout_path.read_text() == ""


def test_entry_script_outside_a_worker():
    from azureml_user.parallel_run import EntryScript

    with pytest.raises(RuntimeError, match="only inside a worker process"):
        EntryScript()


def test_script_ends_the_process(launch):
    agent = launch("rude.py", "exit")
    agent.ready()
    agent.run_files()
    assert agent.receive() is None
    assert agent.wait() == 7
    assert agent.phase() == (1, RUNNING)


def test_script_closes_low_descriptors(launch):
    agent = launch("rude.py", "close-low")
    agent.ready()
    agent.run_files()
    assert agent.result().data == b"/in/a\n"
    assert agent.stop() == (None, 0)


def test_script_closes_the_connection(launch):
    agent = launch("rude.py", "close")
    agent.ready()
    agent.run_files()
    assert agent.wait() == 1
    assert "the script closed a descriptor" in agent.stderr_path.read_text()


def test_forked_child_that_comes_back_is_silent(launch):
    agent = launch("rude.py", "fork")
    agent.ready()
    for sequence in (1, 2):
        agent.run_files(sequence=sequence)
        assert agent.result()[0::8] == (sequence, b"/in/a\n")
    assert agent.stop() == (None, 0)
    message = "parallelrun: a process that the script forked came back"
    assert agent.stderr_path.read_text().count(message) == 2


def test_forked_child_that_lives_on_does_not_hold_the_connection(launch):
    script = "import os, time\ndef run(m):\n  os.fork() or time.sleep(600)\n  return m\n"
    agent = launch("score.py", files={"score.py": script})
    agent.ready()
    agent.run_files()
    agent.result()
    agent.process.kill()
    assert agent.receive() is None


def test_what_was_taken_back_is_passed_over(launch):
    agent = launch("score.py", files={"score.py": "def run(mini_batch):\n  return mini_batch\n"})
    agent.ready()
    agent.take_back(5)
    # In one piece: it has them all before it looks.
    agent.send(b"".join(batch(n, files_work("/in", [str(n)])) for n in (4, 5, 6)))
    assert agent.passed_over() == 4
    assert agent.passed_over() == 5
    result = agent.result()
    assert (result.sequence, result.data) == (6, b"/in/6\n")
    assert agent.finished() == 1
    assert agent.stop() == (None, 0)


def test_forked_child_leaves_the_status_page_alone(launch):
    agent = launch("rude.py", "fork-exit")
    agent.ready()
    agent.run_files()
    assert agent.wait() == 7
    assert agent.phase() == (1, RUNNING)
    assert agent.finished() == 0


def test_children_do_not_hold_the_connection(launch):
    agent = launch("rude.py", "leave-child")
    agent.ready()
    agent.run_files()
    agent.result()
    agent.process.kill()
    assert agent.receive() is None


HANGS = """
import os, threading

def helper():
    os.open(PIPE, os.O_RDONLY)  # hangs until somebody writes

def run(mini_batch):
    os.closerange(3, 100)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    helper()
"""


def test_a_signal_has_the_stacks_written(launch, tmp_path):
    """Also where the script has closed all that it may, and the interpreter does nothing."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    script = HANGS.replace("PIPE", repr(str(pipe)))
    agent = launch("score.py", files={"score.py": script}, stackSignal=60)
    agent.ready()
    agent.run_files(sequence=5)
    wait_until(lambda: agent.phase() == (5, RUNNING), "run() has begun")

    def dumped():
        agent.process.send_signal(60)
        return '", line 5 in helper' in agent.stacks()

    wait_until(dumped, "the stack of helper()", pause=0.02)  # it may be on its way there
    dump = agent.stacks()
    assert "Current thread 0x" in dump
    assert f'File "{agent.code}/score.py", line 10 in run' in dump
    assert agent.process.poll() is None  # it has survived that


def test_children_inherit_no_descriptor(launch):
    agent = launch("rude.py", "count-descriptors")
    agent.ready()
    agent.run_files()
    # 3 is the folder that ls reads.
    assert agent.result().data == b"['0', '1', '2', '3']\n"


def test_logs_stay_when_the_script_changes_folder(launch):
    script = "import os\ndef run(mini_batch):\n  os.chdir('/')\n  raise ValueError('lost')\n"
    agent = launch("score.py", files={"score.py": script})
    agent.ready()
    agent.run_files()
    assert agent.failed().failure["location"] == "score.py:4"
    assert "ValueError: lost" in agent.log("user/error/0/process000.txt")


def test_thread_prints(launch):
    agent = launch("rude.py", "thread")
    agent.ready()
    agent.run_files()
    agent.result()
    assert agent.stop() == (None, 0)
    assert agent.stdout_path.read_text() == "from a thread\n"


def test_logging_is_not_imported_for_nothing(launch):
    script = "import sys\ndef run(mini_batch): return ['logging' in sys.modules]\n"
    agent = launch("score.py", files={"score.py": script})
    agent.ready()
    agent.run_files()
    assert agent.result().data == b"False\n"
