"""`parallelrun.run` (docs/python.md): a job from Python, a notebook, asyncio; real processes."""

import asyncio
import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from support import processes
from support.command import BIN, PATIENCE, ROOT
from support.processes import expect_nothing_running
from waits import communicate, wait_until

sys.path.append(str(ROOT / "worker-image/python"))

import parallelrun
from parallelrun import function_script

PACKAGE = ROOT / "worker-image/python"
NOTEBOOK_PYTHON = ROOT / "build/tools/notebook/bin/python"
needs_notebook = pytest.mark.skipif(
    not (ROOT / "build/tools/notebook/complete").exists(),
    reason="the packages for notebooks could not be installed: script/bootstrap test",
)


@pytest.fixture
def start(work, monkeypatch):
    """start(script, …) -> Job over the test's files; afterwards nothing runs."""
    monkeypatch.setenv("PARALLELRUN_BIN", str(BIN))
    monkeypatch.setenv("TEST_FOLDER", str(work.root))
    monkeypatch.setattr(tempfile, "tempdir", str(work.temporary))
    monkeypatch.setenv("TMPDIR", str(work.temporary))
    monkeypatch.syspath_prepend(work.code)
    jobs = []

    def call(script, *words, **options):
        options = {"mini_batch_size": 1, "processes": 2, "progress": False, **options}
        jobs.append(parallelrun.run(script, work.data, work.out, *words, **options))
        return jobs[-1]

    yield call
    for job in jobs:
        job.cancel(now=True)
        job._folder.cleanup()
    expect_nothing_running()


def module(work, name, text):
    """A module that both this process and the workers can import."""
    (work.code / f"{name}.py").write_text(text)
    importlib.invalidate_caches()
    return importlib.import_module(name)


def python(work, code, executable=sys.executable, arguments=(), **options):
    """Another Python that runs the code; what it says."""
    environment = {
        **work.environment,
        "HOME": str(work.root),
        "PYTHONPATH": f"{PACKAGE}{os.pathsep}{work.code}",
        "PARALLELRUN_BIN": str(BIN),
        "PATH": f"{BIN}{os.pathsep}{work.environment['PATH']}",
    }
    return subprocess.Popen(
        [executable, "-c", code, *arguments],
        cwd=work.root,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        **options,
    )


READS = "def read(mini_batch):\n    return [open(path).read() for path in mini_batch]\n"

HELD = """
from steps import note, wait_for

def read(mini_batch):
    note("held", 1)
    wait_for("go")
    return [open(path).read() for path in mini_batch]
"""


def test_a_function_of_a_module(start, work):
    rows = work.files(5)
    job = start(module(work, "reads", READS).read)
    result = job.wait(timeout=PATIENCE)
    assert result.ok
    assert (result.state, result.reason) == ("Succeeded", "Complete")
    assert (result.items.total, result.items.succeeded, result.items.failed) == (5, 5, 0)
    assert (result.rows, result.losses, result.exit_status) == (5, 0, 0)
    assert result.output == str(work.out / "parallel_run_step.txt")
    assert Path(result.logs).is_dir()
    assert list(job.rows()) == rows
    assert job.failures == []
    assert job.done
    assert "Succeeded" in repr(job)


def test_a_script_and_its_arguments(start, work):
    work.files(2)
    work.script("import sys\ndef run(mini_batch):\n    return [sys.argv[1]] * len(mini_batch)\n")
    job = start(work.code / "score.py", args=["--model=m"])
    assert list(job.rows()) == ["--model=m"] * 2


def test_a_class_and_the_context(start, work):
    work.files(4)
    made = module(
        work,
        "model",
        """
from steps import note

class Model:
    def init(self):
        note("init", 1)
        self.name = "m"
    def run(self, mini_batch, context):
        return [f"{self.name}{context.minibatch_index}" for path in mini_batch]
    def shutdown(self):
        note("shutdown", 1)
""",
    )
    with start(made.Model, processes=1) as job:
        assert list(job.rows()) == ["m0", "m1", "m2", "m3"]
    assert work.noted("init") == work.noted("shutdown") == ["1"]


def test_a_frame_of_rows_of_frames(start, work):
    work.files(3, "name,price\nten tons,{}\n")
    made = module(work, "table", "def run(mini_batch):\n    return mini_batch\n")
    job = start(made.run, format="csv", mini_batch_size="1KB")
    frame = job.frame(names=["name", "price"])
    assert frame["price"].tolist() == [0, 1, 2]
    assert frame["name"].tolist() == ["ten tons"] * 3


def test_json_lines_are_read_as_what_they_say(start, work):
    work.files(2)
    made = module(work, "dicts", "def run(mini_batch):\n    return [{'n': None, 'x': 1.5}]\n")
    job = start(made.run, settings={"output.format": "jsonl", "output.fileName": "rows.jsonl"})
    assert list(job.rows()) == [{"n": None, "x": 1.5}] * 2
    assert job.frame()["x"].tolist() == [1.5, 1.5]


def test_failures_and_a_corrected_function(start, work):
    work.files(3)
    (work.data / "000001.txt").write_text("no number")
    made = module(
        work,
        "numbers_of",
        """
def wrong(mini_batch):
    return [int(open(path).read().split()[-1]) for path in mini_batch]
def right(mini_batch):
    return [len(open(path).read()) for path in mini_batch]
""",
    )
    job = start(made.wrong, settings={"runMaxTry": 2})
    assert not job.result.ok
    assert (job.result.exit_status, job.result.losses) == (3, 1)
    (failure,) = job.failures
    assert failure.item == str(work.data / "000001.txt")
    assert (failure.type, failure.attempt, failure.items) == ("ValueError", 2, 1)
    assert failure.message == "invalid literal for int() with base 10: 'number'"
    assert failure.traceback.startswith("Traceback (most recent call last):\n")
    assert f'{work.code}/numbers_of.py", line 3, in wrong' in failure.traceback
    assert "invalid literal" in Path(failure.log).read_text()
    assert list(job.rows()) == ["0", "2"]
    again = job.retry(made.right)
    assert again.result.ok
    assert list(again.rows()) == ["0", "9", "2"], "what had succeeded stays"
    again._folder.cleanup()


def test_the_traceback_of_a_script_names_the_script(start, work):
    work.files(1)
    work.script("def run(mini_batch):\n    raise KeyError('a')\n")
    job = start(work.code / "score.py", settings={"runMaxTry": 1})
    assert job.result.state == "Failed"
    assert f'File "{work.code}/score.py", line 2, in run' in job.failures[0].traceback
    with pytest.raises(parallelrun.JobError, match="there is no output: Failed"):
        list(job.rows())


def test_what_cannot_start_says_all_of_it(start, work):
    work.script("def ran(mini_batch):\n    return []\n")
    job = start(work.code / "score.py", pattern="*.png")
    with pytest.raises(parallelrun.CannotStart, match=r"score\.py"):
        job.wait()
    assert job.cancel() is None
    with pytest.raises(parallelrun.CannotStart, match="--processes"):
        start(work.code / "score.py", processes=0).wait()


def test_what_is_no_script_is_refused_at_once(start, work):
    made = module(
        work,
        "wrong",
        """
class NoRun:
    pass
def three(a, b, c):
    pass
async def later(mini_batch):
    pass
""",
    )
    for target in (made.NoRun, made.three, made.later, 5):
        with pytest.raises(TypeError):
            start(target)
    with pytest.raises(ValueError, match="if_exists"):
        start(made.three, if_exists="replace")
    assert not work.out.exists()


def test_a_time_out_leaves_the_job_at_work(start, work):
    rows = work.files(2)
    job = start(module(work, "held_1", HELD).read)
    with pytest.raises(TimeoutError):
        job.wait(timeout=0.01)
    assert not job.done
    work.make("go")
    assert list(job.rows()) == rows


def test_one_that_is_canceled_is_resumed(start, work):
    rows = work.files(4)
    job = start(module(work, "held_2", HELD).read)
    wait_until(lambda: len(work.noted("held")) == 2, lambda: "two are held")
    stopped = job.cancel(now=True)
    assert (stopped.state, stopped.exit_status, stopped.output) == ("Stopped", 143, None)
    with pytest.raises(parallelrun.JobError, match="Stopped"):
        list(job.rows())
    work.make("go")
    again = job.resume()
    assert list(again.rows()) == rows
    again._folder.cleanup()


def test_a_block_that_ends_early_stops_the_job(start, work):
    work.files(2)
    with pytest.raises(KeyError), start(module(work, "held_3", HELD).read) as job:
        wait_until(lambda: work.noted("held"), lambda: "one is held")
        raise KeyError
    assert job.done
    expect_nothing_running()


def test_asyncio(start, work):
    rows = work.files(3)
    made = module(work, "held_4", HELD)

    async def both():
        async with start(made.read) as job:
            waiting = asyncio.ensure_future(_wait(job))
            while len(work.noted("held")) < 2:
                await asyncio.sleep(0.01)  # others run meanwhile
            assert not waiting.done()
            work.make("go")
            return await waiting, list(job.rows())

    async def _wait(job):
        return await job

    result, read = asyncio.run(both())
    assert result.ok
    assert read == rows


def test_asyncio_that_is_canceled_stops_the_job(start, work):
    work.files(2)
    made = module(work, "held_5", HELD)

    async def leave():
        async with start(made.read) as job:
            while not work.noted("held"):
                await asyncio.sleep(0.01)
            raise KeyError
        return job

    with pytest.raises(KeyError):
        asyncio.run(leave())
    expect_nothing_running()


INTERRUPTED = """
import parallelrun, sys
from held_6 import read
job = parallelrun.run(read, "data", "out", mini_batch_size=1, processes=2)
try:
    job.wait()
except KeyboardInterrupt:
    print("interrupted", job.done, flush=True)
print(len(list(job.resume().rows())), flush=True)
"""


def test_ctrl_c_leaves_what_resume_continues(work):
    work.files(6)
    (work.code / "held_6.py").write_text(HELD)
    caller = python(work, INTERRUPTED, start_new_session=True)
    try:
        wait_until(lambda: len(work.noted("held")) == 2, lambda: "two are held")
        os.killpg(caller.pid, signal.SIGINT)  # as a terminal sends it
        wait_until(
            lambda: (
                "draining" in "".join(p.read_text() for p in work.out.glob("logs/sys/**/*.txt"))
            ),
            lambda: "the nodes are told to stop",
        )
        work.make("go")
        said, _ = communicate(caller, "the program ends")
    finally:
        caller.kill()
    assert said == "interrupted True\n6\n"
    expect_nothing_running()


def test_a_python_that_ends_stops_its_job(work):
    work.files(2)
    (work.code / "held_7.py").write_text(HELD)
    code = """
import os, time, parallelrun
from held_7 import read
job = parallelrun.run(read, "data", "out", mini_batch_size=1)
while not os.path.exists("held"):
    time.sleep(0.01)
"""
    caller = python(work, code)
    said, _ = communicate(caller, "the program ends")
    assert caller.returncode == 0, said
    expect_nothing_running()


def test_a_python_that_is_killed_stops_its_job(work):
    rows = work.files(6)
    (work.code / "held_8.py").write_text(HELD)
    code = """
import sys, parallelrun
from held_8 import read
job = parallelrun.run(read, "data", "out", mini_batch_size=1, processes=2, if_exists=sys.argv[1])
print(len(list(job.rows())))
"""
    caller = python(work, code, arguments=["fail"])
    wait_until(lambda: len(work.noted("held")) == 2, lambda: "two are held")
    caller.kill()
    communicate(caller, "it is killed")
    wait_until(
        lambda: "draining" in "".join(p.read_text() for p in work.out.glob("logs/sys/**/*.txt")),
        lambda: "the nodes are told to stop",
    )
    work.make("go")
    wait_until(lambda: not processes.running(), lambda: f"nothing runs: {processes.running()}")
    assert not (work.out / "parallel_run_step.txt").exists()
    for left in work.temporary.glob("parallelrun-job-*"):
        shutil.rmtree(left)

    said, _ = communicate(python(work, code, arguments=["resume"]), "the program ends")
    assert said == f"{len(rows)}\n"
    expect_nothing_running()


NUMBERS = "def read(mini_batch):\n    return [int(open(path).read()) for path in mini_batch]\n"


def test_the_code_of_a_function_is_there_when_its_python_has_gone(work):
    """So that its failures are debugged, and the run is typed again, like those of any script."""
    work.files(3)
    (work.data / "000001.txt").write_text("7")
    (work.code / "numbers_1.py").write_text(NUMBERS)
    code = """
import parallelrun
from numbers_1 import read
options = {"mini_batch_size": 1, "settings": {"runMaxTry": 1}}
print(parallelrun.run(read, "data", "out", **options).result.losses)
"""
    said, _ = communicate(python(work, code), "the program ends")
    assert said == "2\n"
    assert list(work.temporary.iterdir()) == []
    kept = work.out / "state/code"
    assert kept.stat().st_mode & 0o777 == 0o700
    record = json.loads((work.out / "state/run.json").read_text())
    assert record["code"] == str(kept)
    assert record["command"][2:6] == [str(kept / "entry.py"), "--code", str(kept), "--keep-code"]
    assert not {"--events", "--ends-with-stdin"} & set(record["command"])

    told = work.call("debug", work.out, "--item", "000000.txt")
    assert told.code == 1 and "ValueError: invalid literal for int()" in told.output, told
    told = work.call("debug", work.out, "--item", "000001.txt")
    assert told.code == 0 and "1 row:\n7\n" in told.output, told
    told = work.call("rerun", work.out, "--output", work.root / "again")
    assert told.code == 3 and "2 of 3 items have no row" in told.output, told
    again = work.root / "again/state/code"
    assert (again / "entry.py").read_bytes() == (kept / "entry.py").read_bytes()


def test_a_function_is_tried_again_as_it_was(start, work):
    work.files(2)
    job = start(module(work, "numbers_2", NUMBERS).read)
    assert job.result.reason == "NothingSucceeded"
    kept = work.out / "state/code"
    again = job.resume()
    assert again.result.reason == "NothingSucceeded"
    assert again._start_event["code"] == str(kept)
    corrected = again.resume(module(work, "reads_9", READS).read)
    assert corrected.result.ok
    assert b"reads_9" in (kept / "function.pickle").read_bytes()
    for one in (again, corrected):
        one._folder.cleanup()


def test_a_function_of_the_program_needs_cloudpickle(work):
    work.files(1)
    code = """
import parallelrun, sys
sys.modules["cloudpickle"] = None
def read(mini_batch):
    return [1]
try:
    parallelrun.run(read, "data", "out")
except TypeError as error:
    print(error)
"""
    said, _ = communicate(python(work, code), "the program ends")
    assert "needs cloudpickle. pip install 'parallelrun[notebook]'" in said


@needs_notebook
def test_a_function_of_the_program_with_cloudpickle(work):
    work.files(3)
    code = """
import parallelrun
word = "and"
def add(text):
    return text + word
def read(mini_batch):
    return [add(open(path).read()) for path in mini_batch]
print(list(parallelrun.run(read, "data", "out").rows()))
"""
    said, _ = communicate(python(work, code, NOTEBOOK_PYTHON), "it ends")
    assert said == "['row 0and', 'row 1and', 'row 2and']\n"
    expect_nothing_running()


@needs_notebook
def test_what_is_too_large_to_be_passed_on_is_named(work):
    work.files(1)
    code = """
import parallelrun
table, name = bytes(60 << 20), "rows"
def read(mini_batch):
    return [f"{name} {len(table)}"]
class Reader:
    def run(self, mini_batch):
        return [len(table)]
for made in (read, Reader):
    try:
        parallelrun.run(made, "data", "out")
    except TypeError as error:
        print(error)
"""
    said, _ = communicate(python(work, code, NOTEBOOK_PYTHON), "it ends")
    for line, name in zip(said.splitlines(), ("read", "Reader")):
        assert line.startswith(f"{name} takes more than 50 MiB with all that it uses"), said
        assert "would read that: table. Write it to a file" in line, said
    assert said.count("\n") == 2, said
    assert not work.out.exists()


def test_another_python_is_named(start, work, monkeypatch):
    """The script compares the versions before it reads what may mean something else to it."""
    work.files(1)
    made = module(work, "reads_2", READS)
    folder = work.root / "made"
    folder.mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(function_script.sys, "version_info", (3, 7, 0))
        script = function_script.write_script(made.read, folder)
    job = start(script)
    assert job.result.reason in ("InitFailed", "ScriptUnusable")
    assert "was made under Python 3.7, and this is Python 3." in job.result.message


@needs_notebook
def test_the_notebook_of_the_docs(work):
    """From top to bottom; a cell that raises ends it."""
    code = f"""
import nbformat, nbclient
book = nbformat.read({str(ROOT / "docs/notebook.ipynb")!r}, 4)
nbclient.NotebookClient(book, timeout=None, resources={{"metadata": {{"path": "."}}}}).execute()
for cell in book.cells:
    for output in cell.get("outputs", []):
        print(output.get("text") or output.get("data", {{}}).get("text/plain", ""))
"""
    said, _ = communicate(python(work, code, NOTEBOOK_PYTHON), "it ends", 400)
    assert "day-07.txt ValueError could not convert string to float: 'n/a" in said, said
    assert "run() failed at" in said, said  # by parallelrun debug
    assert "all 2 mini-batches succeeded" in said, said
    assert "mini-batches" in said  # the progress that tqdm shows
    expect_nothing_running()


def test_progress_without_tqdm_and_in_a_pipe(work):
    """Nothing is written where nobody could see it move."""
    work.files(3)
    (work.code / "reads_3.py").write_text(READS)
    code = """
import sys
sys.modules["tqdm"] = None
import parallelrun
from reads_3 import read
print(parallelrun.run(read, "data", "out").result.rows)
"""
    said, _ = communicate(python(work, code), "the program ends")
    assert said == "3\n"


def test_types_are_there():
    """What type checkers see is what there is."""
    for name in parallelrun.__all__:
        assert getattr(parallelrun, name) is not None
    with pytest.raises(AttributeError):
        parallelrun.nothing  # noqa: B018
    assert (PACKAGE / "parallelrun/py.typed").exists()
    assert json.dumps(parallelrun.RELEASE)
