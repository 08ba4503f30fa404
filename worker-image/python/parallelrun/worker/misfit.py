"""Misfits: rows that do not fit the types that were decided, in the words that people read."""

import json
from collections import namedtuple

from parallelrun.worker import column_types
from parallelrun.worker.failure import Failure
from parallelrun.worker.table_rows import line_ends, line_ends_in_front

_MOST_VALUE = 64
_MOST_COLUMNS = 20

# The row of those that were read, None where only the column is known; the place of the column in
# the table, -1 where it is the whole row; the value, None for a missing one; all values of that
# column; what is wrong where it is not the value; and what to do about a whole row, if more is
# known than that the file has to be mended.
Misfit = namedtuple("Misfit", "row place value values reason advice", defaults=("", ""))


def failure(path, offset, data, spans, found, options):
    """The failure of a slice because of what was found; `spans` are where its rows lie."""
    first = found[0]
    where = path
    if first.row is not None and first.row < len(spans):
        where = place_of(path, offset, data, spans[first.row])
    return Failure("Misfit", f"{where}: {_reason(first, options)}. {_advice(found, options)}")


def place_of(path, offset, data, span):
    """File and line of the row at `span` of `data`, which begins at the offset."""
    before = line_ends_in_front(path, offset)
    return f"{path}:{before + line_ends(data, 0, span[0]) + 1}"


def describe(path, offset, data, spans, found, options):
    """(line, reason) of each row that does not fit, once."""
    lines = line_ends_in_front(path, offset) + 1
    counted = 0
    described = {}
    for bad in found:
        if bad.row is None or bad.row in described:
            continue
        begin = spans[bad.row][0]
        lines += line_ends(data, counted, begin)
        counted = begin
        described[bad.row] = (lines, _reason(bad, options))
    return list(described.values())


def other_columns(path, table, found):
    """The failure of a file that has not the columns of the table."""
    lacks = [name for name in table if name not in found]
    more = [name for name in found if name not in table]
    said = []
    if lacks:
        said.append(f"it lacks the column {_some(lacks)} of the table")
    if more:
        said.append(f"it has the column {_some(more)}, which the table has not")
    return Failure(
        "Misfit",
        f"{path}: {' and '.join(said)}. Fix its header, or leave the file out (inputs[].exclude).",
    )


def about_encoding(encoding):
    """What to do about bytes that are not of the encoding, as a sentence."""
    return (
        "Write the encoding that the file is in, as encoding: latin-1 (or cp1252, gbk, …), in "
        f"place of {encoding}, and start over; or convert the file to it (iconv)."
    )


def undecodable_header(path, error, encoding):
    """The failure of a file whose header is not of the encoding."""
    byte = error.object[error.start]
    return Failure(
        "Misfit",
        f"{path}: in its header the byte 0x{byte:02x} is not {encoding}. "
        f"{about_encoding(encoding)}",
    )


def about_dialect(options):
    """What the planner says of the dialect that the table seems to have: a sentence, or nothing."""
    said = options.get("dialect", "")
    return f"{said[0].upper()}{said[1:]}, and start over." if "write delimiter" in said else ""


def _some(names):
    rest = f" (and {len(names) - 1} more)" if len(names) > 1 else ""
    return _quoted(names[0]) + rest


def _reason(bad, options):
    if bad.place < 0:
        return bad.reason
    column = options["columns"][bad.place]
    is_type = f"column {_quoted(column['name'])} is {column['type']}"
    if bad.reason:
        return f"{is_type}, and {bad.reason}"
    value = "missing" if bad.value is None else _quoted(bad.value)
    return f"{is_type}, and the value is {value}"


def _advice(found, options):
    """What to do about all of it: who mends one column at a time runs the job as often."""
    first = found[0]
    if first.place < 0:
        more = f"{first.advice} " if first.advice else ""
        return f"{more}Fix the file, or write badRows: Skip (--retry-failed takes it)."
    kinds = {}
    for bad in found:
        kind = column_types.type_to_write(options["columns"][bad.place], bad.value, bad.values)
        # One of them that only a text holds decides.
        kinds[bad.place] = kind if kinds.get(bad.place, kind) == kind else "text"
    names = [f"{_key(options['columns'][place]['name'])}: {kind}" for place, kind in kinds.items()]
    told = ", ".join(names[:_MOST_COLUMNS])
    more = len(names) - _MOST_COLUMNS
    others = f", and the types of {more} more columns" if more > 0 else ""
    return f"Write dtypes: {{{told}}}{others} (--retry-failed takes it)."


def _quoted(text):
    """The text as JSON has it, cut, and without what would move other text about."""
    cut = text[:_MOST_VALUE] + ("…" if len(text) > _MOST_VALUE else "")
    escaped = json.dumps(cut, ensure_ascii=False)
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in escaped)


def _key(name):
    """A name as a key of YAML: without quotes only where it can be nothing else."""
    plain = name.isascii() and name.replace("_", "a").isalnum() and name[0].isalpha()
    words = ("true", "false", "yes", "no", "on", "off", "y", "n", "null")
    return name if plain and name.lower() not in words else json.dumps(name)
