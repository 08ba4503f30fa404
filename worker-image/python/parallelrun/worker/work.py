"""Work: from the bytes of a batch frame to what run() is called with."""

import json
import os
import struct
import sys

from parallelrun.worker.channel import ProtocolError
from parallelrun.worker.context import MiniBatch, MiniBatchContext, Subset
from parallelrun.worker.failure import Failure, from_exception, text_of

_FILES, _TABULAR, _JSON_LINES, _RANK, _TABULAR_GROUP = range(1, 6)
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
        position = 36 + size
        context = None
        if with_context:
            context = MiniBatchContext(index, retries, first, bytes(body[36:position]))
        if kind == _FILES:
            mini_batch, source = _load_files(body, position, items)
            mini_batch.task_id = index
        elif kind in (_TABULAR, _TABULAR_GROUP):
            from parallelrun.worker import table

            mini_batch, source = table.load(body, position, kind == _TABULAR_GROUP, root)
            if size:
                table.append_keys(mini_batch, json.loads(bytes(body[36:position])))
        elif kind == _JSON_LINES:
            from parallelrun.worker import json_lines

            lines, source = json_lines.load(body, position, root)
            mini_batch = MiniBatch(lines)
            mini_batch.task_id = index
        elif kind == _RANK:
            mini_batch, source = MiniBatch((index,)), "rank"
            mini_batch.task_id = index
        else:
            raise ProtocolError(f"work of the unknown kind {kind}")
    except (struct.error, ValueError, KeyError) as error:
        raise ProtocolError(f"work cannot be decoded: {error}") from error
    if with_context:
        context.dataset = Subset(source, first, items)
    return items, mini_batch, context


def read_text(body, position):
    """A text of the protocol and the position after it."""
    (size,) = _LENGTH.unpack_from(body, position)
    position += 4
    return body[position : position + size], position + size


def read_path(body, position):
    """The same for a path, as Python spells paths."""
    path, position = read_text(body, position)
    return str(path, _NAMES_ENCODING, _NAMES_ERRORS), position


def read_offsets(body, position):
    """Offset and length of a slice, and the position after them."""
    return _SLICE.unpack_from(body, position), position + _SLICE.size


def read_stamp(body, position):
    """Size and modification time as listed, and the position after them."""
    return _STAMP.unpack_from(body, position), position + _STAMP.size


def _load_files(body, position, items):
    root, position = read_path(body, position)
    names, position = read_path(body, position)
    folder = root if root.endswith("/") else root + "/"
    paths = [folder + name for name in names.split("\0")]
    if len(paths) != items or len(body) - position != items * _STAMP.size:
        raise ProtocolError(f"work of {items} files names {len(paths)}")
    for path in paths:
        stamp = size, _ = _STAMP.unpack_from(body, position)
        position += 16
        if size != _UNKNOWN_SIZE:
            try:
                found = os.stat(path)
            except OSError as error:
                raise unreadable(path, error, root) from None
            if found.st_size != size or found.st_mtime_ns != stamp[1]:
                raise _changed(path, found, stamp)
    return MiniBatch(paths), root


def read_slice(path, offset, length, stamp, header=b""):
    """The header and the slice. Raises Failure when the file is not what was listed."""
    parts = [header] if header else []
    with open(path, "rb", buffering=0) as file:
        found = os.fstat(file.fileno())
        check_stamp(path, found, stamp)
        while length:
            part = os.pread(file.fileno(), length, offset)
            if not part:
                raise _changed(path, found, stamp)
            parts.append(part)
            offset += len(part)
            length -= len(part)
    return b"".join(parts)


def check_stamp(path, found, stamp):
    """Raises Failure when a file that was found is not what was listed."""
    size, modified = stamp
    if size != _UNKNOWN_SIZE and (found.st_size != size or found.st_mtime_ns != modified):
        raise _changed(path, found, stamp)


def unreadable(what, error, root):
    """The failure of an input that cannot be read or parsed."""
    message = f"{what} cannot be read: {text_of(error)}"
    return from_exception("InputUnreadable", error, root, message)


def _changed(path, found, stamp):
    return Failure(
        "InputChanged",
        f"{path} is not what was listed: it has {found.st_size} bytes and the modification time "
        f"{found.st_mtime_ns} ns, and had {stamp[0]} bytes and {stamp[1]} ns. {_LISTED_AGAIN}",
        location=path,
    )
