"""The values of the row of our own in front of a slice, which settle what pandas makes of a column.

Each must be one of its type whatever else is said of the table. A word of `naValues` is no value:
with ["0"] every column of integers was a misfit, and with ["x"] a text "007" was read as 7. A
delimiter or another mark in it would be more than one.
"""

from itertools import product
from string import ascii_lowercase

# More of each than a job may have naValues, each of which takes one away.
_NUMBERS = range(1000)


def texts(options):
    """One text for each type, as bytes."""
    words = set(options.get("na", ()))
    numbers = {number for number in map(_number, words) if number is not None}
    quote = options.get("quote", '"')
    marks = {options["delimiter"], quote, options.get("comment"), options.get("escape")}

    def fits(text):
        return not marks.intersection(text) and text not in words and _number(text) not in numbers

    # Where all ways to write a truth value are missing ones there is none.
    return {
        kind: next(filter(fits, candidates()), first).encode()
        for kind, candidates, first in _CANDIDATES
    }


def _integers():
    return map(str, _NUMBERS)


def _fractions():
    return (f"{n}{end}" for end in (".5", "e-1", "e1") for n in _NUMBERS)


def _booleans():
    yield from ("True", "FALSE")
    for word in ("true", "false"):
        for letters in product(*zip(word, word.upper())):
            yield "".join(letters)


def _words():
    yield from ("x", "y")
    yield from map("".join, product(ascii_lowercase, ascii_lowercase))


_CANDIDATES = (
    ("integer", _integers, "0"),
    ("number", _fractions, "0.5"),
    ("boolean", _booleans, "True"),
    ("text", _words, "x"),
)


def _number(text):
    """The number that pandas takes a word for, in whichever way it is written; None for none."""
    try:
        return float(text)
    except ValueError:
        return None
