"""Delimiters of several bytes: pandas takes them for a pattern, and knows no quotes then.

So it never gets one. A slice is read with a control character in its place that the slice does not
hold; line ends stay what and where they are.
"""

import itertools
import json
import re

from parallelrun.worker.failure import Failure
from parallelrun.worker.table_rows import Rows

# None that is a line end or a blank, for pandas or in a number.
_CONTROLS = [bytes([byte]) for byte in (*range(0x1F, 0x0D, -1), *range(0x08, 0, -1))]


def replaced(path, header, data, options):
    """Header, data and options with a delimiter of one byte, the same values in all."""
    delimiter = options["delimiter"].encode()
    if len(delimiter) == 1:
        return header, data, options
    free = (c for c in _CONTROLS if c not in delimiter and c not in header and c not in data)
    one, mark, *_ = (*itertools.islice(free, 2), None, None)
    if mark is None:
        raise Failure(
            "InputUnreadable",
            f"{path} cannot be read: its rows hold every control character, so that none may stand "
            f"for the delimiter {json.dumps(options['delimiter'])}. Remove them from the file.",
        )
    header, data = (_replaced(text, delimiter, one, mark, options) for text in (header, data))
    return header, data, {**options, "delimiter": one.decode()}


def _replaced(data, delimiter, one, mark, options):
    quote = options.get("quote", '"').encode()
    marks = (options.get("escape", "").encode(), options.get("comment", "").encode())
    if not any(byte and byte in data for byte in marks):
        if not quote or quote not in data:
            return data.replace(delimiter, one)
        plain = _outside_of_quotes(data, delimiter, one, mark, quote)
        if plain is not None:
            return plain
    return Rows(data, options).delimited_by(one)


def _outside_of_quotes(data, delimiter, one, mark, quote):
    """What every second part between quotes holds is replaced at once.

    None where a quote stands within a field that none has opened, or is open to the end.
    """
    parts = data.split(quote)
    if len(parts) % 2 == 0:
        return None
    outside = mark.join(parts[::2]).replace(delimiter, one)
    # In front of a quote that opens: the front of a field, or one that has closed it.
    if re.search(b"[^" + re.escape(one + mark) + rb"\r\n]" + re.escape(mark), outside):
        return None
    parts[::2] = outside.split(mark)
    return quote.join(parts)
