"""Rows as a row group of Parquet: from what run() returned to bytes that are joined to a file.

In front of its columns stands a line that says what they are (docs/worker-protocol.md). pyarrow
writes the columns; what it writes around them is left out.
"""

import json
import sys

from parallelrun.worker import typed_values
from parallelrun.worker.columns import Table, cells, table_of
from parallelrun.worker.failure import Failure
from parallelrun.worker.origin import NAMES, RefusedAt
from parallelrun.worker.plain import JsonText, Refused, bad_row, shown, to_utf8
from parallelrun.worker.typed_values import NULL, Kind

_MAX_HEAD = 1 << 20  # bytes of the line


class ParquetRows:
    """Encodes elements. One per process. `columns` are those of the output; None: the rows' own."""

    def __init__(self, columns, nan_as_null, run_location):
        try:
            import pyarrow
            from pyarrow import parquet
        except ImportError as error:
            raise Failure(
                "InitFailed",
                f"Parquet output needs pyarrow, and importing it raised {error!r}. Install it into "
                f"this Python with: {sys.executable} -m pip install pyarrow",
                location=run_location,
                fatal=True,
            ) from None
        self._arrow = pyarrow
        self._parquet = parquet
        self._codec = "zstd" if pyarrow.Codec.is_available("zstd") else "none"
        self._types = {
            "bool": pyarrow.bool_(),
            "int64": pyarrow.int64(),
            "double": pyarrow.float64(),
            "text": pyarrow.large_string(),
            "bytes": pyarrow.large_binary(),
            "date": pyarrow.date32(),
            "time": pyarrow.time64("us"),
            "timestamp": pyarrow.timestamp("us"),
            "timestampUtc": pyarrow.timestamp("us", "UTC"),
        }
        self._columns = columns or None
        self._json = JsonText(nan_as_null)
        self._run_location = run_location

    def encode(self, returned, origin=None):
        """The head and the columns as bytes. Raises Failure for what Parquet cannot say."""
        count = len(returned)
        try:
            table = table_of(returned)
            if table is None:
                names, columns = self._elements(returned, count)
            else:
                names, columns = self._table(*table)
            if not names:
                raise Refused("", "without any column", "Return rows with values.")
            if origin is not None:
                names, columns = self._with_origin(names, columns, origin, count)
            return self._bytes(names, columns, count)
        except RefusedAt as refused:
            raise self._bad(refused.row, refused) from None
        except Refused as refused:
            raise self._bad(0, refused) from None

    def _elements(self, returned, count):
        """The names of all columns, and (kind, array) of each."""
        pandas = sys.modules.get("pandas")
        if pandas is not None and isinstance(returned, pandas.Series):
            returned = returned.tolist()
        table = Table(self._columns)
        columns = [[None] * count for _ in table.names]
        for row, element in enumerate(returned):
            try:
                names, values = cells(element)
                places = table.places(names, len(values))
            except Refused as refused:
                raise RefusedAt(row, refused) from None
            while len(columns) < len(table.names):
                columns.append([None] * count)
            for place, value in zip(places, values):
                columns[place][row] = value
        named = zip(columns, table.names)
        return table.names, [self._column(values, name) for values, name in named]

    def _table(self, names, values):
        """The same of a table. The index is none of it, as in the text format."""
        table = Table(self._columns)
        columns = [(NULL, None)] * len(self._columns or names)
        for i, place in enumerate(table.places(tuple(names), len(names))):
            own = values[i]
            if isinstance(own, list):
                columns[place] = self._column(own, names[i])
            else:
                columns[place] = self._numbers(own) or self._column(own.tolist(), names[i])
        return table.names, columns

    def _numbers(self, series):
        """(kind, array) of a column of numpy's numbers or truth values; else None."""
        numpy = sys.modules["numpy"]
        dtype = series.dtype
        if not isinstance(dtype, numpy.dtype) or dtype.kind not in "biuf" or dtype.itemsize > 8:
            return None
        if dtype == numpy.uint64:
            return None
        kind = {"b": "bool", "f": "double"}.get(dtype.kind, "int64")
        wide = {"b": bool, "f": numpy.float64}.get(dtype.kind, numpy.int64)
        values = series.to_numpy().astype(wide)
        return Kind(kind), self._arrow.array(values, self._types[kind], from_pandas=True)

    def _column(self, values, name):
        try:
            kind, plain = typed_values.column(values, self._json)
        except RefusedAt as refused:
            refused.place = f"[{shown(name)}]{refused.place}"
            raise
        if kind is NULL:
            return kind, None
        inner = self._types[kind.type]
        if kind.list:
            return kind, self._arrow.array(plain, self._arrow.list_(inner))
        if kind.type.startswith("timestamp"):
            return kind, self._arrow.array(plain, self._types["int64"]).cast(inner)
        return kind, self._arrow.array(plain, inner)

    def _with_origin(self, names, columns, origin, count):
        twice = next((name for name in NAMES if name in names), None)
        if twice is not None:
            what = f"with the column {shown(twice)}, which output.provenance adds"
            raise Refused("", what, "Rename one.")
        own = (origin.files(count), list(range(count)), [origin.mini_batch] * count)
        added = [self._column(values, name) for values, name in zip(own, NAMES)]
        return [*names, *NAMES], [*columns, *added]

    def _bytes(self, names, columns, count):
        head = []
        arrays = []
        for name, (kind, array) in zip(names, columns):
            column = {"name": name, "type": kind.type}
            if kind.list:
                column["list"] = True
            if kind is not NULL:
                arrays.append((column, array))
            head.append(column)
        pages = self._pages([array for _, array in arrays], count)
        for (column, _), chunk in zip(arrays, pages):
            column["bytes"] = len(chunk)
        line = {"rows": count, "codec": self._codec, "columns": head}
        begin = to_utf8(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")
        if len(begin) > _MAX_HEAD:
            what = f"one of {len(names)} columns, whose names take {len(begin)} bytes"
            raise Refused("", what, f"At most {_MAX_HEAD} bytes are taken.")
        return b"".join([begin, *pages])

    def _pages(self, arrays, count):
        """The pages of each array."""
        if not arrays:
            return []
        # Pages of one encoding can be told apart, and made numbers of another type, by who joins.
        file = self._arrow.BufferOutputStream()
        self._parquet.write_table(
            self._arrow.table(arrays, names=[str(i) for i in range(len(arrays))]),
            file,
            row_group_size=count,
            compression=self._codec,
            use_dictionary=False,
            write_statistics=False,
            data_page_version="1.0",
        )
        content = file.getvalue()
        metadata = self._parquet.read_metadata(self._arrow.BufferReader(content))
        if metadata.num_row_groups != 1:
            raise Refused("", f"one of {count}", "Return less for each mini-batch.")
        group = metadata.row_group(0)
        chunks = [group.column(i) for i in range(metadata.num_columns)]
        view = memoryview(content)
        return [view[c.data_page_offset :][: c.total_compressed_size] for c in chunks]

    def _bad(self, row, refused):
        return bad_row(row, "Parquet", refused, self._run_location)
