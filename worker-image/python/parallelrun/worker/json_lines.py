"""JSON lines: a slice of a file to a list with one dict for each line.

NaN, Infinity and -Infinity are such numbers: JSON lacks them, but Python's json writes them.
"""

import json
import sys

from parallelrun.worker import decompress, listed
from parallelrun.worker.failure import Failure

_BLOCK = 1 << 20
_KINDS = {list: "an array", str: "a text", bool: "a truth value", type(None): "null"}


def load(body, position, root):
    """The values of the slice's lines, and the file. Raises Failure for a bad line."""
    path, position = listed.read_path(body, position)
    (offset, length), position = listed.read_offsets(body, position)
    stamp, position = listed.read_stamp(body, position)
    form, _ = listed.read_text(body, position)
    options = json.loads(bytes(form))
    encoding = options["encoding"]
    first, count = options.get("rows", (0, sys.maxsize))
    try:
        compressed = options.get("compressed", False)
        data = listed.read_slice(path, offset, length, stamp, compressed=compressed)
    except Failure:
        raise
    except Exception as error:  # decompressors raise types of their own
        raise listed.unreadable(path, error, root) from None
    values = []
    item = 0
    # Bytes, not text, are cut into lines: U+2028 and the like are data.
    for number, line in enumerate(data.split(b"\n")):
        if line and not line.isspace():
            if first <= item < first + count:
                values.append(_value(line, encoding, path, offset, number, root))
            item += 1
    return values, path


def _value(line, encoding, path, offset, number, root):
    try:
        text = line.decode(encoding)
        value = json.loads(text[1:] if text.startswith("\ufeff") else text)
        if type(value) is dict:
            return value
        kind = _KINDS.get(type(value), "a number")
        raise TypeError(f"it holds {kind}, and a line is a JSON object: {{...}}")
    except (ValueError, LookupError, RecursionError, TypeError) as error:
        try:
            place = _lines_before(path, offset) + number + 1
        except OSError as second:
            raise listed.unreadable(path, second, root) from None
        failure = listed.unreadable(f"{path}, line {place},", error, root)
        if isinstance(error, UnicodeDecodeError):
            failure.message += ". JSON is UTF-8: convert the file (iconv -f latin-1 -t utf-8)"
        failure.location = f"{path}:{place}"
        raise failure from None


def _lines_before(path, offset):
    """The number of lines before the slice; only who complains has to know."""
    count = 0
    with decompress.open_text(path) as file:
        while offset > 0:
            block = file.read(min(offset, _BLOCK))
            if not block:
                break
            count += block.count(b"\n")
            offset -= len(block)
    return count
