"""Delimiters of several bytes: the same values as with one byte, and never a pattern for pandas."""

import io
import os
import random
import re

import pytest
from fake_agent import slice_of, table_group_work, table_work

pandas = pytest.importorskip("pandas")

from parallelrun.worker import (  # noqa: E402 - with pandas only
    long_delimiter,
    table,
    table_rows,
    typed_table,
)
from parallelrun.worker.failure import Failure  # noqa: E402 - likewise

UNKNOWN = (2**64 - 1, 0)  # size and time of a file
CONTROLS = bytes(range(0x20)).replace(b"\0", b"").replace(b"\n", b"").replace(b"\r", b"")
TYPES = (
    {},
    {"columns": [{"name": "x", "type": "integer"}, {"name": "y", "type": "text"}]},
)
typed = pytest.mark.parametrize("typed", [False, True], ids=["by pandas", "decided"])


def replaced(data, delimiter, **options):
    """The text with "~" where a delimiter stands."""
    form = {"delimiter": delimiter, **options}
    _, data, found = long_delimiter.replaced("rows.csv", b"", data, form)
    assert {**form, "delimiter": found["delimiter"]} == found
    return data.replace(found["delimiter"].encode(), b"~")


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"a||b\n||\n", b"a~b\n~\n"),
        (b"a|||b||||c\n", b"a~|b~~c\n"),
        (b'a||"b||c"||d\n', b'a~"b||c"~d\n'),
        (b'"a""||"||"""||"||\n"||\n"||x', b'"a""||"~"""||"~\n"||\n"~x'),
        (b'"a"b||c||"d"\n', b'"a"b~c~"d"\n'),  # text behind a closing quote
        (b'5" pipe||6"||"x||"\n', b'5" pipe~6"~"x||"\n'),  # quotes that are text
        (b'5" pipe||6\n', b'5" pipe~6\n'),
        (b'a|"b||c"\n', b'a|"b~c"\n'),
        (b'a|||"b||c"\n', b'a~|"b~c"\n'),
        (b' "a||b"\n', b' "a~b"\n'),
        (b'a||"b||c\n', b'a~"b||c\n'),  # open to the end
        (b"|\n|a|\n", b"|\n|a|\n"),
        (b"", b""),
    ],
)
def test_what_is_replaced(data, expected):
    assert replaced(data, "||") == expected
    assert replaced(data.replace(b'"', b"'"), "||", quote="'") == expected.replace(b'"', b"'")
    # As with marks that stand nowhere, and with those that make each byte be looked at.
    assert replaced(data, "||", escape="\\", comment="#") == expected
    assert replaced(data + b"\\", "||", escape="\\") == expected + b"\\"


def test_quotes_comments_and_escapes():
    assert replaced(b'"a||b"||c\n', "||", quote="") == b'"a~b"~c\n'
    assert replaced(b'a\\||b\\|||c\n"\\"||"||d\n', "||", escape="\\") == (
        b'a\\||b\\|~c\n"\\"||"~d\n'
    )
    assert replaced(b"#a||b\nc||d#e||f\n", "||", comment="#") == b"#a||b\nc~d#e||f\n"


def test_a_character_of_several_bytes():
    assert replaced("a§ä§b\n".encode(), "§") == "a~ä~b\n".encode()


def test_what_stands_in_its_place_is_not_in_the_slice():
    held = CONTROLS.replace(b"\x01", b"").replace(b"\x02", b"")
    assert replaced(b'"||%s"||x\n' % held, "||") == b'"||%s"~x\n' % held
    with pytest.raises(Failure) as raised:
        replaced(b"%s||x\n" % CONTROLS, "||")
    assert "its rows hold every control character" in raised.value.message


# --- beside pandas


def byte_by_byte(data, delimiter, one, quote, escape, comment):
    """The text with another delimiter, as a reader goes through it that knows each byte's state."""
    out, at, state = bytearray(), 0, "front"
    while at < len(data):
        c = data[at : at + 1]
        if state in ("escaped", "escaped in quotes"):
            state = "field" if state == "escaped" else "quoted"
        elif state == "quoted":
            if c in (quote, escape):
                state = "behind quotes" if c == quote else "escaped in quotes"
        elif c in (b"\n", b"\r"):
            state = "front"
        elif state == "comment":
            pass
        elif c == quote and state in ("front", "behind quotes"):
            state = "quoted"
        elif data.startswith(delimiter, at):
            at += len(delimiter)
            out += one
            state = "front"
            continue
        elif state != "behind quotes" and c in (escape, comment):
            state = "escaped" if c == escape else "comment"
        else:
            state = "field"
        out += c
        at += 1
    return bytes(out)


@pytest.mark.parametrize("at_once", [1, 20, 1 << 20])
@pytest.mark.parametrize("seed", range(10))
def test_each_text_is_that_of_a_reader_byte_by_byte(seed, at_once, monkeypatch):
    monkeypatch.setattr(long_delimiter, "_AT_ONCE", at_once)
    pick = random.Random(seed)
    for _ in range(TEXTS_EACH):
        quote, escape, comment = pick.choice(('"', "'", "]", "^", "")), "", ""
        if pick.random() < 0.7:
            escape = pick.choice("\\!-^")
            comment = pick.choice("#%]")
        if quote in (escape, comment):
            continue
        delimiter = pick.choice(("||", ", ", "aba", "  ", "§", ".*", "$$", "|" * 8))
        tokens = [quote, quote, escape, comment, delimiter, delimiter[:1], "\n", "\r", "a", "ü"]
        text = "".join(pick.choices(tokens, k=pick.randrange(60))).encode()
        form = {"delimiter": delimiter, "quote": quote, "escape": escape, "comment": comment}
        _, found, options = long_delimiter.replaced("rows.csv", b"", text, form)
        marks = [mark.encode() or None for mark in (quote, escape, comment)]
        one = options["delimiter"].encode()
        assert found == byte_by_byte(text, delimiter.encode(), one, *marks), (text, form)


@pytest.mark.parametrize("mark", ["escape", "comment"])
def test_right_behind_a_quote_no_mark_has_a_meaning(mark):
    data, form = b'"a"!"b,c\n"d"!\ne\n', {"delimiter": ",", mark: "!"}
    rows = table_rows.Rows(data, form)
    assert [rows.fields(begin)[0] for begin, _ in rows] == [[b'a!"b', b"c"], [b"d!"], [b"e"]]
    options = {"escape": {"escapechar": "!"}, "comment": {"comment": "!"}}[mark]
    frame = pandas.read_csv(io.BytesIO(data), header=None, names=["x", "y"], **options)
    assert frame["x"].tolist() == ['a!"b', "d!", "e"]
    data = data.replace(b",", b"||")
    assert replaced(data, "||", **{mark: "!"}) == data.replace(b"||", b"~")


DELIMITERS = ("||", ", ", "::", "§", "<|>", "aba", "  ", "\t\t")
TEXTS = ("", "", "1", "-2.5", "007", "a", "ab", "b a", "|", ":", "<|", "é", "a,b", "x|y", "ba")
QUOTED = (*TEXTS, "a||b", ", ", "::", "§", "x\ny", 'say "x"', "#", "\\")
SEED = int(os.environ.get("LONG_DELIMITERS_SEED", "1"))
TABLES = int(os.environ.get("LONG_DELIMITERS", "60"))
TEXTS_EACH = 3 * TABLES


def stands_in(text, delimiter):
    """Whether a field of this text would end within it."""
    return (text + delimiter).find(delimiter) < len(text)


def rows_of(pick, delimiter, width, texts, quotes):
    """Rows that may be short, and no line of blanks."""
    rows = []
    while len(rows) < 8:
        row = [pick.choice(texts) for _ in range(1 + pick.choice((width, pick.randrange(width))))]
        row = row[:width]
        if not quotes and any(stands_in(text, delimiter) for text in row):
            continue
        if "".join(row).strip():
            rows.append(row)
    return rows


def line_of(row, delimiter, quotes, pick):
    def field(text):
        held = any(c in text for c in '"\n') or stands_in(text, delimiter)
        if quotes and (held or pick.random() < 0.3):
            return '"' + text.replace('"', '""') + '"'
        return text

    return delimiter.join(map(field, row)) + "\n"


def read_both(path, header, rows, delimiter, width):
    """The DataFrames with types of its own, and with decided ones."""
    path.write_bytes(header + rows)
    form = {"delimiter": delimiter, "encoding": "utf-8"}
    own = table._parse(pandas, str(path), len(header), header + rows, header, form)
    columns = [{"name": f"k{i}", "type": "text"} for i in range(width)]
    offsets = (len(header), len(rows))
    decided, _, _ = typed_table.read(
        pandas, str(path), offsets, header, UNKNOWN, {**form, "columns": columns}, None
    )
    return own, decided


@pytest.mark.parametrize("seed", range(SEED, SEED + TABLES))
def test_values_are_those_of_one_byte(seed, tmp_path):
    pick = random.Random(seed)
    delimiter, width = pick.choice(DELIMITERS), pick.randrange(2, 5)
    rows = rows_of(pick, delimiter, width, QUOTED, quotes=True)
    names = [f"k{i}" for i in range(width)]
    found = []
    for own in (delimiter, ";"):
        header = line_of(names, own, False, pick).encode()
        lines = "".join(line_of(row, own, True, pick) for row in rows).encode()
        found.append(read_both(tmp_path / "rows.csv", header, lines, own, width))
    for ours, theirs in zip(*found):
        pandas.testing.assert_frame_equal(ours, theirs)


@pytest.mark.parametrize("seed", range(SEED, SEED + TABLES))
def test_values_are_those_of_a_pattern_where_nothing_is_quoted(seed, tmp_path):
    pick = random.Random(seed)
    # Around its lines the other engine takes blanks off.
    delimiter, width = pick.choice([d for d in DELIMITERS if d.strip()]), pick.randrange(2, 5)
    rows = rows_of(pick, delimiter, width, TEXTS, quotes=False)
    rows = [[*row[:-1], row[-1] or "z"] for row in rows if row[0].strip()]
    header = line_of([f"k{i}" for i in range(width)], delimiter, False, pick).encode()
    lines = "".join(line_of(row, delimiter, False, pick) for row in rows).encode()
    path = tmp_path / "rows.csv"
    own, decided = read_both(path, header, lines, delimiter, width)
    for ours, kinds in ((own, {}), (decided, {"dtype": str})):
        theirs = pandas.read_csv(
            path, sep=re.escape(delimiter), engine="python", index_col=False, **kinds
        )
        pandas.testing.assert_frame_equal(ours, theirs, check_dtype=not kinds)


# --- through the worker


@pytest.fixture
def reader(launch):
    def start():
        agent = launch("table.py")
        agent.ready()
        return agent

    return start


@typed
def test_rows_of_a_worker(reader, tmp_path, typed):
    path = tmp_path / "rows.csv"
    path.write_bytes(b'1, "b, c"\n2, a,b\n\n3, \n')
    agent = reader()
    form = {"delimiter": ", ", "encoding": "utf-8", **TYPES[typed]}
    agent.run(table_work(path, 3, header=b"x, y\n", form=form))
    assert agent.result().data == b'1 "b, c" 3\n2 a,b 3\n3  3\n'


@typed
@pytest.mark.parametrize(
    ("rows", "line", "said"),
    [
        (b"1||a\n2||b||\n", 2, "the row has 3 fields, and the table 2 columns"),
        (b"1||2||3\n", 1, "the row has 3 fields, and the table 2 columns"),
        (b'"1"||"a\n||"\n\n2||b||c\n', 4, "the row has 3 fields, and the table 2 columns"),
        (b"1||a\n2||b\0\n", 2, "the row holds a NUL byte"),
        (b"1||a\n2||caf\xe9\n", 2, "the byte 0xe9 is not utf-8"),
    ],
)
def test_bad_rows(reader, tmp_path, rows, line, said, typed):
    path = tmp_path / "rows.csv"
    path.write_bytes(b"x||y\n" + rows)
    agent = reader()
    form = {"delimiter": "||", "encoding": "utf-8", **TYPES[typed]}
    work = {"offset": 5, "header": b"x||y\n"}
    agent.run(table_work(path, 2, form=form, **work))
    message = agent.failed().failure["message"]
    assert message.startswith(f"{path}:{line + 1}: {said}"), message
    if typed and line > 1:
        agent.run(table_work(path, 2, form={**form, "badRows": "Skip"}, **work))
        assert agent.result(skipped=1).rows == 1


def test_a_value_that_does_not_fit_is_told_as_it_stands(reader, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes(b'1, a\n"2, 3", b\n007, c\n')
    agent = reader()
    form = {"delimiter": ", ", "encoding": "utf-8", **TYPES[True]}
    agent.run(table_work(path, 3, header=b"x, y\n", form=form))
    message = agent.failed().failure["message"]
    assert message.startswith(f'{path}:2: column "x" is integer, and the value is "2, 3". ')
    agent.run(table_work(path, 3, header=b"x, y\n", form={**form, "badRows": "Skip"}))
    assert agent.result(skipped=2).data == b"1 a 1\n"


@typed
def test_rows_that_end_with_it(reader, tmp_path, typed):
    path = tmp_path / "rows.csv"
    path.write_bytes(b'1||a||\n2||"b||"||\n')
    agent = reader()
    form = {"delimiter": "||", "encoding": "utf-8", **TYPES[typed]}
    agent.run(table_work(path, 2, header=b"x||y\n", form={**form, "delimiterAtEnd": True}))
    assert agent.result().data == b"1 a 2\n2 b|| 2\n"
    group = [slice_of(path, header=b"x||y\n")]
    agent.run(table_group_work(group, 2, form={**form, "delimiterAtEnd": "FirstRows"}))
    assert agent.result().data == b"1 a 2\n2 b|| 2\n"
