"""Tables and columns of polars and pyarrow, as Python's own values."""

import sys


class Columns:
    """A table: names, which may be alike, and a list of values for each."""

    def __init__(self, names, columns, count):
        self.names = names
        self.columns = columns
        self._count = count

    def __len__(self):
        return self._count

    def to_pandas(self):
        """A DataFrame in which no value has another type: a missing one makes no number of 1."""
        import pandas

        frame = pandas.DataFrame(
            dict(enumerate(self.columns)), index=range(self._count), dtype=object
        )
        frame.columns = self.names
        return frame


def plain(value):
    """A table as Columns, a column as a list, a scalar as its value; anything else as it is."""
    # Whoever returns one of these has imported its library.
    arrow = sys.modules.get("pyarrow")
    if arrow is not None:
        if isinstance(value, (arrow.Table, arrow.RecordBatch)):
            columns = [column.to_pylist() for column in value.columns]
            return Columns(value.schema.names, columns, value.num_rows)
        if isinstance(value, (arrow.Array, arrow.ChunkedArray)):
            return value.to_pylist()
        if isinstance(value, arrow.Scalar):
            return value.as_py()
    polars = sys.modules.get("polars")
    if polars is not None:
        if isinstance(value, polars.DataFrame):
            columns = [column.to_list() for column in value.get_columns()]
            return Columns(value.columns, columns, value.height)
        if isinstance(value, polars.Series):
            return value.to_list()
    return value
