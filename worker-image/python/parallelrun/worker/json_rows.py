"""Rows as JSON, one on each line: from what run() returned to bytes that every reader takes."""

import codecs
import dataclasses
import datetime
import json
import math
import sys

from parallelrun.worker.failure import Failure

_FIT = "Convert it to a dict, a list, a text, a number, True, False or None."
_NO_NUMBER = "JSON has no such number. Return None, or set output.nanAsNull: true in the job."
_MAX_SHOWN = 200  # characters


class JsonRows:
    """Encodes elements. One per process."""

    def __init__(self, nan_as_null, run_location):
        self._nan_as_null = nan_as_null
        self._run_location = run_location
        self._encode = json.JSONEncoder(
            ensure_ascii=False, allow_nan=False, default=_one_step
        ).encode

    def encode(self, returned):
        """The bytes of all elements, a line each. Raises Failure for what JSON cannot say."""
        text = "\n".join([*self._lines(returned), ""])
        return text.encode("utf-8", "parallelrun.json_surrogates")

    def _lines(self, returned):
        row = 0
        try:
            for element in _elements(returned):
                yield self._line(element)
                row += 1
        except _Refused as refused:
            raise Failure(
                "BadReturn",
                f"Row {row} (counted from 0) of what run() returned cannot be JSON: "
                f"{refused.place or 'it'} is {refused.what}. {refused.mend}",
                location=self._run_location,
            ) from None

    def _line(self, element):
        try:
            return self._encode(element)
        except (_Refused, ValueError, TypeError, RecursionError):
            pass  # where it is, and whether it can be helped, only a slower look tells
        try:
            return self._encode(self._plain(element, ""))
        except RecursionError:
            raise _Refused("", "nested too deep, or holds itself", _FIT) from None
        except (ValueError, TypeError) as error:
            raise _Refused("", f"refused: {error}"[:_MAX_SHOWN], _FIT) from None

    def _plain(self, value, place):
        """`value` of what JSON knows alone."""
        if value is None or isinstance(value, (str, bool, int)):
            return value
        if isinstance(value, float):
            if math.isfinite(value):
                return value
            if self._nan_as_null:
                return None
            raise _Refused(place, float.__repr__(value), _NO_NUMBER)
        if isinstance(value, dict):
            plain = {}
            for key, item in value.items():
                name = _name(key, place)
                if name in plain:
                    raise _Refused(place, f"a dict with two keys {_shown(name)}", "Rename one.")
                plain[name] = self._plain(item, f"{place}[{_shown(name)}]")
            return plain
        if isinstance(value, (list, tuple)):
            return [self._plain(item, f"{place}[{i}]") for i, item in enumerate(value)]
        try:
            return self._plain(_one_step(value), place)
        except _Refused as refused:
            raise _Refused(refused.place or place, refused.what, refused.mend) from None


class _Refused(Exception):
    def __init__(self, place, what, mend):
        super().__init__(what)
        self.place = place  # in the row, as Python writes it; empty: all of it
        self.what = what
        self.mend = mend


def _elements(returned):
    # Whoever returns one of these has imported its library.
    pandas = sys.modules.get("pandas")
    if pandas is not None:
        if isinstance(returned, pandas.DataFrame):
            return _frame_rows(returned)
        if isinstance(returned, pandas.Series):
            return returned.tolist()
    return returned


def _frame_rows(frame):
    """A dict for each row. The index is none of it, as in the text format."""
    names = _names(frame.columns)
    # By position, and as Python's own values.
    columns = [frame.iloc[:, i].tolist() for i in range(len(names))]
    if not columns:
        return [{} for _ in range(len(frame))]
    return [dict(zip(names, row)) for row in zip(*columns)]


def _names(labels):
    names = [_name(label, "") for label in labels]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise _Refused("", f"a table with two columns {_shown(twice)}", "Rename one.")
    return names


def _name(key, place):
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
    raise _Refused(place, f"a dict with the key {_shown(key)}", "Make its keys texts.")


def _one_step(value):
    """What stands for a value that JSON does not know; what is inside of it may follow."""
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        if isinstance(value, numpy.ndarray):
            if not value.ndim:
                return value[()]
            # tolist() makes numbers of times.
            return list(value) if value.dtype.kind in "mM" else value.tolist()
        if isinstance(value, numpy.datetime64):
            return None if numpy.isnat(value) else str(value)
        if isinstance(value, numpy.bool_):
            return bool(value)
        if isinstance(value, numpy.integer) and not isinstance(value, numpy.timedelta64):
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
            return dict(zip(_names(value.index), value.tolist()))
        if isinstance(value, (pandas.Index, pandas.Categorical)):
            return value.tolist()
        if isinstance(value, pandas.Timedelta):
            return value.isoformat()
    if isinstance(value, (datetime.date, datetime.time)):  # a datetime is a date
        return value.isoformat()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    mend = "Decode it." if isinstance(value, (bytes, bytearray)) else _FIT
    raise _Refused("", f"of type {type(value).__name__}", mend)


def _shown(value):
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
