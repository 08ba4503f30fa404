"""start_debug.py, which `parallelrun debug` becomes; tests/integration/test_debug.py runs it."""

import json
import os
import subprocess

import pytest
from fake_agent import PACKAGE, PYTHON, files_work, stamp_of
from parallelrun import RELEASE


@pytest.fixture
def debug(tmp_path):
    """debug(script, work, *flags, **start) runs it; debug.folder gets the script's writes."""
    code = tmp_path / "code"
    folder = tmp_path / "written"

    def run(script, work, *flags, stdin=None, **start):
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
        words = [PYTHON, str(PACKAGE / "start_debug.py"), str(folder), *flags]
        return subprocess.run(
            ["bash", "-c", f'exec "$@" {moves}', "bash", *words],
            cwd=code,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
            pass_fds=at,
            env={**os.environ, "PYTHONPATH": str(PACKAGE), "PYTHONDONTWRITEBYTECODE": ""},
            check=False,
        )

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


def test_async_mode_is_refused(debug, work):
    ended = debug("def run(b):\n    return b\n", work, asyncMode=True)
    assert ended.returncode == 2
    assert "async mode" in ended.stderr


def test_another_release(debug, work):
    ended = debug("def run(b):\n    return b\n", work, release="9.9.9")
    assert ended.returncode == 2
    assert "9.9.9" in ended.stderr
