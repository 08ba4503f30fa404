"""`parallelrun.testing.run_script`, which runs an entry script in a test of the user's own."""

import os
import signal
import sys
import tempfile

import pytest
from support import processes
from support.command import BIN, ROOT
from support.processes import expect_nothing_running
from waits import stalled

sys.path.append(str(ROOT / "worker-image/python"))

from parallelrun import testing
from parallelrun.testing import ScriptError, ScriptTimeout

READS = "def run(mini_batch):\n    return [open(path).read() for path in mini_batch]\n"


@pytest.fixture
def run(work, monkeypatch):
    """run(text of the script, …) -> ScriptResult; afterwards nothing runs, and no file is left."""
    monkeypatch.setenv("PATH", f"{BIN}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(tempfile, "tempdir", str(work.temporary))

    def call(script, *words, **options):
        work.script(script)
        if not words and "rows" not in options:
            options.setdefault("files", work.data)
        try:
            return testing.run_script(work.code / "score.py", *words, **options)
        finally:
            assert processes.running("command") == []  # it is waited for, and its nodes end with it
            expect_nothing_running()
            assert list(work.temporary.iterdir()) == []

    return call


def test_rows_words_and_arguments(run, work):
    rows = work.files(5)
    result = run(
        """
import logging, sys
from azureml_user.parallel_run import EntryScript

def init():
    print("init", sys.argv[1:3])

def run(mini_batch):
    logging.warning("warned")
    EntryScript().logger.info("of the script")
    print("run", len(mini_batch), file=sys.stderr)
    return [open(path).read() for path in mini_batch]

def shutdown():
    print("shutdown")
""",
        args=["--model", "m.pkl"],
        mini_batch_size=3,
    )
    assert result.rows == rows
    assert result.failures == []
    assert result.verdict.startswith("Succeeded: Complete: all 2 mini-batches")
    said = result.stdout.splitlines()
    assert (said[0], said[-1]) == ("init ['--model', 'm.pkl']", "shutdown")
    assert "WARNING" in said[1]
    assert result.stderr.splitlines() == ["run 3", "run 2"]
    assert "of the script" in result.log


def test_a_list_of_files_is_one_input_in_its_order(run, work):
    """Also of equal names, and of names that are globs; the rows name the files themselves."""
    names = ["b/x.txt", "a/x.txt", "a/[0]*.txt"]
    files = [work.root / "some files" / name for name in names]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x")
    result = run("def run(mini_batch):\n    return mini_batch\n", files)
    assert result.rows == [str(file) for file in files]
    assert result.verdict.startswith("Succeeded: Complete: the only mini-batch")
    assert run(READS, files[0]).rows == ["x"]


def test_rows_of_a_table_have_the_types_of_a_job(run, work):
    """The whole table decides: a zip code with a zero in front makes all of them text."""
    pandas = pytest.importorskip("pandas")
    script = """
def run(mini_batch):
    return [f"{row.zip!r} {row.price!r}" for row in mini_batch.itertuples()]
"""
    expected = ["'8001' 1.5", "'01234' 2.0"]
    table = pandas.DataFrame({"zip": ["8001", "01234"], "price": [1.5, 2]})
    assert run(script, rows=table).rows == expected
    path = work.root / "table.csv"
    table.to_csv(path, index=False)
    assert run(script, rows=path).rows == expected


def test_dicts_are_json_lines(run):
    script = "def run(mini_batch):\n    return [row['é'] * 2 for row in mini_batch]\n"
    rows = [{"é": 1}, {"é": 2}, {"é": 3}]
    result = run(script, rows=rows, mini_batch_size=2)
    assert result.rows == ["2", "4", "6"]
    assert "all 2 mini-batches" in result.verdict


def test_what_fails_is_told_by_item_with_the_scripts_own_paths(run, work):
    work.files(3)
    result = run(
        """
def run(mini_batch):
    if mini_batch[0].endswith("1.txt"):
        raise ValueError(f"cannot read {mini_batch[0]}")
    return ["good"]
""",
        [work.data / f"{index:06}.txt" for index in range(3)],
        mini_batch_size=1,
    )
    assert result.rows == ["good", "good"]
    (failure,) = result.failures
    bad = str(work.data / "000001.txt")
    assert (failure.item, failure.type) == (bad, "ValueError")
    assert failure.message == f"cannot read {bad}"
    assert (failure.location, failure.first_item, failure.items) == ("score.py:4", 1, 1)
    lines = failure.traceback.splitlines()
    assert lines[:2] == [
        "Traceback (most recent call last):",
        f'  File "{work.code}/score.py", line 4, in run',
    ]
    assert lines[-1] == f"ValueError: cannot read {bad}"


def test_a_mini_batch_is_tried_once_unless_the_settings_say_more(run, work):
    work.files(1)
    script = 'def run(mini_batch):\n    print("tried")\n    raise OSError("no")\n'
    for settings, tries in (None, 1), ({"runMaxTry": 2}, 2):
        result = run(script, settings=settings)
        assert result.stdout.splitlines() == ["tried"] * tries
        assert [failure.type for failure in result.failures] == ["OSError"]


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("def init():\n    pass\n", ["no function run()"]),
        ("def run(mini_batch:\n", ["SyntaxError", "score.py:1"]),
        ("def run(mini_batch):\n    return 5\n", ["BadReturn", "type int"]),
        ("def run(mini_batch):\n    return []\n", ["NoRows"]),
        (
            "def init():\n    raise OSError('no model')\n" + READS,
            ["InitFailed", "OSError: no model", 'CODE/score.py", line 2, in init'],
        ),
        (
            READS + "def shutdown():\n    raise OSError('late')\n",
            ["ShutdownFailed", "OSError: late", 'CODE/score.py", line 4, in shutdown'],
        ),
    ],
    ids=["no run", "syntax", "wrong type", "no rows", "init", "shutdown"],
)
def test_what_a_job_refuses_is_an_error(run, work, script, words):
    work.files(2)
    with pytest.raises(ScriptError) as refused:
        run(script)
    for word in words:
        assert word.replace("CODE", str(work.code)) in str(refused.value)


def test_a_short_return_is_an_error_where_the_job_says_so(run, work):
    work.files(2)
    script = "def run(mini_batch):\n    return mini_batch[:1]\n"
    assert run(script).rows == [str(work.data / "000000.txt")]
    with pytest.raises(
        ScriptError, match=r"ShortReturn: run\(\) returned 1 elements for 2"
    ) as short:
        run(script, settings={"shortReturn": "Fail"})
    items = [failure.item for failure in short.value.failures]
    assert items == [str(work.data / f"00000{index}.txt") for index in range(2)]


def test_the_output_may_have_another_name(run, work):
    rows = work.files(1)
    assert run(READS, settings={"output.fileName": "other.txt"}).rows == rows


def test_what_is_wrong_with_the_call(run, work, monkeypatch):
    with pytest.raises(ValueError, match="which Parquet has not"):
        testing.run_script("score.py", files=[], settings={"output.format": "parquet"})
    with pytest.raises(TypeError, match="either files or rows"):
        testing.run_script(work.code / "score.py")
    with pytest.raises(FileNotFoundError, match=r"no entry script .*/none\.py"):
        testing.run_script(work.code / "none.py", files=work.data)
    with pytest.raises(FileNotFoundError, match=r"no file .*/none\.txt"):
        run(READS, [work.data / "none.txt"])
    with pytest.raises(ScriptError, match=r"spec\.noSuchField: unknown field"):
        run(READS, settings={"noSuchField": 1})
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("PARALLELRUN_BIN", raising=False)
    with pytest.raises(RuntimeError, match="pip install parallelrun"):
        run(READS)


def test_a_script_that_prints_a_lot_costs_no_memory(run, work):
    work.files(1)
    result = run(
        'def run(mini_batch):\n    print("x" * 9_000_000 + "\\nlast")\n    return [1]\n',
    )
    assert len(result.stdout) == 8 << 20
    assert result.stdout.endswith("x\nlast\n")


def test_a_process_that_ends_in_run(run, work):
    work.files(1)
    result = run("import os\n\ndef run(mini_batch):\n    os._exit(7)\n")
    (failure,) = result.failures
    assert failure.type == "ProcessEnded"
    assert "status 7" in failure.message


def test_a_run_that_hangs(run, work):
    work.files(1)
    script = "import time\n\ndef run(mini_batch):\n    time.sleep(1000)\n"
    before = stalled()
    (failure,) = run(script, run_timeout=1).failures
    assert failure.type == "RunTimeout"
    # The agent waits for half a second to hear where it is: unless that was the machine's.
    where = failure.message.endswith("Its Python stack: run score.py:4")
    assert where or stalled() - before > 0.4, failure.message


def test_an_init_that_hangs_and_does_not_obey(run, work):
    work.files(1)
    script = "import signal, time\n\ndef init():\n    signal.signal(15, signal.SIG_IGN)\n"
    with pytest.raises(ScriptTimeout, match="longer than timeout=2 s and was stopped"):
        run(script + "    time.sleep(1000)\n\n" + READS, timeout=2)


def test_an_interrupted_test_leaves_nothing(run, work):
    """As by Ctrl-C or a time-out of the test runner: an exception where the call waits."""

    def interrupt(*_):
        raise InterruptedError

    before = signal.signal(signal.SIGUSR1, interrupt)
    work.files(1)
    script = "import os, signal, sys, time\n\ndef init():\n"
    script += "    os.kill(int(sys.argv[1]), signal.SIGUSR1)\n    time.sleep(1000)\n\n"
    try:
        with pytest.raises(InterruptedError):
            run(script + READS, args=[os.getpid()])
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_children_end_with_the_run(run, work):
    """The fixture sees to it that they do: in a session of their own, with the output open."""
    work.files(1)
    result = run(
        """
import subprocess

def run(mini_batch):
    subprocess.Popen(["sleep", "1000"], start_new_session=True)
    return ["left"]
"""
    )
    assert result.rows == ["left"]


def test_entry_script_can_be_imported_where_no_job_runs():
    from azureml_user.parallel_run import EntryScript

    with pytest.raises(RuntimeError, match="only inside a worker process"):
        EntryScript()
