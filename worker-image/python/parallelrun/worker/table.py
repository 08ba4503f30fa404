"""Tabular Work: slices of CSV or parquet files to one DataFrame."""

import codecs
import io
import json
import os
import struct
import sys

from parallelrun.worker import listed, process
from parallelrun.worker.failure import Failure, from_exception

_COUNT = struct.Struct("<I")


def load(body, position, grouped, root):
    """The DataFrame of one slice, or of a group of them, what it was read from, and bad rows.

    Bad rows are (path, line, reason) of those that were left out.
    """
    count = 1
    if grouped:
        (count,) = _COUNT.unpack_from(body, position)
        position += _COUNT.size
    slices = []
    for _ in range(count):
        path, position = listed.read_path(body, position)
        offsets, position = listed.read_offsets(body, position)
        header, position = listed.read_text(body, position)
        stamp, position = listed.read_stamp(body, position)
        slices.append((path, offsets, bytes(header), stamp))
    form, _ = listed.read_text(body, position)
    options = json.loads(bytes(form))
    source = slices[0][0] if slices else ""
    rows = _Rows(options)
    # Of each slice its own.
    told = options.pop("mayLose", None) or [None] * count
    frames = [
        _read(*part, options if may_lose is None else {**options, "mayLose": may_lose}, root, rows)
        for part, may_lose in zip(slices, told)
    ]
    if count == 1:
        _append_path_columns(frames[0], [len(frames[0])], options)
        return rows.of(frames[0]), source, rows.bad
    try:
        import pandas

        whole = pandas.concat(frames, ignore_index=True)
        _append_path_columns(whole, [len(frame) for frame in frames], options)
        return rows.of(whole), source, rows.bad
    except Exception as error:  # none at all, or columns that do not fit together
        raise listed.unreadable(f"{source} and {count - 1} other slices", error, root) from None


class _Rows:
    """The rows that the Work is about: all of its slices', or a piece of them."""

    def __init__(self, options):
        self._piece = options.get("rows")
        self._decided = "columns" in options and options.get("format") != "parquet"
        self._passed = 0  # rows of the slices that were read
        self.bad = []  # left out: (path, line, reason)

    def window(self):
        """First and number of the rows that are meant of the next slice; None: all of them."""
        if self._piece is None:
            return None
        first, count = self._piece
        begin = max(first - self._passed, 0)
        return begin, max(first + count - self._passed - begin, 0)

    def passed(self, path, rows, bad):
        """A slice was read: how many rows it has, and those that were left out."""
        self._passed += rows or 0
        self.bad += [(path, *row) for row in bad]

    def of(self, frame):
        """The rows that are meant; where types are not decided, they are those of all rows."""
        if self._piece is None or self._decided:
            return frame
        first, count = self._piece
        return frame.iloc[first : first + count].reset_index(drop=True)


def _append_path_columns(frame, lengths, options):
    """What stands in the paths, columns after the file's own; a column of the file's wins.

    `lengths` are the rows of each slice, whose values `pathValues` has in the same order.
    """
    for place, column in enumerate(options.get("pathColumns", ())):
        if column["name"] in frame.columns:
            continue
        values = [of_slice[place] for of_slice in options["pathValues"]]
        if column.get("date"):
            import numpy

            # Of one unit in every version of pandas.
            dates = numpy.array(values, dtype="datetime64[ns]")
            frame[column["name"]] = numpy.repeat(dates, lengths)
        elif len(set(values)) == 1:
            frame[column["name"]] = values[0]
        else:
            frame[column["name"]] = [
                value for value, length in zip(values, lengths) for _ in range(length)
            ]


def _read(path, offsets, header, stamp, options, root, rows):
    offset, length = offsets
    where = f"{path}, bytes {offset} to {offset + length},"
    try:
        import pandas

        if options.get("format") == "parquet":
            where = path
            listed.check_stamp(path, os.stat(path), stamp)
            if "columns" in options:
                from parallelrun.worker import typed_parquet

                return typed_parquet.read(path, options)
            from parallelrun.worker import plain_parquet

            return plain_parquet.read(pandas, path, options.get("rowGroups"))
        if "columns" in options:
            from parallelrun.worker import typed_table

            window = rows.window()
            read = typed_table.read(pandas, path, offsets, header, stamp, options, window)
            frame, bad, total = read
            rows.passed(path, total, bad)
            return frame
        compressed = options.get("compressed", False)
        data = listed.read_slice(path, offset, length, stamp, header, compressed)
        return _parse(pandas, path, offset, data, header, options)
    except Failure:
        raise
    except ImportError as error:
        # pandas names no module when it has no engine for parquet.
        missing = error.name or "pyarrow"
        message = (
            f"{'Parquet' if missing == 'pyarrow' else 'Tabular'} input needs {missing}, and "
            f"{sys.executable} has no {missing}. Install {missing} in the image{_image()}."
        )
        raise from_exception("InputUnreadable", error, root, message, fatal=True) from None
    except Exception as error:  # pandas raises many types, and all mean the same
        raise listed.unreadable(where, error, root) from None


def _image():
    image = process.current.image if process.current else ""
    return f" {image}" if image else ""


def _parse(pandas, path, offset, data, header, options):
    from parallelrun.worker import long_delimiter, row_shape
    from parallelrun.worker.misfit import about_encoding

    rows = data[len(header) :] if header else data
    at_end = row_shape.delimiter_at_end(header, rows, options)  # of what the planner has seen
    if len(options["delimiter"].encode()) > 1:
        header, rows, options = long_delimiter.replaced(path, header, rows, options)
        data = header + rows
    settings = {
        "sep": options["delimiter"],
        "encoding": options["encoding"],
        # Never take a column for the index: scripts join their results by position.
        "index_col": False,
        # One type for a whole column, not one per internal chunk.
        "low_memory": False,
        **row_shape.quoting(options),
    }
    marked = data
    if codecs.lookup(options["encoding"]).name in ("utf-8", "utf-8-sig"):
        # The file's own mark is not in its slices; one that is data must not be taken for it.
        settings["encoding"] = "utf-8"
        if data.startswith(codecs.BOM_UTF8):
            marked = codecs.BOM_UTF8 + data
    _refuse(path, offset, rows, row_shape.with_nul(rows, options), options)
    width = len(row_shape.first_row(header or rows, options))

    def refuse_misshapen():
        found = row_shape.misshapen(rows, width, at_end, options)
        _refuse(path, offset, rows, found, options)

    # Of the first row pandas drops what is too many; it warns at most, and some versions do not.
    if len(row_shape.first_row(rows, options)) > width + at_end:
        refuse_misshapen()
    try:
        frame = pandas.read_csv(io.BytesIO(marked), header=0 if header else None, **settings)
    except pandas.errors.ParserError as error:
        if row_shape.is_too_wide(error):
            refuse_misshapen()
        raise
    except UnicodeDecodeError:
        found = row_shape.undecodable(rows, settings["encoding"], options)
        _refuse(path, offset, rows, found, options, about_encoding(options["encoding"]))
        raise
    if at_end and not row_shape.all_end_empty(rows, width, len(frame), options):
        refuse_misshapen()
    if not header:
        frame.columns = [f"Column{number}" for number in range(1, len(frame.columns) + 1)]
    return frame


def _refuse(path, offset, data, found, options, advice="Fix the file, or leave it out."):
    """Raises for the first of the rows that were found, (row, reason)."""
    if not found:
        return
    from parallelrun.worker import misfit
    from parallelrun.worker.table_rows import Rows

    row, reason = found[0]
    where = misfit.place_of(path, offset, data, list(Rows(data, options))[row])
    raise Failure("InputUnreadable", f"{where}: {reason}. {advice}")
