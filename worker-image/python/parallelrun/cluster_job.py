"""`parallelrun.submit`: a job of a cluster, from Python.

docs/python.md is the page for users. It starts the command `parallelrun submit`, which speaks to
the cluster by kubectl, and listens to its events (docs/events.md).
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
from pathlib import Path
from typing import Any, Mapping

from parallelrun.command import command
from parallelrun.failures import decoded
from parallelrun.job import CannotStart, Job, JobError, Result, _path

# As long as it may take until a job that was canceled has ended.
_DAY_S = "86400"


def submit(
    job: Mapping[str, Any] | str | os.PathLike[str],
    *,
    namespace: str | None = None,
    context: str | None = None,
    code: str | os.PathLike[str] | None = None,
    settings: Mapping[str, Any] | None = None,
    replace: bool = False,
    progress: bool = True,
) -> Job:
    """Hands a job to a cluster, and returns once it is there; `job.wait()` waits for its end.

    job: the path of a job file (docs/job.md), its text (YAML or JSON, of more than one line), or a
        dict of it. Of a text and a dict, paths are relative to the current folder.
    namespace, context: as kubectl's, whose own are taken if not given.
    code: the folder of the code, in place of the job's.
    settings: other fields of the job's `spec`, as `{"nodeCount": 4}`.
    replace: whether an ended job of this name is deleted first; what it has written stays, and the
        job's `output.ifExists` says what becomes of it. Without it a job that is there already
        and is the same is followed, and another one is refused.
    progress: whether `wait()` shows how far it is.

    It needs kubectl, and does what its user may do. `rows()`, `frame()` and `failures` bring the
    files here by `parallelrun fetch`, once, into a temporary folder; paths in `result` are the
    cluster's. `retry()` and `resume()` apply the job anew, in its own place. When Python ends, and
    after Ctrl-C in `wait()`, the job goes on; `cancel()` and the end of a `with` block cancel it.

    Raises TypeError for a `job` that is none, RuntimeError if the command is not installed. All
    else that is wrong `wait()` raises, as CannotStart.
    """
    words = []
    for flag, value in {"--namespace": namespace, "--context": context, "--code": code}.items():
        if value is not None:
            words += [flag, _path(value)]
    for name, value in (settings or {}).items():
        words += ["--set", f"spec.{name}={json.dumps(value)}"]
    made = _ClusterJob(_JobFile(job), words, progress)
    made._start(["--replace"] if replace else [])
    return made


class _JobFile:
    """What was to be submitted: a file, or the text of one."""

    def __init__(self, job: Any) -> None:
        self.name = "job"
        self.path = "-"
        self.text = ""
        if isinstance(job, Mapping):
            self.text = json.dumps(job)
        elif isinstance(job, str) and "\n" in job:
            self.text = job
        elif isinstance(job, (str, os.PathLike)):
            self.path = os.path.abspath(job)
            self.name = os.path.basename(self.path)
        else:
            raise TypeError(f"a job is a path, a text or a dict, and not a {type(job).__name__}")


class _ClusterJob(Job):
    def __init__(self, job: _JobFile, words: list[str], progress: bool) -> None:
        super().__init__(job, words, [], progress)  # type: ignore[arg-type]
        self._job = job
        self._fetching = threading.Lock()

    # --- what to do with it

    def cancel(self, now: bool = False) -> Result | None:
        """Cancels it and waits for that; `now` makes no difference on a cluster.

        Returns how it ended, also if it had ended before; None if it could not start. Raises
        JobError if it cannot be canceled, as for want of a right.
        """
        if not self._over and self._start_event:
            self._call("stop", self._start_event["job"], *self._where(), "--wait", _DAY_S)
        return super().cancel(now)

    def _signal(self, signo: int) -> None:
        pass  # what can be signalled only follows it

    def _interrupt(self) -> None:
        pass  # the job goes on

    def _leave(self) -> None:
        self._process.kill()

    # --- the command

    def _start(self, more: list[str]) -> None:
        folder = self._make_folder()
        words = ["submit", self._job.path, *self._words, *more, "--events", "jsonl"]
        text = Path(folder, "job.yaml")
        text.write_text(self._job.text, encoding="utf-8")
        with open(text, "rb") as stdin:
            self._launch(words, stdin)
        with self._changed:
            self._changed.wait_for(lambda: self._start_event or self._over)
            self._name = self._start_event.get("job", self._name)

    def _again(self, flag: str, script: Any) -> Job:
        if script is not None:
            raise TypeError("the script of a job of a cluster is what its job file says")
        if not self._over:
            raise RuntimeError("the job still runs: wait() for it, or cancel() it")
        exists = {"--retry-failed": "RetryFailed", "--resume": "Resume"}[flag]
        job = _ClusterJob(self._job, self._words, self._progress)
        job._start(["--replace", "--set", f"spec.output.ifExists={exists}"])
        return job

    def _where(self) -> list[str]:
        start = self._start_event
        where = ["--namespace", start["namespace"]]
        return where + (["--context", start["context"]] if start["context"] else [])

    def _call(self, *words: str) -> None:
        done = subprocess.run([*command(), *words], stdin=subprocess.DEVNULL, capture_output=True)
        if done.returncode != 0:
            raise JobError(decoded(done.stderr).strip())

    # --- reading what is left

    def _result(self) -> Result:
        said = decoded(self._said.read_bytes()).strip()
        if self._end_event is None and self._start_event:
            raise JobError(f"the job cannot be followed any more, and goes on\n{said}")
        if self._end_event is None:
            raise CannotStart(said)
        return super()._result()

    def _fetched(self, what: str) -> Path:
        folder = Path(self._folder.name, what)
        with self._fetching:
            if not folder.exists():
                self._call("fetch", self._start_event["job"], what, str(folder), *self._where())
        return folder

    def _here(self, output: str) -> str:
        return str(self._fetched("output") / os.path.basename(output))

    def _logs(self, result: Result) -> Path:
        return self._fetched("logs")

    def _plain(self, code: str, text: str) -> str:
        return text
