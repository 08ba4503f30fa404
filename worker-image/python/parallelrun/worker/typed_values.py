"""Values as those of a typed column: few types, which depend on the kind of a value alone.

So the columns of two mini-batches rarely differ, whatever their values are (docs/formats.md). A
missing value is None; a moment is its microseconds.
"""

import datetime
import sys
from typing import NamedTuple

from parallelrun.worker.origin import RefusedAt
from parallelrun.worker.plain import Refused, one_step, shown, to_utf8

_EPOCH = datetime.datetime(1970, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1
_NAMES = {
    "bool": "a truth value",
    "int64": "a whole number",
    "double": "a number",
    "text": "a text",
    "bytes": "bytes",
    "date": "a date",
    "time": "a time of day",
    "timestamp": "a moment without a zone",
    "timestampUtc": "a moment with a zone",
}


class Kind(NamedTuple):
    """The type of a column, in the words of docs/worker-protocol.md."""

    type: str
    list: bool = False

    def name(self):
        return f"an array of {self.type}" if self.list else _NAMES[self.type]


NULL = Kind("null")
_BOOL, _INT, _DOUBLE = Kind("bool"), Kind("int64"), Kind("double")
_TEXT, _BYTES = Kind("text"), Kind("bytes")
_LISTS = {"b": Kind("bool", True), "i": Kind("int64", True), "f": Kind("double", True)}
_LISTS["u"] = _LISTS["i"]
_NONE = type(None)


def column(values, json):
    """(kind, values) of a list of values of any kind. Raises RefusedAt."""
    types = set(map(type, values))
    types.discard(_NONE)
    if not types:
        return NULL, values
    if types == {float}:
        return _DOUBLE, [v if v == v else None for v in values]
    if types == {bool}:
        return _BOOL, values
    if types == {str}:
        return _TEXT, values if _is_utf8(values) else list(map(_text, values))
    if types == {int}:
        there = [v for v in values if v is not None]
        if min(there) >= _LEAST and max(there) <= _MOST:
            return _INT, values
    return _mixed(values, json)


def _mixed(values, json):
    kind, first = NULL, 0
    plain = [None] * len(values)
    row = 0
    try:
        for row, value in enumerate(values):
            own, plain[row] = _plain(value, json)
            if own is NULL or own == kind:
                continue
            if kind is NULL:
                kind, first = own, row
            elif own.list == kind.list and {own.type, kind.type} == {"int64", "double"}:
                kind = own if own.type == "double" else kind
            else:
                what = f"{own.name()}, and that of row {first} is {kind.name()}"
                raise Refused("", what, "Return one type in each column, or None.")
        if kind is _DOUBLE or kind == _LISTS["f"]:
            for row, value in enumerate(plain):
                plain[row] = _doubles(value) if kind.list else _double(value)
    except Refused as refused:
        raise RefusedAt(row, refused) from None
    return kind, plain


def _plain(value, json):
    """(kind, plain value) of one value."""
    if value is None:
        return NULL, None
    if isinstance(value, str):
        return _TEXT, _text(value)
    if isinstance(value, bool):
        return _BOOL, value
    if isinstance(value, int):
        return _INT, _whole(int(value))
    if isinstance(value, float):
        return (_DOUBLE, float(value)) if value == value else (NULL, None)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _BYTES, bytes(value)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        if isinstance(value, numpy.ndarray) and value.ndim == 1 and value.dtype.kind in _LISTS:
            return _LISTS[value.dtype.kind], _array(value, numpy)
        if isinstance(value, numpy.datetime64):
            return (NULL, None) if numpy.isnat(value) else (Kind("timestamp"), _moment64(value))
        if isinstance(value, numpy.floating):
            return (_DOUBLE, _same(float(value), value)) if value == value else (NULL, None)
    pandas = sys.modules.get("pandas")
    if pandas is not None:
        if value is pandas.NaT or value is getattr(pandas, "NA", pandas.NaT):
            return NULL, None
        if isinstance(value, pandas.Timestamp):
            if value.nanosecond:
                raise _no_nanoseconds(value)
            return _moment(value.to_pydatetime())
    if isinstance(value, datetime.datetime):
        return _moment(value)
    if isinstance(value, datetime.date):
        return Kind("date"), value
    if isinstance(value, datetime.time):
        if value.tzinfo is not None:
            raise Refused("", f"{shown(value)}, a time of day with a zone", "Leave the zone out.")
        return Kind("time"), value
    if isinstance(value, datetime.timedelta) or (
        numpy is not None and isinstance(value, numpy.timedelta64)
    ):
        raise Refused(
            "", f"of type {type(value).__name__}, and Parquet has no durations", "Return seconds."
        )
    if isinstance(value, (dict, list, tuple)):
        return _TEXT, to_utf8(json.of(value)).decode()
    return _plain(one_step(value), json)


def _is_utf8(values):
    try:
        "".join([v for v in values if v is not None]).encode()
    except UnicodeEncodeError:
        return False
    return True


def _text(value):
    """What UTF-8 does not have is its escape, as text."""
    if value is None or value.isascii():
        return value
    return value.encode("utf-8", "backslashreplace").decode()


def _whole(value):
    if _LEAST <= value <= _MOST:
        return value
    raise Refused("", f"{shown(value)}, and whole numbers have 64 bits", "Return a text.")


def _double(value):
    return value if value is None else _same(float(value), value)


def _same(number, value):
    if number == value:
        return number
    raise Refused(
        "",
        f"{shown(value)} beside numbers of type double, which do not hold it",
        "Return it as a text.",
    )


def _array(value, numpy):
    """Of one of three types."""
    kind = value.dtype.kind
    if kind == "b":
        return value
    wide = value.astype(numpy.int64 if kind in "iu" else numpy.float64)
    if value.dtype.itemsize >= 8 and not numpy.array_equal(wide, value, equal_nan=kind == "f"):
        raise Refused("", "an array of numbers that 64 bits do not hold", "Return texts.")
    if kind == "u" and (wide < 0).any():
        raise Refused("", "an array of whole numbers beyond 64 bits", "Return texts.")
    return wide


def _doubles(value):
    if value is None or value.dtype.kind == "f":
        return value
    wide = value.astype(float)
    if value.size and (abs(wide).max() >= 2.0**63 or (wide.astype(value.dtype) != value).any()):
        raise Refused("", "an array of numbers that a double does not hold", "Return texts.")
    return wide


def _moment(value):
    if value.tzinfo is None:
        return Kind("timestamp"), (value - _EPOCH) // _MICROSECOND
    epoch = _EPOCH.replace(tzinfo=datetime.timezone.utc)
    return Kind("timestampUtc"), (value - epoch) // _MICROSECOND


def _moment64(value):
    moment = value.astype("datetime64[us]")
    if moment.astype(value.dtype) != value or abs(moment.astype("int64")) > 1 << 62:
        raise _no_nanoseconds(value)
    return int(moment.astype("int64"))


def _no_nanoseconds(value):
    return Refused(
        "", f"{shown(value)}, and moments have microseconds", "Round it, or return a text."
    )
