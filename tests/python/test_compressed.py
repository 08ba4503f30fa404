"""Compressed CSV and JSON lines: read as what they hold."""

import gzip
import json

import pytest
from fake_agent import json_lines_work, table_work

LINES = b'{"n": 1}\n{"n": 2}\n'
FORM = {"delimiter": ",", "encoding": "utf-8", "compressed": True}
TYPED = {**FORM, "columns": [{"name": "a", "type": "integer"}, {"name": "b", "type": "text"}]}


def zstd(data):
    """A frame of one block that is stored as it is."""
    size = len(data)
    return b"\x28\xb5\x2f\xfd\x20" + bytes([size]) + (size << 3 | 1).to_bytes(3, "little") + data


def members(data):
    """As `cat one.gz two.gz` makes it, with the zeros of a tape behind."""
    half = len(data) // 2
    return gzip.compress(data[:half]) + gzip.compress(data[half:]) + bytes(512)


def write(tmp_path, data, compress=gzip.compress):
    path = tmp_path / "rows.any"
    path.write_bytes(compress(data))
    return path


@pytest.mark.parametrize("compress", [gzip.compress, members])
@pytest.mark.parametrize("form", [FORM, TYPED])
def test_a_table(launch, tmp_path, form, compress):
    rows = b"".join(b"%d,0%d\n" % (i, i) for i in range(1, 2001))
    path = write(tmp_path, b"\xef\xbb\xbfa,b\n" + rows, compress)
    agent = launch("table.py")
    agent.ready()
    agent.run_table(path, 2000, header=b"a,b\n", offset=7, length=len(rows), form=form)
    found = agent.result().data.splitlines()
    assert len(found) == 2000
    assert found[-1] == (b"2000 02000 2000" if form is TYPED else b"2000 2000 2000")


def test_json_lines(launch, tmp_path):
    path = write(tmp_path, LINES)
    agent = launch("returns.py", "mini_batch")
    agent.ready()
    agent.run(json_lines_work(path, 2, length=len(LINES), form={"compressed": True}))
    assert agent.result().data == b"{'n': 1}\n{'n': 2}\n"


def test_a_bad_line_has_its_number_in_the_text(launch, tmp_path):
    path = write(tmp_path, b"\n" * 70 + LINES + b"{oops}\n")
    agent = launch("returns.py", "mini_batch")
    agent.ready()
    work = {"offset": 70, "length": len(LINES) + 7, "form": {"compressed": True}}
    agent.run(json_lines_work(path, 3, **work))
    assert agent.failed().failure["location"] == f"{path}:73"


def test_a_misfit_has_its_line_in_the_text(launch, tmp_path):
    rows = b"1,x\n2,y\nthree,z\n"
    path = write(tmp_path, b"a,b\n" + rows)
    agent = launch("table.py")
    agent.ready()
    agent.run_table(path, 3, header=b"a,b\n", offset=4, length=len(rows), form=TYPED)
    assert agent.failed().failure["message"].startswith(f"{path}:4: column")


@pytest.mark.parametrize("change", ["cut", "shorter", "damaged"])
def test_what_is_not_what_was_planned(launch, tmp_path, change):
    rows = b"".join(b"%d,x\n" % i for i in range(1000))
    path = write(tmp_path, b"a,b\n" + rows)
    length = len(rows)
    data = bytearray(path.read_bytes())
    if change == "cut":
        path.write_bytes(data[:-20])
    elif change == "damaged":
        data[-6] ^= 1  # of the checksum
        path.write_bytes(data)
        length += 1  # to the end
    else:
        length += 1
    agent = launch("table.py")
    agent.ready()
    agent.run(table_work(path, 1000, header=b"a,b\n", offset=4, length=length, form=FORM))
    failure = agent.failed().failure
    assert failure["kind"] == ("InputChanged" if change == "shorter" else "InputUnreadable")
    assert str(path) in failure["message"]


def test_zstd_without_anything_to_read_it(launch, tmp_path):
    path = write(tmp_path, LINES, zstd)
    agent = launch("returns.py", "mini_batch")
    for name in ("compression", "zstandard", "pyarrow"):
        (agent.code / f"{name}.py").write_text("raise ImportError('not here')\n")
    agent.ready()
    agent.run(json_lines_work(path, 2, length=len(LINES), form={"compressed": True}))
    failure = agent.failed().failure
    assert failure["fatal"]
    assert failure["message"].startswith(f"{path} is compressed with zstd, and ")
    assert "cannot read that. Install zstandard (or pyarrow), or" in failure["message"]


@pytest.mark.parametrize("name", ["compression.zstd", "zstandard", "pyarrow"])
def test_zstd_by_what_is_there(launch, tmp_path, name):
    """Each of the three ways, by a stand-in that the worker imports in its place."""
    path = write(tmp_path, LINES, zstd)
    agent = launch("returns.py", "mini_batch")
    if name == "compression.zstd":
        (agent.code / "compression").mkdir()
        (agent.code / "compression" / "__init__.py").write_text("")
        target = agent.code / "compression" / "zstd.py"
        made = "def ZstdFile(file, mode): return opened(file)"
    elif name == "zstandard":
        target = agent.code / "zstandard.py"
        made = (
            "class ZstdDecompressor:\n"
            "    def stream_reader(self, file, read_across_frames):\n"
            "        assert read_across_frames\n"
            "        return opened(file)"
        )
    else:
        target = agent.code / "pyarrow.py"
        made = (
            "def PythonFile(file, mode): return file\n"
            "def CompressedInputStream(file, codec): return opened(file)"
        )
    target.write_text(f"import io\ndef opened(file): return io.BytesIO({LINES!r})\n{made}\n")
    agent.ready()
    agent.run(json_lines_work(path, 2, length=len(LINES), form={"compressed": True}))
    assert [json.loads(row.replace(b"'", b'"')) for row in agent.result().data.splitlines()] == [
        {"n": 1},
        {"n": 2},
    ]
