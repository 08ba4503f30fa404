"""Work: from the bytes of a batch frame to what run() is called with."""

import json
import os
import struct

from parallelrun.worker import logs, process
from parallelrun.worker.channel import ProtocolError
from parallelrun.worker.context import MiniBatch, MiniBatchContext, Subset
from parallelrun.worker.listed import UNKNOWN_SIZE, check_stamp, read_path, read_text, unreadable

_FILES, _TABULAR, _JSON_LINES, _RANK, _TABULAR_GROUP = range(1, 6)

# The sequence of the batch frame, the head of Work, and the length of the context.
_HEAD = struct.Struct("<QBBHQQII")
_STAMP = struct.Struct("<Qq")

# A bit of the second byte of Work: of files there is more than their paths.
_HAS_METADATA = 2


def describe(body):
    """Mini-batch id and number of the attempt, for the error log."""
    _, _, _, retries, index, _, _, _ = _HEAD.unpack_from(body)
    return f"mini-batch {index}, attempt {retries + 1}"


def index_of(body):
    """The mini-batch of a batch frame, or of its head; of a piece, the whole one."""
    return _HEAD.unpack_from(body)[4] & 0xFFFFFFFF


def files_of(body):
    """The files that it is made of; none where that is not known, as of a head alone."""
    if len(body) <= _HEAD.size:
        return []
    _, kind, _, _, _, _, _, size = _HEAD.unpack_from(body)
    position = _HEAD.size + size
    if kind == _FILES:
        return _read_paths(body, position)[0]
    if kind in (_TABULAR, _JSON_LINES):
        return [read_path(body, position)[0]]
    return []


def load(body, with_context, root):
    """Items that are left, how many were skipped, mini-batch and context (or None).

    Raises Failure when the input cannot be read or is not what was listed.
    """
    try:
        _, kind, flags, retries, index, first, items, size = _HEAD.unpack_from(body)
        position = 36 + size
        skipped = 0
        context = None
        if with_context:
            context = MiniBatchContext(index, retries, first, bytes(body[36:position]))
        if kind == _FILES:
            mini_batch, source, position = _load_files(body, position, items)
            mini_batch.task_id = index
            _take_metadata(body, position, flags, items, context)
        elif kind in (_TABULAR, _TABULAR_GROUP):
            from parallelrun.worker import table

            mini_batch, source, bad = table.load(body, position, kind == _TABULAR_GROUP, root)
            if bad:
                logs.append_skipped(process.current.skipped_rows_log, describe(body), bad)
                skipped = len(bad)
                items -= skipped
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
    return items, skipped, mini_batch, context


def _read_paths(body, position):
    root, position = read_path(body, position)
    names, position = read_path(body, position)
    folder = root if root.endswith("/") else root + "/"
    return [folder + name for name in names.split("\0")], root, position


def _load_files(body, position, items):
    paths, root, position = _read_paths(body, position)
    if len(paths) != items:
        raise ProtocolError(f"work of {items} files names {len(paths)}")
    for path in paths:
        size, _ = stamp = _STAMP.unpack_from(body, position)
        position += 16
        if size != UNKNOWN_SIZE:
            try:
                found = os.stat(path)
            except OSError as error:
                raise unreadable(path, error, root) from None
            check_stamp(path, found, stamp)
    return MiniBatch(paths), root, position


def _take_metadata(body, position, flags, items, context):
    """What a manifest says of the items, for the context; None where there is none."""
    metadata = b""
    if flags & _HAS_METADATA:
        metadata, position = read_text(body, position)
    if position != len(body):
        raise ProtocolError(f"work of {items} files has {len(body) - position} bytes too many")
    if context is None or not metadata:
        return
    context.item_metadata = json.loads(bytes(metadata))
    if len(context.item_metadata) != items:
        raise ProtocolError(f"work of {items} files describes {len(context.item_metadata)}")
