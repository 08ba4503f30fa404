"""The types of columns: which texts each of them may hold, as the planner decides it."""

import re
from collections import Counter

# pandas' words for a missing value, those of its newest version: the same in each.
MISSING_WORDS = (
    "",
    "#N/A",
    "#N/A N/A",
    "#NA",
    "-1.#IND",
    "-1.#QNAN",
    "-NaN",
    "-nan",
    "1.#IND",
    "1.#QNAN",
    "<NA>",
    "N/A",
    "NA",
    "NULL",
    "NaN",
    "None",
    "n/a",
    "nan",
    "null",
)

INTEGER, BIG, FRACTION, BOOLEAN, TEXT, ZERO, PLUS, BEYOND, OVERFLOW, TINY = range(10)

_BLANKS = " \t\n\v\f\r"
_INTEGER = re.compile(r"([+-]?)([0-9]+)\Z")
_NUMBER = re.compile(
    r"[+-]?(?:([0-9]+)(?:\.([0-9]*))?|\.([0-9]+))(?:[eE]([+-]?[0-9]+))?\Z",
)
_INFINITE = re.compile(r"[+-]?(?:inf|infinity)\Z", re.IGNORECASE)
_EXACT = 2**53  # up to here a double holds each whole number

# What a column of a type holds; of a written one, whatever pandas makes a value of the type.
_HOLDS = {
    "integer": {INTEGER, BIG},
    "number": {INTEGER, FRACTION, TINY},
    "boolean": {BOOLEAN},
}
_HOLDS_WRITTEN = {
    "integer": {INTEGER, BIG, ZERO, PLUS},
    "number": {INTEGER, BIG, FRACTION, ZERO, PLUS, BEYOND, OVERFLOW, TINY},
    "boolean": {BOOLEAN},
}
# Most values, told at once.
_PLAIN = {
    "integer": re.compile(r"-?(?:0|[1-9][0-9]{0,14})\Z"),
    "number": re.compile(r"-?(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{0,99})?(?:[eE][+-]?[0-9]{1,2})?\Z"),
    "boolean": re.compile(r"True\Z|False\Z"),
}


def classify(text):
    """The class of a field that is not missing."""
    if "\0" in text:
        return TEXT
    if text.isascii():
        if text.lower() in ("true", "false"):
            return BOOLEAN
        if _INFINITE.match(text):
            return FRACTION
    text = text.strip(_BLANKS)
    number = _NUMBER.match(text)
    if number is None:
        return TEXT
    whole, fraction, point, exponent = number.groups()
    if whole and len(whole) > 1 and whole[0] == "0":
        return ZERO
    integer = _INTEGER.match(text)
    if integer:
        return _classify_integer(text, *integer.groups())
    if exponent is not None:
        size = exponent.lstrip("+-").lstrip("0")
        if exponent[0] == "-" and len(size) > 4:
            return TINY
        if exponent[0] != "-" and (len(size) > 3 or int(size or "0") > 308):
            digits = (whole or "") + (fraction or "") + (point or "")
            return OVERFLOW if digits.strip("0") else TINY
    return OVERFLOW if abs(float(text)) == float("inf") else FRACTION


def _classify_integer(text, sign, digits):
    if sign == "+":
        return PLUS
    if len(digits) > 19 or not -(2**63) <= int(text) < 2**63:
        return BEYOND
    return BIG if abs(int(text)) > _EXACT else INTEGER


def fits(column, text):
    """Whether the column of the format JSON may hold this value; None is a missing one."""
    kind = column["type"]
    if kind == "text":
        return True
    if text is None:
        return kind == "number" or (kind == "boolean" and may_be_missing(column))
    if _PLAIN[kind].match(text):
        return True
    return classify(text) in (_HOLDS_WRITTEN if column.get("written") else _HOLDS)[kind]


def may_be_missing(column):
    """Of a boolean column."""
    return bool(column.get("missing") or column.get("written"))


def type_to_write(column, text, others):
    """The type that holds the value that did not fit as well as the others of the column."""
    if column["type"] == "boolean" and text is None:
        return "boolean"
    if column["type"] == "integer" and (text is None or classify(text) == FRACTION):
        exact = all(other is None or classify(other) != BIG for other in others)
        return "number" if exact else "text"
    return "text"


def names(header):
    """What pandas calls columns with these names: none of them empty, none twice."""
    found = [name or f"Unnamed: {i}" for i, name in enumerate(header)]
    taken = Counter(found)
    counts = {}
    for i in sorted(range(len(found)), key=lambda i: header[i] == ""):  # empty ones last
        name = first = found[i]
        count = counts.get(name, 0)
        while count > 0:
            counts[first] = count + 1
            name = f"{first}.{count}"
            count = count + 1 if taken[name] else counts.get(name, 0)
        taken[found[i]] -= 1
        taken[name] += 1
        found[i] = name
        counts[name] = count + 1
    return found
