"""Types of columns: decided once, and the same in every slice, retry and resume."""

import csv
import gzip
import json
import re

import pytest

SHOW = """
import json
from steps import note, there

def run(frame):
    note("types", json.dumps({name: str(kind) for name, kind in frame.dtypes.items()}))
    if there("broken"):
        raise ValueError("not now")
    return [json.dumps(row) for row in frame.astype(str).values.tolist()]
"""

RAISES = """
from steps import there

def run(frame):
    if 3 in set(frame["id"]) and not there("mended"):
        raise ValueError("bad")
    return frame["id"].tolist()
"""


def job(work, size=200, **fields):
    work.script(SHOW)
    tabular = {"volume": "data", **fields.pop("tabular", {})}
    spec = {"miniBatchSize": size, "runMaxTry": 1, "errorThreshold": -1, **fields}
    work.job(inputs=[{"name": "rows", "tabular": tabular}], **spec)


def table(work, name, header, rows):
    (work.data / name).write_text("\n".join([header, *rows]) + "\n")


def read_types(work):
    """Each set of types that a mini-batch was read with, once."""
    return set(work.noted("types"))


def numbered(count, row):
    return [row.format(i=i, five=10_000 + i) for i in range(count)]


def test_a_late_leading_zero_makes_the_column_text_in_every_slice(work):
    rows = numbered(400, "{i},{five}")
    rows[390] = "390,00239"
    table(work, "a.csv", "id,zip", rows)
    job(work, processCountPerNode=2)
    result = work.run()
    assert result.code == 0, result
    assert len(work.noted("types")) > 10
    assert len(read_types(work)) == 1
    found = [json.loads(row) for row in work.rows()]
    assert found == [row.split(",") for row in rows]
    told = r'columns: id integer, zip text \("00239" has a leading zero, \S*a\.csv:392\)'
    assert re.search(told, result.output), result
    assert re.search(told, work.log_text("sys/master_role.txt"))


def test_a_number_that_stands_for_a_missing_value(work):
    """It was missing in the row that settles the types, too, and no column of integers was read."""
    rows = numbered(300, "{i},{five},{five}")
    rows[7] = "7,0,007"
    table(work, "a.csv", "id,n,zip", rows)
    job(work, tabular={"naValues": ["0", "x"]})
    result = work.run()
    assert result.code == 0, result
    assert read_types(work) == {
        json.dumps({"id": "float64", "n": "float64", "zip": "object"}),
    }
    found = [json.loads(row) for row in work.rows()]
    assert (found[0], found[7]) == (["nan", "10000.0", "10000"], ["7.0", "nan", "007"])
    job(work, tabular={"naValues": ["0"]})
    table(work, "a.csv", "id,n", numbered(300, "1{i},{five}"))
    result = work.run("--overwrite")
    assert result.code == 0, result
    assert json.dumps({"id": "int64", "n": "int64"}) in read_types(work)


def test_one_empty_cell_makes_integers_numbers_in_every_slice(work):
    rows = numbered(300, "{i},{five}")
    rows[7] = "7,"
    table(work, "a.csv", "id,n", rows)
    job(work)
    result = work.run()
    assert result.code == 0, result
    assert read_types(work) == {json.dumps({"id": "int64", "n": "float64"})}
    assert json.loads(work.rows()[7]) == ["7", "nan"]


def test_files_are_read_by_the_names_of_their_columns(work):
    table(work, "a.csv", "id,name", ["1,x"])
    table(work, "b.csv", "name,id", ["y,2"])
    job(work)
    result = work.run()
    assert result.code == 0, result
    assert [json.loads(row) for row in work.rows()] == [["1", "x"], ["2", "y"]]


def test_a_file_with_other_columns_is_named(work):
    table(work, "a.csv", "id,name", ["1,x"])
    table(work, "b.csv", "id", ["2"])
    job(work)
    result = work.run()
    assert result.code == 1, result
    assert f'{work.data / "b.csv"} has no column "name"' in result.output


def test_a_written_type_of_no_column_ends_the_job_before_it_begins(work):
    table(work, "a.csv", "id,zip", ["1,2"])
    job(work, tabular={"dtypes": {"zpi": "text"}})
    result = work.run()
    assert result.code == 1, result
    assert 'no file has it: did you mean "zip"?' in result.output
    assert work.noted("types") == []


def test_each_mini_batch_may_type_for_itself(work):
    rows = numbered(300, "{i},{five}")
    rows[290] = "290,"
    table(work, "a.csv", "id,n", rows)
    job(work, tabular={"typing": "PerMiniBatch"})
    result = work.run()
    assert result.code == 0, result
    assert len(read_types(work)) == 2
    assert "columns:" not in result.output


def test_a_resume_reads_as_the_run_began(work):
    rows = numbered(100, "{i},{five}")
    rows[3] = "3,007"
    table(work, "a.csv", "id,zip", rows)
    job(work, allowedFailedCount=0)
    (work.root / "broken").write_text("")
    assert work.run().code == 1
    before = read_types(work)
    (work.root / "broken").unlink()
    result = work.run("--retry-failed")
    assert result.code == 0, result
    assert read_types(work) == before
    assert [json.loads(row) for row in work.rows()] == [row.split(",") for row in rows]
    assert 'zip text ("007" has a leading zero' in result.output


def test_a_value_that_does_not_fit_is_named_once_and_mended_by_a_retry(work):
    rows = numbered(400, "{i},{five}")
    rows[350] = "350,abc"
    table(work, "a.csv", "id,price", rows)
    job(work, tabular={"dtypes": {"price": "number"}}, runMaxTry=3, allowedFailedCount=0)
    result = work.run()
    assert result.code == 1, result
    said = f'{work.data / "a.csv"}:352: column "price" is number, and the value is "abc".'
    assert said in result.output, result
    assert "dtypes: {price: text}" in result.output
    records = work.call("ledger", str(work.out / "job" / "state"), "--records").output
    assert len(re.findall(r"^.* failed .*Misfit", records, re.MULTILINE)) == 1, records

    finished = len(re.findall(r"^.* result  .*$", records, re.MULTILINE))
    read = len(work.noted("types"))
    job(work, tabular={"dtypes": {"price": "text"}}, runMaxTry=3, allowedFailedCount=0)
    refused = work.run("--resume")
    assert refused.code == 2, refused
    assert 'rows.dtypes.price: "number" -> "text"' in refused.output
    result = work.run("--retry-failed")
    assert result.code == 0, result
    told = r'rows\.dtypes\.price: "number" -> "text" \((\d+) mini-batch\w* \w+ read before\)'
    assert int(re.search(told, result.output)[1]) == finished
    summary = result.output[result.output.index("Succeeded (Complete)") :]
    assert int(re.search(told, summary)[1]) == finished
    assert len(work.rows()) == 400
    assert json.loads(work.rows()[350]) == ["350", "abc"]
    types = [json.loads(line)["price"] for line in work.noted("types")]
    assert set(types[:read]) == {"float64"}
    assert set(types[read:]) == {"object"}


def test_comments_and_lines_at_the_front_are_no_rows(work):
    (work.data / "a.csv").write_text('made by "x"\n\nid,n # of them\n1,2 # two\n#3,x\n4,5\n')
    job(work, tabular={"skipRows": 2, "comment": "#"}, size=4)
    result = work.run()
    assert result.code == 0, result
    assert read_types(work) == {json.dumps({"id": "int64", "n ": "int64"})}
    assert [json.loads(row) for row in work.rows()] == [["1", "2"], ["4", "5"]]


def test_what_is_escaped_is_text(work):
    (work.data / "a.csv").write_text('a,b\n1\\,5,\\"x\n2,y\n')
    job(work, tabular={"escape": "\\"})
    result = work.run()
    assert result.code == 0, result
    assert [json.loads(row) for row in work.rows()] == [["1,5", '"x'], ["2", "y"]]


def test_bad_rows_may_be_left_out(work):
    rows = numbered(100, "{i},{five}")
    rows[50] = "50,1,2"
    table(work, "a.csv", "id,n", rows)
    job(work, tabular={"badRows": "Skip"}, errorThreshold=None)
    result = work.run()
    assert result.code == 3, result
    assert [json.loads(row)[0] for row in work.rows()] == [str(i) for i in range(100) if i != 50]
    assert "99 succeeded, 1 failed" in result.output
    assert "1 of them left out as bad rows" in result.output
    assert "Rows that were left out are not retried" in result.output
    assert "To retry them" not in result.output
    listed = work.log_text("user/files/0/skipped_rows.*.txt")
    assert f"{work.data / 'a.csv'}:52: the row has 3 fields" in listed
    report = work.log_text("sys/job_report/processed_mini-batches.csv").splitlines()
    (short,) = [row for row in csv.DictReader(report) if row["Failed"] != "0"]
    assert int(short["Total"]) == int(short["Succeeded"]) + 1
    assert "99 succeeded, 1 failed" in work.call("ledger", work.out / "job" / "state").output


def test_bad_rows_of_a_piece_are_among_the_dead_letters(work):
    rows = numbered(100, "{i},{five}")
    rows[50] = "50,1,2"
    table(work, "a.csv", "id,n", rows)
    fields = {"isolateFailures": True, "errorThreshold": None, "processCountPerNode": 1}
    job(work, size="1mb", tabular={"badRows": "Skip"}, **fields)
    work.script(RAISES)
    result = work.run()
    assert result.code == 3, result
    assert len(work.rows()) == 98
    assert "98 succeeded, 2 failed" in result.output
    assert "To retry them" in result.output
    letters = list(map(json.loads, work.log_text("dead-letter.jsonl").splitlines()))
    assert sorted(letter["kind"] for letter in letters) == ["Exception", "SkippedRows"]
    (skipped,) = [letter for letter in letters if letter["kind"] == "SkippedRows"]
    assert (skipped["skipped"], skipped["paths"]) == (1, [str(work.data / "a.csv")])
    assert "a.csv:52: the row has 3 fields" in work.log_text(skipped["log"])

    # What was left out stays so.
    work.make("mended")
    result = work.run("--retry-failed")
    assert result.code == 3, result
    assert len(work.rows()) == 99
    assert "99 succeeded, 1 failed" in result.output
    assert "To retry them" not in result.output


def test_bad_rows_that_are_left_out_count_against_the_threshold(work):
    table(work, "a.csv", "id,n", [*numbered(99, "{i},{five}"), "99,1,2"])
    job(work, tabular={"badRows": "Skip"}, errorThreshold=0)
    result = work.run()
    assert result.code == 1, result
    assert "1 item has failed (1 of them left out as bad rows)" in result.output
    result = work.run("--resume", "--set", "spec.errorThreshold=1")
    assert result.code == 0, result
    assert "99 succeeded, 1 failed" in result.output
    assert len(work.rows()) == 99


@pytest.mark.parametrize("typing", ["Once", "PerMiniBatch"])
@pytest.mark.parametrize("grouped", [False, True], ids=["slices", "groups"])
def test_rows_that_end_with_a_delimiter_keep_their_values(typing, grouped, work):
    # The first file's rows do not, and a group holds files of both kinds.
    table(work, "a_1.csv", "id,name", ["1,x", "2,y"])
    table(work, "a_2.csv", "id,name", ["3,z,", '4,"w,",'] * 20)
    (work.data / "b_1.csv.gz").write_bytes(gzip.compress(b"name,id\nv,5,\n"))
    rows = {"name": "rows", "tabular": {"volume": "data", "typing": typing}}
    if grouped:
        rows["partitionFormat"] = "{kind}_{n}.{rest}"
        work.job(inputs=[rows], partitionKeys=["kind"], miniBatchSize=None)
    else:
        work.job(inputs=[rows], miniBatchSize=20)
    work.script(SHOW.replace("frame.astype", "frame[['id', 'name']].astype"))
    result = work.run()
    assert result.code == 0, result
    found = [json.loads(row) for row in work.rows()]
    assert found == [["1", "x"], ["2", "y"], *([["3", "z"], ["4", "w,"]] * 20), ["5", "v"]]
    if typing == "Once":
        assert "a_2.csv end with a delimiter, behind which there is no column" in result.output


@pytest.mark.parametrize(
    ("rows", "bad"),
    [
        (["1,x", "Smith, John,7,"], "t.csv:3: the row has 4 fields, and the table 2 columns"),
        (["1,x", "2,y,"], "t.csv:3: the row has 3 fields, and the table 2 columns"),
        (["1,x,", "2,y"], "t.csv:3: the row has 2 fields, and the first of the file a last, empty"),
        (["1,x,", "2,y", "3,z"], "t.csv:2: the row has 3 fields, and the table 2 columns"),
        (["1,x", "2,y\0z"], "t.csv:3: the row holds a NUL byte"),
    ],
)
def test_a_row_that_is_not_as_wide_as_its_header_is_named(rows, bad, work):
    header = "id,name"
    table(work, "t.csv", header, rows)
    job(work)
    result = work.run()
    assert result.code != 0, result
    assert bad in result.output, result


@pytest.mark.parametrize("grouped", [False, True], ids=["slices", "groups"])
def test_a_stray_delimiter_of_the_first_row_makes_no_other_row_bad(grouped, work):
    table(work, "a_1.csv", "id,name", ["0,x,", *(f"{i},x" for i in range(1, 50))])
    rows = {"name": "rows", "tabular": {"volume": "data", "badRows": "Skip"}}
    if grouped:
        rows["partitionFormat"] = "{kind}_{n}.csv"
        work.job(inputs=[rows], partitionKeys=["kind"], miniBatchSize=None)
    else:
        work.job(inputs=[rows], miniBatchSize=20)
    work.script(SHOW.replace("frame.astype", "frame[['id', 'name']].astype"))
    result = work.run()
    assert result.code == 3, result
    assert [json.loads(row) for row in work.rows()] == [[str(i), "x"] for i in range(1, 50)]
    listed = work.log_text("user/files/0/skipped_rows.*.txt")
    assert "a_1.csv:2: the row has 3 fields, and the table 2 columns" in listed


def test_what_the_sample_has_not_seen_is_told_or_kept(work):
    # Blocks of 21 MB are read at the front, in the middle and at the end.
    odd = {28: "007", 31: "+1", 34: " 5", 61: '"-08"', 64: '""+9'}
    texts = ["00239", "+1", " 5", '" 007"']
    wide = "x" * 1_000_000
    rows = [f"{i},{odd.get(i, i)},{texts[i % 4]},{wide}" for i in range(92)]
    table(work, "a.csv", "id,n,zip,wide", rows)
    job(work, size="8mb", tabular={"badRows": "Skip"}, errorThreshold=None)
    work.script(SHOW.replace("frame.astype", "frame[['id', 'n', 'zip']].astype"))
    result = work.run()
    assert result.code == 3, result
    assert "id integer, n integer, zip text" in result.output, result
    assert len(read_types(work)) == 1
    lost = {i for i in odd if i != 34}  # a blank alone is no part of a number
    found = {int(row[0]): row[1:] for row in map(json.loads, work.rows())}
    assert found == {
        i: ["5" if i == 34 else str(i), texts[i % 4].strip('"')] for i in range(92) if i not in lost
    }
    listed = work.log_text("user/files/0/skipped_rows.*.txt")
    for i in lost:
        value = odd[i].replace('"', "")
        assert f'a.csv:{i + 2}: column "n" is integer, and the value is "{value}"' in listed


@pytest.mark.parametrize("typing", ["Once", "PerMiniBatch"])
@pytest.mark.parametrize("grouped", [False, True], ids=["slices", "groups"])
def test_another_character_may_quote_fields_or_none(typing, grouped, work):
    quoted = [[str(i), f"it's, row\n{i}", '"'] for i in range(30)]
    lines = ["id,'na,me',x", *(f"{i},'it''s, row\n{i}',\"" for i in range(30))]
    plain = [[str(i), '5" pipe', '"open'] for i in range(30)]
    others = ["id,name,x", *(f'{i},5" pipe,"open' for i in range(30))]
    for quote, rows, expected in (("'", lines, quoted), ("None", others, plain)):
        for path in work.data.iterdir():
            path.unlink()
        table(work, "a_1.csv", rows[0], rows[1:20])
        (work.data / "b_1.csv.gz").write_bytes(
            gzip.compress("\n".join([rows[0], *rows[20:]]).encode())
        )
        of = {"volume": "data", "typing": typing, "quote": quote}
        more = {"partitionFormat": "{kind}_{n}.{rest}"} if grouped else {}
        fields = {"partitionKeys": ["kind"]} if grouped else {}
        size = None if grouped else 100
        work.job(inputs=[{"name": "rows", "tabular": of, **more}], miniBatchSize=size, **fields)
        work.script(SHOW.replace("frame.astype", "frame.iloc[:, :3].astype"))
        result = work.run("--overwrite")
        assert result.code == 0, result
        assert [json.loads(row) for row in work.rows()] == expected
        named = {tuple(json.loads(types))[:2] for types in work.noted("types")}
        assert ("id", "na,me" if quote == "'" else "name") in named


def test_what_types_prints_is_of_tables_that_a_run_takes(work):
    table(work, "d.csv", "a,b", [*["1,x"] * 500, '2,"open', *["3,y"] * 500])
    result = work.call("types", work.data / "d.csv")
    assert result.code == 2, result
    assert "d.csv:502: the quote that this field begins with is still open" in result.output, result


def test_types_are_printed_from_all_bytes(work):
    table(work, "a.csv", "id,zip", ["1,2", "2,007"])
    for words in ([str(work.data)], [str(work.data / "a.csv")]):
        result = work.call("types", *words)
        assert result.code == 0, result
        assert "id\tinteger\n" in result.output
        assert re.search(r'zip\ttext\t"007" has a leading zero, \S+a\.csv:3\n', result.output)
    job(work, tabular={"dtypes": {"id": "number"}})
    result = work.call("types", "job.yaml", "--volume", f"data={work.data}")
    assert "id\tnumber\tas written\n" in result.output, result
    told = work.call("types", "job.yaml", "--volume", f"data={work.data}", "--json")
    (told,) = json.loads(told.output)["inputs"]
    number, text = told["columns"]
    assert number == {"name": "id", "type": "number", "why": "as written"}
    assert (text["name"], text["type"]) == ("zip", "text")
    assert text["why"].startswith('"007" has a leading zero')
    result = work.call("types", str(work.root / "nothing.csv"))
    assert result.code == 2, result
    table(work, "a.csv", "id,zip", [])
    result = work.call("types", work.data)
    assert result.output == "id\t-\tthere is no row\nzip\t-\tthere is no row\n", result
    told = work.call("types", "job.yaml", "--volume", f"data={work.data}", "--json")
    (told,) = json.loads(told.output)["inputs"]
    assert [column["type"] for column in told["columns"]] == ["number", None]


def test_types_are_those_of_the_format_that_the_names_say(work):
    rows = ["id\tzip", "1\t007"]
    for name in ("a.tsv", "b.TSV", "c.tsv.gz"):
        text = "\n".join(rows).encode() + b"\n"
        (work.root / name).write_bytes(gzip.compress(text) if name.endswith("gz") else text)
        result = work.call("types", work.root / name)
        assert result.code == 0, result
        assert "id\tinteger\n" in result.output and '\nzip\ttext\t"007"' in result.output
    (work.data / "a.tsv").write_text("id\tzip\n1\t2\n")
    assert "zip\tinteger" in work.call("types", work.data).output
    (work.root / "a.jsonl").write_text('{"a": 1}\n')
    result = work.call("types", work.root / "a.jsonl")
    assert result.code == 2, result
    assert "is JSON lines" in result.output


def test_a_table_without_a_header_is_asked_about(work):
    table(work, "a.csv", "1,2.5,Ann", ["2,3.5,Bob"])
    job(work)
    asked = "if it is data, set tabular.header to None"
    assert asked in work.run().output
    assert asked in work.call("types", work.data).output
    result = work.run("--overwrite", "--set", "spec.inputs[0].tabular.header=None")
    assert result.code == 0, result
    assert asked not in result.output
    assert len(work.rows()) == 2
