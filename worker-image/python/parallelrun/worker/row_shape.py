"""Rows that pandas does not read as they stand: of too many fields, or with a NUL byte in them.

What is too many in a row is dropped where it is empty, and then the values before it may stand one
column too far right without a word; versions before 3 end a field at a NUL byte.
"""

import csv
import itertools
import re

from parallelrun.worker import plain_rows
from parallelrun.worker.table_rows import Rows

# The rows that may contradict the first one: so many behind it that end within so many bytes.
_NEXT_ROWS = 100
_NEXT_ROWS_IN = 64 * 1024

_TOO_WIDE = re.compile(r"Expected \d+ fields in line \d+, saw \d+")


def quote_of(options):
    """The byte that quotes fields, or None."""
    quote = options.get("quote", '"')
    return ord(quote) if quote else None


def quoting(options):
    """What pandas must know of it."""
    quote = options.get("quote", '"')
    return {"quotechar": quote} if quote else {"quoting": csv.QUOTE_NONE}


def is_too_wide(error):
    """Whether a ParserError of pandas is about the number of fields of a row."""
    return _TOO_WIDE.search(str(error)) is not None


def delimiter_at_end(header, data, options):
    """Whether a delimiter ends each row, behind the last column; the planner tells it of a file.

    A slice of a group is a whole file, whose first rows tell it; plans of before ask the first
    one alone.
    """
    told = options.get("delimiterAtEnd", False)
    if told not in ("FirstRow", "FirstRows") or not header:
        return told is True
    names = first_row(header, options)
    row = first_row(data, options)
    ends = len(row) == len(names) + 1 and not row[-1] and bool(names and names[-1])
    return ends and (told == "FirstRow" or not _first_row_is_stray(data, len(names), options))


def _first_row_is_stray(data, width, options):
    """Whether more of the first rows are as wide as the header; the planner counts as this does."""
    rows = Rows(data, options)
    ended = plain = 0
    for begin, end in itertools.islice(rows, _NEXT_ROWS + 1):
        if end > _NEXT_ROWS_IN:
            break
        fields, _ = rows.fields(begin)
        plain += len(fields) == width
        ended += len(fields) == width + 1 and not fields[-1]
    return plain > ended


def first_row(data, options):
    """Its fields, none where there is no row."""
    rows = Rows(data, options)
    for begin, _ in rows:
        return rows.fields(begin)[0]
    return []


def all_end_empty(data, width, rows, options):
    """Whether it is told at once that all rows have one field behind `width` columns, an empty one.

    False where that takes a look at each row.
    """
    if options.get("escape") or options.get("comment"):
        return False
    delimiter, quote = ord(options["delimiter"]), quote_of(options)
    return plain_rows.end_empty(data, delimiter, width + 1, rows, quote)


def misshapen(data, width, at_end, options):
    """(row, reason) of each row whose number of fields is not that of the table."""
    rows = Rows(data, options)
    found = []
    row = -1
    named = width > 1  # all that were found have one field more
    for row, (begin, _) in enumerate(rows):
        fields, _ = rows.fields(begin)
        count = len(fields)
        if at_end and count <= width:
            reason = f"the row has {count} fields, and the first of the file a last, empty one more"
            found.append((row, f"{reason} than the table has columns"))
        elif count > width + at_end or (at_end and fields[-1]):
            found.append((row, f"the row has {count} fields, and the table {width} columns"))
            named = named and count == width + 1
    if named and not at_end and len(found) == row + 1:
        # As R's write.table() has it.
        row, reason = found[0]
        found[0] = (row, f"{reason} (do the rows begin with names? Give these a column too)")
    return found


def undecodable(data, encoding, options):
    """(row, reason) of each row that is not of the encoding."""
    found = []
    for row, (begin, end) in enumerate(Rows(data, options)):
        try:
            str(data[begin:end], encoding)
        except UnicodeDecodeError as error:
            byte = error.object[error.start]
            found.append((row, f"the byte 0x{byte:02x} is not {options['encoding']}"))
    return found


def with_nul(data, options):
    """(row, reason) of each row that holds a NUL byte."""
    if b"\0" not in data:
        return []
    reason = "the row holds a NUL byte, which is no text"
    return [
        (row, reason)
        for row, (begin, end) in enumerate(Rows(data, options))
        if data.find(b"\0", begin, end) >= 0
    ]
