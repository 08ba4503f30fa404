"""Tables with a delimiter of several characters, beside pandas."""

import gzip
import json
import random
import re

import pandas
import pytest

SHOW = """
import json
from steps import note

def run(frame):
    note("types", json.dumps({name: str(kind) for name, kind in frame.dtypes.items()}))
    return [json.dumps(row) for row in frame.iloc[:, :3].astype(str).values.tolist()]
"""

# Fields that hold a part of a delimiter, and none of them whole.
PARTS = ("", "a", "a,b", "x|y", ":", "§", "é b", "5.50", "007")


def job(work, delimiter, size=200, tabular=None, of_rows=None, **fields):
    work.script(SHOW)
    of = {"volume": "data", "delimiter": delimiter, **(tabular or {})}
    rows = {"name": "rows", "tabular": of, **(of_rows or {})}
    work.job(inputs=[rows], miniBatchSize=size, runMaxTry=1, **fields)


def found(work):
    return [json.loads(row) for row in work.rows()]


@pytest.mark.parametrize("delimiter", [", ", "||", "::", "¦"])
def test_the_values_are_those_of_pandas(delimiter, work):
    pick = random.Random(delimiter)
    texts = [text for text in PARTS if (text + delimiter).find(delimiter) == len(text)]
    rows = [(str(i), pick.choice(texts), pick.choice(texts) or "z") for i in range(300)]
    rows[7:300:50] = [(str(i), "short") for i in range(7, 300, 50)]
    lines = map(delimiter.join, rows)
    path = work.data / "a.csv"
    path.write_text("\n".join([delimiter.join(("id", "one", "two")), *lines]) + "\n")
    # It takes blanks off at the ends of lines, where no row has one here.
    expected = pandas.read_csv(
        path, sep=re.escape(delimiter), engine="python", index_col=False, dtype=str
    )
    job(work, delimiter, tabular={"dtypes": {"one": "text", "two": "text"}})
    result = work.run()
    assert result.code == 0, result
    assert len(work.noted("types")) > 10, "the file is cut"
    assert set(work.noted("types")) == {
        json.dumps({"id": "int64", "one": "object", "two": "object"})
    }
    assert found(work) == expected.fillna("nan").values.tolist()


@pytest.mark.parametrize("typing", ["Once", "PerMiniBatch"])
@pytest.mark.parametrize("grouped", [False, True], ids=["slices", "groups"])
@pytest.mark.parametrize("quote", ['"', "'", "None"])
def test_quoted_fields_and_rows_that_end_with_it(typing, grouped, quote, work):
    mark = "" if quote == "None" else quote
    text = "a|b" if quote == "None" else f"a|| {mark}b\n"
    field = text if quote == "None" else mark + text.replace(mark, mark * 2) + mark
    rows = [f"{i}||{field}||" for i in range(40)]
    (work.data / "a_1.csv").write_text("\n".join(["id||text||end", *rows[:20]]))
    (work.data / "b_1.csv.gz").write_bytes(
        gzip.compress("\n".join(["id||text||end", *rows[20:]]).encode())
    )
    (work.data / "c_1.csv").write_text("id||text||end\n" + f"40||{field}||x||\n" * 2)
    fields = {"partitionKeys": ["kind"], "size": None} if grouped else {}
    partition = {"partitionFormat": "{kind}_{n}.{rest}"} if grouped else {}
    job(work, "||", tabular={"quote": quote, "typing": typing}, of_rows=partition, **fields)
    result = work.run()
    assert result.code == 0, result
    assert found(work) == [
        *([str(i), text, "nan"] for i in range(40)),
        ["40", text, "x"],
        ["40", text, "x"],
    ]


def test_bad_rows_are_named_by_their_lines(work):
    rows = [f'{i}, "a, b\n", 5' for i in range(60)]
    rows[50] += ", 6"
    (work.data / "a.csv").write_text("\n".join(["id, text, n", *rows]) + "\n")
    job(work, ", ")
    result = work.run()
    assert result.code == 3, result
    assert "a.csv:102: the row has 4 fields, and the table 3 columns" in result.output, result
    job(work, ", ", tabular={"badRows": "Skip"})
    result = work.run("--overwrite")
    assert result.code == 3, result
    assert found(work) == [[str(i), "a, b\n", "5"] for i in range(60) if i != 50]
    listed = work.log_text("user/files/0/skipped_rows.*.txt")
    assert "a.csv:102: the row has 4 fields" in listed


def test_comments_and_escapes(work):
    (work.data / "a.csv").write_text(
        "#x||y\nid||text# z\n1||a\\||b# d\n#2||x\n4||x||c\n3||\\|\\|\n"
    )
    job(work, "||", tabular={"comment": "#", "escape": "\\", "badRows": "Skip"})
    result = work.run()
    assert result.code == 3, result
    assert found(work) == [["1", "a||b"], ["3", "||"]]
    listed = work.log_text("user/files/0/skipped_rows.*.txt")
    assert "a.csv:5: the row has 3 fields, and the table 2 columns" in listed


def test_types_proposes_it_and_takes_it(work):
    path = work.root / "t.csv"
    path.write_text("id||name\n1||x\n2||y|z\n")
    assert 'write delimiter: "||"' in work.call("types", path).output
    result = work.call("types", path, "--delimiter", "||")
    assert result.code == 0, result
    assert "id\tinteger\nname\ttext\n" in result.output
    refused = work.call("types", path, "--delimiter", "123456789")
    assert refused.code != 0
    assert "8 bytes at most" in refused.output
