"""Tables whose column types are decided: the same types in every slice, and each misfit by name."""

import io
import math
import os
import random
import warnings

import pytest
from fake_agent import slice_of, table_group_work, table_work

pandas = pytest.importorskip("pandas")

from parallelrun.worker import column_types, leading_zeros, typed_table  # noqa: E402 - they need no pandas, but
from parallelrun.worker.failure import Failure  # noqa: E402 - what they are asked for does

INTEGER = {"name": "id", "type": "integer"}
NUMBER = {"name": "price", "type": "number"}
TEXT = {"name": "zip", "type": "text"}
BOOLEAN = {"name": "ok", "type": "boolean"}
PERHAPS = {"name": "ok", "type": "boolean", "missing": True}


def written(column):
    return {**column, "written": True}


def form_of(columns, **options):
    return {"delimiter": ",", "encoding": "utf-8", "columns": columns, **options}


@pytest.fixture
def read(tmp_path):
    """read(text, columns) -> the DataFrame of the rows of `text`, behind `before` in its file."""

    def read(text, columns, header=b"", before=b"", window=None, **options):
        path = tmp_path / "rows.csv"
        path.write_bytes(before + text)
        return typed_table.read(
            pandas,
            str(path),
            (len(before), len(text)),
            header,
            (2**64 - 1, 0),
            form_of(columns, **options),
            window,
        )[0]

    return read


@pytest.fixture
def refusal(read, tmp_path):
    """The same for what does not fit: the message without the folder."""

    def refusal(*args, **options):
        with pytest.raises(Failure) as raised:
            read(*args, **options)
        assert raised.value.kind == "Misfit"
        assert raised.value.message.startswith(f"{tmp_path}/")
        return raised.value.message[len(str(tmp_path)) + 1 :]

    return refusal


def values_of(frame):
    return [frame[name].tolist() for name in frame.columns]


# --- words for a missing value


def test_a_word_for_a_missing_value_settles_no_column(read):
    words = ["0", "0.5", "x", "y", "FALSE", "1", "007"]
    columns = [INTEGER, NUMBER, TEXT, BOOLEAN]
    frame = read(b"5,3,0012,True\n8,,,True\n", columns, na=["", *words])
    assert [str(dtype) for dtype in frame.dtypes] == ["int64", "float64", "object", "bool"]
    ids, prices, zips, oks = values_of(frame)
    assert (ids, oks, zips[0], prices[0]) == ([5, 8], [True, True], "0012", 3.0)
    assert prices[1] != prices[1] and zips[1] != zips[1]
    # All that is there is missing in it.
    frame = read(b"1,0.50,x,true\n", [written(INTEGER), NUMBER, TEXT, PERHAPS], na=words[1:4])
    (number,), (price,), (text,), oks = values_of(frame)
    assert price != price and text != text and (number, oks) == (1, [True])


def test_a_value_that_is_a_word_for_a_missing_one_is_no_integer(refusal):
    found = refusal(b"5\n0.0\n", [INTEGER], na=["0"])
    assert found.startswith('rows.csv:2: column "id" is integer, and the value is missing')


# --- texts and columns


@pytest.mark.parametrize(
    ("texts", "alone"),
    [
        ("12 0 -12 -0", "integer"),
        ("+12 00239 -07 00.5 9223372036854775808 18446744073709551616", "text"),
        ("9007199254740993 9223372036854775807 -9223372036854775808", "integer"),
        ("-9223372036854775809 . - + 1e 1e+ e3 1e1.5 1d3 1e309 0e999999", "text"),
        ("1. .5 1.50 1e5 1E-7 1e05 +.5 1e-400 inf -Infinity iNf", "number"),
        ("infin 1.#INF NAN +nan Nan Null none na -- ? \\N T yes", "text"),
        ("True tRUE FALSE", "boolean"),
        ("0x10 1_000 1;5 5% ١٢ １２ −1 2020-01-01 08:15", "text"),  # noqa: RUF001
        ("20200101", "integer"),
    ],
)
def test_classes(texts, alone):
    for text in texts.split():
        columns = [{"type": kind} for kind in ("boolean", "integer", "number")]
        fitting = [column["type"] for column in columns if column_types.fits(column, text)]
        if alone == "text" and text == "0e999999":
            assert fitting == ["number"], "it decides text, and where it is read it is 0"
        else:
            expected = {"text": [], "integer": ["integer"], "number": ["number"]}
            expected["boolean"] = ["boolean"]
            both = alone == "integer" and abs(int(text)) <= 2**53
            assert fitting == expected[alone] + ["number"] * both, text


@pytest.mark.parametrize("text", [" 12", "12 ", "\t12", "12\v\f"])
def test_blanks_around_an_integer(text, read):
    assert values_of(read(f'"{text}"\n'.encode(), [INTEGER])) == [[12]]


@pytest.mark.parametrize("text", ["1 2", " True", " inf", "  ", " NA"])
def test_blanks_in_a_text(text):
    assert not any(
        column_types.fits({"type": kind}, text) for kind in ("boolean", "integer", "number")
    )


def test_every_type_is_what_it_is_called(read):
    frame = read(b"1,2,00239,True\n", [INTEGER, NUMBER, TEXT, BOOLEAN])
    assert [str(dtype) for dtype in frame.dtypes[["id", "price", "ok"]]] == [
        "int64",
        "float64",
        "bool",
    ]
    assert values_of(frame) == [[1], [2.0], ["00239"], [True]]
    assert frame.index.equals(pandas.RangeIndex(1))


def test_a_column_without_a_value_keeps_its_type(read):
    full = read(b"1.5,x,True\n", [NUMBER, TEXT, PERHAPS])
    empty = read(b",NA,None\n", [NUMBER, TEXT, PERHAPS])
    assert full.dtypes.equals(empty.dtypes)
    assert empty.isna().all(axis=None)
    assert values_of(read(b"True\n", [PERHAPS])) == [[True]]
    assert read(b"True\n", [PERHAPS]).dtypes["ok"].kind == "O"


@pytest.mark.parametrize(
    ("text", "value"),
    [("-0", -0.0), ("1e20", 1e20), ("9007199254740993.0", 9007199254740992.0), ("+.5", 0.5)],
)
def test_numbers_that_fit(text, value, read):
    (found,) = read(f"{text}\n".encode(), [NUMBER])["price"].tolist()
    assert str(found) == str(value)


# --- rows


@pytest.mark.parametrize("rows", [b"1\n2,3\n", b"1,\n2,3\n"])
def test_short_rows(rows, read):
    first, second = values_of(read(rows, [INTEGER, NUMBER]))
    assert first == [1, 2]
    assert str(second) == "[nan, 3.0]"


@pytest.mark.parametrize(
    ("row", "fields"), [(b"1,2,3", 3), (b"1,2,,4", 4), (b'1,2,"3\n,"', 3), (b"1,2,", 3)]
)
def test_a_row_with_too_many_fields(row, fields, refusal):
    for rows in (b"7,8\n" + row + b"\n7\n", row + b"\n7,8\n"):
        line = 1 if rows.startswith(row) else 2
        found = refusal(rows, [INTEGER, NUMBER])
        assert found.startswith(f"rows.csv:{line}: the row has {fields} fields, ")
        assert "and the table 2 columns. Fix the file, or write badRows: Skip" in found


def test_a_row_with_too_many_fields_names_the_dialect_that_was_seen(refusal):
    seen = 'the delimiter seems to be ";": write delimiter: ";"'
    found = refusal(b"1;2,5\n", [TEXT], dialect=seen)
    assert found == (
        'rows.csv:1: the row has 2 fields, and the table 1 columns. The delimiter seems to be ";": '
        'write delimiter: ";", and start over. Fix the file, or write badRows: Skip '
        "(--retry-failed takes it)."
    )
    found = refusal(b"x\n", [INTEGER], dialect=seen)
    assert "delimiter" not in found


@pytest.mark.parametrize("options", [{}, {"escape": "\\"}, {"comment": "#"}])
def test_rows_that_end_with_a_delimiter(options, read, refusal):
    # Also with zeros to be looked for, a column in another place, and a piece of the slice.
    ended = dict(delimiterAtEnd=True, header=b"zip,id\n", **options)
    frame = read(b'"a,",1,\n\nb,2,""\r\n', [INTEGER, TEXT], **ended)
    assert values_of(frame) == [[1, 2], ["a,", "b"]]
    assert values_of(read(b"a,1,\nb,2\nc,3,\n", [INTEGER, TEXT], window=(2, 1), **ended)) == [
        *([3], ["c"])
    ]
    assert refusal(b"a,1,\nb,2\nc,3,\n", [INTEGER, TEXT], **ended).startswith("rows.csv:2: the row")
    assert 'the value is "007"' in refusal(b"a,007,\n", [INTEGER, TEXT], **ended)
    skipped = read(b"a,1,\nb,2\nc,3,\nd,,4\n", [INTEGER, TEXT], badRows="Skip", **ended)
    assert values_of(skipped) == [[1, 3], ["a", "c"]]


def test_columns_come_by_name(read, refusal):
    by_name = read(b"x,1\n", [INTEGER, TEXT], header=b"zip,id\n")
    assert list(by_name.columns) == ["id", "zip"]
    assert values_of(by_name) == [[1], ["x"]]
    three = [INTEGER, NUMBER, TEXT]
    assert values_of(read(b"x,1,2.5\n", three, header=b"zip,id,price\r\n")) == [[1], [2.5], ["x"]]
    found = refusal(b"1,2\n", [INTEGER, TEXT], header=b"id,Zip\n")
    assert found.startswith(
        'rows.csv: it lacks the column "zip" of the table and it has the column "Zip", which the '
        "table has not."
    )


def test_empty_and_repeated_names(read):
    assert column_types.names(["a", "", "a", "a.1", "", "a"]) == [
        *("a", "Unnamed: 1", "a.2", "a.1", "Unnamed: 4", "a.3")
    ]
    columns = [{"name": name, "type": "integer"} for name in ("a", "Unnamed: 1", "a.1")]
    assert values_of(read(b"1,2,3\n", columns, header=b"a,,a\n")) == [[1], [2], [3]]


@pytest.mark.parametrize("delimiter", list(",;\t| .0ex"))
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_delimiters_and_line_ends(delimiter, end, read):
    rows = [b'"1"', b'"a b"', b'"2"', b'"c, d"']
    text = end.join(delimiter.encode().join(rows[i : i + 2]) for i in (0, 2))
    frame = read(text, [INTEGER, TEXT], delimiter=delimiter)
    assert values_of(frame) == [[1, 2], ["a b", "c, d"]]


@pytest.mark.parametrize("encoding", ["latin-1", "gbk", "utf-8-sig"])
def test_encodings(encoding, read):
    text = "é" if encoding == "latin-1" else "中"
    columns = [INTEGER, {"name": text, "type": "text"}]
    header = f"{text},id\n".encode(encoding.replace("-sig", ""))
    frame = read(f"{text},1\n".encode(encoding), columns, header=header, encoding=encoding)
    mark = "\ufeff" if encoding == "utf-8-sig" else ""  # within a file it is data
    assert values_of(frame) == [[1], [mark + text]]


def test_a_name_that_the_planner_cannot_decode(read):
    raw = "中".encode("gbk").decode("latin-1")
    columns = [{"name": raw, "type": "integer", "raw": True}]
    frame = read(b"1\n", columns, header="中\n".encode("gbk"), encoding="gbk")
    assert list(frame.columns) == ["中"]


def test_words_comment_and_escape(read, refusal):
    assert str(values_of(read(b"-\n1\n", [NUMBER], na=["-"]))) == "[[nan, 1.0]]"
    assert 'the value is ""' in refusal(b'1\n""\n', [INTEGER], na=["-"])
    commented = read(b"#no\n1,a#b\n2,c\n", [INTEGER, TEXT], comment="#")
    assert values_of(commented) == [[1, 2], ["a", "c"]]
    escaped = read(b"1,a\\,b\\\nc\n2,\\N\n", [INTEGER, TEXT], escape="\\")
    assert values_of(escaped) == [[1, 2], ["a,b\nc", "N"]]
    assert refusal(b"#no\n1,a\\\nb\n007,c\n", [INTEGER, TEXT], comment="#", escape="\\").startswith(
        'rows.csv:4: column "id" is integer, and the value is "007"'
    )


@pytest.mark.parametrize("delimiter", list(",;.0ecx"))
def test_fields_that_another_character_quotes_or_none(delimiter, read, refusal):
    def rows(*table):
        return b"".join(delimiter.join(row).encode() + b"\n" for row in table)

    columns = [INTEGER, NUMBER, BOOLEAN, TEXT]
    options = {"delimiter": delimiter, "quote": "'"}
    quoted = rows(("'7'", "'2.5'", "'True'", "'it''s\n\"'"), ("'8'", "", "'False'", '"a'))
    assert str(values_of(read(quoted, columns, **options))) == str(
        [[7, 8], [2.5, float("nan")], [True, False], ["it's\n\"", '"a']]
    )
    found = refusal(rows(("'7'", "'a'"), ("'008'", "'b'")), [INTEGER, TEXT], **options)
    assert 'rows.csv:2: column "id" is integer, and the value is "008"' in found
    options["quote"] = ""
    plain = rows(("7", '"A'), ("8", '"'), ("9", "'B"))
    assert values_of(read(plain, [INTEGER, TEXT], **options)) == [[7, 8, 9], ['"A', '"', "'B"]]
    found = refusal(rows(("7", '"A'), ("+8", '"')), [INTEGER, TEXT], **options)
    assert 'rows.csv:2: column "id" is integer, and the value is "+8"' in found


def test_a_quote_that_is_no_quote_is_none(refusal):
    found = refusal(b'"7",x\n', [INTEGER, TEXT], quote="'")
    assert 'the value is "\\"7\\""' in found
    assert "rows.csv:1: the row has 3 fields" in refusal(b"7,'a,b'\n", [INTEGER, TEXT], quote="")


# --- misfits


@pytest.mark.parametrize(
    ("column", "value", "kind"),
    [
        (INTEGER, "x", "text"),
        (INTEGER, "1.0", "number"),
        (INTEGER, "True", "text"),
        (INTEGER, "00239", "text"),
        (INTEGER, "-007", "text"),
        (INTEGER, "+7", "text"),
        (INTEGER, " 007", "text"),
        (INTEGER, "9223372036854775808", "text"),
        (INTEGER, "123456789012345678901", "text"),
        (INTEGER, "inf", "number"),
        (NUMBER, "abc", "text"),
        (NUMBER, "False", "text"),
        (NUMBER, "00.5", "text"),
        (NUMBER, "+12", "text"),
        (NUMBER, "9007199254740993", "text"),
        (NUMBER, "-9007199254740993", "text"),
        (NUMBER, "1e309", "text"),
        (NUMBER, "0x10", "text"),
        (NUMBER, "18446744073709551616", "text"),
        (BOOLEAN, "1", "text"),
        (BOOLEAN, "yes", "text"),
        (PERHAPS, "x", "text"),
    ],
)
@pytest.mark.parametrize("quote", ["", '"'])
def test_a_value_that_does_not_fit(column, value, kind, quote, refusal):
    good = {"integer": "12", "number": "1.5", "boolean": "True"}[column["type"]]
    row = f'{quote}{value}{quote},"a\nb"\r\n'.encode()
    expected = (
        f'column "{column["name"]}" is {column["type"]}, and the value is "{value}". '
        f"Write dtypes: {{{column['name']}: {kind}}} (--retry-failed takes it)."
    )
    # Alone, and behind rows that fit.
    fits = f"{good},x\r\n".encode()
    for rows, line in ((row, 5), (fits + row, 6), (row + fits, 5), (fits + b"\r\n" + row, 7)):
        found = refusal(rows, [column, TEXT], before=b"id,zip\r\n1,x\r\r\n\n")
        assert found == f"rows.csv:{line}: {expected}"


@pytest.mark.parametrize(
    ("column", "kind"), [(INTEGER, "number"), (BOOLEAN, "boolean")], ids=["integer", "boolean"]
)
def test_a_missing_value_that_does_not_fit(column, kind, refusal):
    good = "True" if column is BOOLEAN else "7"
    expected = f"and the value is missing. Write dtypes: {{{column['name']}: {kind}}}"
    for rows in (f"a,{good}\nb,NA\n", f"a,{good}\nb\n", f'a,{good}\nb,""\n', f"a,{good}\nb,\n"):
        found = refusal(rows.encode(), [TEXT, column])
        assert found.startswith(f'rows.csv:2: column "{column["name"]}" is {column["type"]}, ')
        assert expected in found


def test_a_missing_value_beside_what_no_double_holds(refusal):
    assert "dtypes: {id: text}" in refusal(b"9007199254740993,x\n,y\n", [INTEGER, TEXT])


def test_the_first_misfit_is_named(refusal):
    found = refusal(b"1,2,x\n1,,x\n,a,x\n", [INTEGER, {"name": "n", "type": "integer"}, TEXT])
    assert found.startswith('rows.csv:2: column "n" is integer, and the value is missing')


def test_all_columns_that_do_not_fit_are_named(refusal):
    columns = [INTEGER, NUMBER, BOOLEAN, {"name": "count", "type": "integer"}, TEXT]
    found = refusal(b"1,2.5,True,3,x\n1.5,y,True,4,x\n7,3,no,,x\n8,3,True,5,x\n", columns)
    assert found == (
        'rows.csv:2: column "id" is integer, and the value is "1.5". Write dtypes: {id: number, '
        "price: text, ok: text, count: number} (--retry-failed takes it)."
    )
    # A later value of a column may need another type than its first one.
    assert "dtypes: {id: text}" in refusal(b"1\n1.5\nx\n", [INTEGER])
    assert "dtypes: {id: text}" in refusal(b"1\nx\n1.5\n", [INTEGER])
    many = [{"name": f"c{i}", "type": "integer"} for i in range(30)]
    found = refusal(b",".join([b"x"] * 30) + b"\n", many)
    assert found.endswith("c19: text}, and the types of 10 more columns (--retry-failed takes it).")


def test_hostile_values_and_names_are_escaped_and_cut(refusal):
    name = 'a": text}\n\u202e'
    found = refusal(f'"{"y" * 100}\x1b\n"\n'.encode(), [{"name": name, "type": "number"}])
    assert '"' + "y" * 64 + '…"' in found
    assert 'column "a\\": text}\\n\\u202e" is number' in found
    assert found.isprintable()
    assert refusal(b"x\n", [{"name": "no", "type": "number"}]).count('"no"') == 2


@pytest.mark.parametrize("text", ["007", "+7", " 7"])
def test_written_integers_are_taken_as_pandas_takes_them(text, read, refusal):
    assert values_of(read(f"{text}\n".encode(), [written(INTEGER)])) == [[7]]
    assert "is missing" in refusal(f"{text},x\n,y\n".encode(), [written(INTEGER), TEXT])


def test_written_numbers_and_booleans(read, refusal):
    frame = read(b"9007199254740993\n007\n", [written(NUMBER)])
    assert values_of(frame) == [[9007199254740992.0, 7.0]]
    assert 'the value is "x"' in refusal(b"x\n", [written(NUMBER)])
    assert str(values_of(read(b'True\n""\n', [written(BOOLEAN)]))) == "[[True, nan]]"


def test_zeros_are_not_looked_for_where_all_was_read(read):
    assert values_of(read(b"007\n", [INTEGER], all=True)) == [[7]]


@pytest.mark.parametrize(
    "text", [b"7,x\n\n008\n", b"7\n\n\n008,x\n", b'7,"a""b"\n008,"x"y"z\n', b"7,x\r008,y\r"]
)
def test_zeros_in_shapes_that_are_not_plain(text, refusal):
    assert 'the value is "008"' in refusal(text, [INTEGER, TEXT])


@pytest.mark.parametrize("value", ['""007', '"0"07', '"-"07', '""+7'])
def test_zeros_behind_a_closing_quote(value, refusal):
    rows = f'7,"a"\n{value},x\n'.encode()
    assert refusal(rows, [INTEGER, TEXT]).startswith('rows.csv:2: column "id" is integer')


@pytest.mark.parametrize("delimiter", [" ", "\t", "+"])
def test_zeros_behind_a_delimiter_that_is_quoted(delimiter, refusal, read):
    rows = f'7{delimiter}"a"\n"{delimiter}007"{delimiter}x\n'.encode()
    assert "007. Write" in refusal(rows, [INTEGER, TEXT], delimiter=delimiter).replace('"', "")
    empty = f"7{delimiter}{delimiter}8\n\n".encode()
    columns = [INTEGER, NUMBER, {"name": "count", "type": "integer"}]
    assert values_of(read(empty, columns, delimiter=delimiter))[::2] == [[7], [8]]


# --- what the planner has seen


@pytest.fixture
def looked(monkeypatch):
    """The columns that were looked at for zeros, for each time."""
    times = []

    def suspects(data, delimiter, width, rows, want, quote):
        times.append(want)
        return leading_zeros.suspects(data, delimiter, width, rows, want, quote)

    monkeypatch.setattr(typed_table, "suspects", suspects)
    return times


def test_a_slice_that_loses_nothing_is_not_looked_at(read, looked):
    rows = b"7,1.5,008\n9,2.5,009\n"
    columns = [INTEGER, NUMBER, TEXT]
    expected = [[7, 9], [1.5, 2.5], ["008", "009"]]
    for may_lose in (0, 0b100):
        assert values_of(read(rows, columns, mayLose=may_lose)) == expected
    assert looked == []
    # In the order of the file, and of those alone that may lose something.
    assert values_of(read(rows, columns, mayLose=0b110)) == expected
    by_name = read(b"x,7\n", [INTEGER, TEXT], header=b"zip,id\n", mayLose=0b10)
    assert values_of(by_name) == [[7], ["x"]]
    # From an earlier program: nothing is known.
    assert values_of(read(rows, columns)) == expected
    assert looked == [[1], [1], [0, 1]]


def test_a_slice_that_may_lose_something_is_looked_at(refusal):
    columns = [INTEGER, NUMBER, TEXT]
    found = refusal(b"7,1.5,x\n+9,2.5,y\n", columns, mayLose=1)
    assert found.startswith('rows.csv:2: column "id" is integer')
    assert 'column "price"' in refusal(b"7,02.5,x\n", columns, mayLose=0b10)


def test_columns_behind_the_last_bit_share_it(read, refusal, looked):
    columns = [{"name": f"c{i}", "type": "integer"} for i in range(70)]
    rows = b",".join([b"7"] * 66 + [b"007"] + [b"7"] * 3) + b"\n"
    assert 'column "c66"' in refusal(rows, columns, mayLose=1 << 63)
    read(rows.replace(b"007", b"7"), columns, mayLose=1)
    assert looked == [list(range(63, 70)), [0]]


def test_each_slice_of_a_group_has_its_own(launch):
    one = launch.write("one.csv", "id,zip\n1,a\n2,b\n")
    two = launch.write("two.csv", "zip,id\nc,3\nd,+4\n")
    slices = [slice_of(one, 7, None, b"id,zip\n"), slice_of(two, 7, None, b"zip,id\n")]
    agent = launch("table.py")
    agent.ready()
    agent.run(table_group_work(slices, 4, form=form_of([INTEGER, TEXT], mayLose=[0, 0b10])))
    assert f'{two}:3: column "id" is integer' in agent.failed().failure["message"]
    form = form_of([INTEGER, TEXT], mayLose=[0])
    agent.run(table_work(one, 2, offset=7, header=b"id,zip\n", form=form))
    assert agent.result().data == b"1 a 2\n2 b 2\n"


def test_bytes_that_are_not_of_the_encoding(refusal, read):
    found = refusal(b"1,a\n2,\xff\n", [INTEGER, TEXT])
    assert found.startswith("rows.csv:2: the byte 0xff is not utf-8. Write the encoding that the ")
    assert "as encoding: latin-1 (or cp1252, gbk, …), in place of utf-8" in found
    assert "or write badRows: Skip" in found
    frame = read(b"1,a\n2,\xff\n", [INTEGER, TEXT], badRows="Skip")
    assert values_of(frame) == [[1], ["a"]]


def test_a_header_that_is_not_of_the_encoding(refusal):
    columns = [INTEGER, {"name": "caf\xe9", "type": "text"}]
    found = refusal(b"1,a\n", columns, header=b"id,caf\xe9\n")
    assert found.startswith(
        "rows.csv: in its header the byte 0xe9 is not utf-8. Write the encoding"
    )


# --- pieces and groups


@pytest.mark.parametrize("first", range(4))
def test_of_a_piece_only_its_own_rows_are_looked_at(first, read, refusal):
    rows = b'1,"a\n"\n\n2,b\nx,c\n4,d\n'
    if first == 2:
        assert "rows.csv:5: " in refusal(rows, [INTEGER, TEXT], window=(first, 1))
    else:
        frame = read(rows, [INTEGER, TEXT], window=(first, 1))
        assert values_of(frame) == [[first + 1], ["abcd"[first] + "\n" * (first == 0)]]


def test_a_piece_of_a_group(launch):
    one = launch.write("one.csv", "id,zip\n1,a\nx,b\n")
    two = launch.write("two.csv", "zip,id\nc,3\nd,4\n")
    slices = [slice_of(one, 7, None, b"id,zip\n"), slice_of(two, 7, None, b"zip,id\n")]
    agent = launch("table.py")
    agent.ready()
    for piece, expected in (
        ([2, 2], b"3 c 2\n4 d 2\n"),
        ([0, 1], b"1 a 1\n"),
        ([3, 1], b"4 d 1\n"),
    ):
        form = form_of([INTEGER, TEXT], rows=piece)
        agent.run(table_group_work(slices, piece[1], form=form))
        assert agent.result().data == expected
    agent.run(table_group_work(slices, 2, form=form_of([INTEGER, TEXT], rows=[1, 2])))
    assert f"{one}:3: " in agent.failed().failure["message"]


# --- what the agent is told


def test_a_misfit_is_a_failure_of_its_kind(launch):
    path = launch.write("rows.csv", "1\nx\n")
    agent = launch("table.py")
    agent.ready()
    agent.run(table_work(path, 2, form=form_of([INTEGER])))
    failure = agent.failed().failure
    assert (failure["kind"], failure["type"], failure["fatal"]) == ("Misfit", "Misfit", False)
    assert failure["message"].startswith(f'{path}:2: column "id" is integer')
    assert failure["location"] == ""


@pytest.mark.parametrize("threshold", [-1, 0])
def test_bad_rows_are_skipped_counted_and_listed(threshold, launch):
    path = launch.write("rows.csv", "id,zip\n1,a\n\nx,b\n3,c,,4\n4,d\n,e\n")
    agent = launch("returns.py", "mini_batch['id']", errorThreshold=threshold)
    agent.ready()
    form = form_of([INTEGER, TEXT], badRows="Skip")
    agent.run(table_work(path, 5, offset=7, header=b"id,zip\n", index=7, form=form))
    result = agent.result(skipped=3)
    assert (result.succeeded, result.rows, result.data) == (2, 2, b"1\n4\n")
    assert agent.log("skipped_rows.process000.txt").splitlines() == [
        f'mini-batch 7, attempt 1: {path}:4: column "id" is integer, and the value is "x"',
        f"mini-batch 7, attempt 1: {path}:5: the row has 4 fields, and the table 2 columns",
        f'mini-batch 7, attempt 1: {path}:7: column "id" is integer, and the value is missing',
    ]


def test_what_run_adds_does_not_count_for_skipped_rows(launch):
    path = launch.write("rows.csv", "1\nx\n")
    agent = launch("returns.py", "[1, 2, 3]")
    agent.ready()
    agent.run(table_work(path, 2, form=form_of([INTEGER], badRows="Skip")))
    assert agent.result(skipped=1)[6:8] == (1, 3)


def test_a_script_may_change_its_table(read):
    """It is the script's own: no slice of another one, of whose changes pandas warns."""
    columns = [INTEGER, NUMBER, TEXT]
    for header, options in ((b"", {}), (b"c,a,b\n", {})):
        rows = b"1,0.5,x\n2,1.5,y\n" if not header else b"x,1,0.5\ny,2,1.5\n"
        named = [{**column, "name": name} for column, name in zip(columns, "abc")]
        frame = read(rows, named, header=header, **options)
        # Else the first change collects all garbage, to see whether the other one still lives.
        assert getattr(frame, "_is_copy", None) is None
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            frame["d"] = frame["a"] + 1
            frame.loc[0, "b"] = 2.5
            frame.iloc[1, 2] = "z"
            frame.drop(columns="a", inplace=True)
        assert values_of(frame) == [[2.5, 1.5], ["x", "z"], [2, 3]]
        assert isinstance(frame.index, pandas.RangeIndex) and frame.index.start == 0


def test_a_mini_batch_of_bad_rows_alone_fails(launch):
    path = launch.write("rows.csv", "x\ny\n")
    agent = launch("table.py")
    agent.ready()
    agent.run(table_work(path, 2, form=form_of([INTEGER], badRows="Skip")))
    assert agent.failed().failure["kind"] == "Misfit"


# --- against pandas, the whole file at once

POOL = [
    *("1", "0", "-5", "42", "7", "007", "-07", "00.5", "+3", "+0.5", "1.5", ".5", "2.", "1e5"),
    *("1E-3", "-0", "9007199254740993", "9223372036854775807", "9223372036854775808", "1e309"),
    *("18446744073709551616", "1e-400", "0e9999", "inf", "-Infinity", "nan", "NA", "NULL"),
    *("None", "True", "false", "tRUE", "x", "yes", "0x1", "1_000", "2020-01-01", "1;5", "é"),
    *("", "", " 4", "5 ", "  ", "a b", 'q"q', "it's", "''", "two\nlines", "c,d", " True", " NA"),
]
KINDS = (
    lambda pick: str(pick.randrange(-999, 999)),
    lambda pick: pick.choice(("", str(pick.randrange(99)))) if pick.random() < 0.2 else "3",
    lambda pick: f"{pick.random():.3f}",
    lambda pick: pick.choice(("True", "False")),
    lambda pick: pick.choice(("True", "FALSE", "")),
    lambda pick: f"{pick.randrange(99999):05d}",
    lambda pick: pick.choice(("alpha", "beta", "NA", "")),
    lambda pick: pick.choice(POOL),
    lambda pick: pick.choice(POOL) if pick.random() < 0.05 else "8",
)
LOST = (
    column_types.ZERO,
    column_types.PLUS,
    column_types.BEYOND,
    column_types.OVERFLOW,
    column_types.TINY,
)


def decide(texts):
    """The type of a column, all of whose texts were read, and whether pandas agrees with it."""
    classes = {column_types.classify(text) for text in texts if text is not None}
    missing = None in texts
    numbers = classes & {column_types.INTEGER, column_types.BIG, column_types.FRACTION}
    if classes & {*LOST, column_types.TEXT}:
        return {"type": "text"}, not classes & set(LOST)
    if column_types.BOOLEAN in classes:
        if numbers:
            return {"type": "text"}, True
        return {"type": "boolean", "missing": missing}, True
    if column_types.BIG in classes and (missing or column_types.FRACTION in classes):
        return {"type": "text"}, False
    if column_types.FRACTION in classes or missing:
        return {"type": "number"}, True
    return {"type": "integer"}, True


# Words of naValues, beside those that are always missing.
WORDS = (*POOL, "0", "3", "8", "0.5", "-999", "70", "7e1", "12.50")


def as_pandas_takes(words):
    """The texts that these words stand for, and the numbers among them."""
    texts, numbers = set(words), set()
    for word in words:
        try:
            number = float(word)
        except ValueError:
            continue
        numbers.add(number)
        if math.isfinite(number) and number == int(number):
            texts |= {f"{int(number)}", f"{int(number)}.0"}
    return texts, numbers


def quoted(text, delimiter, quote, pick):
    if quote and (any(c in text for c in (*delimiter, quote, "\n")) or pick.random() < 0.05):
        return quote + text.replace(quote, quote * 2) + quote
    return text


def same(ours, theirs):
    """Both missing, or equal of the same type; -0.0 is 0.0, as pandas' depends on the rest."""
    if ours != ours or theirs != theirs:
        return ours != ours and theirs != theirs
    return ours == theirs and isinstance(ours, str) == isinstance(theirs, str)


SEED = int(os.environ.get("TYPED_TABLES_SEED", "1"))
TABLES = int(os.environ.get("TYPED_TABLES", "100"))


@pytest.mark.filterwarnings("ignore::FutureWarning")  # of concat, for booleans with missing ones
@pytest.mark.parametrize("seed", range(SEED, SEED + TABLES))
def test_slices_joined_are_the_whole_file(seed, tmp_path):
    pick = random.Random(seed)
    delimiter = pick.choice((",", ";", "\t", "|", "||", ", ", "§"))
    end = pick.choice(("\n", "\r\n"))
    width = pick.randrange(1, 6)
    quote = pick.choice(('"', '"', "'", ""))
    kinds = [pick.choice(KINDS) for _ in range(width)]
    table = [[kind(pick) for kind in kinds] for _ in range(pick.randrange(1, 30))]
    if not quote:
        none = str.maketrans(dict.fromkeys(delimiter + "\n", "_"))
        table = [[text.translate(none) for text in row] for row in table]
    if width == 1:
        table = [row for row in table if row[0].strip(" \t")] or [["1"]]
    rows = [
        (delimiter.join(quoted(text, delimiter, quote, pick) for text in row) + end).encode()
        for row in table
    ]
    words = pick.sample(WORDS, pick.randrange(1, 4)) if pick.random() < 0.3 else []
    words = [*column_types.MISSING_WORDS, *words]
    missing, numbers = as_pandas_takes(words)
    texts = [[None if t in missing else t for t in row] for row in table]
    decided = [decide([row[i] for row in texts]) for i in range(width)]
    columns = [{"name": f"k{i}", **column} for i, (column, _) in enumerate(decided)]
    header = (delimiter.join(f"k{i}" for i in range(width)) + end).encode()
    path = tmp_path / "rows.csv"
    path.write_bytes(header + b"".join(rows))
    # What pandas does not take for one: the same rows with one that is in none of them.
    one = delimiter if len(delimiter.encode()) == 1 else "\x1f"
    lines = [[f"k{i}" for i in range(width)], *table]
    texts_of = [one.join(quoted(text, delimiter, quote, pick) for text in row) for row in lines]
    whole = pandas.read_csv(
        io.BytesIO("".join(text + end for text in texts_of).encode()),
        sep=one,
        index_col=False,
        low_memory=False,
        na_values=words,
        keep_default_na=False,
        **({"quotechar": quote} if quote else {"quoting": 3}),
    )
    cuts = sorted(
        {0, len(rows), *(pick.randrange(len(rows) + 1) for _ in range(pick.randrange(6)))}
    )
    frames = []
    for first, last in zip(cuts, cuts[1:]):
        offset = len(header) + sum(map(len, rows[:first]))
        length = sum(map(len, rows[first:last]))
        form = form_of(columns, delimiter=delimiter, quote=quote, all=pick.random() < 0.5)
        if len(words) > len(column_types.MISSING_WORDS):
            form["na"] = words
        frame, _, _ = typed_table.read(
            pandas, str(path), (offset, length), header, (2**64 - 1, 0), form, None
        )
        assert not frames or frame.dtypes.equals(frames[0].dtypes)
        frames.append(frame)
    joined = pandas.concat(frames, ignore_index=True)
    for i, (column, agrees) in enumerate(decided):
        ours = joined[f"k{i}"].tolist()
        if column["type"] == "text":
            expected = [float("nan") if row[i] is None else row[i] for row in texts]
        else:
            assert agrees
            expected = whole[f"k{i}"].tolist()
            if column["type"] == "number":
                # pandas sees these where any value has a fraction, and ours is one of fractions.
                lost = [row[i] is not None and float(row[i]) in numbers for row in texts]
                expected = [float("nan") if gone else v for gone, v in zip(lost, expected)]
            assert joined[f"k{i}"].dtype == whole[f"k{i}"].dtype
        assert all(map(same, ours, expected)), (ours, expected)
