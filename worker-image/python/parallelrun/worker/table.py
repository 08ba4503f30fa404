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
    """The DataFrame of one slice, or of a group of them, and what it was read from."""
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
    frames = [_read(*part, options, root) for part in slices]
    if count == 1:
        return _some(frames[0], options), source
    try:
        import pandas

        return _some(pandas.concat(frames, ignore_index=True), options), source
    except Exception as error:  # none at all, or columns that do not fit together
        raise listed.unreadable(f"{source} and {count - 1} other slices", error, root) from None


def _some(frame, options):
    """The rows that the Work is about; the types of columns are those of all rows."""
    if "rows" not in options:
        return frame
    first, count = options["rows"]
    return frame.iloc[first : first + count].reset_index(drop=True)


def append_keys(frame, keys):
    """Partition keys become columns after the file's own; a column of the file's wins."""
    for key, value in keys.items():
        if key not in frame.columns:
            frame[key] = value


def _read(path, offsets, header, stamp, options, root):
    offset, length = offsets
    where = f"{path}, bytes {offset} to {offset + length},"
    try:
        import pandas

        if options.get("format") == "parquet":
            where = path
            listed.check_stamp(path, os.stat(path), stamp)
            return _read_parquet(pandas, path, options.get("rowGroups"))
        data = listed.read_slice(path, offset, length, stamp, header)
        return _parse(pandas, data, bool(header), options)
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


def _parse(pandas, data, has_header, options):
    encoding = options["encoding"]
    if codecs.lookup(encoding).name in ("utf-8", "utf-8-sig"):
        # The file's own mark is not in its slices; one that is data must not be taken for it.
        encoding = "utf-8"
        if data.startswith(codecs.BOM_UTF8):
            data = codecs.BOM_UTF8 + data
    frame = pandas.read_csv(
        io.BytesIO(data),
        sep=options["delimiter"],
        encoding=encoding,
        header=0 if has_header else None,
        # Never take a column for the index: scripts join their results by position.
        index_col=False,
        # One type for a whole column, not one per internal chunk.
        low_memory=False,
    )
    if not has_header:
        frame.columns = [f"Column{number}" for number in range(1, len(frame.columns) + 1)]
    return frame


def _read_parquet(pandas, path, row_groups):
    if row_groups is None:
        frame = pandas.read_parquet(path)
    else:
        from pyarrow import parquet

        with parquet.ParquetFile(path) as file:
            frame = file.read_row_groups(row_groups).to_pandas()
    # An index that was stored under a name is data; any other is not.
    drop = [level for level in frame.index.names if level is None]
    return frame.reset_index(drop=True) if drop else frame.reset_index()
