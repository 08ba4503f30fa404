"""Row groups of Parquet files as pandas reads them, each with the types of its own values."""

from parallelrun.worker.listed import for_arrow


def read(pandas, path, row_groups):
    """The DataFrame of the file, or of some of its row groups."""
    if row_groups is None:
        frame = pandas.read_parquet(for_arrow(path))
    else:
        from pyarrow import parquet

        with parquet.ParquetFile(for_arrow(path)) as file:
            frame = file.read_row_groups(row_groups).to_pandas()
    return with_plain_index(frame)


def with_plain_index(frame):
    """An index that was stored under a name is data; any other is not."""
    drop = [level for level in frame.index.names if level is None]
    return frame.reset_index(drop=True) if drop else frame.reset_index()
