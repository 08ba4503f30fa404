"""Random small tables: the rows of our slices against those that Python's csv module reads
of the whole file, and of a sample those that pandas reads.

    /usr/bin/python3 tests/differential/tables.py --seed 7 --cases 1000000
"""

import argparse
import csv
import io
import os
import random
import struct
import subprocess
import sys
import time
from pathlib import Path

HEAD = struct.Struct("<BBBBBII")
SIZES = struct.Struct("<II")
SLICE = struct.Struct("<III")
AT_ONCE = 5000
PANDAS_EACH = 200  # tables; it takes a hundred times as long
MARK = "\ufeff"
# Characters whose second byte looks like "|", where there are such.
MULTI_BYTE = {"gbk": "\u5104", "shift_jis": "\u30dd", "big5": "\u5f0b", "euc-jp": "\u65e5"}
ENCODINGS = ["utf-8"] * 8 + ["utf-8-sig", "latin-1", "cp1252", *MULTI_BYTE]
# In the place of a delimiter of several bytes, for the csv module and pandas: in no text.
ONE = "\x1e"
# Some of which begin again within themselves, or are blanks, or stand in fields.
LONG = ("||", "||", ", ", "::", "<|>", "<||>", "aba", "abab", "  ", " \t", "\t\t", "||||||||")
LONG_OF_UTF8 = (
    "\u00a7",
    "\u00a7\u00a7",
    "\u20ac|",
    "|\u20ac",
    "\u00e4\u00fc",
    "\U0001f600\U0001f600",
)
LETTERS = "|,;: \tab<>-"
LETTERS_OF_UTF8 = "\u00a7\u00e4\u20ac\U0001f600"
MOST_BYTES = 8


def long_delimiter(draw, utf8):
    """Of 2 to 8 bytes, and of ASCII where the encoding is another one."""
    if draw.random() < 0.5:
        return draw.choice(LONG + LONG_OF_UTF8 if utf8 else LONG)
    letters = LETTERS + LETTERS_OF_UTF8 if utf8 else LETTERS
    while True:
        text = "".join(draw.choices(letters, k=draw.randrange(1, MOST_BYTES + 1)))
        if 1 < len(text.encode()) <= MOST_BYTES:
            return text


class Table:
    """A file, how it is to be cut, and what it is decoded with."""

    def __init__(self, draw):
        self.lines = draw.random() < 0.05
        self.encoding = draw.choice(ENCODINGS)
        self.quoted = draw.random() < 0.9
        self.header = draw.random() < 0.4
        self.size = draw.choice((1, 1, 5, 20, 70, 300))
        self.utf8 = self.encoding.startswith("utf-8")
        if draw.random() < 0.3:
            self.delimiter, self.one = long_delimiter(draw, self.utf8), ONE
        else:
            self.delimiter = self.one = draw.choice(",,,,\t;| :")
        special = MULTI_BYTE.get(self.encoding, "\u00e4\u00fc")
        text = self._well_formed(draw, special) if draw.random() < 0.4 else self._odd(draw, special)
        if draw.random() < 0.0002:  # longer than what is read at once
            text *= 300_000 // max(len(text), 1)
        if self.utf8 and draw.random() < 0.2:
            text = MARK + text
        self.data = text.encode(self._codec(), "surrogateescape" if self.utf8 else "ignore")

    def _well_formed(self, draw, special):
        end = draw.choice(("\n", "\r\n", "\r"))
        fields = [
            "a",
            "bc",
            "12.5",
            " x ",
            "",
            special,
            "q" * draw.randrange(120),
            'say "hi"',
            "1" + self.one,
            self.delimiter[:-1],
        ]
        if self.quoted:
            fields += ["two\nlines", "two\r\n\r\nlines", "\r", '"', '"\n']
        width = draw.randrange(1, 5)
        rows = [draw.choices(fields, k=width) for _ in range(draw.randrange(9))]
        out = io.StringIO(newline="")
        csv.writer(out, delimiter=self.one, lineterminator=end).writerows(rows)
        text = out.getvalue().replace(self.one, self.delimiter)
        if draw.random() < 0.3:
            blank = end * draw.randrange(1, 4)
            text = blank + text if draw.random() < 0.5 else text + blank
        return text.rstrip("\r\n") if draw.random() < 0.3 else text

    def _odd(self, draw, special):
        tokens = [
            '"',
            '"',
            '"',
            self.delimiter,
            self.delimiter,
            "\n",
            "\n",
            "\r\n",
            "\r",
            "a",
            "bc",
            " ",
            "\t",
        ]
        tokens += [
            special,
            '""',
            "\0",
            "x" * draw.randrange(130),
            "\ufeff" if self.utf8 else "\u00a0",
        ]
        if self.utf8:
            tokens.append("\udcff")  # a byte that is not UTF-8
        if len(self.delimiter) > 1:
            tokens += [self.delimiter[:1], self.delimiter[1:], self.delimiter[:-1]]
        return "".join(draw.choices(tokens, k=draw.randrange(40)))

    def _codec(self):
        return "utf-8" if self.utf8 else self.encoding

    def text(self, data):
        return data.decode(self._codec(), "surrogateescape")

    def request(self):
        name = self.encoding.encode()
        delimiter = self.delimiter.encode()
        head = HEAD.pack(
            self.lines,
            len(delimiter),
            self.quoted,
            self.header,
            len(name),
            self.size,
            len(self.data),
        )
        return head + delimiter + name + self.data

    def rows(self, text):
        """The rows of the csv module, without those of blank lines, as pandas passes over them.

        It knows delimiters of one character alone. In a text that does not hold it that character
        may stand for each of ours, within quotes too: they hold no quote and no line end.
        """
        lines = list(io.StringIO(text.replace(self.delimiter, self.one), newline=""))
        quoting = csv.QUOTE_MINIMAL if self.quoted else csv.QUOTE_NONE
        reader = csv.reader(lines, delimiter=self.one, quoting=quoting)
        blank = " \t".replace(self.one, "") + "\r\n"
        rows = []
        before = 0
        for row in reader:
            if reader.line_num > before + 1 or lines[before].strip(blank):
                rows.append(row)
            before = reader.line_num
        return rows

    def problem(self, header, slices):
        """What is wrong with the slices of this table, or None."""
        pieces = [self.data[offset : offset + length] for offset, length, _ in slices]
        if self.lines:
            data = self.data[3:] if self.data.startswith(MARK.encode()) else self.data
            whole = [line for line in data.split(b"\n") if line and not line.isspace()]
            read = [
                [line for line in piece.split(b"\n") if line and not line.isspace()]
                for piece in pieces
            ]
        else:
            text = self.text(self.data)
            whole = self.rows(text.removeprefix(MARK) if self.utf8 else text)
            read = [self.rows(self.text(piece)) for piece in pieces]
            if self.header:
                # Nothing is read with one that is alone; it got a line end, maybe within quotes.
                if slices and self.rows(self.text(header)) != whole[:1]:
                    return "the header"
                whole = whole[1:]
        for number, (rows, (_, _, count)) in enumerate(zip(read, slices)):
            if len(rows) != count:
                return f"slice {number} has {len(rows)} rows"
        if [row for rows in read for row in rows] != whole:
            return f"the rows, which are {whole!r}"
        for (offset, length, _), (following, _, _) in zip(slices, slices[1:]):
            if offset + length != following:
                return f"a gap behind byte {offset + length}"
        return None

    def pandas_problem(self, header, slices):
        """The same by pandas, which reads rows of any width here, and no types."""
        if self.lines or not self.quoted or b"\r" in self.data or self.one in " \t":
            return None  # pandas itself loses track after some lone CRs and blanks
        import pandas

        # In front of all that is read: a header as wide as any row.
        names = self.one.join(f"c{number}" for number in range(200)).encode() + b"\n"
        options = {
            "sep": self.one,
            "encoding": self._codec(),
            "index_col": False,
            "dtype": str,
        }
        options.update(keep_default_na=False, encoding_errors="surrogateescape")

        def read(data):
            data = data.replace(self.delimiter.encode(), self.one.encode())
            frame = pandas.read_csv(io.BytesIO(names + data), **options)
            return frame.fillna("nothing").values.tolist()

        try:
            whole = read(self.data.removeprefix(MARK.encode()) if self.utf8 else self.data)
        except pandas.errors.ParserError:  # a quote that is never closed
            return None
        data = [self.data[offset : offset + length] for offset, length, _ in slices]
        rows = [row for piece in ([header] if self.header else []) + data for row in read(piece)]
        return None if rows == whole else f"pandas, whose rows are {whole!r}, not {rows!r}"


def answers(out, count):
    """(header, slices) for each table, None for one that was refused."""
    at = 0
    for _ in range(count):
        taken = out[at]
        at += 1
        if not taken:
            yield None
            continue
        length, number = SIZES.unpack_from(out, at)
        at += SIZES.size
        header = out[at : at + length]
        at += length
        slices = [SLICE.unpack_from(out, at + SLICE.size * i) for i in range(number)]
        at += SLICE.size * number
        yield header, slices
    if at != len(out):
        raise SystemExit("there are more answers than tables")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--cases", type=int, default=20000)
    parser.add_argument(
        "--bin",
        default=Path(os.environ.get("PARALLELRUN_BIN", "build/release/bin"), "split_tables"),
    )
    arguments = parser.parse_args()
    csv.field_size_limit(1 << 30)
    draw = random.Random(arguments.seed)
    began = time.monotonic()
    done = refused = slices = by_pandas = 0
    while done < arguments.cases:
        tables = [Table(draw) for _ in range(min(AT_ONCE, arguments.cases - done))]
        asked = b"".join(table.request() for table in tables)
        out = subprocess.run(
            [arguments.bin], input=asked, stdout=subprocess.PIPE, check=True
        ).stdout
        for table, answer in zip(tables, answers(out, len(tables))):
            done += 1
            if answer is None:
                refused += 1
                continue
            slices += len(answer[1])
            problem = table.problem(*answer)
            if problem is None and done % PANDAS_EACH == 0:
                by_pandas += 1
                problem = table.pandas_problem(*answer)
            if problem:
                print(
                    f"seed {arguments.seed}, table {done}: {problem}\n{vars(table)!r}\n{answer!r}"
                )
                sys.exit(1)
    if slices < arguments.cases:
        raise SystemExit(f"{slices} slices of {arguments.cases} tables: this proves little")
    seconds = time.monotonic() - began
    print(
        f"{done} tables, {slices} slices, {refused} refused, {by_pandas} by pandas too, in"
        f" {seconds:.0f} s: no difference (seed {arguments.seed})"
    )


if __name__ == "__main__":
    main()
