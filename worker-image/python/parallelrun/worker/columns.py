"""Elements of rows as values under names: shared by the formats that are tables."""

import dataclasses
import sys

from parallelrun.worker.other_tables import Columns
from parallelrun.worker.plain import Refused, key_name, members, shown, unique_names


def table_of(returned):
    """(names, columns) of a table, each column a Series of pandas or a list. None: it is none."""
    if isinstance(returned, Columns):
        return unique_names(returned.names), returned.columns
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(returned, pandas.DataFrame):
        names = unique_names(returned.columns)
        return names, [returned.iloc[:, i] for i in range(len(names))]
    return _table_of_dicts(returned)


def _table_of_dicts(returned):
    """The same of dicts that have one order of texts as keys, as most have: faster than by row."""
    if not isinstance(returned, (list, tuple)) or not returned or type(returned[0]) is not dict:
        return None
    names = tuple(returned[0])
    if set(map(type, names)) != {str} or set(map(type, returned)) != {dict}:
        return None
    if not all(map(names.__eq__, map(tuple, returned))):
        return None
    return list(names), [[row[name] for row in returned] for name in names]


def cells(element):
    """(names or None, values) of one element."""
    if isinstance(element, dict):
        return tuple(element), element.values()
    if isinstance(element, tuple) and hasattr(element, "_fields"):
        return element._fields, element
    if isinstance(element, (list, tuple)):
        return None, element
    if dataclasses.is_dataclass(element) and not isinstance(element, type):
        names = tuple(field.name for field in dataclasses.fields(element))
        return names, [getattr(element, name) for name in names]
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(element, pandas.Series):
        return tuple(unique_names(element.index)), element.tolist()
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(element, numpy.ndarray) and element.ndim:
        return None, list(element)
    held = members(element)
    if isinstance(held, dict):
        return tuple(held), held.values()
    return (None, (element,)) if held is None else cells(held)


class Table:
    """Which column each value of a row goes into. Without fixed ones the columns grow."""

    def __init__(self, fixed):
        self._fixed = fixed
        self.names = list(fixed or ())
        self._index = {name: i for i, name in enumerate(self.names)}
        self._known = {}  # of the shapes that rows have had: few

    def places(self, keys, count):
        """The indices in `names` of a row with these keys; keys None: of so many values."""
        shape = (keys, count) if keys is None else (keys, tuple(map(type, keys)))
        places = self._known.get(shape)
        if places is None:
            places = self._look(keys, count)
            if len(self._known) < 1000:
                self._known[shape] = places
        return places

    def _look(self, keys, count):
        if keys is None:
            if self._fixed is None:
                return [self._place(f"Column{i + 1}") for i in range(count)]
            if count != len(self._fixed):
                raise Refused(
                    "",
                    f"of {count} values, and output.columns has {len(self._fixed)}: "
                    + _list(self._fixed),
                    "Return as many, or a dict.",
                )
            return range(count)
        names = [key_name(key, "") for key in keys]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise Refused("", f"a row with two columns {shown(twice)}", "Rename one.")
        return [self._place(name) for name in names]

    def _place(self, name):
        place = self._index.get(name)
        if place is None:
            if self._fixed is not None:
                raise Refused(
                    "",
                    f"a row with the column {shown(name)}, which output.columns lacks: "
                    + _list(self._fixed),
                    "Add it there, or leave it out.",
                )
            place = self._index[name] = len(self.names)
            self.names.append(name)
        return place


def _list(names):
    shown_names = ", ".join(names[:20])
    return shown_names + (f", … ({len(names)} in all)" if len(names) > 20 else "")
