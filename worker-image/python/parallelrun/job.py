"""`parallelrun.run`: an entry script, a function or a class over files or tables, from Python.

docs/python.md is the page for users. It starts the command `parallelrun run` and listens to its
events (docs/events.md): nothing is scheduled here. The interpreter that calls is the one that
works.
"""

from __future__ import annotations

import asyncio
import atexit
import functools
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Generator, Iterator, Mapping, Sequence

from parallelrun.command import command, stop
from parallelrun.failures import decoded, failure_lines, traceback_of, with_code
from parallelrun.function_script import SCRIPT_NAME, name_of, write_script
from parallelrun.output import frame as read_frame
from parallelrun.output import rows as read_rows
from parallelrun.progress import Shown, progress_for

# How often a wait looks whether it was interrupted, and shows what is new.
_LOOK_S = 0.1


class JobError(Exception):
    """The job has no output: it failed, was stopped, or could not start. The message says why."""


class CannotStart(JobError):
    """Nothing was run: something is missing or wrong. The message has all of it."""


@dataclass(frozen=True)
class Counts:
    """How many of mini-batches, or of items: files, or rows of tables."""

    total: int | None
    """None while the input was still being listed."""
    succeeded: int
    failed: int


@dataclass(frozen=True)
class Result:
    """How a run ended."""

    state: str
    """`Succeeded`, `Failed`, or `Stopped`, which `resume()` continues."""
    reason: str
    """One word, as `Complete` or `NothingSucceeded` (docs/cli.md); empty where it was stopped."""
    message: str
    exit_status: int
    """Of the command: 0, or 3 where items were lost that no threshold allows, …"""
    mini_batches: Counts
    items: Counts
    rows: int
    """Of all mini-batches that have succeeded."""
    losses: int
    """Items of a job that has succeeded that have no row."""
    output: str | None
    """Path of the output file; None: nothing was published."""
    logs: str
    """The folder of the logs."""
    seconds: float
    """From the start of the command to its end."""

    @property
    def ok(self) -> bool:
        """Every item has its rows, or the job's thresholds allow what was lost."""
        return self.exit_status == 0


@dataclass(frozen=True)
class Failure:
    """An item that failed, as a line of `failures.jsonl` has it (docs/logs.md)."""

    item: str
    """The file, also of rows; `rank 7` without one; empty where only `run()` knows which it was.
    A byte of its name that is no UTF-8 is a surrogate, which `os.fsencode()` gives back."""
    type: str
    """The exception's type, as `ValueError`, or the kind of error: `RunTimeout`, `ProcessEnded`."""
    message: str
    traceback: str
    """As Python prints it; empty where there is none."""
    location: str
    """File and line of the script, as `score.py:31`; empty if not known."""
    log: str
    """Path of the log; empty where there is none."""
    mini_batch: int
    attempt: int
    """How often it was tried; 0 where only some items of its mini-batch failed."""
    items: int
    """How many items this stands for: 1 of files, a mini-batch's rows of tables."""


def run(
    script: str | os.PathLike[str] | Any,
    input: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],  # noqa: A002
    output: str | os.PathLike[str],
    *,
    processes: int | None = None,
    pattern: str | None = None,
    format: str | None = None,  # noqa: A002
    mini_batch_size: int | str | None = None,
    args: Sequence[str] = (),
    nodes: int | None = None,
    settings: Mapping[str, Any] | None = None,
    if_exists: str = "fail",
    python: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> Job:
    """Starts a job and returns at once; `job.wait()` waits for its end.

    script: the path of an entry script; or a function of (mini_batch) or (mini_batch, context)
        that returns a row for each item; or a class with `run` likewise, and perhaps `init()`,
        which each worker process calls once, and `shutdown()`. A function of a notebook needs
        cloudpickle: `pip install "parallelrun[notebook]"`.
    input: a folder, a file, a glob, a URL of a store, or a list of these.
    output: a folder, which gets the output file, `logs` and `state`; or a file that ends in .csv,
        .jsonl, .parquet or .txt (docs/formats.md); or a URL of a store (docs/stores.md), which
        `rows` and `frame` do not read.
    processes: worker processes; one for each core if not given.
    pattern: which files of a folder, as `**/*.png`.
    format: `files` (`run` gets paths), `csv`, `tsv`, `parquet` (a DataFrame) or `jsonl` (dicts).
    mini_batch_size: files, or bytes of a table as `"1MB"`.
    args: arguments of a script.
    nodes: how many sets of `processes` there are; 1 if not given.
    settings: other fields of the job's `spec` (docs/job.md), as `{"runMaxTry": 1}`.
    if_exists: what becomes of an earlier run in `output`: `fail`, `overwrite` or `resume`.
    python: the interpreter of the workers; the one that calls if not given.
    progress: whether `wait()` shows how far it is.

    Raises TypeError for a `script` that is none, RuntimeError if the command is not installed. All
    else that is wrong is known once the command has looked at it: `wait()` raises CannotStart.
    """
    exists = {"fail": [], "overwrite": ["--overwrite"], "resume": ["--resume"]}
    if if_exists not in exists:
        raise ValueError(f"if_exists is {' or '.join(exists)}, and not {if_exists!r}")
    words = ["--input", *map(_path, _list(input)), "--output", _path(output)]
    words += ["--python", _path(python or sys.executable)]
    options = {
        "--processes": processes,
        "--pattern": pattern,
        "--format": format,
        "--mini-batch-size": mini_batch_size,
        "--nodes": nodes,
    }
    for flag, value in options.items():
        if value is not None:
            words += [flag, str(value)]
    for name, value in (settings or {}).items():
        words += ["--set", f"spec.{name}={json.dumps(value)}"]
    job = Job(_Script(script), words, list(map(str, args)), progress)
    job._start(exists[if_exists])
    return job


class Job:
    """A run of the command, from `run()`. Any thread may call it.

    As a context manager, also an async one, it stops what still runs at the end of the block.
    `await job` is `wait()` for asyncio. When the Python that made it ends before it, it is stopped.
    """

    def __init__(self, script: _Script, words: list[str], args: list[str], progress: bool) -> None:
        self._name = script.name
        self._script = script
        self._words = words
        self._args = args
        self._progress = progress
        self._changed = threading.Condition()
        self._start_event: dict[str, Any] = {}
        self._progress_event: dict[str, Any] | None = None
        self._end_event: dict[str, Any] | None = None
        self._failed: list[dict[str, Any]] = []
        self._stopping = False
        self._over = False
        self._shown: Shown | None = None
        self._ended = False

    # --- what it came to

    def wait(self, timeout: float | None = None) -> Result:
        """Waits for the end, and shows how far it is.

        timeout: seconds; then TimeoutError is raised, and the job goes on. Ctrl-C lets the
        mini-batches that run finish, stops the job, which `resume()` continues, and raises
        KeyboardInterrupt; a second one stops at once. Raises CannotStart if nothing could be run.
        """
        try:
            self._wait(timeout)
        except KeyboardInterrupt:
            self._interrupt()
            raise
        return self._result()

    @property
    def result(self) -> Result:
        """`wait()`."""
        return self.wait()

    @property
    def done(self) -> bool:
        """Whether it has ended; does not wait."""
        return self._over

    def rows(self) -> Iterator[Any]:
        """The rows of the output, in the order of the input, read as they are asked for.

        Waits first. Lines without their ends; of JSON lines what they say, and of CSV and Parquet a
        dict each. A byte that is no UTF-8 is a surrogate. Raises JobError if there is no output.
        """
        return read_rows(self._output())

    def frame(self, **options: Any) -> Any:
        """The output as a pandas DataFrame; waits first.

        options: of pandas' reader for the format. Lines are read as `read_csv(sep=" ",
        header=None)`, which is how rows of DataFrames are written. Raises JobError if there is no
        output.
        """
        return read_frame(self._output(), **options)

    @property
    def failures(self) -> list[Failure]:
        """The items that failed, in the order in which they last did; waits first."""
        logs = self._logs(self.wait())
        words = functools.partial(self._plain, self._start_event.get("code", ""))
        return [_failure(logs, about, words) for about in failure_lines(logs)]

    # --- what to do with it

    def retry(self, script: Any = None) -> Job:
        """Starts a job that runs again what has failed; this one must have ended.

        script: the corrected function, class or path. If not given, a path as it is now, and of a
        function or class the code that was run. The output is replaced when it has succeeded.
        """
        return self._again("--retry-failed", script)

    def resume(self, script: Any = None) -> Job:
        """Starts a job that continues what this one has left, when it was stopped or has failed.

        script: as that of `retry()`.
        """
        return self._again("--resume", script)

    def cancel(self, now: bool = False) -> Result | None:
        """Stops it and waits for that: mini-batches that run are finished, or ended with `now`.

        Returns how it ended, also if it had ended before; None if it could not start.
        """
        if not self._over:
            self._signal(signal.SIGTERM)
            if now:
                # Two signals in a row would be one.
                with self._changed:
                    self._changed.wait_for(lambda: self._stopping or self._over)
                self._signal(signal.SIGTERM)
        self._wait(None)
        try:
            return self._result()
        except CannotStart:
            return None

    def __enter__(self) -> Job:
        return self

    def __exit__(self, *_: object) -> None:
        self.cancel(now=True)

    async def __aenter__(self) -> Job:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.get_running_loop().run_in_executor(None, self.cancel, True)

    def __await__(self) -> Generator[Any, None, Result]:
        return self._until_over().__await__()

    def __repr__(self) -> str:
        if not self._over:
            return f"<Job {self._name}: running>"
        end = self._end_event or {}
        return f"<Job {self._name}: {end.get('state', 'ended')}: {end.get('message', '')}>"

    # --- the command

    def _start(self, more: list[str]) -> None:
        words = ["run", *self._script.words(self._make_folder()), *self._words, *more]
        # Its standard input ends with this process, whatever ends that.
        words += ["--events", "jsonl", "--ends-with-stdin"]
        self._launch([*words, "--", *self._args], subprocess.PIPE)

    def _make_folder(self) -> str:
        self._folder = tempfile.TemporaryDirectory(prefix="parallelrun-job-")
        self._temporary = tempfile.gettempdir()
        return self._folder.name

    def _launch(self, words: list[str], stdin: int | IO[bytes]) -> None:
        self._said = Path(self._folder.name, "said.txt")
        # What it tells people goes into a file, not a pipe: what is left behind may hold it open.
        with open(self._said, "wb") as said:
            self._process = subprocess.Popen(
                [*command(), *words],
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=said,
                start_new_session=True,  # Ctrl-C is ours to pass on
            )
        _running.add(self)
        threading.Thread(target=self._listen, name="parallelrun events", daemon=True).start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as events:
            for line in events:
                try:
                    event = json.loads(line)
                except ValueError:  # the end of what a killed command was writing
                    continue
                with self._changed:
                    self._take(event)
                    self._changed.notify_all()
        self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()
        with self._changed:
            self._over = True
            _running.discard(self)
            self._changed.notify_all()

    def _take(self, event: dict[str, Any]) -> None:
        kind = event.get("event")
        if kind == "start":
            self._start_event = event
        elif kind == "progress":
            self._progress_event = event
        elif kind == "failure" and event["final"]:
            self._failed.append(event)
        elif kind == "stopping":
            self._stopping = True
        elif kind == "end":
            self._end_event = event

    def _signal(self, signo: int) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signo)

    def _leave(self) -> None:
        """Python ends."""
        stop(self._process)

    # --- waiting

    def _wait(self, timeout: float | None) -> None:
        end = None if timeout is None else time.monotonic() + timeout
        try:
            while True:
                with self._changed:
                    if not self._over:
                        left = _LOOK_S if end is None else min(_LOOK_S, end - time.monotonic())
                        self._changed.wait(max(left, 0))
                    over = self._over
                self._show()
                if over:
                    return
                if end is not None and time.monotonic() >= end:
                    raise TimeoutError(f"the job has not ended within {timeout:g} s; it goes on")
        finally:
            if self._over and self._shown is not None:
                self._shown.close()
                self._ended = True  # what is over is shown once

    def _show(self) -> None:
        if not self._progress or self._ended or self._progress_event is None:
            return
        if self._shown is None:
            self._shown = progress_for(self._name)
        self._shown.show(self._progress_event, self._failed)

    def _interrupt(self) -> None:
        """After Ctrl-C; a second one stops at once."""
        self._signal(signal.SIGINT)
        try:
            self._wait(None)
        except KeyboardInterrupt:
            self._signal(signal.SIGINT)
            self._wait(None)

    async def _until_over(self) -> Result:
        loop = asyncio.get_running_loop()
        while not self._over:
            await loop.run_in_executor(None, self._pause)
            self._show()
        return self.wait()

    def _pause(self) -> None:
        with self._changed:
            if not self._over:
                self._changed.wait(_LOOK_S)

    # --- reading what is left

    def _result(self) -> Result:
        end = self._end_event
        if end is None or end["state"] == "NotStarted":
            said = decoded(self._said.read_bytes()).strip()
            message = end["message"] if end else said
            if end is None and self._process.returncode != 2:
                message = f"the command was ended (status {self._process.returncode})\n{said}"
            raise CannotStart(message)
        published = end["output"] or {}
        return Result(
            state=end["state"],
            reason=end["reason"],
            message=end["message"],
            exit_status=end["exitStatus"],
            mini_batches=_counts(end["miniBatches"]),
            items=_counts(end["items"]),
            rows=end["rows"] or 0,
            losses=end["losses"] or 0,
            output=published.get("path"),
            logs=end["logs"],
            seconds=end["seconds"],
        )

    def _output(self) -> str:
        result = self.wait()
        if result.output is None:
            raise JobError(f"there is no output: {result.state}: {result.message}")
        if "://" in result.output:
            raise JobError(f"{result.output} is in a store: read it by a library for that store")
        return self._here(result.output)

    def _here(self, output: str) -> str:
        """The path of the output on this machine."""
        return output

    def _logs(self, result: Result) -> Path:
        """The log folder on this machine."""
        return Path(result.logs)

    def _plain(self, code: str, text: str) -> str:
        """The text with the paths of the code as the caller knows them."""
        return with_code(text, self._temporary, code)

    def _again(self, flag: str, script: Any) -> Job:
        if not self._over:
            raise RuntimeError("the job still runs: wait() for it, or cancel() it")
        kept = self._script.kept(self._start_event.get("state"))
        made = kept if script is None else _Script(script)
        job = Job(made, self._words, self._args, self._progress)
        job._start([flag])
        return job


class _Script:
    """What was to be run: a script, or what is made into one."""

    def __init__(self, script: Any, code: Path | None = None) -> None:
        self._script = script
        is_path = isinstance(script, (str, os.PathLike))
        self.name = os.path.basename(script) if is_path else name_of(script)
        self._is_path = is_path
        self._code = code

    def words(self, folder: str) -> list[str]:
        """The words of the command for it; `folder` is for what has to be written."""
        if self._is_path:
            return [os.path.abspath(self._script)]
        code = self._code
        if code is None:
            code = Path(folder, "code")
            code.mkdir()
            write_script(self._script, code)
        return [str(code / SCRIPT_NAME), "--code", str(code), "--keep-code"]

    def kept(self, state: str | None) -> _Script:
        """The very code that was run: pickled anew, a function may have become another one."""
        if self._is_path or state is None or not Path(state, "code", SCRIPT_NAME).is_file():
            return self
        return _Script(self._script, Path(state, "code"))


def _list(input: Any) -> list[Any]:  # noqa: A002
    return [input] if isinstance(input, (str, os.PathLike)) else list(input)


def _path(path: Any) -> str:
    return os.fspath(path)


def _counts(event: Mapping[str, Any] | None) -> Counts:
    event = event or {}
    return Counts(event.get("total"), event.get("succeeded", 0), event.get("failed", 0))


def _failure(logs: Path, about: Mapping[str, Any], words: Any) -> Failure:
    item = about.get("item", "")
    return Failure(
        item=item,
        type=about["type"],
        message=words(about["message"]),
        traceback=traceback_of(logs, about, words),
        location=about.get("location", ""),
        log=str(logs / about["log"]) if about.get("log") else "",
        mini_batch=about["miniBatch"],
        attempt=about.get("attempt", 0),
        items=about["items"],
    )


# Those that still run when this process ends are stopped.
_running: weakref.WeakSet[Job] = weakref.WeakSet()


@atexit.register
def _stop_all() -> None:
    for job in list(_running):
        job._leave()
