"""The failed items of a run, as its logs tell them (docs/logs.md)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Callable, Iterator, Mapping

# Of a log's end, so that a script that prints without end costs no memory here.
LOG_BYTES = 8 << 20

_ENTRY = re.compile(r"^\d{4}-\d\d-\d\d [\d:,]+\|\w+\|\d+\|\d+\|", re.M)
# In a traceback; its file is named relative to the code.
_FRAME = re.compile(r'^(  File ")(?=[^/<"\n][^"\n]*", line \d)', re.M)

Words = Callable[[str], str]
"""Makes a text of the logs one of the caller's: with paths as the caller knows them."""


def failure_lines(logs: Path) -> Iterator[Mapping[str, Any]]:
    """The lines of failures.jsonl; none if it is not there."""
    path = logs / "failures.jsonl"
    if not path.exists():
        return
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def traceback_of(logs: Path, about: Mapping[str, Any], words: Words) -> str:
    """The traceback of a failed attempt, as Python prints it; empty if there is none."""
    if not about.get("log") or "attempt" not in about:
        return ""
    begins = f"mini-batch {about['id']}, attempt {about['attempt']}: "
    for entry in _ENTRY.split(read_end(logs / about["log"], words)):
        if entry.startswith(begins):
            return traceback_in(entry)
    return ""


def traceback_in(entry: str) -> str:
    """Of the last entry of an error log; empty if it has none."""
    last = _ENTRY.split(entry + "\n")[-1]
    _, begin, rest = last.partition("Traceback (most recent call last):\n")
    return begin + rest.partition("\nWhat it wrote: ")[0].rstrip("\n") if begin else ""


def read_end(path: Path, words: Words) -> str:
    """The end of a log, at most LOG_BYTES; empty if it is not there."""
    if not path.is_file():
        return ""
    with open(path, "rb") as log:
        log.seek(max(0, path.stat().st_size - LOG_BYTES))
        return words(decoded(log.read(LOG_BYTES)))


def decoded(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def with_code(text: str, temporary: str, code: str) -> str:
    """The text with the files of the code as the caller knows them.

    They are named below a node's copy in `temporary`, or, in a traceback, relative to the code.
    """
    copies = re.escape(temporary) + r"/parallelrun-[^/]+/node-\d+-\d+(?=/)"
    text = re.sub(copies, lambda _: code, text)
    return _FRAME.sub(lambda found: f"{found.group(1)}{code}/", text) if code else text
