"""`parallelrun debug`: one mini-batch of a run again, in a terminal."""

import hashlib
import importlib.util
import os
import sys

import pytest
from support.command import PROGRAM
from support.terminal import Terminal

SCRIPT = """
import os
import sys

def init():
    global factor
    factor = int(sys.argv[1])
    print("init in", os.getcwd())

def run(mini_batch):
    rows = []
    for path in mini_batch:
        value = int(open(path).read())
        rows.append(f"{os.path.basename(path)} {factor * value}")
    return rows
"""

BREAKPOINT = """
def run(mini_batch):
    name = mini_batch[0]
    breakpoint()
    return [name]
"""


@pytest.fixture
def failed(work):
    """A run of which two files have failed."""
    (work.root / "score.py").write_text(SCRIPT)
    for index in range(20):
        (work.data / f"{index:03}.txt").write_text(str(index) if index not in (7, 13) else "seven")
    words = ["run", "score.py", "--input", "data", "--output", "out", "--mini-batch-size", "5"]
    result = work.call(*words, "--set", "spec.runMaxTry=2", "--", "10")
    assert result.code == 3, result
    return work


def digest_of(folder):
    """Names and contents of all that lies there."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(str(path).encode() + path.read_bytes())
    return digest.hexdigest()


def debug(work, *words):
    return work.call("debug", "out", *words)


@pytest.fixture
def terminal(work):
    opened = []

    def open_terminal(*words):
        opened.append(Terminal([PROGRAM, *words], work.root, work.environment))
        return opened[-1]

    yield open_terminal
    for one in opened:
        one.close()


def test_the_item_alone_with_its_own_paths(failed):
    before = digest_of(failed.root / "out")
    result = debug(failed, "--item", failed.data / "007.txt")
    assert result.code == 1, result
    assert f"init in {failed.root}\n" in result.output
    assert "run() of mini-batch 1, attempt 1, 1 item\n" in result.output
    assert f'File "{failed.root}/score.py", line 13, in run' in result.output
    assert "ValueError: invalid literal for int() with base 10: 'seven'" in result.output
    assert "run() failed at score.py:13" in result.output
    assert digest_of(failed.root / "out") == before
    assert os.listdir(failed.temporary) == []
    assert not (failed.root / "logs").exists()


def test_the_whole_mini_batch(failed):
    result = debug(failed, "--mini-batch", "2")
    assert result.code == 1, result
    assert "run() of mini-batch 2, attempt 3, 5 items\n" in result.output
    result = debug(failed, "--mini-batch", "3")
    assert result.code == 0, result
    assert "5 rows:\n" in result.output
    assert "\n015.txt 150\n016.txt 160\n" in result.output


def test_the_code_is_the_one_of_now(failed):
    (failed.root / "score.py").write_text(SCRIPT.replace("int(open", "len(open"))
    result = debug(failed, "--item", "007.txt")
    assert result.code == 0, result
    assert "1 row:\n007.txt 50\n" in result.output


def test_a_debugger_at_the_exception(failed, terminal):
    session = terminal("debug", "out", "--item", "013.txt", "--pdb")
    session.expect("ValueError: invalid literal")
    session.expect(f"> {failed.root}/score.py(13)run()")
    session.expect("(Pdb) ")
    session.type("p path, factor")
    session.expect(f"('{failed.data}/013.txt', 10)")
    session.type("q")
    assert session.wait() == 1
    assert os.listdir(failed.temporary) == []


def test_a_breakpoint_of_the_script(failed, terminal):
    (failed.root / "score.py").write_text(BREAKPOINT)
    session = terminal("debug", "out", "--mini-batch", "0")
    session.expect("(Pdb) ")
    session.type("p name")
    session.expect("000.txt'")
    session.type("c")
    session.expect("1 row:")
    assert session.wait() == 0


@pytest.mark.parametrize("call", ["breakpoint()", "__import__('pdb').set_trace()"])
def test_a_breakpoint_in_a_run_costs_one_attempt(work, call):
    (work.root / "score.py").write_text(
        "def run(mini_batch):\n"
        f"    if mini_batch[0].endswith('002.txt'):\n        {call}\n"
        "    return mini_batch\n"
    )
    for index in range(4):
        (work.data / f"{index:03}.txt").write_text("")
    words = ["run", "score.py", "--input", "data", "--output", "out", "--mini-batch-size", "1"]
    result = work.call(*words)
    assert result.code == 3, result
    assert "  1 x Exception: bdb.BdbQuit: A debugger has no terminal here" in result.output
    assert "parallelrun debug OUT --item FILE" in result.output


def test_a_breakpoint_in_init_ends_a_run_at_its_first_process(work):
    (work.root / "score.py").write_text(
        "def init():\n    breakpoint()\n\n\ndef run(mini_batch):\n    return mini_batch\n"
    )
    (work.data / "a.txt").write_text("")
    result = work.call("run", "score.py", "--input", "data", "--output", "out", "--processes", "1")
    assert result.code == 1, result
    assert "init() failed in every process (1 time): bdb.BdbQuit: A debugger" in result.output
    assert "parallelrun debug OUT --item FILE" in result.output


def test_ctrl_c_ends_it(failed, terminal):
    (failed.root / "score.py").write_text(
        "import time\n\ndef run(mini_batch):\n    print('begun', flush=True)\n    time.sleep(600)\n"
    )
    session = terminal("debug", "out", "--mini-batch", "0")
    session.expect("begun\n")
    session.type("\x03")
    assert session.wait() == 130
    assert os.listdir(failed.temporary) == []


def test_rows_of_a_table(work):
    pytest.importorskip("pandas")
    (work.root / "t.csv").write_text("a,b\n" + "".join(f"{i},x\n" for i in range(300)))
    (work.root / "score.py").write_text(
        "def run(table):\n"
        "    if (table['a'] == 250).any():\n"
        "        raise KeyError('250')\n"
        "    return table\n"
    )
    words = ["run", "score.py", "--input", "t.csv", "--output", "out", "--mini-batch-size", "500"]
    words += ["--python", sys.executable, "--set", "spec.runMaxTry=1"]
    assert work.call(*words).code == 3
    result = debug(work, "--item", "t.csv")  # the one mini-batch of it that failed
    assert result.code == 1, result
    assert "KeyError: '250'" in result.output
    result = debug(work, "--mini-batch", "0")
    assert result.code == 0, result
    assert "\n0 x\n1 x\n" in result.output


def test_a_job_file_with_code_in_a_folder(work):
    work.files(3)
    work.script("import helper\n\ndef run(mini_batch):\n    return helper.rows(mini_batch)\n")
    (work.code / "helper.py").write_text("def rows(batch):\n    raise OSError('no')\n")
    work.job(runMaxTry=1, miniBatchSize="3")
    assert work.run().code == 1
    result = debug(work, "--mini-batch", "0")
    assert result.code == 1, result
    assert f'File "{work.code}/helper.py", line 2, in rows' in result.output


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "Which one? Give --item FILE or --mini-batch N"),
        (["--mini-batch", "9"], "there is no mini-batch 9: 4 were planned, from 0 on"),
        (["--item", "nine.txt"], "no mini-batch of the run has nine.txt"),
        (["--item", "007.txt", "--mini-batch", "1"], "excludes"),
        (["--mini-batch", "0", "--debugpy", "5678", "--pdb"], "excludes"),
        (["--mini-batch", "0", "--debugpy", "0"], "--debugpy"),
        (["--mini-batch", "0", "--code", "data"], "score.py is not in the code folder"),
        (["--mini-batch", "0", "--python", "/no/python"], "/no/python cannot be started: No such"),
    ],
)
def test_what_cannot_be_debugged(failed, words, told):
    result = debug(failed, *words)
    assert result.code == 2, result
    assert told in result.output
    assert os.listdir(failed.temporary) == []


@pytest.mark.skipif(importlib.util.find_spec("debugpy") is not None, reason="debugpy is there")
def test_an_editor_needs_debugpy(failed):
    """tests/python attaches to it."""
    result = debug(failed, "--item", "007.txt", "--debugpy", "5678", "--python", sys.executable)
    assert result.code == 2, result
    assert f"debugpy is not installed: {sys.executable} -m pip install debugpy" in result.output
    assert os.listdir(failed.temporary) == []


def test_there_is_no_run(work):
    result = work.call("debug", "out", "--mini-batch", "0")
    assert result.code == 2, result
    assert "out does not exist here: give the output folder of a run" in result.output
    work.out.mkdir()
    result = work.call("debug", "out", "--mini-batch", "0")
    assert result.code == 2, result
    assert "out holds no state of a run" in result.output


def test_a_refused_run_leaves_what_was_run_before(failed):
    (failed.root / "other.py").write_text("def run(b):\n    return b\n")
    refused = failed.call("run", "other.py", "--input", "data", "--output", "out")
    assert refused.code == 2, refused
    result = debug(failed, "--mini-batch", "0")
    assert result.code == 0, result
    assert "\n001.txt 10\n" in result.output
