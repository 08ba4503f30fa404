"""Work: from the bytes of a batch frame to what run() is called with."""

import os
import struct
import sys

from parallelrun.worker.channel import ProtocolError
from parallelrun.worker.context import MiniBatch, MiniBatchContext, Subset
from parallelrun.worker.failure import Failure, from_exception, text_of

_FILES, _TABULAR = 1, 2
_UNKNOWN_SIZE = 2**64 - 1

# The sequence of the batch frame, the head of Work, and the length of the context.
_HEAD = struct.Struct("<QBBHQQII")
_LENGTH = struct.Struct("<I")
_STAMP = struct.Struct("<Qq")
_SLICE = struct.Struct("<QQ")

_NAMES_ENCODING = sys.getfilesystemencoding()
_NAMES_ERRORS = sys.getfilesystemencodeerrors()
_LISTED_AGAIN = (
    "Do not change the input while a job reads it; start the job again to list it afresh."
)


def describe(body):
    """Mini-batch id and number of the attempt, for the error log."""
    _, _, _, retries, index, _, _, _ = _HEAD.unpack_from(body)
    return f"mini-batch {index}, attempt {retries + 1}"


def load(body, with_context, root):
    """Items, mini-batch and context (or None) of a batch frame.

    Raises Failure when the input cannot be read or is not what was listed.
    """
    try:
        _, kind, _, retries, index, first, items, size = _HEAD.unpack_from(body)
        context = None
        if with_context:
            context = MiniBatchContext(index, retries, first, bytes(body[36 : 36 + size]))
        if kind == _FILES:
            mini_batch, source = _load_files(body, 36 + size, items)
            mini_batch.task_id = index
        elif kind == _TABULAR:
            mini_batch, source = _load_table(body, 36 + size, root)
        else:
            raise ProtocolError(f"work of the unknown kind {kind}")
    except (struct.error, ValueError) as error:
        raise ProtocolError(f"work cannot be decoded: {error}") from error
    if with_context:
        context.dataset = Subset(source, first, items)
    return items, mini_batch, context


def _text(body, position):
    (size,) = _LENGTH.unpack_from(body, position)
    position += 4
    return body[position : position + size], position + size


def _load_files(body, position, items):
    root, position = _text(body, position)
    names, position = _text(body, position)
    root = str(root, _NAMES_ENCODING, _NAMES_ERRORS)
    folder = root if root.endswith("/") else root + "/"
    paths = [folder + name for name in str(names, _NAMES_ENCODING, _NAMES_ERRORS).split("\0")]
    if len(paths) != items or len(body) - position != items * _STAMP.size:
        raise ProtocolError(f"work of {items} files names {len(paths)}")
    for path in paths:
        size, modified = _STAMP.unpack_from(body, position)
        position += 16
        if size != _UNKNOWN_SIZE:
            try:
                found = os.stat(path)
            except OSError as error:
                raise _unreadable(path, error, root) from None
            if found.st_size != size or found.st_mtime_ns != modified:
                raise _changed(path, found, size, modified)
    return MiniBatch(paths), root


def _load_table(body, position, root):
    path, position = _text(body, position)
    path = str(path, _NAMES_ENCODING, _NAMES_ERRORS)
    offset, length = _SLICE.unpack_from(body, position)
    header, position = _text(body, position + _SLICE.size)
    stamp = _STAMP.unpack_from(body, position)
    form, _ = _text(body, position + _STAMP.size)
    where = f"{path}, bytes {offset} to {offset + length},"
    try:
        import pandas

        data = _read_slice(path, offset, length, bytes(header), stamp)
        return _parse(pandas, data, bool(len(header)), form), path
    except Failure:
        raise
    except ModuleNotFoundError as error:
        message = (
            f"Tabular input needs pandas, and {sys.executable} has no {error.name}. "
            "Install pandas in the image."
        )
        raise from_exception("InputUnreadable", error, root, message, fatal=True) from None
    except Exception as error:  # pandas raises many types, and all mean the same
        raise _unreadable(where, error, root) from None


def _read_slice(path, offset, length, header, stamp):
    """The header and the slice."""
    size, modified = stamp
    parts = [header] if header else []
    with open(path, "rb", buffering=0) as file:
        found = os.fstat(file.fileno())
        if size != _UNKNOWN_SIZE and (found.st_size != size or found.st_mtime_ns != modified):
            raise _changed(path, found, size, modified)
        while length:
            part = os.pread(file.fileno(), length, offset)
            if not part:
                raise _changed(path, found, size, modified)
            parts.append(part)
            offset += len(part)
            length -= len(part)
    return b"".join(parts)


def _parse(pandas, data, has_header, form):
    import io
    import json

    options = json.loads(bytes(form))
    frame = pandas.read_csv(
        io.BytesIO(data),
        sep=options["delimiter"],
        encoding=options["encoding"],
        header=0 if has_header else None,
        # Never take a column for the index: scripts join their results by position.
        index_col=False,
        # One type for a whole column, not one per internal chunk.
        low_memory=False,
    )
    if not has_header:
        frame.columns = [f"Column{number}" for number in range(1, len(frame.columns) + 1)]
    return frame


def _unreadable(what, error, root):
    message = f"{what} cannot be read: {text_of(error)}"
    return from_exception("InputUnreadable", error, root, message)


def _changed(path, found, size, modified):
    return Failure(
        "InputChanged",
        f"{path} is not what was listed: it has {found.st_size} bytes and the modification time "
        f"{found.st_mtime_ns} ns, and had {size} bytes and {modified} ns. {_LISTED_AGAIN}",
        location=path,
    )
