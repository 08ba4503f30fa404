"""Values as JSON knows them, and tables as rows: shared by the formats that are read by others."""

import codecs
import dataclasses
import datetime
import enum
import json
import math
import sys

from parallelrun.worker import other_tables
from parallelrun.worker.failure import Failure

_FIT = "Convert it to a dict, a list, a text, a number, True, False or None."
_NO_NUMBER = "JSON has no such number. Return None, or set output.nanAsNull: true in the job."
_MAX_SHOWN = 200  # characters
_TEXT = {str}
_LEAVES = {str, int, float, bool, type(None)}
# What no number of JSON says as exactly, or nothing of JSON at all.
_TOLD_AS_TEXT = (("decimal", "Decimal"), ("uuid", "UUID"), ("pathlib", "PurePath"))


class Refused(Exception):
    """A value that the format cannot say."""

    def __init__(self, place, what, mend):
        super().__init__(what)
        self.place = place  # in the row, as Python writes it; empty: all of it
        self.what = what
        self.mend = mend


class JsonText:
    """Encodes single values. One per process."""

    def __init__(self, nan_as_null):
        self._nan_as_null = nan_as_null
        self._steps = []  # what stands for the values that JSON does not know
        self._encode = json.JSONEncoder(
            ensure_ascii=False, allow_nan=False, default=self._step
        ).encode

    def of(self, value):
        """The value as JSON on one line, for `to_utf8`. Raises Refused."""
        try:
            text = self._encode(value)
            if _keys_are_texts([value, *self._steps]):
                return text
        except (Refused, ValueError, TypeError, RecursionError):
            pass  # where it is, and whether it can be helped, only a slower look tells
        finally:
            self._steps.clear()
        try:
            return self._encode(self._plain(value, ""))
        except RecursionError:
            raise Refused("", "nested too deep, or holds itself", _FIT) from None
        except (ValueError, TypeError) as error:
            raise Refused("", f"refused: {error}"[:_MAX_SHOWN], _FIT) from None

    def _step(self, value):
        step = one_step(value)
        if not isinstance(step, str):
            self._steps.append(step)
        return step

    def _plain(self, value, place):
        """`value` of what JSON knows alone."""
        if value is None or isinstance(value, (str, bool, int)):
            return value
        if isinstance(value, float):
            if math.isfinite(value):
                return value
            if self._nan_as_null:
                return None
            raise Refused(place, float.__repr__(value), _NO_NUMBER)
        if isinstance(value, dict):
            plain = {}
            for key, item in value.items():
                name = key_name(key, place)
                if name in plain:
                    raise Refused(place, f"a dict with two keys {shown(name)}", "Rename one.")
                plain[name] = self._plain(item, f"{place}[{shown(name)}]")
            return plain
        if isinstance(value, (list, tuple)):
            return [self._plain(item, f"{place}[{i}]") for i, item in enumerate(value)]
        try:
            return self._plain(one_step(value), place)
        except Refused as refused:
            raise Refused(refused.place or place, refused.what, refused.mend) from None


def _keys_are_texts(values):
    """Whether all keys of all dicts in values that were encoded, so hold no loop, are texts.

    json writes a key 1 and a key "1" of one dict alike, and readers drop one of the two values.
    """
    waiting = values
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            if not _TEXT.issuperset(map(type, value)) and not all(
                isinstance(key, str) for key in value
            ):
                return False
            value = value.values()
        elif not isinstance(value, (list, tuple)):
            continue
        if not _LEAVES.issuperset(map(type, value)):
            waiting += [item for item in value if isinstance(item, (dict, list, tuple))]
    return True


def bad_row(row, form, refused, location):
    """The failure of the mini-batch whose row number `row` was refused."""
    return Failure(
        "BadReturn",
        f"Row {row} (counted from 0) of what run() returned cannot be {form}: "
        f"{refused.place or 'it'} is {refused.what}. {refused.mend}",
        location=location,
    )


def to_utf8(text):
    """JSON as bytes; what UTF-8 does not have is its escape, as text."""
    return text.encode("utf-8", "parallelrun.json_surrogates")


def elements(returned):
    """What is a row each."""
    # Whoever returns one of these has imported its library.
    pandas = sys.modules.get("pandas")
    if pandas is not None:
        if isinstance(returned, pandas.DataFrame):
            return _frame_rows(returned)
        if isinstance(returned, pandas.Series):
            return returned.tolist()
    if isinstance(returned, other_tables.Columns):
        return _column_rows(returned)
    return returned


def _frame_rows(frame):
    """A dict for each row. The index is none of it, as in the text format."""
    names = unique_names(frame.columns)
    # By position, and as Python's own values.
    columns = [frame.iloc[:, i].tolist() for i in range(len(names))]
    return _dicts(names, columns, len(frame))


def _column_rows(table):
    return _dicts(unique_names(table.names), table.columns, len(table))


def _dicts(names, columns, count):
    if not columns:
        return [{} for _ in range(count)]
    return [dict(zip(names, row)) for row in zip(*columns)]


def unique_names(labels):
    """The labels of a table or a Series as texts, no two alike."""
    names = [key_name(label, "") for label in labels]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise Refused("", f"a table with two columns {shown(twice)}", "Rename one.")
    return names


def key_name(key, place):
    """A key of a dict or the label of a column as text, where JSON's readers would expect that."""
    if isinstance(key, str):
        return key
    if isinstance(key, (datetime.date, datetime.time)) and key == key:  # not NaT
        return key.isoformat()
    if not isinstance(key, (int, float)) and key is not None:
        numpy = sys.modules.get("numpy")
        if numpy is not None and isinstance(key, (numpy.bool_, numpy.integer, numpy.floating)):
            key = key.item()
    if key is None or isinstance(key, (bool, int)):
        return json.dumps(key)
    if isinstance(key, float) and math.isfinite(key):
        return float.__repr__(key)
    if isinstance(key, enum.Enum):
        return key_name(key.value, place)
    if _is_told_as_text(key):
        return str(key)
    raise Refused(place, f"a dict with the key {shown(key)}", "Make its keys texts.")


def one_step(value):
    """What stands for a value that JSON does not know; what is inside of it may follow."""
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        if isinstance(value, numpy.ndarray):
            if not value.ndim:
                return value[()]
            # tolist() makes numbers of times, and tuples of records.
            return list(value) if value.dtype.kind in "mMV" else value.tolist()
        if isinstance(value, numpy.datetime64):
            return None if numpy.isnat(value) else str(value)
        if isinstance(value, numpy.timedelta64):
            return None if numpy.isnat(value) else _duration64(value, numpy)
        if isinstance(value, numpy.bool_):
            return bool(value)
        if isinstance(value, numpy.integer):
            return int(value)
        if isinstance(value, numpy.floating):
            return float(value)
    pandas = sys.modules.get("pandas")
    if pandas is not None:
        if value is pandas.NaT or value is getattr(pandas, "NA", pandas.NaT):
            return None
        if isinstance(value, pandas.DataFrame):
            return _frame_rows(value)
        if isinstance(value, pandas.Series):
            return dict(zip(unique_names(value.index), value.tolist()))
        if isinstance(value, (pandas.Index, pandas.Categorical)):
            return value.tolist()
        if isinstance(value, pandas.Timedelta):
            return value.isoformat()
    if isinstance(value, (datetime.date, datetime.time)):  # a datetime is a date
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return _duration(value)
    if isinstance(value, enum.Enum):
        return value.value
    if _is_told_as_text(value):
        return None if value != value else str(value)  # a Decimal may be NaN
    held = members(value)
    if held is not None:
        return held
    other = other_tables.plain(value)
    if other is not value:
        return _column_rows(other) if isinstance(other, other_tables.Columns) else other
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    mend = "Decode it." if isinstance(value, (bytes, bytearray)) else _FIT
    raise Refused("", f"of type {type(value).__name__}", mend)


def members(value):
    """What a record of numpy or a model of pydantic holds, a dict as a rule; else None."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.void) and value.dtype.names is not None:
        return {name: value[name] for name in value.dtype.names}
    return value.model_dump() if callable(getattr(type(value), "model_dump", None)) else None


def _is_told_as_text(value):
    for module, name in _TOLD_AS_TEXT:
        # Whoever returns one has imported it.
        kind = getattr(sys.modules.get(module), name, None)
        if kind is not None and isinstance(value, kind):
            return True
    return False


def _duration(value):
    """As pandas writes its own, in ISO 8601."""
    minutes, seconds = divmod(value.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    text = f"{seconds}.{value.microseconds:06}".rstrip("0").rstrip(".")
    return f"P{value.days}DT{hours}H{minutes}M{text}S"


def _duration64(value, numpy):
    if numpy.datetime_data(value.dtype)[0] not in ("Y", "M", "generic"):
        micro = value.astype("timedelta64[us]")
        if micro == value and isinstance(micro.item(), datetime.timedelta):
            return _duration(micro.item())
    raise Refused("", f"{shown(value)}, which is no number of microseconds", "Return a number.")


def shown(value):
    try:
        text = repr(value)
    except Exception:  # the user's code
        text = f"of type {type(value).__name__}"
    return text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + "…"


def _surrogate(error):
    """What UTF-8 does not have, as a byte of a file name that is none: its escape, as text.

    JSON's own escape would be another half of a character, which strict readers refuse.
    """
    return b"\\\\u%04x" % ord(error.object[error.start]), error.start + 1


codecs.register_error("parallelrun.json_surrogates", _surrogate)
