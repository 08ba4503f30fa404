"""Delimiters of several bytes: pandas takes them for a pattern, and knows no quotes then.

So it never gets one. A slice is read with a control character in its place that the slice does not
hold; line ends stay what and where they are.
"""

import itertools
import json
import re

from parallelrun.worker.failure import Failure

# None that is a line end or a blank, for pandas or in a number.
_CONTROLS = [bytes([byte]) for byte in (*range(0x1F, 0x0D, -1), *range(0x08, 0, -1))]
# Bytes that are taken apart at once: their parts take some ten times as much memory.
_AT_ONCE = 1 << 20


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
    return _outside_of_marks(data, delimiter, one, (quote, *marks))


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


def _outside_of_marks(data, delimiter, one, marks):
    """Delimiters are told from what stands in quotes or a comment, or is escaped, one by one."""
    kept_or_delimiter = _kept_or_delimiter(delimiter, *marks)
    done = []
    begin, size = 0, _AT_ONCE
    while begin < len(data):
        end = data.find(b"\n", begin + size) + 1 or len(data)
        parts = kept_or_delimiter.split(data[begin:end])
        if not parts[-1] and end < len(data):
            size *= 2  # a quote is open there, or the line end is escaped
            continue
        parts[1::3] = [one if kept is None else kept for kept in parts[1::3]]
        parts[2::3] = [quoted or b"" for quoted in parts[2::3]]
        done.append(b"".join(parts))
        begin, size = end, _AT_ONCE
    return b"".join(done)


def _kept_or_delimiter(delimiter, quote, escape, comment):
    """Matches what is kept as it is, or a delimiter with the quoted text behind it.

    So each quote that opens is met: behind a delimiter, or at the begin of a line. What stands
    right behind the one that closes is text to pandas, whatever it is.
    """
    delimiter, quote, escape, comment = map(re.escape, (delimiter, quote, escape, comment))
    quoted, kept = b"(?!)", []
    if quote:
        within = b"[^" + quote + escape + b"]*"
        goes_on = quote * 2 + (b"|" + escape + b".?" if escape else b"")
        behind = b"[" + escape + comment + b"]?" if escape or comment else b""
        closes = b"(?:" + quote + behind + rb"|\Z)"
        quoted = quote + within + b"(?:(?:" + goes_on + b")" + within + b")*" + closes
        kept.append(rb"(?:\A|[\r\n])" + quoted)
    if escape:
        kept.append(escape + b".?")
    if comment:
        kept.append(comment + rb"[^\r\n]*")
    pattern = b"(" + b"|".join(kept) + b")|" + delimiter + b"(" + quoted + b")?"
    return re.compile(pattern, re.DOTALL)
