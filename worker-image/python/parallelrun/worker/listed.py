"""Input as the coordinator listed it: its fields in a batch frame, and reading it unchanged."""

import os
import struct
import sys

from parallelrun.worker.failure import Failure, from_exception, text_of

UNKNOWN_SIZE = 2**64 - 1

_LENGTH = struct.Struct("<I")
_STAMP = struct.Struct("<Qq")
_SLICE = struct.Struct("<QQ")

_NAMES_ENCODING = sys.getfilesystemencoding()
_NAMES_ERRORS = sys.getfilesystemencodeerrors()
_LISTED_AGAIN = (
    "Do not change the input while a job reads it. A job that starts over (--overwrite, or "
    "output.ifExists: Overwrite) lists it afresh, but for what a manifest says of sizes."
)


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


def read_slice(path, offset, length, stamp, header=b"", compressed=False):
    """The header and the slice. Raises Failure when the file is not what was listed.

    `compressed` says that it may be, and what offset and length are then: those of the text in it.
    """
    parts = [header] if header else []
    with open(path, "rb", buffering=0) as file:
        found = os.fstat(file.fileno())
        check_stamp(path, found, stamp)
        if compressed:
            from parallelrun.worker import decompress

            parts += decompress.read(decompress.of_file(file, path), offset, length)
            if sum(map(len, parts)) != length + len(header):
                raise _changed(path, found, stamp)
            return b"".join(parts)
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
    if size != UNKNOWN_SIZE and (found.st_size != size or found.st_mtime_ns != modified):
        raise _changed(path, found, stamp)


def for_arrow(path):
    """The path; of one with bytes that are not UTF-8, which Arrow refuses, the open file."""
    try:
        path.encode()
        return path
    except UnicodeEncodeError:
        return open(path, "rb")


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
