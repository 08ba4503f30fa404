"""Row groups of Parquet files whose column types are decided: the same types in every slice.

What pandas makes of a row group depends on its own values: integers with missing ones are floats,
those of the next row group without one are not.
"""

from parallelrun.worker.failure import Failure
from parallelrun.worker.listed import for_arrow
from parallelrun.worker.plain_parquet import with_plain_index


def read(path, options):
    """The DataFrame of the file, or of some of its row groups, by the columns of the format."""
    from pandas.io.parquet import get_engine
    from pyarrow import parquet

    # Makes the types of pandas' own (periods) known to Arrow, which else gives their integers.
    get_engine("pyarrow")
    groups = options.get("rowGroups")
    with parquet.ParquetFile(for_arrow(path)) as file:
        table = file.read() if groups is None else file.read_row_groups(groups)
    columns = {column["name"]: column for column in options["columns"]}
    for place, name in enumerate(table.column_names):
        values = _cast(table.column(place), columns[name])
        table = table.set_column(place, name, values)
    frame = table.to_pandas()
    index = [name for name in frame.index.names if name is not None]
    frame = with_plain_index(frame)
    # The stored index first, as ever, and then the columns of the table in its order.
    own = [name for name in columns if name in frame.columns and name not in index]
    frame = frame[index + own]
    for name in index + own:
        dtype = columns[name].get("dtype") if name in columns else None
        if dtype is None or str(frame[name].dtype) == dtype:
            continue
        if _is_stored_as_it_is(table.schema.field(name).type):
            frame[name] = _as_decided(path, table, name, dtype)
    return frame


def _cast(values, column):
    """The column with its own values in place of a dictionary, and of the type of all files."""
    import pyarrow

    if pyarrow.types.is_dictionary(values.type):
        plain = [chunk.dictionary_decode() for chunk in values.chunks]
        values = pyarrow.chunked_array(plain, type=values.type.value_type)
    cast = column.get("cast")
    return values if cast is None else values.cast(_arrow_type(cast))


def _arrow_type(text):
    """The type of Arrow that the planner names: "timestamp[us, tz=UTC]", "decimal128(12, 2)"."""
    import pyarrow

    kind, _, rest = text.replace("[", "(").partition("(")
    arguments = rest[:-1].split(", ")
    if kind == "decimal128":
        return pyarrow.decimal128(*map(int, arguments))
    if kind == "timestamp":
        return pyarrow.timestamp(arguments[0], "UTC" if len(arguments) > 1 else None)
    return {"time32": pyarrow.time32, "time64": pyarrow.time64}[kind](arguments[0])


def _is_stored_as_it_is(kind):
    """Whether the values are what the footer says, from which the planner took the type.

    Durations and pandas' periods are stored as integers, and only the schema that pyarrow leaves in
    the file tells them apart. pandas makes the same of them in every row group.
    """
    from pyarrow import types

    tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_null)
    return any(test(kind) for test in tests)


def _as_decided(path, table, name, dtype):
    # Without the note of a type of pandas' own ("boolean", "bool[pyarrow]"), which one file may
    # have and the next one not.
    values = table.select([name]).replace_schema_metadata(None).to_pandas()[name]
    whole = dtype.startswith(("int", "uint"))
    if (dtype == "bool" and values.dtype != "bool") or (whole and values.dtype.kind not in "iu"):
        # A file that says so is not believed blindly: astype() would make something of it.
        raise Failure(
            "Misfit",
            f"{path}: column {name!r} has no missing value by what the file says of it, and has "
            "one in its rows. Write the file again with another program.",
        )
    if dtype in ("Int64", "UInt64"):
        import pandas
        import pyarrow

        whole = table.select([name]).replace_schema_metadata(None)
        arrow = pyarrow.int64() if dtype == "Int64" else pyarrow.uint64()
        whole = whole.set_column(0, name, whole.column(0).cast(arrow))
        types = {arrow: pandas.Int64Dtype() if dtype == "Int64" else pandas.UInt64Dtype()}
        return whole.to_pandas(types_mapper=types.get)[name]
    return values.astype(dtype)
