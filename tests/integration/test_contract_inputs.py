"""Inputs, as entry scripts get them in a whole job; the names say the row of docs/contract.md."""

import gzip
import json

import pandas

# Each mini-batch as a row of JSON: the DataFrame's columns and values.
SHOW = """
import json

def run(frame):
    return [json.dumps([list(frame.columns), row]) for row in frame.astype(str).values.tolist()]
"""


def tables(work, files, **tabular):
    """Runs a job over tables of these bytes; returns [[columns, values], …] in order."""
    for name, data in files.items():
        (work.data / name).parent.mkdir(parents=True, exist_ok=True)
        (work.data / name).write_bytes(data)
    work.script(SHOW)
    size = tabular.pop("size", 1)
    work.job(
        inputs=[{"name": "rows", "tabular": {"volume": "data", **tabular}}], miniBatchSize=size
    )
    result = work.run()
    assert result.code == 0, result
    return [json.loads(row) for row in work.rows()]


def test_s8_1_tables_are_read_as_pandas_reads_them(work):
    files = {
        "0 plain.csv": b"a,b\n1,x\n2,y\n",
        "1 crlf.csv": b"a,b\r\n1,x\r\n2,y\r\n",
        "2 mark.csv": b"\xef\xbb\xbfa,b\n1,x\n2,y\n",
        "3 no line end.csv": b"a,b\n1,x\n2,y",
        "4 empty.csv": b"",
        "5 header only.csv": b"a,b\n",
        "6 quoted.csv": b'a,b\n1,"x\ny"\n2,"say ""z"", please\r\n"\n',
        "7 blank lines.csv": b"a,b\n\n1,x\n\n\n2,y\n\n",
        "8 one row.csv": b"a,b\n1,x\n",
    }
    found = tables(work, files)
    expected = []
    for name in sorted(files):
        if files[name]:
            frame = pandas.read_csv(work.data / name).astype(str)
            expected += [[list(frame.columns), row] for row in frame.values.tolist()]
    assert found == expected
    assert len(found) == 13


def test_s8_1_a_mini_batch_never_crosses_a_file(work):
    work.script("def run(frame):\n    return [len(frame)]\n")
    (work.data / "a.csv").write_text("n\n" + "12345678\n" * 100)
    (work.data / "b.csv").write_text("n\n1\n")
    work.job(
        inputs=[{"name": "rows", "tabular": {"volume": "data"}}],
        miniBatchSize="270",
        errorThreshold=-1,
    )
    result = work.run()
    assert result.code == 0, result
    assert work.rows() == ["30", "30", "30", "10", "1"]


def test_s8_1_header_modes_delimiters_and_encodings(work):
    latin = "name;town\nM\xfcller;K\xf6ln\n".encode("latin-1")
    found = tables(work, {"a.csv": latin}, delimiter=";", encoding="latin-1")
    assert found == [[["name", "town"], ["M\xfcller", "K\xf6ln"]]]


def test_s8_1_no_header(work):
    assert tables(work, {"a.csv": b"1,x\n", "b.csv": b"2,y\n"}, header="None") == [
        [["Column1", "Column2"], ["1", "x"]],
        [["Column1", "Column2"], ["2", "y"]],
    ]


def test_s8_1_the_first_files_header(work):
    assert tables(work, {"a.csv": b"n,t\n1,x\n", "b.csv": b"2,y\n"}, header="FirstFile") == [
        [["n", "t"], ["1", "x"]],
        [["n", "t"], ["2", "y"]],
    ]


def test_d1_mini_batches_of_several_inputs_are_treated_equally(work):
    for folder in ("one", "two"):
        (work.data / folder).mkdir()
        for name in "abc":
            (work.data / folder / name).write_text(folder)
    work.script("def run(files):\n    return [' '.join(f[-5:] for f in files)]\n")
    work.job(
        inputs=[
            {"name": folder, "files": {"volume": "data", "path": folder}}
            for folder in ("one", "two")
        ],
        miniBatchSize="2",
    )
    result = work.run()
    assert result.code == 0, result
    assert work.rows() == ["one/a one/b", "one/c", "two/a two/b", "two/c"]


def test_d7_d10_keys_of_paths_reach_the_script(work):
    """The example of the original's notebook: six files, five mini-batches."""
    for path in (
        *("user1/winter/disco.wav", "user1/fall/piano.wav", "user2/fall/piano.wav"),
        *("user3/fall/disco.wav", "user4/spring/piano.wav", "user4/winter/piano.wav"),
    ):
        (work.data / path).parent.mkdir(parents=True, exist_ok=True)
        (work.data / path).write_text("la")
    work.script(
        "def run(files, context):\n"
        "    keys = context.partition_key_value\n"
        "    return [' '.join([*keys, *keys.values(), str(len(files))])]\n"
    )
    work.job(
        inputs=[
            {
                "name": "songs",
                "files": {"volume": "data"},
                "partitionFormat": "{user}/{season}/{genres}.wav",
            }
        ],
        partitionKeys=["user", "genres"],
        miniBatchSize=None,
    )
    result = work.run()
    assert result.code == 0, result
    assert sorted(work.rows()) == [
        "user genres user1 disco 1",
        "user genres user1 piano 1",
        "user genres user2 piano 1",
        "user genres user3 disco 1",
        "user genres user4 piano 2",
    ]


def test_d11_key_columns_of_a_partitioned_table(work):
    for store, rows in (("1", b"q\n5\n6\n"), ("2", b"q\n7\n")):
        for brand in ("a", "b"):
            folder = work.data / store / brand
            folder.mkdir(parents=True)
            (folder / "part.csv").write_bytes(rows)
    found = tables(work, {})
    assert [row for _, row in found] == [["5"], ["6"]] * 2 + [["7"]] * 2
    work.job(
        inputs=[
            {
                "name": "sales",
                "tabular": {"volume": "data"},
                "partitionFormat": "{Store}/{Brand}/{file}.csv",
            }
        ],
        partitionKeys=["Store", "Brand"],
        miniBatchSize=None,
    )
    result = work.run("--overwrite")
    assert result.code == 0, result
    found = [json.loads(row) for row in work.rows()]
    assert {tuple(columns) for columns, _ in found} == {("q", "Store", "Brand", "file")}
    assert sorted(row for _, row in found) == [
        *(["5", "1", "a", "part"], ["5", "1", "b", "part"]),
        *(["6", "1", "a", "part"], ["6", "1", "b", "part"]),
        *(["7", "2", "a", "part"], ["7", "2", "b", "part"]),
    ]


def test_s8_1_compressed_tables_are_read_as_plain_ones(work):
    """Each is one mini-batch, and its values have the types of the whole input."""
    rows = b"".join(b"%d,0%d\n" % (i, i) for i in range(500))
    files = {
        "a.csv": b"id,zip\n7,0x\n",
        "b.csv.gz": gzip.compress(b"id,zip\n" + rows),
        "c": gzip.compress(b"zip,id\n012,3\n"),
    }
    found = tables(work, files, size=100)
    assert [columns for columns, _ in found] == [["id", "zip"]] * 502
    assert [row for _, row in found] == [
        *([["7", "0x"]] + [[str(i), f"0{i}"] for i in range(500)] + [["3", "012"]])
    ]


def test_d11_all_names_of_the_paths_are_columns(work):
    """Also those that are no keys, each file's own; with a year in it a name is a date."""
    for day in ("2024/02/28", "2024/02/29"):
        (work.data / "7" / day).mkdir(parents=True)
        (work.data / "7" / day / "part.csv").write_text("q\n5\n6\n")
    (work.data / "_SUCCESS").touch()
    work.script(
        "def run(frame, context):\n"
        "    assert context.partition_key_value == {'Store': '7'}\n"
        "    assert str(frame.dtypes['day']) == 'datetime64[ns]'\n"
        "    names = list(frame.columns)\n"
        "    return [f'{names} {row.q} {row.day:%d.%m.}' for row in frame.itertuples()]\n"
    )
    work.job(
        inputs=[
            {
                "name": "sales",
                "tabular": {"volume": "data"},
                "partitionFormat": "{Store}/{day:yyyy/MM/dd}/{file}.csv",
            }
        ],
        partitionKeys=["Store"],
        miniBatchSize=None,
    )
    result = work.run()
    assert result.code == 0, result
    assert work.rows() == [
        f"['q', 'Store', 'day', 'file'] {q} {day}" for day in ("28.02.", "29.02.") for q in (5, 6)
    ]
    assert "inputs[sales]: 1 name is left out, the first _SUCCESS" in result.output


def test_f8_global_row_index_names_side_files(work):
    """What Prompt flow's processor does: `{start}_{end}.jsonl` of each range of lines."""
    lines = [json.dumps({"n": index}) for index in range(10)]
    (work.data / "a.jsonl").write_text("\n".join(lines[:7]) + "\n")
    (work.data / "b.jsonl").write_text("\n".join(lines[7:]))
    work.script(
        "import os\n"
        "def run(mini_batch, context):\n"
        "    base = context.global_row_index_lower_bound\n"
        "    end = base + len(mini_batch) - 1\n"
        "    folder = os.environ['AZUREML_BI_OUTPUT_PATH']\n"
        "    open(os.path.join(folder, f'{base:09d}_{end:09d}.jsonl'), 'w').close()\n"
        "    return [f\"{base + i} {row['n']}\" for i, row in enumerate(mini_batch)]\n"
    )
    flags = "--amlbi_pf_enabled True --amlbi_file_format jsonl --amlbi_mini_batch_rows 4"
    work.job(
        inputs=[{"name": "lines", "jsonLines": {"volume": "data"}}],
        arguments=flags.split(),
        miniBatchSize=None,
    )
    result = work.run()
    assert result.code == 0, result
    assert work.rows() == [f"{index} {index}" for index in range(10)]
    assert sorted(path.name for path in work.output.parent.glob("*.jsonl")) == [
        "000000000_000000003.jsonl",
        "000000004_000000006.jsonl",
        "000000007_000000009.jsonl",
        "parallel_run_step.txt.index.jsonl",
    ]


def test_c17_component_mode_in_a_job(work):
    (work.data / "lines.jsonl").write_text('{"n": 1}\n{"n": 2}\n')
    work.script(
        "import json\n"
        "def run(rows):\n"
        "    return [json.dumps({'output': {'m': row['n'] + 1}, 'inputs': row}) for row in rows]\n"
    )
    flags = "--amlbi_pf_enabled True --amlbi_pf_run_mode component --amlbi_file_format jsonl"
    work.job(
        inputs=[{"name": "lines", "jsonLines": {"volume": "data"}}],
        arguments=flags.split(),
        miniBatchSize="1",
    )
    result = work.run()
    assert result.code == 0, result
    assert work.rows() == ['{"m": 2}', '{"m": 3}']


def test_s3_rank_mini_batches_in_a_job(work):
    work.script("def run(b, c):\n    return [f'{b[0]} {b.task_id} {c.minibatch_index}']\n")
    work.job(arguments=["--rank_mini_batch_count", "5"], inputs=[], miniBatchSize=None)
    result = work.run()
    assert result.code == 0, result
    assert work.rows() == [f"{rank} {rank} {rank}" for rank in range(5)]
