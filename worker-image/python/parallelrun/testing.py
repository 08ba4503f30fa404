"""Unit tests of entry scripts: `run_script("score.py", files=["a.txt"]).rows`.

docs/testing-scripts.md is the page for users. It runs the installed command, `parallelrun run`, on
one node with one worker process, in a temporary folder, and reads what that leaves. A small agent
in Python could start the worker alone, and sooner, but it would be a second scheduler: the listing,
the types of a table's columns, time-outs, the end of children and the check before the start are no
worker's. A test that passes here has passed what a job does, and not a copy of it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Mapping, NamedTuple, Sequence

from parallelrun.command import command as _command
from parallelrun.command import stop as _stop
from parallelrun.failures import (
    decoded,
    failure_lines,
    read_end,
    traceback_in,
    traceback_of,
    with_code,
)

# What `run()` returned was no answer: a mistake of the script, whatever the item.
_REFUSED = ("BadReturn", "ShortReturn")


class Failure(NamedTuple):
    """An item that failed, as a line of `failures.jsonl` has it (docs/logs.md)."""

    item: str
    """The file, absolute; of rows the file that they lie in, "" for `rows`; empty if not known."""
    type: str
    """The exception's type, as `ValueError`, or the kind of error: `RunTimeout`, `ProcessEnded`."""
    message: str
    traceback: str
    """As Python prints it, with the script's own paths; empty where Python could not write one."""
    location: str
    """File and line of the script, as `score.py:31`; empty if not known."""
    first_item: int
    """Index of the first item in the whole input, from 0."""
    items: int
    """How many items this stands for: 1 of files, a mini-batch's rows of tables."""


class ScriptResult(NamedTuple):
    """What a run left. Of each log at most the last 8 MiB."""

    rows: list[str]
    """The lines of the job's output, without line ends, in the order of the input; with the output
    action `SummaryOnly` none."""
    failures: list[Failure]
    """The items that failed, in the order of the input; their rows are not in `rows`."""
    stdout: str
    """What the script printed, with the lines of Python's `logging`."""
    stderr: str
    log: str
    """What `EntryScript().logger` wrote."""
    verdict: str
    """The job's verdict, as `Succeeded: Complete: all 2 mini-batches succeeded`."""


class ScriptError(Exception):
    """A job would refuse this script, or end for its fault; the message says why.

    Raised where `run()` is missing, the script cannot be imported, `init()` or `shutdown()` raises,
    `run()` returns what is not rows, none at all, or too few with `shortReturn: Fail`. The message
    ends with the traceback, if there is one; `failures` are the items that failed until then.
    """

    def __init__(self, message: str, failures: Sequence[Failure] = ()) -> None:
        super().__init__(message)
        self.failures = list(failures)


class ScriptTimeout(ScriptError):
    """The whole run took longer than `timeout`. Nothing of it is left running."""


def run_script(
    script: str | os.PathLike[str],
    files: Any = None,
    rows: Any = None,
    args: Sequence[str] = (),
    *,
    mini_batch_size: int | str | None = None,
    run_timeout: int = 60,
    timeout: float = 300,
    settings: Mapping[str, Any] | None = None,
) -> ScriptResult:
    """Runs an entry script in a worker process: init(), run() per mini-batch, shutdown().

    script: the file. Its project is its code, as for `parallelrun run`.
    files: a folder, a file, or a list of files: `run()` gets paths, in the order of the list. What
        it gets of a list are links, below a temporary folder, at the files' own absolute paths.
    rows: in place of `files`. A DataFrame (written as CSV, and read as a job reads CSV), a list
        of dicts (JSON lines), or the path of a .csv, .tsv, .parquet or .jsonl file.
    args: the script's arguments.
    mini_batch_size: files, or lines of JSON; of tables bytes, as `"64KB"`. Else the job's default.
    run_timeout: seconds, whole, that one `run()` may take; then its process is killed, and its
        items are in `failures` with the type `RunTimeout`.
    timeout: seconds for everything together.
    settings: other fields of the job's `spec` (docs/job.md), as `{"shortReturn": "Fail",
        "inputs[0].tabular.delimiter": ";"}`. Without `runMaxTry` a mini-batch is tried once.

    The interpreter is the one that calls, and the environment variables are the caller's.
    An exception in `run()`, a process that ends and a time-out of `run()` are no errors here but
    `failures`, as a job goes on after them. Raises ScriptError and ScriptTimeout as they say;
    FileNotFoundError if the script or a file is missing; TypeError if not exactly one of `files`
    and `rows` is given; ValueError if the settings ask for Parquet, which has no lines;
    RuntimeError if the command is not installed.
    """
    if (files is None) == (rows is None):
        raise TypeError("run_script() takes either files or rows")
    if (settings or {}).get("output.format") == "parquet":
        raise ValueError("rows are lines here, which Parquet has not: leave output.format out")
    script = Path(os.path.abspath(script))
    if not script.is_file():
        raise FileNotFoundError(f"there is no entry script {script}")
    command = _command()
    # Resolved: the workers' paths are, and they are looked for in texts.
    folder = Path(os.path.realpath(tempfile.mkdtemp(prefix="parallelrun-testing-")))
    try:
        source = _of_files(folder, files) if rows is None else _of_rows(folder, rows)
        words = ["run", str(script), *source, "--output", str(folder / "out")]
        words += ["--processes", "1", "--python", sys.executable, "--allow-failures"]
        if mini_batch_size is not None:
            words += ["--mini-batch-size", str(mini_batch_size)]
        fields = {
            "runMaxTry": 1,
            "runInvocationTimeoutSeconds": run_timeout,
            "resourceMonitorIntervalSeconds": 0,
            **(settings or {}),
        }
        for name, value in fields.items():
            words += ["--set", f"spec.{name}={json.dumps(value)}"]
        run = _Run(folder, _code_folder(command, script, source, folder))
        status = run.call([*command, *words, "--", *map(str, args)], timeout)
        return run.result(status)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _of_files(folder: Path, files: Any) -> list[str]:
    """The words for the input; a list becomes one folder of links, cut as one input is."""
    if isinstance(files, (str, os.PathLike)):
        if os.path.isdir(files):
            return ["--input", os.path.abspath(files), "--format", "files"]
        files = [files]
    for number, file in enumerate(files):
        path = os.path.abspath(os.fspath(file))
        if not os.path.isfile(path):
            raise FileNotFoundError(f"there is no file {path}")
        link = f"{folder}/files/{number:09}{path}"
        os.makedirs(os.path.dirname(link), exist_ok=True)
        os.symlink(path, link)
    (folder / "files").mkdir(exist_ok=True)
    return ["--input", str(folder / "files"), "--format", "files"]


def _of_rows(folder: Path, rows: Any) -> list[str]:
    if isinstance(rows, (str, os.PathLike)):
        path = os.path.abspath(rows)
        if not os.path.isfile(path):
            raise FileNotFoundError(f"there is no file {path}")
        return ["--input", path]
    if hasattr(rows, "to_csv"):
        rows.to_csv(folder / "rows.csv", index=False)
        return ["--input", str(folder / "rows.csv"), "--format", "csv"]
    with open(folder / "rows.jsonl", "w", encoding="utf-8") as lines:
        lines.writelines(json.dumps(row) + "\n" for row in rows)
    return ["--input", str(folder / "rows.jsonl"), "--format", "jsonl"]


def _code_folder(command: list[str], script: Path, source: list[str], folder: Path) -> str:
    """The project that the command takes as code: what it says of the script's place in it."""
    file = folder / "job.yaml"
    words = ["init", str(script), *source, "--output", str(folder / "out"), "--file", str(file)]
    subprocess.run([*command, *words], capture_output=True, timeout=60, check=False)
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    entry = re.search(r'^  entryScript: (".*")$', text, re.M)
    inside = json.loads(entry.group(1)) if entry else script.name
    return str(script)[: -len(inside) - 1] if str(script).endswith("/" + inside) else ""


class _Run:
    """One call of the command, and what it leaves in the folder."""

    def __init__(self, folder: Path, code: str) -> None:
        self._folder = folder
        self._logs = folder / "out" / "logs"
        self._temporary = folder / "tmp"
        self._temporary.mkdir()
        # The nodes' copies of the code, and the links, in words of whoever wrote the test.
        self._code = code
        self._links = re.compile(re.escape(str(folder / "files")) + r"/\d{9}(?=/)")

    def call(self, words: list[str], timeout: float) -> int:
        """Runs the command and returns its exit status; nothing of it runs afterwards."""
        # Into a file, not a pipe: what a script leaves behind may hold it open.
        with open(self._folder / "command.txt", "wb") as said:
            command = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                env={**os.environ, "TMPDIR": str(self._temporary)},
                start_new_session=True,
            )
        try:
            return command.wait(timeout)
        except subprocess.TimeoutExpired:
            _stop(command)
            raise ScriptTimeout(
                f"the run took longer than timeout={timeout:g} s and was stopped. "
                + self._ending("stderr", "the end of what the script wrote to stderr")
                + self._ending("stdout", "the end of what it printed"),
                self._failures(),
            ) from None
        finally:
            _stop(command)

    def result(self, status: int) -> ScriptResult:
        report = self._read(self._logs / "job_result.txt")
        verdict = report.partition("\n")[0]
        failures = self._failures()
        for failure in failures:
            if failure.type in _REFUSED:
                raise ScriptError(f"{failure.type}: {failure.message}", failures)
        late = verdict.split(": ")[1:2] == ["ShutdownFailed"]
        if late or (status != 0 and not failures):
            said = verdict or self._read(self._folder / "command.txt")
            errors = sorted(self._logs.glob("user/error/*/*.txt"))
            traceback = next(filter(None, map(traceback_in, map(self._read, errors))), "")
            raise ScriptError(f"{said.strip()}\n{traceback}".rstrip(), failures)
        # Settings and arguments may give the output another name; without rows there is none.
        output = re.search(r"^Output: (.+) \(\d+ rows?, ", report, re.M)
        text = self._plain(decoded(Path(output.group(1)).read_bytes())) if output else ""
        return ScriptResult(
            rows=text.split("\n")[:-1],
            failures=failures,
            stdout=self._log("stdout"),
            stderr=self._log("stderr"),
            log=self._log("entry_script_log"),
            verdict=verdict,
        )

    def _failures(self) -> list[Failure]:
        found = []
        for about in failure_lines(self._logs):
            item = self._plain(about.get("item", ""))
            found.append(
                Failure(
                    item="" if item.startswith(f"{self._folder}/") else item,
                    type=about["type"],
                    message=self._plain(about["message"]),
                    traceback=traceback_of(self._logs, about, self._plain),
                    location=about["location"],
                    first_item=about["firstItem"],
                    items=about["items"],
                )
            )
        return found

    def _log(self, kind: str) -> str:
        return "".join(self._read(path) for path in sorted(self._logs.glob(f"user/{kind}/*/*")))

    def _ending(self, kind: str, what: str) -> str:
        text = self._log(kind)
        return f"\n{what}:\n{text[-4096:]}" if text else ""

    def _read(self, path: Path) -> str:
        """The end of a log; empty if it is not there."""
        return read_end(path, self._plain)

    def _plain(self, text: str) -> str:
        """The text with the paths of the code and of the files as the caller knows them."""
        return self._links.sub("", with_code(text, str(self._temporary), self._code))
