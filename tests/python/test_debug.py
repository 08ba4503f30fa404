"""start_debug.py, which `parallelrun debug` becomes; tests/integration/test_debug.py runs it."""

import json
import os
import socket
import subprocess
from pathlib import Path

import pytest
from fake_agent import PACKAGE, PYTHON, files_work, stamp_of
from parallelrun import RELEASE
from ports import free_port

NOTEBOOK_PYTHON = Path(__file__).resolve().parents[2] / "build/tools/notebook/bin/python"


@pytest.fixture
def debug(tmp_path):
    """debug(script, work, *flags, **start) runs it; debug.folder gets the script's writes."""
    code = tmp_path / "code"
    folder = tmp_path / "written"

    def begin(script, work, *flags, python=PYTHON, **start):
        code.mkdir(exist_ok=True)
        folder.mkdir()
        (code / "score.py").write_text(script)
        frame = {
            "release": RELEASE,
            "entryScript": "score.py",
            "arguments": ["--scale", "3"],
            "process": "process000",
            "node": 0,
            "outputFolder": str(folder / "output"),
            "outputAction": "AppendRow",
            "loggingLevel": "INFO",
            **start,
        }
        files = []
        for body in (json.dumps(frame).encode(), work):
            descriptor = os.memfd_create("debug")
            os.write(descriptor, body)
            files.append(os.fdopen(descriptor))
        at = [file.fileno() for file in files]
        moves = " ".join(f"{wanted}<&{fd}" for wanted, fd in zip((3, 4), at))
        words = [python, str(PACKAGE / "start_debug.py"), str(folder), *flags]
        return subprocess.Popen(
            ["bash", "-c", f'exec "$@" {moves}', "bash", *words],
            cwd=code,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            pass_fds=at,
            env={**os.environ, "PYTHONPATH": str(PACKAGE), "PYTHONDONTWRITEBYTECODE": ""},
        )

    def run(script, work, *flags, stdin=None, **start):
        process = begin(script, work, *flags, **start)
        stdout, stderr = process.communicate(stdin, timeout=120)
        return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)

    run.begin = begin
    run.folder = folder
    run.code = code
    return run


@pytest.fixture
def work(tmp_path):
    names = []
    for name in ("a", "b"):
        (tmp_path / name).write_text(name)
        names.append(name)
    stamps = [stamp_of(tmp_path / name) for name in names]
    return files_work(tmp_path, names, index=7, retries=2, stamps=stamps)


ROWS = """
import sys
from azureml_user.parallel_run import EntryScript

def init():
    EntryScript().logger.info("into a file")
    print("argv", sys.argv[1:], EntryScript().output_dir)

def run(mini_batch):
    return [open(path).read() + "\\x1b" for path in mini_batch]
"""


def test_rows_are_shown_and_nothing_stays(debug, work):
    ended = debug(ROWS, work)
    assert ended.returncode == 0, ended.stderr
    assert f"argv ['--scale', '3'] {debug.folder}/output\n" in ended.stdout
    assert ended.stdout.endswith("a\\x1b\nb\\x1b\n")
    assert "run() of mini-batch 7, attempt 3, 2 items\n" in ended.stderr
    assert "init() took " in ended.stderr
    assert "2 rows:\n" in ended.stderr
    assert not debug.folder.exists()
    assert sorted(path.name for path in debug.code.iterdir()) == ["score.py"]


def test_an_exception_names_the_script_where_it_lies(debug, work):
    ended = debug("def run(mini_batch):\n    return 1 / 0\n", work)
    assert ended.returncode == 1
    assert f'File "{debug.code}/score.py", line 2, in run' in ended.stderr
    assert "start_debug" not in ended.stderr
    assert "run() failed at score.py:2\n" in ended.stderr
    assert not debug.folder.exists()


def test_the_debugger_starts_there(debug, work):
    script = "def run(mini_batch):\n    answer = 41 + 1\n    return answer / 0\n"
    ended = debug(script, work, "--pdb", stdin="p answer\nq\n")
    assert ended.returncode == 1
    assert "(Pdb) 42\n" in ended.stdout
    assert f"> {debug.code}/score.py(3)run()" in ended.stdout


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("import not_there\n", "importing score.py failed at score.py:1: No module named"),
        ("def run(:\n", "ScriptInvalid: score.py:1: invalid syntax"),
        ("x = 1\n", "ScriptInvalid: score.py:1: there is no function run()"),
        ("def init():\n    raise OSError('no')\ndef run(b):\n    pass\n", "init() failed at sc"),
        ("import sys\ndef run(b):\n    sys.exit(3)\n", "run() failed at score.py:3"),
        ("def run(b):\n    return None\n", "BadReturn: run() returned None."),
    ],
)
def test_what_a_worker_would_refuse(debug, work, script, told):
    ended = debug(script, work)
    assert ended.returncode == 1, ended.stderr
    assert told in ended.stderr
    assert not debug.folder.exists()


def test_a_file_that_has_changed(debug, work, tmp_path):
    (tmp_path / "b").write_text("longer")
    ended = debug("def run(b):\n    return b\n", work)
    assert ended.returncode == 1
    assert "InputChanged" in ended.stderr


def test_many_rows_are_cut(debug, work):
    ended = debug("def run(b):\n    return ['x' * 1000] * 50\n", work)
    assert ended.returncode == 0, ended.stderr
    assert "50 rows:\n" in ended.stderr
    assert "and 30 more\n" in ended.stderr
    assert ended.stdout == ("x" * 500 + "...\n") * 20


class Editor:
    """Speaks the debug adapter protocol, as an editor does that attaches."""

    def __init__(self, port):
        self._connection = socket.create_connection(("127.0.0.1", port), timeout=120)
        self._stream = self._connection.makefile("rb")
        self._sent = 0

    def send(self, command, **arguments):
        self._sent += 1
        request = {"seq": self._sent, "type": "request", "command": command}
        body = json.dumps({**request, "arguments": arguments}).encode()
        self._connection.sendall(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def wait_for(self, kind, name):
        """The next message of this kind ("event", "response") and name."""
        while True:
            length = 0
            while line := self._stream.readline().strip():
                if line.startswith(b"Content-Length: "):
                    length = int(line.split()[1])
            assert length, "the connection ended"
            message = json.loads(self._stream.read(length))
            if message["type"] == kind and name in (message.get("event"), message.get("command")):
                return message

    def close(self):
        self._stream.close()
        self._connection.close()


@pytest.mark.skipif(not NOTEBOOK_PYTHON.exists(), reason="script/bootstrap test installs debugpy")
def test_an_editor_attaches_before_anything_runs(debug, work):
    port = free_port()
    script = "answer = 41\ndef run(b):\n    return [answer + 1] * len(b)\n"
    process = debug.begin(script, work, f"--debugpy={port}", python=str(NOTEBOOK_PYTHON))
    told = ""
    while "waiting for an editor" not in told:
        line = process.stderr.readline()
        assert line, told
        told += line
    editor = Editor(port)
    editor.send("initialize", adapterID="test")
    editor.send("attach", justMyCode=False)
    editor.wait_for("event", "initialized")
    source = {"path": str(debug.code / "score.py")}
    editor.send("setBreakpoints", source=source, breakpoints=[{"line": 1}, {"line": 3}])
    editor.send("configurationDone")
    # At the import, and in run().
    for _ in range(2):
        stopped = editor.wait_for("event", "stopped")
        assert stopped["body"]["reason"] == "breakpoint"
        editor.send("continue", threadId=stopped["body"]["threadId"])
    # Its adapter, which has the pipes too, ends once the editor has gone.
    editor.wait_for("event", "terminated")
    editor.close()
    stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == 0, stderr
    assert stdout.endswith("42\n42\n")


def test_without_debugpy(debug, work):
    """Of the tests' own Python, which has none."""
    ended = debug("def run(b):\n    return b\n", work, "--debugpy=5678")
    assert ended.returncode == 2
    assert f"debugpy is not installed: {PYTHON} -m pip install debugpy" in ended.stderr


def test_async_mode_is_refused(debug, work):
    ended = debug("def run(b):\n    return b\n", work, asyncMode=True)
    assert ended.returncode == 2
    assert "async mode" in ended.stderr


def test_another_release(debug, work):
    ended = debug("def run(b):\n    return b\n", work, release="9.9.9")
    assert ended.returncode == 2
    assert "9.9.9" in ended.stderr
