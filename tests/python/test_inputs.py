"""Files and tables as they were listed, and as they are found."""

import json

import pytest
from fake_agent import (
    files_work,
    json_lines_work,
    slice_of,
    stamp_of,
    table_group_work,
    table_work,
)
from parallelrun.worker import row_shape

ROWS = b"id,name\n1,a\n2,b\n3,c\n4,d\n"
HEADER = b"id,name\n"
# Of a format: what it says of types where they are not decided, and where they are.
TYPES = (
    {},
    {"columns": [{"name": "x", "type": "integer"}, {"name": "y", "type": "text"}]},
)


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes(ROWS)
    return path


def test_unchanged_files_pass(launch, table):
    agent = launch("returns.py", "mini_batch")
    agent.ready()
    agent.run_files([table.name], root=str(table.parent), stamps=[stamp_of(table)])
    assert agent.result().data.decode() == f"{table}\n"


@pytest.mark.parametrize("change", [(1, 0), (0, 1)])
def test_changed_file(launch, table, change):
    size, modified = stamp_of(table)
    agent = launch("returns.py", "1 / 0")
    agent.ready()
    stamp = (size + change[0], modified + change[1])
    agent.run_files([table.name], root=str(table.parent), stamps=[stamp])
    failed = agent.failed()
    assert failed.failure["kind"] == "InputChanged"
    assert str(table) in failed.failure["message"]
    assert failed.run_ns == 0


def test_removed_file(launch, tmp_path):
    agent = launch("returns.py", "mini_batch")
    agent.ready()
    agent.run_files(["gone"], root=str(tmp_path), stamps=[(1, 1)])
    failure = agent.failed().failure
    assert (failure["kind"], failure["type"]) == ("InputUnreadable", "FileNotFoundError")
    assert f"{tmp_path}/gone cannot be read" in failure["message"]


def test_table_slice_with_header(launch, table):
    agent = launch("table.py")
    agent.ready()
    agent.run_table(table, 2, offset=12, length=8, header=HEADER)
    assert agent.result()[6:] == (2, 2, b"2 b 2\n3 c 2\n")
    out = agent.stdout_path.read_text().splitlines()
    assert out == ["['id', 'name'] ['i', 'O']", "RangeIndex(start=0, stop=2, step=1)"]


def test_table_without_header(launch, table):
    agent = launch("table.py")
    agent.ready()
    agent.run_table(table, 2, offset=8, length=8)
    assert agent.result().data == b"1 a 2\n2 b 2\n"
    assert agent.stdout_path.read_text().startswith("['Column1', 'Column2'] ")


@pytest.mark.parametrize("typed", [False, True], ids=["by pandas", "decided"])
def test_rows_that_end_with_a_delimiter(reader, tmp_path, typed):
    # One field more than the header has: pandas would take the first column for the index.
    path = tmp_path / "rows.tsv"
    path.write_bytes(b'1\t2 3\t\n\n4\t5\t""\n')
    agent = reader()
    form = {"delimiter": "\t", "encoding": "utf-8", "delimiterAtEnd": True, **TYPES[typed]}
    agent.run(table_work(path, 2, header=b"x\ty\n", form=form))
    assert agent.result().data == b'1 "2 3" 2\n4 5 2\n'


@pytest.mark.parametrize("typed", [False, True], ids=["by pandas", "decided"])
@pytest.mark.parametrize(
    ("rows", "line", "said"),
    [
        # One value too many, whatever stands in the field that is left over.
        (b"1,2\n0,1,\n", 2, "the row has 3 fields, and the table 2 columns"),
        (b'1,2\n0,1,""\n', 2, "the row has 3 fields, and the table 2 columns"),
        (b"1,2\n0,1,NA\n", 2, "the row has 3 fields, and the table 2 columns"),
        (b"1,2\n0,1,,\n", 2, "the row has 4 fields, and the table 2 columns"),
        # Also of the first row of a slice, of which pandas drops it.
        (b"0,1,\n1,2\n", 1, "the row has 3 fields, and the table 2 columns"),
        (b"1,2,3\n4,5\n", 1, "the row has 3 fields, and the table 2 columns"),
        (b",,\n4,5\n7,8,9\n", 1, "the row has 3 fields, and the table 2 columns"),
        (b"1,2,3,,\n4\n", 1, "the row has 5 fields, and the table 2 columns"),
        (b" \n\n1,2,3\n4,5\n", 3, "the row has 3 fields, and the table 2 columns"),
        (b'"a\nb",2\n1,"x,y",3\n', 3, "the row has 3 fields, and the table 2 columns"),
        pytest.param(b"1,%s,3\n4,5\n" % (b"x" * 200_000), 1, "the row has 3", id="a long field"),
        (b"a,2,3\nb,5,6\n", 1, "the table 2 columns (do the rows begin with names? "),
    ],
)
def test_rows_with_too_many_fields(reader, tmp_path, rows, line, said, typed):
    path = tmp_path / "rows.csv"
    path.write_bytes(rows)
    agent = reader()
    form = {"delimiter": ",", "encoding": "utf-8", **TYPES[typed]}
    agent.run(table_work(path, 2, header=b"x,y\n", form=form))
    failure = agent.failed().failure
    assert (failure["kind"], failure["fatal"]) == (("InputUnreadable", "Misfit")[typed], False)
    assert failure["message"].startswith(f"{path}:{line}: ")
    assert said in failure["message"]


@pytest.mark.parametrize("typed", [False, True], ids=["by pandas", "decided"])
@pytest.mark.parametrize(
    ("rows", "line", "said"),
    [
        (b"1,2,\n4,5\n", 2, "the row has 2 fields, and the first of the file a last, empty one"),
        (b"1,2,\n4,\n", 2, "the row has 2 fields, and the first of the file a last, empty one"),
        (b"1,2,\n4,5,6\n", 2, "the row has 3 fields, and the table 2 columns"),
        (b"1,2,\n4,5,,\n", 2, "the row has 4 fields, and the table 2 columns"),
        (b'4,"5,\n",6\n', 1, "the row has 3 fields, and the table 2 columns"),
    ],
)
def test_rows_that_do_not_end_with_a_delimiter_as_the_others(
    reader, tmp_path, rows, line, said, typed
):
    path = tmp_path / "rows.csv"
    path.write_bytes(rows)
    agent = reader()
    form = {"delimiter": ",", "encoding": "utf-8", "delimiterAtEnd": True, **TYPES[typed]}
    agent.run(table_work(path, 2, header=b"x,y\n", form=form))
    message = agent.failed().failure["message"]
    assert message.startswith(f"{path}:{line}: ")
    assert said in message


@pytest.mark.parametrize("typed", [False, True], ids=["by pandas", "decided"])
def test_of_a_group_the_first_rows_of_each_file_tell_how_its_rows_end(launch, reader, typed):
    plain = launch.write("one.csv", "x,y\n1,a\n")
    ended = launch.write("two.csv", "x,y\n3,c,\n4,d,\n")
    named = launch.write("three.csv", "x,y\n5,e\n6,f,\n")
    agent = reader()
    form = {"delimiter": ",", "encoding": "utf-8", "delimiterAtEnd": "FirstRows", **TYPES[typed]}
    slices = [slice_of(path, 4, None, b"x,y\n") for path in (plain, ended)]
    agent.run(table_group_work(slices, 3, form=form))
    assert agent.result().data.split() == [b"1", b"a", b"3", b"3", b"c", b"3", b"4", b"d", b"3"]
    agent.run(table_group_work([slice_of(named, 4, None, b"x,y\n")], 2, form=form))
    assert agent.failed().failure["message"].startswith(f"{named}:3: the row has 3 fields")
    stray = launch.write("four.csv", "x,y\n7,g,\n8,h\n9,i\n")
    agent.run(table_group_work([slice_of(stray, 4, None, b"x,y\n")], 3, form=form))
    assert agent.failed().failure["message"].startswith(f"{stray}:2: the row has 3 fields")


@pytest.mark.parametrize(
    ("rows", "ends"),
    [
        (b"1,2,\n3,4\n5,6\n", False),
        (b"1,2,\n3,4\n5,6,\n7,8\n9,0", False),
        (b"1,2,\n3,4\n", True),
        (b"1,2,\n3\n4\n5\n", True),
        (b"1,2\n3,4,\n", False),
        (b"1,2,\n" * 50 + b"3,4\n" * 51, False),
        (b"1,2,\n" * 51 + b"3,4\n" * 500, True),
        # As far as they end within 64 KiB.
        (b"1,2,\n3,4\n" + b"x" * 65524 + b",2\n5,6,", False),
        (b"1,2,\n3,4\n" + b"x" * 65525 + b",2\n5,6", True),
        (b"1,2,\r3,4\r" + b"x" * 65524 + b",2\r5,6,", False),
        (b"1,2,\r3,4\r" + b"x" * 65525 + b",2\r5,6", True),
    ],
    ids=range(11),
)
def test_more_of_the_first_rows_may_contradict_the_first(rows, ends):
    # As the planner has it (row_end_test.cc).
    form = {"delimiter": ",", "encoding": "utf-8", "delimiterAtEnd": "FirstRows"}
    assert row_shape.delimiter_at_end(b"a,b\n", rows, form) is ends
    of_before = {**form, "delimiterAtEnd": "FirstRow"}
    assert row_shape.delimiter_at_end(b"a,b\n", rows, of_before) is rows.startswith(b"1,2,")
    longer = {**form, "delimiter": "||"}
    wide = rows.replace(b",", b"||") if len(rows) < 1000 else b""
    assert row_shape.delimiter_at_end(b"a||b\n", wide, longer) is (ends and bool(wide))


@pytest.mark.parametrize("typed", [False, True], ids=["by pandas", "decided"])
@pytest.mark.parametrize(
    "row",
    [b"2,b\0c", b"2,\0", b'2,"b\0"', b"2\0,b", b"\x002,b"],
    ids=["within", "alone", "in quotes", "of a number", "in front"],
)
def test_a_nul_byte_in_a_table(reader, tmp_path, row, typed):
    path = tmp_path / "rows.csv"
    path.write_bytes(b'x,y\n1,"a\n"\n\n' + row + b"\n3,d\n")
    agent = reader()
    form = {"delimiter": ",", "encoding": "utf-8", **TYPES[typed]}
    agent.run(table_work(path, 3, offset=4, header=b"x,y\n", form=form))
    failure = agent.failed().failure
    assert failure["kind"] == ("InputUnreadable", "Misfit")[typed]
    assert failure["message"].startswith(f"{path}:5: the row holds a NUL byte, which is no text. ")
    if typed:
        agent.run(table_work(path, 3, offset=4, header=b"x,y\n", form={**form, "badRows": "Skip"}))
        assert agent.result(skipped=1).data == b'1 "a\n" 2\n3 d 2\n'


@pytest.mark.parametrize("typed", [False, True], ids=["by pandas", "decided"])
def test_a_nul_byte_in_a_table_without_a_header(reader, tmp_path, typed):
    path = tmp_path / "rows.csv"
    path.write_bytes(b"1,a\n2,b\0\n")
    agent = reader()
    agent.run(table_work(path, 2, form={"delimiter": ",", "encoding": "utf-8", **TYPES[typed]}))
    assert agent.failed().failure["message"].startswith(f"{path}:2: the row holds a NUL byte")


@pytest.mark.parametrize("header", [b"", b"x,y\n"], ids=["without a header", "with one"])
@pytest.mark.parametrize("typed", [False, True], ids=["by pandas", "decided"])
def test_bytes_of_another_encoding_name_the_field_to_write(reader, tmp_path, typed, header):
    path = tmp_path / "rows.csv"
    path.write_bytes(b"1,a\n\n2,caf\xe9\n")
    agent = reader()
    form = {"delimiter": ",", "encoding": "utf-8", **TYPES[typed]}
    agent.run(table_work(path, 2, header=header, form=form))
    message = agent.failed().failure["message"]
    assert message.startswith(f"{path}:3: the byte 0xe9 is not utf-8. Write the encoding that the ")
    assert "encoding: latin-1" in message


def test_bytes_of_another_encoding_in_json_lines(launch, tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"a": 1}\n{"a": "caf\xe9"}\n')
    agent = launch("returns.py", "mini_batch")
    agent.ready()
    agent.run(json_lines_work(path, 2))
    message = agent.failed().failure["message"]
    assert message.startswith(f"{path}, line 2, cannot be read: ")
    assert message.endswith("JSON is UTF-8: convert the file (iconv -f latin-1 -t utf-8)")


@pytest.mark.parametrize("encoding", ["utf-8", "UTF_8", "utf-8-sig"])
def test_a_byte_order_mark_within_a_table_is_data(reader, tmp_path, encoding):
    # As two files with marks that were put together; the second one begins a slice.
    mark = b"\xef\xbb\xbf"
    path = tmp_path / "rows.csv"
    path.write_bytes(mark + b"1,2\n" + mark + b'"a,b"\n')
    agent = reader()
    form = {"delimiter": ",", "encoding": encoding}
    agent.run_table(path, 1, offset=7, length=9, form=form)
    assert agent.result().data == b'"' + mark + b'""a" "b""" 1\n'


def test_table_context(launch, table):
    agent = launch("with_context.py")
    agent.ready()
    agent.run_table(table, 4, header=HEADER, offset=8, index=5, first=100)
    row = agent.result().data.decode()
    assert '"lower_bound": 100' in row
    assert f"Subset(source='{table}', first_item=100, items=4)" in row


def test_what_a_manifest_says_of_files_is_in_the_context(launch):
    agent = launch("with_context.py")
    agent.ready()
    said = '[{"path": "a", "id": 12345678901234567890123}, {"path": "b", "é": "\\udc80"}]'
    agent.run(files_work("/in", ["a", "b"], metadata=said))
    rows = [json.loads(row) for row in agent.result().data.decode().splitlines()]
    assert rows[0]["item_metadata"] == [
        {"path": "a", "id": 12345678901234567890123},
        {"path": "b", "é": "\udc80"},
    ]
    # Without one there is none, nor is it kept from the mini-batch before.
    agent.run(files_work("/in", ["a"]))
    assert "item_metadata" not in json.loads(agent.result().data)


@pytest.mark.parametrize("said", ["[{}]", "[{}, {}, {}]", "[{}, {}"])
def test_a_manifest_that_says_something_else_breaks_the_protocol(launch, said):
    agent = launch("with_context.py")
    agent.ready()
    agent.run(files_work("/in", ["a", "b"], metadata=said))
    assert agent.receive() is None
    assert agent.wait() == 1
    assert "parallelrun: work " in agent.stderr_path.read_text()


def test_table_that_cannot_be_parsed(reader, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes(b'1,2\n1,"2\n')
    agent = reader()
    agent.run_table(path, 2)
    failure = agent.failed().failure
    found = (failure["kind"], failure["type"], failure["fatal"])
    assert found == ("InputUnreadable", "pandas.errors.ParserError", False)
    assert f"{path}, bytes 0 to 9, cannot be read" in failure["message"]


def test_a_wide_row_of_a_table_without_a_header(reader, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes(b"1,2\n\n1,2,3\n")
    agent = reader()
    agent.run_table(path, 2)
    message = agent.failed().failure["message"]
    assert message.startswith(f"{path}:3: the row has 3 fields, and the table 2 columns. ")


def test_changed_table(reader, table):
    agent = reader()
    work = {"header": HEADER, "stamp": (len(ROWS), stamp_of(table)[1] - 1)}
    agent.run_table(table, 4, **work)
    assert agent.failed().failure["kind"] == "InputChanged"


def test_truncated_table(reader, table):
    agent = reader()
    agent.run_table(table, 4, length=len(ROWS) + 1, stamp=(2**64 - 1, 0))
    assert agent.failed().failure["kind"] == "InputChanged"


def test_no_pandas(launch, table):
    # A module that fails as a missing one does.
    missing = "raise ModuleNotFoundError('No module named pandas', name='pandas')"
    agent = launch("table.py", files={"pandas.py": missing})
    agent.ready()
    agent.run_table(table, 4)
    failure = agent.failed().failure
    assert failure["fatal"] is True
    assert "has no pandas. Install pandas in the image." in failure["message"]


@pytest.mark.parametrize("size", range(8, 100, 7))
def test_short_work_is_a_protocol_error(launch, size):
    agent = launch("returns.py", "mini_batch")
    agent.ready()
    body = (1).to_bytes(8, "little") + files_work("/in", ["a" * 60])
    agent.send(size.to_bytes(4, "little") + b"\2" + body[:size])
    assert agent.receive() is None
    assert agent.wait() == 1
    assert "parallelrun: work " in agent.stderr_path.read_text()


def test_unknown_work_is_a_protocol_error(launch, table):
    agent = launch("returns.py", "mini_batch")
    agent.ready()
    body = bytearray(table_work(table, 4))
    body[0] = 9
    sequence = (1).to_bytes(8, "little")
    agent.send((8 + len(body)).to_bytes(4, "little") + b"\2" + sequence + bytes(body))
    assert agent.wait() == 1
    assert "unknown kind 9" in agent.stderr_path.read_text()
