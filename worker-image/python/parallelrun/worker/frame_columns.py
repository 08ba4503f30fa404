"""Which columns the rows of DataFrames have as text: under one header, each value below its name.

The header of the output is that of the first DataFrame of any process of the job; the agent says
what it is. Where there is none, a change of the columns is said once.
"""

import io

from parallelrun.worker import logs
from parallelrun.worker.failure import Failure

_MAX_HEADER = 64 << 10  # bytes
_MAX_SHOWN = 1000  # characters of a list of names


class FrameColumns:
    """One per process. `to_csv`: the arguments of DataFrame.to_csv.

    `ask`: tells a header line to the agent and gives that of the job; None: there is no header.
    """

    def __init__(self, to_csv, ask, location):
        self._options = dict(to_csv)
        self._ask = ask
        self._location = location
        self._header = None  # of the job, as text
        self._known = None  # labels in the order of the header, or of the first DataFrame
        self._said = False
        # Aliases are given by place, so they tell nothing; and to_csv chooses by itself.
        self._by_name = ask is not None and not isinstance(to_csv["header"], (list, tuple))
        self._chosen = "columns" in to_csv

    def in_order(self, frame):
        """The frame with its columns as the output has them. Raises Failure for others."""
        labels = list(frame.columns)
        if self._ask is not None and self._header is None:
            self._header = self._of_the_job(self._line(frame))
            self._known = labels if self._header == self._line(frame) else None
        if self._chosen or labels == self._known:
            return frame
        if self._by_name:
            return self._under_header(frame, labels)
        if self._known is None:
            self._known = labels
        elif not self._said:
            self._said = True
            logs.say(
                "the columns of a DataFrame are not those of an earlier one, and the rows of both "
                f"have no names: {_names(labels)} after {_names(self._known)}. Return the same "
                "columns in the same order, or set output.format: csv"
            )
        return frame

    def _line(self, frame):
        return _text(_bytes(frame.iloc[:0].to_csv(**self._options)))

    def _of_the_job(self, line):
        header = _bytes(line)
        if len(header) > _MAX_HEADER:
            logs.say(f"the header line of the DataFrame is left out: it has {len(header)} bytes")
            return line
        return _text(self._ask(header))

    def _under_header(self, frame, labels):
        own = self._fields(self._line(frame))
        wanted = self._fields(self._header)
        index = len(own) - len(labels)  # fields that name the index
        if own == wanted:
            self._known = labels
            return frame
        if sorted(own) != sorted(wanted) or own[:index] != wanted[:index]:
            raise self._refused(own, wanted)
        if len(set(own)) < len(own):  # nobody can tell which is which
            raise self._refused(own, wanted)
        places = [own.index(name) - index for name in wanted[index:]]
        return frame.iloc[:, places]

    def _fields(self, line):
        """The names of a header line; of one that has several lines, as tuples of each column."""
        import csv

        known = {"sep": "delimiter", "quotechar": "quotechar", "escapechar": "escapechar"}
        given = {known[name]: self._options[name] for name in known if name in self._options}
        double = self._options.get("doublequote", True)
        rows = list(csv.reader(io.StringIO(line, newline=""), doublequote=double, **given))
        return rows[0] if len(rows) == 1 else list(zip(*rows))

    def _refused(self, own, wanted):
        return Failure(
            "BadReturn",
            f"run() returned a DataFrame with the columns {_names(own)}, and the header of the "
            f"output has {_names(wanted)}. Return the same columns for every mini-batch, as "
            "frame.reindex(columns=[...]) does, or set output.format: csv and output.columns.",
            location=self._location,
        )


def _bytes(line):
    return line.encode("utf-8", "parallelrun.surrogates")


def _text(header):
    return header.decode("utf-8", "surrogateescape")


def _names(labels):
    text = ", ".join(map(str, labels))
    return text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + "\u2026"
