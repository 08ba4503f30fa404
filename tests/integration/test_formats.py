"""Outputs of formats other than text, read back by the readers that people have."""

import csv
import hashlib
import json

import pytest
from support import arrow  # noqa: F401 (finds pyarrow)

# Lists and DataFrames in turn; the first attempt of each third mini-batch fails.
SCRIPT = """
import pandas

def run(mini_batch, context):
    index = context.minibatch_index
    if index % 3 == 0 and context.retry_count == 0:
        raise ValueError("not yet")
    rows = [{"text": open(path).read() + "\\u2028\\u00e9\\n", "n": index} for path in mini_batch]
    if index % 2:
        return pandas.DataFrame(rows)
    return rows
"""


def test_json_lines_are_in_order_and_every_reader_takes_them(work):
    pandas = pytest.importorskip("pandas")
    work.files(10)
    work.script(SCRIPT)
    work.job(
        output={"volume": "out", "fileName": "rows.txt", "format": "jsonl"},
        miniBatchSize="2",
        runMaxTry=2,
    )
    result = work.run("--nodes", "2")
    assert result.code == 0, result
    output = work.out / "job" / "output" / "rows.txt"
    expected = [{"text": f"row {i}\u2028\u00e9\n", "n": i // 2} for i in range(10)]
    lines = output.read_bytes().split(b"\n")
    assert lines.pop() == b""
    assert [json.loads(line) for line in lines] == expected
    assert pandas.read_json(output, lines=True).to_dict("records") == expected
    read_json = pytest.importorskip("pyarrow.json").read_json
    assert read_json(output).to_pylist() == expected


def test_a_file_called_jsonl_is_text_unless_the_job_says_more(work):
    work.files(1)
    work.script("def run(mini_batch):\n    return [{'a': None}]")
    work.job(output={"volume": "out", "fileName": "rows.jsonl"})
    assert work.run().code == 0
    output = work.out / "job" / "output" / "rows.jsonl"
    assert output.read_text() == "{'a': None}\n"


def test_what_json_cannot_say_fails_its_mini_batch_with_its_place(work):
    work.files(2)
    work.script("def run(mini_batch):\n    return [{'score': [1, float('nan')]}]")
    work.job(output={"volume": "out", "format": "jsonl"}, runMaxTry=1, errorThreshold=0)
    result = work.run()
    assert result.code == 1, result
    assert "['score'][1] is nan" in result.output
    result = work.run("--set", "spec.output.nanAsNull=true")
    assert result.code == 0, result
    output = work.out / "job" / "output" / "parallel_run_step.txt"
    assert output.read_text() == '{"score": [1, null]}\n' * 2


# What people's files hold: the reader must give it back as it was.
HOSTILE = [
    "plain",
    'a "quote", a comma',
    "two\nlines",
    "cr\rlf\r\n",
    "=1+cmd|'x'!A0",
    " edge ",
    "é\u2028😀",
]

# Dicts in an order of their own and DataFrames in turn; the first attempt of each third fails, and
# mini-batch 0 is held until another one has ended.
TABLE = """
import pandas
from steps import note, wait_for

def run(mini_batch, context):
    index = context.minibatch_index
    if index == 0 and context.retry_count == 0:
        wait_for("ended")
    if index % 3 == 0 and context.retry_count == 0:
        raise ValueError("not yet")
    score = index / 4 if index % 4 else None
    rows = [{"text": open(path, newline="").read(), "n": index, "score": score}
            for path in mini_batch]
    note("ended")
    if index % 2:
        return pandas.DataFrame(rows)[["score", "text", "n"]]
    return rows
"""


def csv_rows(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.reader(file, strict=True))


def test_csv_is_in_order_under_the_first_mini_batchs_columns_and_every_reader_takes_it(work):
    pandas = pytest.importorskip("pandas")
    texts = [HOSTILE[i % len(HOSTILE)] for i in range(14)]
    for i, text in enumerate(texts):
        (work.data / f"{i:03}.txt").write_bytes(text.encode())
    work.script(TABLE)
    work.job(output={"volume": "out", "format": "csv"}, miniBatchSize="2", runMaxTry=2)
    result = work.run("--nodes", "2")
    assert result.code == 0, result
    output = work.out / "job" / "output" / "parallel_run_step.txt"
    numbers = [i // 2 for i in range(14)]
    scores = [n / 4 if n % 4 else None for n in numbers]
    named = ["text", "n", "score"]
    as_texts = [
        [text, str(n), "" if score is None else str(score)]
        for text, n, score in zip(texts, numbers, scores)
    ]
    assert csv_rows(output) == [named, *as_texts]
    columns = {"text": texts, "n": numbers, "score": scores}

    frame = pandas.read_csv(output, lineterminator="\n")
    assert list(frame.columns) == named
    assert frame.astype(object).where(frame.notna(), None).to_dict("list") == columns

    reader = pytest.importorskip("pyarrow.csv")
    newlines = reader.ParseOptions(newlines_in_values=True)
    assert reader.read_csv(output, parse_options=newlines).to_pydict() == columns

    duckdb = pytest.importorskip("duckdb")
    query = f"select * from read_csv('{output}', header=true)"
    assert duckdb.sql(query).fetchall() == list(zip(texts, numbers, scores))

    polars = pytest.importorskip("polars")
    assert polars.read_csv(output).to_dict(as_series=False) == columns


def test_columns_of_another_mini_batch_publish_nothing_until_the_job_names_them(work):
    work.files(2)
    work.script(
        "def run(mini_batch, context):\n"
        "    return [{'ab'[context.minibatch_index]: context.minibatch_index}]"
    )
    work.job(output={"volume": "out", "format": "csv"}, miniBatchSize="1")
    result = work.run()
    output = work.out / "job" / "output" / "parallel_run_step.txt"
    assert result.code == 1, result
    assert (
        "mini-batch 1 has the column b, which the columns of the output lack: a." in result.output
    )
    assert not output.exists()
    work.script("def run(mini_batch):\n    raise ValueError('nothing is run again')")
    result = work.run(
        "--resume", "--set", "spec.output.columns[0]=b", "--set", "spec.output.columns[1]=a"
    )
    assert result.code == 0, result
    assert output.read_bytes() == b"b,a\n,0\n1,\n"


def test_rows_with_columns_that_the_job_lacks_fail_their_mini_batch(work):
    work.files(2)
    work.script(
        "def run(mini_batch, context):\n"
        "    return [{'ab'[context.minibatch_index]: context.minibatch_index}]"
    )
    output = {"volume": "out", "format": "csv", "columns": ["a"]}
    work.job(output=output, miniBatchSize="1", runMaxTry=1)
    result = work.run()
    assert result.code == 3, result
    assert "with the column 'b', which output.columns lacks: a." in result.output
    output = work.out / "job" / "output" / "parallel_run_step.txt"
    assert output.read_bytes() == b"a\n0\n"


def test_the_index_finds_the_rows_of_each_mini_batch(work):
    """Of what failed there is no line, and after a retry the index is that of the new output."""
    work.files(9, text="row {}\u00e9")
    work.script(
        "from steps import there\n"
        "def run(mini_batch, context):\n"
        "    if context.minibatch_index == 1 and not there('mended'):\n"
        "        raise ValueError('not yet')\n"
        "    if context.minibatch_index == 3:\n"
        "        return []\n"
        "    return [{'text': open(path).read()} for path in mini_batch]\n"
    )
    work.job(output={"volume": "out", "format": "csv"}, miniBatchSize="2", runMaxTry=1)
    assert work.run("--nodes", "2").code == 3
    for batches in ([0, 2, 3, 4], [0, 1, 2, 3, 4]):
        output = work.output.read_bytes()
        index = work.output.with_name(work.output.name + ".index.jsonl").read_text()
        head, *lines, whole = map(json.loads, index.splitlines())
        assert head == {"parallelrunIndex": 1, "output": work.output.name}
        assert [line["miniBatch"] for line in lines] == batches
        at = len(b"text\n")
        count = 0
        for line in lines:
            first = 2 * line["miniBatch"]
            items = min(2, 9 - first)
            assert (line["firstItem"], line["items"]) == (first, items)
            paths = [str(work.data / f"{first + i:06}.txt") for i in range(items)]
            assert line["paths"] == paths
            rows = (
                [f"row {first + i}\u00e9" for i in range(items)] if line["miniBatch"] != 3 else []
            )
            assert line["rows"] == len(rows)
            assert line["firstRow"] == count
            count += len(rows)
            assert line["offset"] == at
            at += line["bytes"]
            content = output[line["offset"] : at]
            assert content.decode().splitlines() == rows
            assert line["sha256"] == hashlib.sha256(content).hexdigest()
        assert at == len(output) == whole["bytes"]
        assert whole["sha256"] == hashlib.sha256(output).hexdigest()
        assert (whole["miniBatches"], whole["rows"]) == (
            len(batches),
            5 if len(batches) == 4 else 7,
        )
        work.make("mended")
        assert work.run("--retry-failed").code == 0


@pytest.mark.parametrize("columns", [None, ["size", "text"]])
def test_each_row_says_where_it_comes_from(work, columns):
    work.files(5)
    work.script(
        "def run(mini_batch):\n"
        "    texts = [open(path).read() for path in mini_batch]\n"
        "    return [{'text': text, 'size': len(text)} for text in texts]\n"
    )
    output = {"volume": "out", "format": "csv", "provenance": True, "columns": columns or []}
    work.job(output=output, miniBatchSize="2")
    result = work.run()
    assert result.code == 0, result
    named = [*(columns or ["text", "size"]), "_file", "_row", "_minibatch"]
    rows = csv_rows(work.output)
    assert rows.pop(0) == named
    for i, row in enumerate(dict(zip(named, row)) for row in rows):
        assert row == {
            "text": f"row {i}",
            "size": "5",
            "_file": str(work.data / f"{i:06}.txt"),
            "_row": str(i % 2),
            "_minibatch": str(i // 2),
        }
    refused = work.run("--resume", "--set", "spec.output.provenance=false")
    assert refused.code == 2, refused
    assert "spec.output.provenance" in refused.output


def test_rows_of_a_table_say_their_file(work):
    (work.data / "a.csv").write_text("n\n1\n2\n")
    (work.data / "b.csv").write_text("n\n3\n")
    work.script("def run(frame):\n    return frame\n")
    work.job(
        inputs=[{"name": "rows", "tabular": {"volume": "data"}}],
        output={"volume": "out", "format": "jsonl", "provenance": True},
        miniBatchSize="1MB",
    )
    result = work.run()
    assert result.code == 0, result
    rows = [json.loads(line) for line in work.output.read_text().splitlines()]
    assert [(row["n"], row["_file"], row["_row"]) for row in rows] == [
        (1, str(work.data / "a.csv"), 0),
        (2, str(work.data / "a.csv"), 1),
        (3, str(work.data / "b.csv"), 0),
    ]
