"""Rows as text, with nothing left out.

What numpy, pandas and others print is for reading: of long values the middle is missing, and "..."
stands for it. In an output nobody can tell what that was. The options of numpy and pandas end it;
what belongs to others is refused.
"""

import sys

_TEXT = {str}
_MARKS = ("...", "\u2026")
_PANDAS = (
    "display.max_rows", None, "display.max_columns", None, "display.max_colwidth", None,
    "display.max_seq_items", None, "display.max_categories", sys.maxsize,
    "display.expand_frame_repr", False,
)  # fmt: skip


def lines(to_text, elements, count, location):
    """The elements as lines. Raises Failure for one that has no whole text."""
    if to_text is str and _TEXT.issuperset(map(type, elements)):
        return "\n".join(iter(elements))  # as their str(), and faster

    def make():
        return "\n".join(map(to_text, elements))

    text = make()
    # Changing the options takes as long as many elements, and arrays may lie deep inside of them.
    if _is_suspect(text) or text.count("\n") >= count:
        return _whole(make, lambda: ((row, "", v) for row, v in enumerate(elements)), location)
    return text


def table(frame, to_csv, location):
    """What to_csv makes of the frame. Raises Failure for a value that has no whole text."""

    def make():
        return frame.to_csv(**to_csv)

    text = make()
    if _is_suspect(text) or text.count("\n") > len(frame):
        own = [i for i, dtype in enumerate(frame.dtypes) if dtype.kind == "O"]
        columns = [(frame.columns[i], frame.iloc[:, i].tolist()) for i in own]
        if not all(_TEXT.issuperset(map(type, values)) for _, values in columns):
            cells = ((row, f"[{name!r}]", v) for name, c in columns for row, v in enumerate(c))
            return _whole(make, lambda: cells, location)
    return text


def _is_suspect(text):
    return any(mark in text for mark in _MARKS)


def _whole(make, values, location):
    """make() while numpy and pandas leave nothing out; values() are those that it prints."""
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return _checked(make, values, location)
    # Some break long lines as well, and a row is a line.
    with numpy.printoptions(threshold=sys.maxsize, linewidth=sys.maxsize):
        pandas = sys.modules.get("pandas")
        if pandas is None:
            return _checked(make, values, location)
        with pandas.option_context(*_PANDAS):
            return _checked(make, values, location)


def _checked(make, values, location):
    text = make()
    if _is_suspect(text):
        for row, place, value in values():
            _refuse_shortened(row, place, value, location)
    return text


def _refuse_shortened(row, place, value, location):
    """Raises Failure where an array of another library, in there too, has a shortened text."""
    seen = set()  # a list may hold itself
    waiting = [(place, value)]
    while waiting:
        place, value = waiting.pop()
        if isinstance(value, (str, bytes)) or id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, dict):
            waiting += [(f"{place}[{key!r}]", item) for key, item in value.items()]
        elif isinstance(value, (list, tuple)):
            waiting += [(f"{place}[{i}]", item) for i, item in enumerate(value)]
        elif _is_printed_whole(value):
            if value.dtype == object and value.ndim == 1:
                waiting += [(f"{place}[{i}]", item) for i, item in enumerate(value.tolist())]
        elif hasattr(type(value), "__array__") and _is_suspect(str(value)):
            from parallelrun.worker.plain import Refused, bad_row

            kind = f"{type(value).__module__}.{type(value).__qualname__}"
            what = f"of type {kind}, whose text leaves out its middle"
            mend = "Convert it with .tolist(), or to an array of numpy."
            raise bad_row(row, "written whole", Refused(place, what, mend), location)


def _is_printed_whole(value):
    """Whether it is an array of numpy, or one of pandas that has the options of printing."""
    numpy = sys.modules.get("numpy")
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(value, (pandas.Series, pandas.Index)):
        return True
    return numpy is not None and isinstance(value, numpy.ndarray)
