"""Failed attempts: what is reported, and that the process goes on."""

import os
import time

import pytest


@pytest.mark.parametrize(
    ("what", "type_", "message"),
    [
        ("ValueError(\"could not convert string to float: 'x'\")", "ValueError", "could not"),
        ("SystemExit(1)", "SystemExit", "1"),
        ("KeyboardInterrupt()", "KeyboardInterrupt", ""),
        ("MemoryError()", "MemoryError", ""),
        ("__import__('json').JSONDecodeError('m', 'd', 0)", "json.decoder.JSONDecodeError", "m"),
    ],
)
def test_run_raises(launch, what, type_, message):
    agent = launch("failing.py", "run", what)
    agent.ready()
    agent.run_files(["bad"], index=4, retries=1)
    agent.run_files(["good"], sequence=2)
    failed = agent.failed()
    failure = failed.failure
    assert failed.sequence == 1
    assert failed.run_ns > 0
    assert failed.cpu_ns > 0
    assert (failure["kind"], failure["type"], failure["fatal"]) == ("Exception", type_, False)
    assert failure["message"].startswith(message)
    assert failure["location"] == "failing.py:10"
    assert failure["traceback"].startswith("Traceback (most recent call last):\n")
    assert "parallelrun" not in failure["traceback"]
    # The node's copy of the code is gone when somebody reads it.
    assert '  File "failing.py", line 10, in ' in failure["traceback"]
    assert str(agent.code) not in failure["traceback"]
    assert agent.result().data == b"/in/good\n"
    log = agent.log("user/error/0/process000.txt")
    assert "|mini-batch 4, attempt 2: " in log
    assert failure["traceback"] in log
    assert agent.stop() == (None, 0)


@pytest.mark.parametrize("name", ["outputs/model.json", "./outputs/a/b.bin", "logs/last.txt"])
def test_a_folder_that_is_the_jobs_own_is_told(launch, name):
    error = f"FileNotFoundError(2, 'No such file or directory', {name!r})"
    agent = launch("failing.py", "run", error)
    agent.ready()
    agent.run_files(["bad"])
    own = os.path.normpath(name).split(os.sep)[0]
    told = agent.failed().failure["message"]
    assert f"./{own} is its own folder" in told
    assert "./model" in told
    assert agent.stop() == (None, 0)
    assert "./model" in launch("failing.py", "init", error).init_failure()["message"]


def test_a_breakpoint_says_where_one_can_type(launch):
    script = "def run(m):\n    breakpoint()\n    return m\n"
    agent = launch("score.py", files={"score.py": script})
    agent.ready()
    agent.run_files()
    failure = agent.failed().failure
    assert failure["type"] == "bdb.BdbQuit"
    assert "parallelrun debug OUT --item FILE" in failure["message"]
    assert agent.stop() == (None, 0)


@pytest.mark.parametrize("what", ["'model/outputs'", "None", "3", "b'outputs/x'"])
def test_no_other_folder_is_told(launch, what):
    agent = launch("failing.py", "run", f"FileNotFoundError(2, 'none', {what})")
    agent.ready()
    agent.run_files(["bad"])
    assert "own folder" not in agent.failed().failure["message"]
    assert agent.stop() == (None, 0)


@pytest.mark.parametrize(
    ("what", "kind"),
    [
        ("OSError(28, 'No space left on device')", "NoSpace"),
        ("OSError(122, 'Disk quota exceeded')", "NoSpace"),
        ("OSError(5, 'Input/output error')", "Exception"),
    ],
)
def test_want_of_space_is_a_kind_of_its_own(launch, what, kind):
    caused = f"(lambda e: e.__setattr__('__cause__', {what}) or e)(ValueError('no result'))"
    for raised in (what, caused):
        agent = launch("failing.py", "run", raised)
        agent.ready()
        agent.run_files(["bad"])
        assert agent.failed().failure["kind"] == kind
        assert agent.stop() == (None, 0)
    failure = launch("failing.py", "init", what).init_failure()
    assert failure["kind"] == ("InitFailed" if kind == "Exception" else kind)


@pytest.mark.parametrize("text", ["", ", text=True"])
def test_a_program_that_failed_has_its_last_words_told(launch, text):
    """capture_output=True keeps them in the exception, which does not print them."""
    program = "import sys; print('x' * 5000, 'no model here', file=sys.stderr); sys.exit(3)"
    call = f"subprocess.run([sys.executable, '-c', {program!r}], check=True, capture_output=True"
    files = {
        "score.py": f"import subprocess, sys\n\n\ndef run(mini_batch):\n    {call}{text})\n",
    }
    agent = launch("score.py", files=files)
    agent.ready()
    agent.run_files(["bad"])
    message = agent.failed().failure["message"]
    assert "returned non-zero exit status 3. Its stderr ends with: xxx" in message
    assert message.endswith("x no model here")
    assert len(message) < 7000


def test_what_an_exiting_init_said_last_is_told(launch):
    files = {
        "score.py": "import argparse\n\n\ndef init():\n"
        "    argparse.ArgumentParser(prog='score.py').parse_args()\n"
        "\n\ndef run(b):\n    return b\n"
    }
    message = launch("score.py", "--colour", "red", files=files).init_failure()["message"]
    assert "sys.exit(2), after 'score.py: error: unrecognized arguments: --colour red'" in message
    assert "use parse_known_args()" in message


def test_an_exiting_init_that_said_nothing(launch):
    files = {"score.py": "def init():\n    raise SystemExit(2)\n\n\ndef run(b):\n    return b\n"}
    message = launch("score.py", files=files).init_failure()["message"]
    assert message.startswith("init() ended the process with sys.exit(2). With argparse")


def test_shutdown_raises(launch):
    agent = launch("failing.py", "shutdown", "ValueError('late')")
    agent.ready()
    failure, code = agent.stop()
    assert code == 0
    assert (failure["kind"], failure["message"]) == ("Exception", "late")


def test_location_is_in_the_users_code(launch):
    agent = launch("returns.py", "__import__('json').loads('{')")
    agent.ready()
    agent.run_files()
    failure = agent.failed().failure
    assert failure["location"] == "returns.py:25"
    assert "json" in failure["traceback"]


def test_long_texts_are_cut_in_the_middle(launch):
    agent = launch("failing.py", "run", "ValueError('<' + '\\u4e2d' * 100000 + '\\ud800>')")
    agent.ready()
    agent.run_files(["bad"])
    failure = agent.failed().failure
    assert 4000 < len(failure["message"].encode()) <= 4 << 10
    assert failure["message"].startswith("<")
    assert failure["message"].endswith("\\ud800>")
    assert "left out" in failure["message"]
    assert 60000 < len(failure["traceback"].encode()) <= 64 << 10
    assert agent.log("user/error/0/process000.txt").count("\u4e2d") == 200000


def test_exception_that_cannot_be_printed(launch):
    broken = "type('Bad', (Exception,), {'__str__': lambda self: 1 / 0})()"
    agent = launch("failing.py", "run", broken)
    agent.ready()
    agent.run_files(["bad"])
    assert "cannot be printed" in agent.failed().failure["message"]


def test_results_before_a_failure_come_before_it(launch):
    agent = launch("failing.py", "run", "ValueError('x')")
    agent.ready()
    agent.run_files(["good"], sequence=1)
    agent.run_files(["bad"], sequence=2)
    assert agent.result().sequence == 1
    assert agent.failed().sequence == 2


def test_the_output_of_a_failed_mini_batch_is_named(launch):
    agent = launch("prints.py")
    agent.ready()
    failures = []
    for _ in range(2):
        agent.run_files(["good"])
        agent.result()
        time.sleep(0.001)  # more than a mark serves for
        agent.run_files(["bad"])
        failures.append(agent.failed().failure)
    agent.stop()
    out, err = agent.stdout_path.read_bytes(), agent.stderr_path.read_bytes()
    for failure in failures:
        begin, end = failure["stdout"]
        assert out[begin:end] == b"out of /in/bad\nno line end"
        begin, end = failure["stderr"]
        assert err[begin:end] == b"err of /in/bad\n"
    assert failures[1]["stdout"][1] == len(out)
    log = agent.log("user/error/0/process000.txt").splitlines()
    (begin, end), (first, last) = failures[1]["stdout"], failures[1]["stderr"]
    assert log[-1] == (
        f"What it wrote: bytes {begin} to {end} of stdout, bytes {first} to {last} of stderr"
    )


def test_output_that_is_no_file_has_no_range(launch):
    script = "import os\nos.dup2(os.pipe()[1], 1)\ndef run(m): return 1 / 0\n"
    agent = launch("score.py", files={"score.py": script})
    agent.ready()
    agent.run_files()
    failure = agent.failed().failure
    assert failure["type"] == "ZeroDivisionError"
    assert "stdout" not in failure
