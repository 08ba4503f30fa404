"""Where the rows and fields of delimited text are, as pandas and the planner see them.

For what pandas does not tell: which bytes and which line of the file a row is. Slow (some MB a
second), so it is asked only when something is wrong.
"""

import re

from parallelrun.worker import decompress

_LINE_END = re.compile(rb"\r\n|\n|\r")


def _any_of(characters):
    """Finds one of them, if there are any."""
    return re.compile(b"[" + re.escape(characters) + b"]" if characters else b"(?!)")


class Rows:
    """The rows of `data`; iterating gives where each begins and ends, with its line end."""

    def __init__(self, data, options):
        self.data = data
        self._delimiter = options["delimiter"].encode()
        self._escape = options.get("escape", "").encode()
        self._comment = options.get("comment", "").encode()
        self._quote = options.get("quote", '"').encode()  # empty: none
        self._special = _any_of(self._quote + self._escape + self._comment)
        self._in_quotes = _any_of(self._quote + self._escape)
        in_field = b"[" + re.escape(self._escape + self._comment) + rb"\r\n]"
        self._in_field = re.compile(re.escape(self._delimiter) + b"|" + in_field)

    def __iter__(self):
        begin = 0
        while begin < len(self.data):
            fields, end = self.fields(begin)
            if fields is not None:
                yield begin, end
            begin = end

    def fields(self, begin):
        """The fields of the line at `begin`, None if it is no row, and where the next begins."""
        data = self.data
        line = _LINE_END.search(data, begin)
        stop, end = (line.start(), line.end()) if line else (len(data), len(data))
        text = data[begin:stop]
        if not text.strip(b" \t") and self._delimiter not in text:
            return None, end
        if self._special.search(data, begin, stop) is None:
            return text.split(self._delimiter), end
        if self._comment and data.startswith(self._comment, begin):
            return None, end
        fields = []
        position = begin
        while True:
            field, position, delimited = self._field(position)
            fields.append(field)
            if not delimited:
                return fields, position

    def _field(self, position):
        """The text of the field at `position`, what is behind it, and whether that is a field."""
        data = self.data
        parts = []
        if self._quote and data.startswith(self._quote, position):
            position = self._quoted(position + 1, parts)
        while True:
            found = self._in_field.search(data, position)
            if found is None:
                return b"".join([*parts, data[position:]]), len(data), False
            parts.append(data[position : found.start()])
            position = found.end()
            if found.group() == self._escape:
                parts.append(data[position : position + 1])
                position += 1
                continue
            if found.group() == self._delimiter:
                return b"".join(parts), position, True
            line = _LINE_END.search(data, found.start())  # behind a comment, if it is one
            return b"".join(parts), line.end() if line else len(data), False

    def _quoted(self, position, parts):
        """Adds the text within quotes to `parts`; returns where it goes on behind them."""
        data = self.data
        while True:
            found = self._in_quotes.search(data, position)
            if found is None:  # it is open to the end
                parts.append(data[position:])
                return len(data)
            parts.append(data[position : found.start()])
            position = found.end()
            if found.group() == self._escape or data.startswith(self._quote, position):
                parts.append(data[position : position + 1])
                position += 1
                continue
            # Right behind it neither of the two has a meaning.
            behind = data[position : position + 1]
            if behind and behind in (self._escape, self._comment):
                parts.append(behind)
                position += 1
            return position


def line_ends(data, begin, end):
    """How many lines end in this part of the text; it does not begin or end within CR LF."""
    returns = data.count(b"\r", begin, end) - data.count(b"\r\n", begin, end)
    return data.count(b"\n", begin, end) + returns


def line_ends_in_front(path, offset):
    """How many lines of the file end in front of the offset."""
    count = 0
    with decompress.open_text(path) as file:
        last = b""
        while offset > 0:
            block = file.read(min(offset, 1 << 20))
            if not block:
                break
            offset -= len(block)
            count += line_ends(block, 0, len(block))
            if last == b"\r" and block.startswith(b"\n"):
                count -= 1
            last = block[-1:]
    return count
