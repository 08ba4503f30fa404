"""Slices of delimited text whose column types are decided: the same types in every slice.

pandas gets no `dtype`, which takes much that does not fit, and names no line. In front of the slice
stand a header and one row of our own instead, whose values settle what pandas makes of each column.
What comes out otherwise is a misfit: it is found in the slice as text, and named by file and line.
"""

import codecs
import io

from parallelrun.worker import (
    column_types,
    listed,
    long_delimiter,
    misfit,
    row_shape,
    settling,
)
from parallelrun.worker.leading_zeros import suspects
from parallelrun.worker.misfit import Misfit
from parallelrun.worker.table_rows import Rows

_EXACT = 2**53  # from here on a double may stand for another whole number


def read(pandas, path, offsets, header, stamp, options, window):
    """Reads one slice: the DataFrame, its bad rows as (line, reason), and all its rows.

    `window` is first and number of the rows that are meant, or None for all. The bad rows are left
    out with `badRows: Skip`; without it the first of them is raised, a Failure. How many rows the
    slice has is told only with a window.
    """
    options = {**options, "columns": [_named(column, options) for column in options["columns"]]}
    order = _file_order(path, header, options)
    compressed = options.get("compressed", False)
    data = listed.read_slice(path, *offsets, stamp, compressed=compressed)
    # Of the bytes that the planner has seen.
    options["delimiterAtEnd"] = row_shape.delimiter_at_end(header, data, options)
    header, data, options = long_delimiter.replaced(path, header, data, options)
    rows = Rows(data, options)
    kept = total = None
    if window is not None:
        spans = list(rows)
        kept, total = spans[window[0] : sum(window)], len(spans)
    skipped = []
    while True:
        table = _Table(pandas, data if kept is None else _join(data, kept), order, options)
        bad = table.misfits()
        if not bad:
            return table.frame(), sorted(skipped), total
        kept = list(rows) if kept is None else kept
        left_out = {found.row for found in bad}
        skips = options.get("badRows") == "Skip" and left_out.issubset(range(len(kept)))
        if not skips or len(left_out) == len(kept):
            raise misfit.failure(path, offsets[0], data, kept, bad, options)
        skipped += misfit.describe(path, offsets[0], data, kept, bad, options)
        kept = [span for row, span in enumerate(kept) if row not in left_out]


def _named(column, options):
    """The column under its name: raw bytes are those of the file."""
    if not column.get("raw"):
        return column
    return {**column, "name": str(column["name"].encode("latin-1"), options["encoding"])}


def _whole_rows(found, advice=""):
    return [Misfit(row, -1, None, (), reason, advice) for row, reason in found]


def _join(data, spans):
    return b"".join(data[begin:end] for begin, end in spans)


def _file_order(path, header, options):
    """The place in the table of each column of the file."""
    columns = options["columns"]
    if not header:
        return list(range(len(columns)))
    fields, _ = Rows(header, options).fields(0)
    encoding = _encoding(options)
    try:
        found = column_types.names([str(field, encoding) for field in fields or ()])
    except UnicodeDecodeError as error:
        raise misfit.undecodable_header(path, error, options["encoding"]) from None
    places = {column["name"]: place for place, column in enumerate(columns)}
    if places.keys() != set(found):
        raise misfit.other_columns(path, list(places), found)
    return [places[name] for name in found]


def _encoding(options):
    """The file's own byte order mark is not in its slices; one that is data stays."""
    encoding = options["encoding"]
    return "utf-8" if codecs.lookup(encoding).name == "utf-8-sig" else encoding


class _Table:
    """One attempt to make a DataFrame of rows."""

    def __init__(self, pandas, data, order, options):
        self._pandas = pandas
        self._data = data
        self._order = order
        self._options = options
        self._columns = [options["columns"][place] for place in order]
        self._width = len(order)
        self._at_end = options["delimiterAtEnd"]
        self._settles = settling.texts(options)
        self._read = None

    def misfits(self):
        """What does not fit, the first row first; of a column all, or its dtype alone."""
        try:
            bad = _whole_rows(row_shape.with_nul(self._data, self._options)) or self._read_typed()
        except UnicodeDecodeError:
            found = row_shape.undecodable(self._data, _encoding(self._options), self._options)
            if not found:
                raise
            bad = _whole_rows(found, misfit.about_encoding(self._options["encoding"]))
        if bad:
            return bad
        wrong = [i for i in range(self._width) if not self._as_decided(i)]
        looked_at = sorted({*wrong, *self._rounded(), *self._leading_zeros()})
        if not looked_at:
            return []
        texts = self._read_as_text(looked_at)
        bad = []
        for i in looked_at:
            column = self._columns[i]
            values = texts[i]
            found = [
                row for row, value in enumerate(values) if not column_types.fits(column, value)
            ]
            bad += [Misfit(row, self._order[i], values[row], values) for row in found]
            if i in wrong and not found:
                dtype = str(self._read.dtypes.iloc[i])
                bad.append(Misfit(None, self._order[i], None, values, f"pandas reads {dtype}"))
        return sorted(bad, key=lambda found: (found.row is None, found.row or 0, found.place))

    def frame(self):
        """The DataFrame, its columns in the order of the table."""
        frame = self._read.iloc[1:]
        to_file = sorted(range(self._width), key=self._order.__getitem__)
        if to_file != list(range(self._read.shape[1])):  # to take columns is to copy them
            frame = frame.iloc[:, to_file]
        # Not a copy, as reset_index() makes one, and no slice of another, which pandas warns of.
        frame = self._pandas.DataFrame(frame)
        frame.index = self._pandas.RangeIndex(len(frame))
        columns = self._options["columns"]
        frame.columns = [column["name"] for column in columns]
        for column in columns:
            if column["type"] == "boolean" and column_types.may_be_missing(column):
                frame[column["name"]] = frame[column["name"]].astype(object)
        return frame

    def _read_typed(self):
        """Reads the rows; what is returned are those with another number of fields."""
        kinds = [column["type"] for column in self._columns]
        try:
            self._read = self._parse([*kinds, *["text"] * self._at_end])
        except self._pandas.errors.ParserError as error:
            if not row_shape.is_too_wide(error):
                raise
            misshapen = self._misshapen()
            if not misshapen:
                raise
            return misshapen
        rows = len(self._read) - 1
        if not self._at_end or row_shape.all_end_empty(
            self._data, self._width, rows, self._options
        ):
            return []
        return self._misshapen()

    def _misshapen(self):
        found = row_shape.misshapen(self._data, self._width, self._at_end, self._options)
        return _whole_rows(found, misfit.about_dialect(self._options))

    def _as_decided(self, i):
        column = self._columns[i]
        kind = column["type"]
        values = self._read.iloc[:, i]
        if kind == "integer":
            return values.dtype == "int64"
        if kind == "number":
            return values.dtype == "float64"
        if kind == "boolean":
            return values.dtype == "bool" or (
                column_types.may_be_missing(column)
                and values.dtype == "object"
                and self._pandas.api.types.infer_dtype(values, skipna=True) == "boolean"
            )
        return True

    def _strict(self, kinds):
        """The columns of these types that were decided, not written."""
        return [
            i
            for i, column in enumerate(self._columns)
            if column["type"] in kinds and not column.get("written")
        ]

    def _rounded(self):
        """Number columns that may hold a whole number which no double gives back."""
        for i in self._strict(("number",)):
            values = self._read.iloc[:, i]
            if values.dtype == "float64" and (values.max() >= _EXACT or values.min() <= -_EXACT):
                yield i

    def _leading_zeros(self):
        """Columns that may hold zeros or a plus in front, which pandas swallows."""
        want = self._strict(("integer", "number"))
        if "mayLose" in self._options:  # by the planner, which has seen each byte
            want = [i for i in want if self._options["mayLose"] >> min(i, 63) & 1]
        if not want or self._options.get("all"):
            return ()
        found = None
        if not self._options.get("escape") and not self._options.get("comment"):
            delimiter = ord(self._options["delimiter"])
            rows = len(self._read) - 1
            found = suspects(
                self._data,
                delimiter,
                self._width + self._at_end,
                rows,
                want,
                row_shape.quote_of(self._options),
            )
        return want if found is None else found

    def _read_as_text(self, looked_at):
        """The texts of these columns, None where one is missing."""
        kinds = [column["type"] for column in self._columns]
        for i in looked_at:
            kinds[i] = "text"
        beyond = self._read.shape[1] - self._width
        frame = self._parse([*kinds, *["text"] * beyond]).iloc[1:]
        texts = {}
        for i in looked_at:
            values = frame.iloc[:, i]
            texts[i] = values.astype(object).where(values.notna(), None).tolist()
        return texts

    def _parse(self, kinds):
        delimiter = self._options["delimiter"].encode()
        quote = self._options.get("quote", '"').encode()

        def row(kinds):
            return delimiter.join(quote + self._settles[kind] + quote for kind in kinds)

        header, settles = row(["text"] * len(kinds)), row(kinds)
        return self._pandas.read_csv(
            io.BytesIO(b"\n".join((header, settles, self._data))),
            sep=self._options["delimiter"],
            encoding=_encoding(self._options),
            header=0,
            # Never take a column for the index: scripts join their results by position.
            index_col=False,
            # One type for a whole column, not one per internal chunk.
            low_memory=False,
            na_values=list(self._options.get("na", column_types.MISSING_WORDS)),
            keep_default_na=False,
            comment=self._options.get("comment"),
            escapechar=self._options.get("escape"),
            **row_shape.quoting(self._options),
        )
