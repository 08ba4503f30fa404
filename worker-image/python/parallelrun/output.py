"""Reads the output file of a job (docs/formats.md), which its name's ending says the format of."""

from __future__ import annotations

import csv
import json
import os
from typing import Any, Iterator


def rows(path: str) -> Iterator[Any]:
    """Row by row: lines without their ends; of JSON lines what they say; else a dict each."""
    ending = os.path.splitext(path)[1].lower()
    if ending == ".parquet":
        import pyarrow.parquet as parquet  # type: ignore[import-not-found]

        for batch in parquet.ParquetFile(path).iter_batches():
            yield from batch.to_pylist()
        return
    # Only "\n" ends a line: rows may hold any other character.
    newline = "" if ending == ".csv" else "\n"
    with open(path, encoding="utf-8", errors="surrogateescape", newline=newline) as lines:
        if ending == ".csv":
            yield from csv.DictReader(lines)
        elif ending == ".jsonl":
            yield from map(json.loads, lines)
        else:
            for line in lines:
                yield line[:-1] if line.endswith("\n") else line


def frame(path: str, **options: Any) -> Any:
    """As a DataFrame, by pandas' reader for the format; `options` are the reader's."""
    import pandas  # type: ignore[import-not-found,import-untyped]

    ending = os.path.splitext(path)[1].lower()
    if ending == ".parquet":
        return pandas.read_parquet(path, **options)
    if ending == ".jsonl":
        return pandas.read_json(path, **{"lines": True, **options})
    if ending == ".csv":
        return pandas.read_csv(path, **options)
    return pandas.read_csv(path, **{"sep": " ", "header": None, **options})
