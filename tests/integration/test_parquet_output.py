"""Outputs as Parquet: what a job's JSON lines say, with types, by the readers that people have."""

import datetime
import hashlib
import io
import json
import sys

import pytest
from s3_server import OWNER, REGION, Server
from support import arrow, processes
from test_preflight import bare_python, refused

pyarrow = pytest.importorskip("pyarrow")
pandas = pytest.importorskip("pandas")

from pyarrow import parquet  # noqa: E402

# Dicts and DataFrames in turn, with columns in another order; the first attempt of each third
# fails, mini-batch 0 is held until another one has ended, and 4 has no row. Whole numbers in
# mini-batch 0 are numbers elsewhere; `note` has a value in one mini-batch alone.
TABLE = """
import pandas
from steps import note, wait_for

def run(mini_batch, context):
    index = context.minibatch_index
    if index == 0 and context.retry_count == 0:
        wait_for("ended")
    if index % 3 == 0 and context.retry_count == 0:
        raise ValueError("not yet")
    score = None if index == 1 else index / 4 if index % 4 else index
    rows = [{"text": open(path, newline="").read(), "n": index, "score": score,
             "even": index % 2 == 0, "nested": {"k": [index, None]},
             "note": "one" if index == 5 else None} for path in mini_batch]
    note("ended")
    if index == 4:
        return []
    if index % 2:
        return pandas.DataFrame(rows)[["score", "text", "note", "n", "nested", "even"]]
    return rows
"""
COLUMNS = ["text", "n", "score", "even", "nested", "note"]
TEXTS = ["plain", 'a "quote", a comma', "two\nlines", "cr\rlf\r\n", "", " edge ", "é\u2028😀"]


def parquet_job(work, name="job", **fields):
    output = {"volume": "out", "format": "parquet", **fields.pop("output", {})}
    work.environment["PYTHONPATH"] = arrow.python_path()
    work.job(output=output, **{"miniBatchSize": "2", "runMaxTry": 2, **fields})


def table_of(path):
    """Its rows as dicts, all of them read; the file itself is looked at."""
    file = parquet.ParquetFile(path)
    assert file.metadata.created_by.startswith("parallelrun version ")
    return file.read().to_pylist()


def rows_of_groups(path):
    groups = parquet.ParquetFile(path).metadata
    return [groups.row_group(i).num_rows for i in range(groups.num_row_groups)]


def test_every_reader_takes_it_and_it_says_what_json_lines_say(work):
    texts = [TEXTS[i % len(TEXTS)] + str(i) for i in range(14)]
    for i, text in enumerate(texts):
        (work.data / f"{i:03}.txt").write_bytes(text.encode())
    work.script(TABLE)
    parquet_job(work, output={"format": "jsonl"}, runMaxTry=2)
    assert work.run("--set", "spec.output.nanAsNull=true").code == 0
    said = [json.loads(line) for line in work.output.read_bytes().split(b"\n") if line]
    (work.root / "ended").unlink()
    parquet_job(work, output={"fileName": "rows.txt"})
    result = work.run("--overwrite", "--nodes", "2")
    assert result.code == 0, result
    output = work.output.with_name("rows.txt")
    expected = [
        {name: json.dumps(row[name]) if name == "nested" else row[name] for name in COLUMNS}
        for row in said
    ]
    assert len(expected) == 12 and {type(row["score"]) for row in expected} > {int, float}

    table = parquet.read_table(output)
    assert table.column_names == COLUMNS
    types = ["string", "int64", "double", "bool", "string", "string"]
    assert list(map(str, table.schema.types)) == types
    assert table.to_pylist() == expected
    assert rows_of_groups(output) == [12], "small mini-batches share a row group"

    frame = pandas.read_parquet(output)
    assert frame.astype(object).where(frame.notna(), None).to_dict("records") == expected

    duckdb = pytest.importorskip("duckdb")
    rows = duckdb.sql(f"select * from read_parquet('{output}')").fetchall()
    assert [dict(zip(COLUMNS, row)) for row in rows] == expected
    some = f"select sum(n), count(*) from read_parquet('{output}') where score > 0.5 and even"
    assert duckdb.sql(some).fetchall() == [(12, 2)]

    polars = pytest.importorskip("polars")
    assert polars.read_parquet(output).to_dicts() == expected

    verified = work.call("verify", work.out / "job" / "state")
    assert verified.code == 0, verified


VALUES = """
import datetime, numpy, pandas

UTC = datetime.timezone.utc

def run(mini_batch, context):
    if context.minibatch_index == 1:
        return [{"nothing": None}] * 2
    moment = datetime.datetime(2024, 2, 29, 12, 30, 1, 5)
    return [
        {"raw": b"\\x00\\xff", "day": moment.date(), "at": moment.time(), "when": moment,
         "utc": moment.replace(tzinfo=UTC), "stamp": pandas.Timestamp(moment),
         "vector": numpy.array([0.5, float("nan")], "float32"), "counts": numpy.array([1, 2]),
         "mixed": numpy.array([True]), "small": numpy.int8(-3), "list": [1, "a"],
         "broken": "\\udce9", "nothing": None, "empty": numpy.array([], int)},
        {"counts": numpy.array([], "int64"), "vector": None},
    ]
"""


def test_each_type_comes_back_as_it_was(work):
    work.files(2)
    work.script(VALUES)
    parquet_job(work, miniBatchSize="1")
    result = work.run()
    assert result.code == 0, result
    moment = datetime.datetime(2024, 2, 29, 12, 30, 1, 5)
    first, second, *missing = table_of(work.output)
    vector = first.pop("vector")
    assert vector[0] == 0.5 and vector[1] != vector[1]
    assert first == {
        "raw": b"\x00\xff",
        "day": moment.date(),
        "at": moment.time(),
        "when": moment,
        "utc": moment.replace(tzinfo=datetime.timezone.utc),
        "stamp": moment,
        "counts": [1, 2],
        "mixed": [True],
        "small": -3,
        "list": '[1, "a"]',
        "broken": "\\udce9",
        "nothing": None,
        "empty": [],
    }
    nothing = dict.fromkeys([*first, "vector"])
    assert second == {**nothing, "counts": []}
    assert missing == [nothing] * 2
    schema = parquet.read_table(work.output).schema
    assert str(schema.field("at").type) == "time64[us]"
    assert str(schema.field("when").type) == "timestamp[us]"
    assert str(schema.field("utc").type) == "timestamp[us, tz=UTC]"
    assert str(schema.field("nothing").type) == "null"

    duckdb = pytest.importorskip("duckdb")
    names = ", ".join(f'"{name}"' for name in ("raw", "day", "at", "when", "counts", "nothing"))
    query = f"select {names} from read_parquet('{work.output}')"
    asked = (b"\x00\xff", moment.date(), moment.time(), moment, [1, 2], None)
    assert duckdb.sql(query).fetchall()[0] == asked
    polars = pytest.importorskip("polars")
    row = polars.read_parquet(work.output).to_dicts()[0]
    assert {**row, "vector": None} == {**first, "vector": None}


def test_types_that_do_not_go_together_are_told_with_both_schemas(work):
    work.files(2)
    work.script(
        "def run(mini_batch, context):\n"
        "    return [{'a': [1, 'x'][context.minibatch_index], 'b': True}]"
    )
    parquet_job(work, miniBatchSize="1")
    result = work.run()
    assert result.code == 1, result
    words = "mini-batch 1 has text in the column a, and mini-batch 0 has int64 there. It has a text"
    assert words + ", b bool. Until then the output has a int64, b bool." in result.output
    assert not work.output.exists()


def test_columns_of_the_job_publish_what_was_refused_and_run_nothing_again(work):
    work.files(3)
    work.script(
        "def run(mini_batch, context):\n"
        "    return [{'ab'[context.minibatch_index % 2]: context.minibatch_index}]"
    )
    parquet_job(work, miniBatchSize="1")
    result = work.run()
    assert result.code == 1, result
    assert "mini-batch 1 has the column b, which the columns of the output lack" in result.output
    work.script("def run(mini_batch):\n    raise ValueError('nothing is run again')")
    columns = ["--set", "spec.output.columns[0]=b", "--set", "spec.output.columns[1]=a"]
    result = work.run("--resume", *columns, "--set", "spec.output.columns[2]=c")
    assert result.code == 0, result
    assert table_of(work.output) == [
        {"b": None, "a": 0, "c": None},
        {"b": 1, "a": None, "c": None},
        {"b": None, "a": 2, "c": None},
    ]


def test_what_parquet_cannot_say_fails_its_mini_batch_with_its_place(work):
    work.files(2)
    work.script(
        "def run(mini_batch, context):\n"
        "    return [{'a': 1}, {'a': 2 ** 64 if context.minibatch_index else 2}]"
    )
    parquet_job(work, miniBatchSize="1", runMaxTry=1)
    result = work.run()
    assert result.code == 3, result
    assert "Row 1 (counted from 0)" in result.output
    assert "['a'] is 18446744073709551616, and whole numbers have 64 bits" in result.output
    assert table_of(work.output) == [{"a": 1}, {"a": 2}]


def test_rows_that_are_no_row_group_fail_their_mini_batch(work):
    """A script that reaches into the worker: nothing of it gets into the output."""
    work.files(3)
    work.script(
        "import sys\n"
        "def run(mini_batch, context):\n"
        "    rows = sys.modules['parallelrun.worker.parquet_rows'].ParquetRows\n"
        "    made = rows._bytes\n"
        "    if context.minibatch_index == 1:\n"
        "        def cut(self, names, columns, count):\n"
        "            rows._bytes = made\n"
        "            return made(self, names, columns, count)[:-3]\n"
        "        rows._bytes = cut\n"
        "    return [{'a': context.minibatch_index}]"
    )
    parquet_job(work, miniBatchSize="1", runMaxTry=1, processCountPerNode=1)
    result = work.run()
    assert result.code == 3, result
    assert table_of(work.output) == [{"a": 0}, {"a": 2}]


def test_the_index_finds_the_rows_in_their_row_groups_and_each_says_where_it_comes_from(work):
    work.files(9)
    work.script(
        "import random\n"
        "from steps import there\n"
        "def run(mini_batch, context):\n"
        "    if context.minibatch_index == 1 and not there('mended'):\n"
        "        raise ValueError('not yet')\n"
        "    if context.minibatch_index == 3:\n"
        "        return []\n"
        "    noise = random.Random(context.minibatch_index).randbytes\n"
        "    texts = [open(path).read() for path in mini_batch]\n"
        "    return [{'text': text, 'noise': noise(1_500_000)} for text in texts]\n"
    )
    parquet_job(work, runMaxTry=1, output={"provenance": True})
    assert work.run("--nodes", "2").code == 3
    digests = {}
    # Of 3 MB each but the last, and without rows 3: two share a row group, of at most 8 MiB.
    for batches, places in (
        ([0, 2, 3, 4], {0: 0, 2: 0, 4: 0}),
        ([0, 1, 2, 3, 4], {0: 0, 1: 0, 2: 1, 4: 1}),
    ):
        content = work.output.read_bytes()
        index = work.output.with_name(work.output.name + ".index.jsonl").read_text()
        _, *lines, whole = map(json.loads, index.splitlines())
        assert [line["miniBatch"] for line in lines] == batches
        assert whole["bytes"] == len(content)
        assert whole["sha256"] == hashlib.sha256(content).hexdigest()
        file = parquet.ParquetFile(io.BytesIO(content))
        assert file.metadata.num_row_groups == max(places.values()) + 1
        assert {line["miniBatch"]: line["rowGroup"] for line in lines if line["rows"]} == places
        count = 0
        for line in lines:
            assert "offset" not in line and "bytes" not in line
            assert line["firstRow"] == count
            count += line["rows"]
            digest = digests.setdefault(line["miniBatch"], line["sha256"])
            assert line["sha256"] == digest, "the same rows, the same digest"
            if not line["rows"]:
                assert "rowGroup" not in line
                continue
            number = line["rowGroup"]
            before = sum(file.metadata.row_group(i).num_rows for i in range(number))
            rows = file.read_row_group(number).drop(["noise"])
            assert rows.slice(line["firstRow"] - before, line["rows"]).to_pylist() == [
                {
                    "text": f"row {item}",
                    "_file": str(work.data / f"{item:06}.txt"),
                    "_row": item % 2,
                    "_minibatch": item // 2,
                }
                for item in range(line["firstItem"], line["firstItem"] + line["rows"])
            ]
        assert count == whole["rows"]
        work.make("mended")
        assert work.run("--retry-failed").code == 0
    assert len(set(digests.values())) == len(digests)


# Mini-batches with different columns and types, and one whose pyarrow has no zstd.
SHARED = """
import numpy, sys

def run(mini_batch, context):
    index = context.minibatch_index
    rows = sys.modules["parallelrun.worker.parquet_rows"].ParquetRows
    if not hasattr(rows, "made"):
        rows.made = rows._bytes
        def as_told(self, *arguments):
            self._codec = rows.codec
            return rows.made(self, *arguments)
        rows._bytes = as_told
    rows.codec = "none" if index == 6 else "zstd"
    row = {"n": index if index % 2 else index + 0.5, "text": str(index) * 100}
    if index % 3 == 0:
        row["vector"] = numpy.arange(index, dtype=float)
    if index == 7:
        row["late"] = True
    return [row] * (index % 4)
"""


def test_mini_batches_that_share_a_row_group_lose_nothing_of_what_the_others_lack(work):
    work.files(10)
    work.script(SHARED)
    columns = ["n", "text", "vector", "late"]
    parquet_job(work, miniBatchSize="1", output={"columns": columns})
    result = work.run("--nodes", "2")
    assert result.code == 0, result
    expected = [
        {
            "n": index if index % 2 else index + 0.5,
            "text": str(index) * 100,
            "vector": [float(i) for i in range(index)] if index % 3 == 0 else None,
            "late": True if index == 7 else None,
        }
        for index in range(10)
        for _ in range(index % 4)
    ]
    assert table_of(work.output) == expected
    # 0, 4 and 8 have no row, and 6 has pages that are not compressed.
    assert rows_of_groups(work.output) == [1 + 2 + 3 + 1, 2, 3 + 1]
    codecs = {
        parquet.ParquetFile(work.output).metadata.row_group(1).column(i).compression
        for i in range(4)
    }
    assert codecs == {"UNCOMPRESSED"}

    duckdb = pytest.importorskip("duckdb")
    rows = duckdb.sql(f"select * from read_parquet('{work.output}')").fetchall()
    assert [dict(zip(columns, row)) for row in rows] == expected
    polars = pytest.importorskip("polars")
    assert polars.read_parquet(work.output).to_dicts() == expected
    assert work.call("verify", work.out / "job" / "state").code == 0


def settled(work, number):
    """Whether the ledger has the result of that mini-batch; the job is at work on it."""
    looked = work.start("ledger", work.out / "job" / "state", "--records")
    looked.wait_only()
    return f"result       mini-batch {number}," in looked.output


def test_completion_orders_row_groups_and_not_columns(work):
    work.files(2)
    work.script(
        "from steps import note, wait_for\n"
        "def run(mini_batch, context):\n"
        "    if context.minibatch_index == 0:\n"
        "        wait_for('settled')\n"
        "        return [{'a': 1, 'b': 2}]\n"
        "    return [{'b': 0.5}]\n"
    )
    parquet_job(work, miniBatchSize="1", output={"order": "Completion"})
    command = work.start_job()
    command.wait_for(lambda: settled(work, 1), "mini-batch 1 is settled")
    work.make("settled")
    result = command.wait()
    assert result.code == 0, result
    rows = table_of(work.output)
    assert list(rows[0]) == ["a", "b"]
    assert rows == [{"a": None, "b": 0.5}, {"a": 1, "b": 2.0}]


HELD = """
import random
import pandas
from steps import note, wait_for

def run(mini_batch, context):
    index = context.minibatch_index
    if index in (2, 5):
        note("held", index)
        wait_for("go")
    return pandas.DataFrame(
        {"text": [open(path).read() * 50000 for path in mini_batch],
         "noise": [random.Random(path).randbytes(1_500_000) for path in mini_batch],
         "n": [index if index % 2 else index / 2] * len(mini_batch)})
"""


@pytest.mark.parametrize("victim", ["coordinator", "worker", "command"])
def test_killed_in_the_middle_it_is_byte_for_byte_the_undisturbed_one(work, victim):
    work.files(16)
    work.script(HELD)
    parquet_job(work, runMaxTry=5)
    work.make("go")
    assert work.run().code == 0
    undisturbed = work.output.read_bytes()
    assert len(table_of(work.output)) == 16
    assert rows_of_groups(work.output) == [4] * 4, "mini-batches of 3 MB: two share a row group"
    (work.root / "go").unlink()
    (work.root / "held").unlink()

    command = work.start_job("--overwrite")
    command.wait_for(lambda: len(work.noted("held")) == 2, "two mini-batches are held")
    for process in processes.running(victim):
        process.kill()
    if victim == "command":
        command.wait_only()
        processes.expect_nothing_running()
        command = work.start_job("--resume")
    work.make("go")
    result = command.wait()
    assert result.code == 0, result
    assert work.output.read_bytes() == undisturbed
    assert work.beside_index() == [work.output.name]


def test_in_a_bucket_it_is_byte_for_byte_that_of_a_folder(work, tmp_path_factory):
    work.files(4)
    work.script(
        "def run(mini_batch, context):\n"
        "    import random\n"
        "    noise = random.Random(context.minibatch_index).randbytes(5_000_000)\n"
        "    return [{'noise': noise, 'file': open(path).read()} for path in mini_batch]\n"
    )
    parquet_job(work)
    words = ["run", "code/score.py", "--input", "data", "--mini-batch-size", "1"]
    words += ["--python", sys.executable, "--output"]
    result = work.call(*words, "scores.parquet")
    assert result.code == 0, result
    content = (work.root / "scores.parquet").read_bytes()
    assert [row["file"] for row in table_of(work.root / "scores.parquet")] == [
        f"row {i}" for i in range(4)
    ]
    assert len(content) > 16 << 20, "more than one part"
    server = Server(tmp_path_factory.mktemp("s3"))
    try:
        work.environment.update(
            HOME=str(work.root),
            AWS_ENDPOINT_URL_S3=server.url,
            AWS_REGION=REGION,
            AWS_EC2_METADATA_DISABLED="true",
            AWS_ACCESS_KEY_ID=OWNER[0],
            AWS_SECRET_ACCESS_KEY=OWNER[1],
        )
        server.bucket("typed")
        result = work.call(*words, "s3://typed/scores.parquet", "--state", "kept")
        assert result.code == 0, result
        assert (server.root / "typed/scores.parquet").read_bytes() == content
        assert work.call("verify", work.root / "kept/state").code == 0
    finally:
        server.close()


def test_without_pyarrow_nothing_is_started_and_the_command_that_installs_it_is_told(work):
    work.files(1)
    work.script("def run(b):\n    return b\n")
    python = bare_python(work) / "bin/python3"
    work.job(output={"volume": "out", "format": "parquet"}, environment=None)
    words = [f"No module named 'pyarrow' (it writes Parquet) in {python}, Python 3."]
    refused(work, *words, f"{python} -m pip install pyarrow", arguments=["--python", str(python)])
