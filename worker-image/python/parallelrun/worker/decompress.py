"""Compressed tables: what a file holds, for who reads it as if it were plain.

The planner reads such files by the same rule: their first bytes say what they are, not their names.
"""

import contextlib
import gzip
import io
import os
import sys

from parallelrun.worker import process
from parallelrun.worker.failure import Failure

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_BLOCK = 1 << 20


@contextlib.contextmanager
def open_text(path):
    """The file, opened to read the bytes of the text that it holds, compressed or not."""
    with open(path, "rb") as file:
        yield of_file(file, path)


def of_file(file, path):
    """The same of a file that is open and at its front. Raises Failure where zstd is missing."""
    begin = os.pread(file.fileno(), len(_ZSTD), 0)
    if begin.startswith(_GZIP):
        return gzip.GzipFile(fileobj=file, mode="rb")
    if begin == _ZSTD:
        return _zstd(file, path)
    return file


def read(file, offset, length):
    """`length` bytes from `offset` on of what it holds, in parts; fewer where it ends."""
    while offset > 0:
        passed = len(file.read(min(offset, _BLOCK)))
        if not passed:
            return
        offset -= passed
    while length > 0:
        part = file.read(min(length, _BLOCK))
        if not part:
            return
        yield part
        length -= len(part)


def _zstd(file, path):
    """By what this interpreter has: Python's own from 3.14 on, zstandard, or pyarrow."""
    try:
        from compression import zstd

        return zstd.ZstdFile(file, "rb")
    except ImportError:
        pass
    try:
        import zstandard

        # Frames that follow one another are one text.
        reader = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
        return io.BufferedReader(reader)
    except ImportError:
        pass
    try:
        import pyarrow

        return pyarrow.CompressedInputStream(pyarrow.PythonFile(file, mode="r"), "zstd")
    except ImportError:
        image = process.current.image if process.current else ""
        where = f" in the image {image}" if image else ""
        raise Failure(
            "InputUnreadable",
            f"{path} is compressed with zstd, and {sys.executable} cannot read that. Install "
            f"zstandard (or pyarrow){where}, or compress the file with gzip.",
            location=path,
            fatal=True,
        ) from None
