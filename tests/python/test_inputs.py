"""Files and tables as they were listed, and as they are found."""

import pytest
from fake_agent import files_work, stamp_of, table_work

ROWS = b"id,name\n1,a\n2,b\n3,c\n4,d\n"
HEADER = b"id,name\n"


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
    assert agent.result()[3:] == (2, 2, b"2 b 2\n3 c 2\n")
    out = agent.stdout_path.read_text().splitlines()
    assert out == ["['id', 'name'] ['i', 'O']", "RangeIndex(start=0, stop=2, step=1)"]


def test_table_without_header(launch, table):
    agent = launch("table.py")
    agent.ready()
    agent.run_table(table, 2, offset=8, length=8)
    assert agent.result().data == b"1 a 2\n2 b 2\n"
    assert agent.stdout_path.read_text().startswith("['Column1', 'Column2'] ")


def test_table_delimiter_and_index(launch, tmp_path):
    # One field more than the header has: pandas would take the first column for the index.
    path = tmp_path / "rows.tsv"
    path.write_bytes(b"1\t2 3\t\n4\t5\t\n")
    agent = launch("table.py")
    agent.ready()
    agent.run_table(path, 2, header=b"x\ty\n", delimiter="\t")
    assert agent.result().data == b'1 "2 3" 2\n4 5 2\n'


@pytest.mark.parametrize(
    ("rows", "data"),
    [
        (b"1,2,\n4,5,\n", b"1 2 2\n4 5 2\n"),
        (b"0,2,\n1,5,\n", b"0 2 2\n1 5 2\n"),
        (b"1,2,,,\n,5\n", b"1.0 2 2\n 5 2\n"),
        (b' \n\n"1",2\n4,"5"\n', b"1 2 2\n4 5 2\n"),
    ],
)
def test_table_fields_beyond_the_header_may_be_empty(launch, tmp_path, rows, data):
    path = tmp_path / "rows.csv"
    path.write_bytes(rows)
    agent = launch("table.py")
    agent.ready()
    agent.run_table(path, 2, header=b"x,y\n")
    assert agent.result().data == data


@pytest.mark.parametrize(
    ("rows", "fields"),
    [
        (b"1,2,3\n4,5,6\n", 3),
        (b"0,2,3\n1,5,6\n", 3),
        (b"1,2,\n4,5,6\n", 3),
        (b",,\n4,5\n7,8,9\n", 3),
        (b"1,2,3,,\n4\n", 5),
        (b" \n\n1,2,3\n4,5\n", 3),
        pytest.param(b"1,%s,3\n4,5\n" % (b"x" * 200_000), 3, id="a long field"),
    ],
)
def test_table_fields_beyond_the_header_are_not_lost(launch, tmp_path, rows, fields):
    path = tmp_path / "rows.csv"
    path.write_bytes(rows)
    agent = launch("table.py")
    agent.ready()
    agent.run_table(path, 2, header=b"x,y\n")
    failure = agent.failed().failure
    assert (failure["kind"], failure["fatal"]) == ("InputUnreadable", False)
    where = f"{path}, bytes 0 to {len(rows)}, cannot be read: "
    assert failure["message"].startswith(f"{where}rows have {fields} fields, and the header has 2.")


@pytest.mark.parametrize("encoding", ["utf-8", "UTF_8", "utf-8-sig"])
def test_a_byte_order_mark_within_a_table_is_data(launch, tmp_path, encoding):
    # As two files with marks that were put together; the second one begins a slice.
    mark = b"\xef\xbb\xbf"
    path = tmp_path / "rows.csv"
    path.write_bytes(mark + b"1,2\n" + mark + b'"a,b"\n')
    agent = launch("table.py")
    agent.ready()
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


@pytest.mark.parametrize(
    ("rows", "kind", "type_"),
    [
        (b"1,2\n1,2,3\n", "InputUnreadable", "pandas.errors.ParserError"),
        (b"1,\xff\n", "InputUnreadable", "UnicodeDecodeError"),
    ],
)
def test_table_that_cannot_be_parsed(launch, tmp_path, rows, kind, type_):
    path = tmp_path / "rows.csv"
    path.write_bytes(rows)
    agent = launch("table.py")
    agent.ready()
    agent.run_table(path, 2)
    failure = agent.failed().failure
    assert (failure["kind"], failure["type"], failure["fatal"]) == (kind, type_, False)
    assert f"{path}, bytes 0 to {len(rows)}, cannot be read" in failure["message"]


def test_changed_table(launch, table):
    agent = launch("table.py")
    agent.ready()
    work = {"header": HEADER, "stamp": (len(ROWS), stamp_of(table)[1] - 1)}
    agent.run_table(table, 4, **work)
    assert agent.failed().failure["kind"] == "InputChanged"


def test_truncated_table(launch, table):
    agent = launch("table.py")
    agent.ready()
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
