"""Rows: from what run() returned to the bytes that are appended to the output."""

import codecs
import json
import os
import sys

from parallelrun.worker import other_tables, whole_text, work
from parallelrun.worker.failure import Failure
from parallelrun.worker.frame_columns import FrameColumns

_SETTINGS = "parallel_run_step.settings.json"
_RETURN_THIS = (
    "Return a list, a tuple or a pandas DataFrame with one element or row for each item that was "
    "processed"
)
_ADVICE = {
    "NoneType": f"{_RETURN_THIS}, an empty list when there is none.",
    "async_generator": "Define it with def, not async def, and yield or return there.",
    "coroutine": "Define it with def, not async def, and call asyncio.run() inside.",
    "str": "Return [text] for one row.",
    "bytes": "Return [text] for one row, decoded.",
    "dict": "Return a list: [result] for one row, or list(result.items()).",
    "LazyFrame": "Return its collect().",
}


_LAZY = (type(_ for _ in ()), map, filter, zip)


def read_out(returned):
    """What run() returned; what it yields is read to its end, as that is when the script works."""
    return list(returned) if type(returned) in _LAZY else returned


class RowEncoder:
    """Counts and encodes returned values. One per process."""

    def __init__(self, process, run_location, ask_header=None):
        """`ask_header`: tells the agent a header and gives that of the job; None: as told."""
        self._summary_only = process.summary_only
        self._short_return_fails = process.short_return_fails
        self._component_mode = process.component_mode
        self._run_location = run_location
        self._to_csv = {"sep": " ", "header": False, "index": False}
        self._to_csv.update(_read_settings(process.root))
        self._frames = None  # which columns the rows of DataFrames have as text
        self._provenance = process.output_format != "text" and process.provenance
        self._rows = None  # what encodes them where the format is not text
        if process.output_format == "jsonl":
            from parallelrun.worker.json_rows import JsonRows

            self._rows = JsonRows(process.nan_as_null, run_location)
        elif process.output_format == "csv":
            from parallelrun.worker.csv_rows import CsvRows

            self._rows = CsvRows(process.output_columns, process.nan_as_null, run_location)
        elif process.output_format == "parquet" and not process.summary_only:
            from parallelrun.worker.parquet_rows import ParquetRows

            self._rows = ParquetRows(process.output_columns, process.nan_as_null, run_location)
        elif not process.summary_only:
            self._take_frames(process.dataframe_header, ask_header)

    def _take_frames(self, with_header, ask_header):
        # Aliases of columns, if the settings give them, else the columns' own names.
        options = {**self._to_csv, "header": self._to_csv["header"] or True}
        ask = (ask_header or (lambda header: header)) if with_header else None
        self._frames = FrameColumns(options, ask, self._run_location)
        if with_header:
            self._to_csv["header"] = False

    def encode(self, returned, items, body=b""):
        """(items succeeded, rows, bytes of the rows). Raises Failure for a wrong value.

        `body` is the batch frame, where that is still there.
        """
        if isinstance(returned, (list, tuple)):
            lines = returned
        else:
            returned = self._plain(returned)
            lines = self._check(returned)
        count = len(returned)
        if count < items and self._short_return_fails:
            raise Failure(
                "ShortReturn",
                f"run() returned {count} elements for {items} items, and shortReturn is Fail. "
                "Return one element for each item, or set shortReturn to Keep.",
                location=self._run_location,
            )
        if self._summary_only or not count:
            data = b""
        elif self._rows is not None:
            origin = self._origin(body, items) if self._provenance else None
            data = self._rows.encode(returned, origin)
        elif lines is None:
            data = self._table(returned, count)
            ordered = self._frames.in_order(returned)  # not before: a header is for rows
            if ordered is not returned:
                data = self._table(ordered, count)
        else:
            to_text = _output_of if self._component_mode else str
            texts = whole_text.lines(to_text, lines, count, self._run_location)
            data = _to_bytes(texts + "\n")
        return min(count, items), count, data

    def _origin(self, body, items):
        from parallelrun.worker.origin import Origin

        return Origin(work.index_of(body), work.files_of(body), items)

    def _table(self, frame, count):
        data = _to_bytes(whole_text.table(frame, self._to_csv, self._run_location))
        _check_lines(data, count)
        return data

    def _plain(self, returned):
        """Tables and columns of polars and pyarrow as what _check knows."""
        plain = other_tables.plain(returned)
        if self._frames is None or not isinstance(plain, other_tables.Columns):
            return plain
        try:
            return plain.to_pandas()
        except ImportError:
            raise Failure(
                "BadReturn",
                f"run() returned a {type(returned).__name__} of {type(returned).__module__}, and "
                "pandas, which writes the rows of a table as text, is not there. Install pandas, "
                "or set output.format: csv, jsonl or parquet.",
                location=self._run_location,
            ) from None

    def _check(self, returned):
        """What to print line by line, or None for a table."""
        if isinstance(returned, list):
            return returned
        if isinstance(returned, other_tables.Columns):
            return None
        # Whoever returns one of these has imported its library.
        pandas = sys.modules.get("pandas")
        if pandas is not None:
            if isinstance(returned, pandas.DataFrame):
                return None
            if isinstance(returned, pandas.Series):
                return returned
        numpy = sys.modules.get("numpy")
        if numpy is not None and isinstance(returned, numpy.ndarray) and returned.ndim:
            return returned
        name = type(returned).__name__
        if name == "coroutine":
            returned.close()  # or Python warns that it was never awaited
        raise Failure(
            "BadReturn",
            f"run() returned {'None' if returned is None else 'a value of type ' + name}. "
            + _ADVICE.get(name, f"{_RETURN_THIS}."),
            location=self._run_location,
        )


def _check_lines(data, count):
    """Rows of other mini-batches stand before and behind these."""
    if not data.endswith(b"\n") or data.count(b"\n") < count:
        raise Failure(
            "BadReturn",
            "to_csv() made rows that do not end with a line feed. Correct its arguments in "
            f"{_SETTINGS}, such as lineterminator.",
            location=_SETTINGS,
        )


def _output_of(element):
    """A row of component mode: the JSON of the field "output", if the element has one."""
    text = str(element)
    try:
        row = json.loads(text)
    except ValueError:
        return text
    return json.dumps(row["output"]) if isinstance(row, dict) and "output" in row else text


def _to_bytes(text):
    return text.encode("utf-8", "parallelrun.surrogates")


def _surrogate(error):
    """What was a byte that is no UTF-8 becomes that byte again; any other surrogate, its escape.

    Each for itself: what else is in the mini-batch must not matter.
    """
    code = ord(error.object[error.start])
    written = bytes([code - 0xDC00]) if 0xDC80 <= code <= 0xDCFF else b"\\u%04x" % code
    return written, error.start + 1


codecs.register_error("parallelrun.surrogates", _surrogate)


def _read_settings(root):
    """The arguments of DataFrame.to_csv that the user's code overrides."""
    try:
        with open(os.path.join(root, _SETTINGS), encoding="utf-8-sig") as file:
            settings = json.load(file)
        return dict(settings.get("append_row", {}).get("pandas.DataFrame.to_csv", {}))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise Failure(
            "InitFailed",
            f"{_SETTINGS} cannot be read: {error}. It is a JSON object such as "
            '{"append_row": {"pandas.DataFrame.to_csv": {"sep": ","}}}.',
            location=_SETTINGS,
            fatal=True,
        ) from None
