"""Outputs of formats other than text, read back by the readers that people have."""

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
