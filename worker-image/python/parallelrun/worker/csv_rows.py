"""Rows as CSV: from what run() returned to bytes that every reader takes (docs/formats.md).

In front of them stands a line that names their columns, as a JSON list: whoever joins the rows of
all mini-batches puts their values under the columns of the output, and writes its header.
"""

import json
import re
import sys

from parallelrun.worker.columns import Table, cells, table_of
from parallelrun.worker.origin import RefusedAt
from parallelrun.worker.plain import (
    JsonText,
    Refused,
    bad_row,
    one_step,
    shown,
    to_utf8,
)

_MUST_BE_QUOTED = re.compile('[",\\r\\n]').search
_MAX_NAMES = 1 << 20  # bytes of the line of names


class CsvRows:
    """Encodes elements. One per process. `columns` are those of the output; None: the rows' own."""

    def __init__(self, columns, nan_as_null, run_location):
        self._columns = columns or None
        self._json = JsonText(nan_as_null)
        self._run_location = run_location

    def encode(self, returned, origin=None):
        """The names and the rows as bytes. Raises Failure for what CSV cannot say."""
        try:
            table = table_of(returned)
            if table is None:
                names, rows = self._elements(returned)
            else:
                names, rows = self._table(*table, len(returned))
        except RefusedAt as refused:
            raise self._bad(refused.row, refused) from None
        except Refused as refused:
            raise self._bad(0, refused) from None
        if origin is not None:
            try:
                names, rows = origin.add_to_csv(names, rows, _quoted)
            except RefusedAt as refused:
                raise self._bad(refused.row, refused) from None
        head = to_utf8(json.dumps(names, ensure_ascii=False) + "\n")
        if len(head) > _MAX_NAMES:
            what = f"one of {len(names)} columns, whose names take {len(head)} bytes"
            raise self._bad(0, Refused("", what, f"At most {_MAX_NAMES} bytes are taken."))
        if len(names) == 1:  # readers pass over empty lines
            rows = [row or '""' for row in rows]
        return head + "\n".join([*rows, ""]).encode("utf-8", "backslashreplace")

    def _elements(self, returned):
        """The names of all columns, and a line for each element."""
        pandas = sys.modules.get("pandas")
        if pandas is not None and isinstance(returned, pandas.Series):
            returned = returned.tolist()
        table = Table(self._columns)
        rows = []
        for row, element in enumerate(returned):
            try:
                names, values = cells(element)
                places = table.places(names, len(values))
                fields = [""] * len(table.names)
                for place, value in zip(places, values):
                    fields[place] = self._field(value, table.names[place])
            except Refused as refused:
                raise RefusedAt(row, refused) from None
            rows.append(fields)
        if rows and not table.names:
            raise Refused("", "without any column", "Return rows with values.")
        width = len(table.names)
        return table.names, [",".join(row) + "," * (width - len(row)) for row in rows]

    def _table(self, names, values, count):
        """The same of a table. The index is none of it, as in the text format."""
        table = Table(self._columns)
        columns = [[""] * count for _ in self._columns or names]
        for i, place in enumerate(table.places(tuple(names), len(names))):
            columns[place] = self._column(values[i], names[i])
        if not columns:
            raise Refused("", "of a table without columns", "Return one that has some.")
        return table.names, list(map(",".join, zip(*columns)))

    def _column(self, values, name):
        if not isinstance(values, list):
            # Pandas' own types, which have a missing value of their own, come as their values.
            kind = values.dtype.str if isinstance(values.dtype, sys.modules["numpy"].dtype) else ""
            if kind[1:] in ("f2", "f4", "f16"):  # as short as their type allows
                return [str(v) if v == v else "" for v in values.to_numpy()]
            values = values.tolist()
        fields = _fields_of_one_type(values)
        if fields is not None:
            return fields
        row = 0
        fields = [""] * len(values)
        try:
            for row, value in enumerate(values):
                fields[row] = self._field(value, name)
        except Refused as refused:
            raise RefusedAt(row, refused) from None
        return fields

    def _field(self, value, name):
        """One value, quoted where it must be."""
        if isinstance(value, str):
            return _quoted(value)
        if value is None:
            return ""
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, int):
            return int.__repr__(value)
        if isinstance(value, float):
            return float.__repr__(value) if value == value else ""
        numpy = sys.modules.get("numpy")
        if numpy is not None and isinstance(value, numpy.floating):
            return str(value) if value == value else ""
        try:
            if isinstance(value, (dict, list, tuple)):
                # A text within may hold what UTF-8 does not have.
                return _quoted(to_utf8(self._json.of(value)).decode())
            return self._field(one_step(value), name)
        except Refused as refused:
            place = f"[{shown(name)}]{refused.place}"
            if refused.place.startswith(f"[{shown(name)}]"):
                place = refused.place
            raise Refused(place, refused.what, refused.mend) from None

    def _bad(self, row, refused):
        return bad_row(row, "CSV", refused, self._run_location)


def _fields_of_one_type(values):
    """What _field makes of values of one class of Python's own; None: they are not."""
    types = set(map(type, values))
    if types == {str}:
        # Most columns hold nothing that is quoted, and one look at all of it tells.
        plain = all(values) and not _MUST_BE_QUOTED("".join(values))
        return values if plain else list(map(_quoted, values))
    if types == {int}:
        return list(map(int.__repr__, values))
    if types == {float}:
        fields = list(map(float.__repr__, values))
        return ["" if v == "nan" else v for v in fields] if "nan" in fields else fields
    if types == {bool}:
        return ["true" if v else "false" for v in values]
    return None


def _quoted(text):
    if text and not _MUST_BE_QUOTED(text):
        return str.__str__(text)  # numpy's texts, and those of an Enum, are of another class
    return '"' + text.replace('"', '""') + '"'
