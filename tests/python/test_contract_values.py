"""What run() gets and returns; the names say the row of docs/contract.md."""

import json

import pytest
from fake_agent import json_lines_work, rank_work, slice_of, table_group_work

FRAME = "pandas.DataFrame({'a': [1, 2], 'b': ['x y', 'z']})"


def returned(launch, expression, names=("a", "b"), **start):
    agent = launch("returns.py", expression, **start)
    agent.ready()
    agent.run_files(names)
    return agent


def data_of(launch, expression, **start):
    return returned(launch, expression, **start).result().data.decode()


def test_s3_tables_are_data_frames_with_a_fresh_index(launch):
    path = launch.write("rows.csv", "a,b\n1,x\n2,y\n3,z\n")
    agent = launch("iris.py")
    agent.ready()
    agent.run_table(path, 2, offset=8, header=b"a,b\n")
    assert agent.result().data == b"y 4 2\nz 6 2\n"


def test_s3_mixed_columns_keep_every_value(launch):
    path = launch.write("rows.csv", "a\n1\nx\n2.5\n")
    agent = launch("table.py", mixedTypes=True)
    agent.ready()
    agent.run_table(path, 3, offset=2, header=b"a\n")
    assert agent.result().data == b"1 3\nx 3\n2.5 3\n"


LINES = '{"text": "\u2028 is data"}\r\n\n{"text": "two"}\n{"text": "three"}'


def test_s3_json_lines_are_a_list_of_dicts(launch):
    path = launch.write("rows.jsonl", LINES)
    agent = launch("chat.py")
    agent.ready()
    agent.run(json_lines_work(path, 3, index=4, first=10))
    rows = [json.loads(line) for line in agent.result().data.decode().split("\n")[:-1]]
    assert rows == [
        {"line": 10, "task": 4, "text": "\u2028 is data"},
        {"line": 11, "task": 4, "text": "two"},
        {"line": 12, "task": 4, "text": "three"},
    ]


def test_s3_json_lines_slice_and_byte_order_mark(launch):
    path = launch.folder / "rows.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"text": 1}\n{"text": 2}\n')
    agent = launch("chat.py")
    agent.ready()
    agent.run(json_lines_work(path, 1, length=15))
    assert json.loads(agent.result().data)["text"] == 1
    agent.run(json_lines_work(path, 1, offset=15, encoding="latin-1"), sequence=2)
    assert json.loads(agent.result().data)["text"] == 2


@pytest.mark.parametrize(
    ("bad", "type_"),
    [
        (b"{]", "json.decoder.JSONDecodeError"),
        (b"\xff", "UnicodeDecodeError"),
        (b"[1, 2]", "TypeError"),
        (b"null", "TypeError"),
        (b"NaN", "TypeError"),
        (b'"text"', "TypeError"),
        (b"{} {}", "json.decoder.JSONDecodeError"),
    ],
)
def test_s3_a_bad_json_line_is_named(launch, bad, type_):
    path = launch.folder / "rows.jsonl"
    path.write_bytes(b'{"text": 1}\n' * 3 + bad + b"\n")
    agent = launch("chat.py")
    agent.ready()
    agent.run(json_lines_work(path, 2, offset=24))
    failure = agent.failed().failure
    assert (failure["kind"], failure["type"]) == ("InputUnreadable", type_)
    assert failure["message"].startswith(f"{path}, line 4, cannot be read: ")
    assert failure["location"] == f"{path}:4"


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (b"[1, 2]", "an array"),
        (b"3.5", "a number"),
        (b"-Infinity", "a number"),
        (b"true", "a truth value"),
    ],
)
def test_s3_a_json_line_that_is_no_object_says_what_it_is(launch, line, kind):
    path = launch.folder / "rows.jsonl"
    path.write_bytes(line + b"\n")
    agent = launch("chat.py")
    agent.ready()
    agent.run(json_lines_work(path, 1))
    message = agent.failed().failure["message"]
    assert f"it holds {kind}, and a line is a JSON object" in message


def test_s3_numbers_that_json_lacks_are_read_as_python_writes_them(launch):
    path = launch.write("rows.jsonl", '{"text": [NaN, Infinity, -Infinity]}\n')
    agent = launch("returns.py", "[mini_batch[0]['text']]")
    agent.ready()
    agent.run(json_lines_work(path, 1))
    assert agent.result().data == b"[nan, inf, -inf]\n"


def test_s3_json_lines_that_changed_or_are_gone(launch):
    path = launch.write("rows.jsonl", LINES)
    agent = launch("chat.py")
    agent.ready()
    changed = json_lines_work(path, 3, stamp=(1, 1))
    gone = json_lines_work(path, 3)
    path.unlink()
    agent.run(gone)
    assert agent.failed().failure["kind"] == "InputUnreadable"
    path.write_text(LINES)
    agent.run(changed, sequence=2)
    assert agent.failed().failure["kind"] == "InputChanged"


def test_s3_rank_mini_batches_hold_their_rank(launch):
    agent = launch("returns.py", "[(mini_batch[0], mini_batch.task_id, len(mini_batch))]")
    agent.ready()
    agent.run(rank_work(5))
    assert agent.result()[6:] == (1, 1, b"(5, 5, 1)\n")


def test_d11_key_columns_come_after_the_files_own(launch):
    path = launch.write("rows.csv", "a,b\n1,x\n2,y\n")
    agent = launch("table.py")
    agent.ready()
    form = {
        "delimiter": ",",
        "encoding": "utf-8",
        "pathColumns": [{"name": "Store"}, {"name": "b"}],
        "pathValues": [["1000", "no"]],
    }
    agent.run_table(path, 2, header=b"a,b\n", offset=4, form=form)
    assert agent.result().data == b"1 x 1000 2\n2 y 1000 2\n"
    assert agent.stdout_path.read_text().startswith("['a', 'b', 'Store'] ")


def test_d7_a_group_of_tables_is_one_data_frame(launch):
    one = launch.write("one.csv", "a,b\n1,x\n")
    two = launch.write("two.csv", "a,b\n2.5,y\n3,z")
    slices = [slice_of(path, offset=4, header=b"a,b\n") for path in (one, two)]
    agent = launch("table.py")
    agent.ready()
    form = {
        "delimiter": ",",
        "encoding": "utf-8",
        "pathColumns": [{"name": "k"}],
        "pathValues": [["v"], ["v"]],
    }
    agent.run(table_group_work(slices, 3, context={"k": "v"}, form=form))
    assert agent.result()[6:] == (3, 3, b"1.0 x v 3\n2.5 y v 3\n3.0 z v 3\n")
    assert "RangeIndex(start=0, stop=3, step=1)" in agent.stdout_path.read_text()


def test_d11_each_file_of_a_group_has_its_own_key_columns(launch):
    one = launch.write("one.csv", "a,b\n1,x\n2,y\n")
    two = launch.write("two.csv", "a,b\n3,z")
    form = {
        "delimiter": ",",
        "encoding": "utf-8",
        "pathColumns": [{"name": "Store"}, {"name": "day", "date": True}, {"name": "part"}],
        "pathValues": [
            ["7", "2024-02-29T00:00:00", "\udcff"],
            ["7", "2024-03-01T12:30:00", "two"],
        ],
    }
    slices = [slice_of(path, offset=4, header=b"a,b\n") for path in (one, two)]
    agent = launch("table.py")
    agent.ready()
    agent.run(table_group_work(slices, 3, context={"Store": "7"}, form=form))
    assert agent.result().data == (
        b'1 x 7 "2024-02-29 00:00:00" \xff 3\n'
        b'2 y 7 "2024-02-29 00:00:00" \xff 3\n'
        b'3 z 7 "2024-03-01 12:30:00" two 3\n'
    )
    assert "'M'" in agent.stdout_path.read_text()
    # A piece of it: its rows have those of their own files.
    agent.run(table_group_work(slices, 2, form={**form, "rows": [1, 2]}), sequence=2)
    assert [row.split()[5:] for row in agent.result().data.splitlines()] == [
        [b"\xff", b"2"],
        [b"two", b"2"],
    ]


def test_d7_a_group_with_a_changed_table(launch):
    path = launch.write("one.csv", "1,x\n")
    slices = [slice_of(path), slice_of(path, stamp=(1, 1))]
    agent = launch("table.py")
    agent.ready()
    agent.run(table_group_work(slices, 2))
    assert agent.failed().failure["kind"] == "InputChanged"


def parquet_of(launch, frame):
    path = launch.folder / "rows.parquet"
    frame.to_parquet(path, row_group_size=2)
    return path


@pytest.mark.parametrize(
    ("groups", "rows"), [(None, "1 a\n2 b\n3 c\n"), ([1], "3 c\n"), ([1, 0], "3 c\n1 a\n2 b\n")]
)
def test_s8_parquet_by_file_or_row_group(launch, groups, rows):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame({"a": [1, 2, 3], "b": ["a", "b", "c"]}, index=[7, 8, 9])
    form = {"format": "parquet"} if groups is None else {"format": "parquet", "rowGroups": groups}
    agent = launch("returns.py", "mini_batch.join(mini_batch[['a']], rsuffix='2')[['a2', 'b']]")
    agent.ready()
    agent.run_table(parquet_of(launch, frame), rows.count("\n"), form=form)
    assert agent.result().data.decode() == rows


def test_s8_a_named_parquet_index_is_a_column(launch):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame({"a": [1, 2]}, index=pandas.Index([7, 8], name="id"))
    agent = launch("table.py")
    agent.ready()
    agent.run_table(parquet_of(launch, frame), 2, form={"format": "parquet"})
    assert agent.result().data == b"7 1 2\n8 2 2\n"


def test_s8_parquet_without_pyarrow(launch):
    path = launch.write("rows.parquet", "x")
    missing = "raise ModuleNotFoundError('No module named pyarrow', name='pyarrow')"
    agent = launch("table.py", files={"pyarrow.py": missing})
    agent.ready()
    agent.run_table(path, 2, form={"format": "parquet", "rowGroups": [0]})
    failure = agent.failed().failure
    assert failure["fatal"] is True
    assert "Parquet input needs pyarrow" in failure["message"]


@pytest.mark.parametrize(
    ("expression", "data"),
    [
        ("['x', 'y']", "x\ny\n"),
        ("('x', 'y')", "x\ny\n"),
        (FRAME, '1 "x y"\n2 z\n'),
        ("numpy.array(['x', 'y'])", "x\ny\n"),
        ("pandas.Series(['x', 'y'])", "x\ny\n"),
    ],
)
def test_c1_lists_tuples_frames_and_arrays(launch, expression, data):
    assert data_of(launch, expression) == data


@pytest.mark.parametrize(
    ("expression", "succeeded"), [("[1, 2]", 2), ("[1]", 1), ("[]", 0), (FRAME, 2)]
)
def test_c2_c3_each_element_is_one_item(launch, expression, succeeded):
    result = returned(launch, expression).result()
    assert result.succeeded == succeeded


def test_c4_more_rows_than_items(launch):
    result = returned(launch, "[1, 2, 3]").result()
    assert (result.succeeded, result.rows) == (2, 3)


def test_c5_summary_only_counts(launch):
    result = returned(launch, "[Loud(), Loud()]", outputAction="SummaryOnly").result()
    assert (result.succeeded, result.rows, result.data) == (2, 2, b"")


@pytest.mark.parametrize(
    ("expression", "data"),
    [
        ('["a.png: 3", "b.png: 7"]', "a.png: 3\nb.png: 7\n"),
        ('[("x", 1)]', "('x', 1)\n"),
        ('[{"k": 1}]', "{'k': 1}\n"),
    ],
)
def test_c6_elements_are_written_by_str(launch, expression, data):
    assert data_of(launch, expression) == data


def test_c7_other_elements_are_written_as_python_prints_them(launch):
    assert data_of(launch, "[[mini_batch[0], 0], None]") == "['/in/a', 0]\nNone\n"


def test_c8_dataframe_is_space_separated(launch):
    assert data_of(launch, FRAME) == '1 "x y"\n2 z\n'
    quoted = "pandas.DataFrame({'a': ['say \"hi\"', 'two\\nlines', None]})"
    assert data_of(launch, quoted) == '"say ""hi"""\n"two\nlines"\n""\n'


def settings(**to_csv):
    content = json.dumps({"append_row": {"pandas.DataFrame.to_csv": to_csv}})
    return {"parallel_run_step.settings.json": content}


@pytest.mark.parametrize(
    ("to_csv", "data"),
    [({"sep": ","}, "1,x y\n2,z\n"), ({"index": True}, '0 1 "x y"\n1 2 z\n')],
)
def test_c9_settings_file(launch, to_csv, data):
    assert data_of(launch, FRAME, files=settings(**to_csv)) == data


def test_c9_settings_file_with_a_byte_order_mark(launch):
    files = {name: "\ufeff" + text for name, text in settings(sep=",").items()}
    assert data_of(launch, FRAME, files=files) == "1,x y\n2,z\n"


@pytest.mark.parametrize(
    ("to_csv", "header"),
    [({}, b"a b\n"), ({"sep": ","}, b"a,b\n"), ({"header": ["x", "y z"]}, b'x "y z"\n')],
)
def test_c10_dataframe_header_once(launch, to_csv, header):
    start = {"appendRowDataframeHeader": True, "headers": True, "files": settings(**to_csv)}
    agent = launch("returns.py", f"{FRAME} if 'full' in mini_batch[0] else {FRAME}[:0]", **start)
    agent.ready()
    agent.run_files(["empty"])
    assert agent.result().data == b""
    for sequence in (2, 3):
        agent.run_files(["full", "b"], sequence=sequence)
        if sequence == 2:
            assert agent.header() == header
        assert agent.result().rows == 2


UNDER_HEADER = {"appendRowDataframeHeader": True, "headers": True}


def frames(launch, expression, to_csv=None, **start):
    """An agent whose script returns the frame that `expression` makes of the name of its file."""
    agent = launch("returns.py", expression, files=settings(**(to_csv or {})), **start)
    agent.ready()
    return agent


CELLS = "pandas.DataFrame({name: [name.upper()] for name in mini_batch[0][4:]})"


@pytest.mark.parametrize(
    ("to_csv", "header", "first", "second"),
    [
        ({}, b"b a\n", b"B A\n", b"B A\n"),
        ({"sep": ";", "index": True}, b";b;a\n", b"0;B;A\n", b"0;B;A\n"),
        ({"quoting": 1}, b'"b" "a"\n', b'"B" "A"\n', b'"B" "A"\n'),
    ],
)
def test_c10_columns_stand_under_the_header_of_the_job(launch, to_csv, header, first, second):
    agent = frames(launch, CELLS, to_csv, **UNDER_HEADER)
    agent.run_files(["ab"])
    agent.run_files(["ba"], sequence=2)  # comes while the process waits for the header
    agent.header(of_the_job=header)
    assert agent.result().data == first
    assert agent.result().data == second
    agent.run_files(["abc"], sequence=3)
    failure = agent.failed().failure
    assert failure["kind"] == "BadReturn"
    assert "the columns " in failure["message"]
    assert "a, b, c, and the header of the output has " in failure["message"]
    agent.run_files(["ab"], sequence=4)
    assert agent.result().data == first


@pytest.mark.parametrize("job", [b"a\n", b"a b c\n", b"a c\n", b"a b\nx y\n"])
def test_c10_other_columns_than_those_of_the_header_are_refused(launch, job):
    agent = frames(launch, CELLS, **UNDER_HEADER)
    for sequence in (1, 2):
        agent.run_files(["ab"], sequence=sequence)
        if sequence == 1:
            agent.header(of_the_job=job)
        failure = agent.failed().failure
        assert "run() returned a DataFrame with the columns a, b, and" in failure["message"]


def test_c10_columns_of_one_name_have_no_order(launch):
    twice = "pandas.DataFrame([list(mini_batch[0][4:])], columns=list(mini_batch[0][4:]))"
    agent = frames(launch, twice, **UNDER_HEADER)
    agent.run_files(["aab"])
    agent.header()
    assert agent.result().data == b"a a b\n"
    agent.run_files(["aba"], sequence=2)
    assert "BadReturn" in agent.failed().failure["kind"]


@pytest.mark.parametrize("start", [{}, UNDER_HEADER])
def test_other_columns_without_names_are_told_once(launch, start):
    aliases = {"header": ["x", "y"]} if start else {}
    agent = frames(launch, CELLS, aliases, **start)
    for sequence, names in enumerate(("ab", "ba", "ba"), 1):
        agent.run_files([names], sequence=sequence)
        if start and sequence == 1:
            assert agent.header() == b"x y\n"
        assert agent.result().data == f"{names[0].upper()} {names[1].upper()}\n".encode()
    agent.stop()
    said = agent.stderr_path.read_text()
    assert said.count("b, a after a, b. Return the same columns in the same order") == 1


def test_c10_lists_have_no_header(launch):
    start = {"appendRowDataframeHeader": True, "headers": True}
    assert data_of(launch, "['x']", **start) == "x\n"


def test_c10_an_agent_that_takes_no_header(launch):
    agent = returned(launch, FRAME, appendRowDataframeHeader=True)
    assert agent.result().data == b'1 "x y"\n2 z\n'
    agent.stop()
    assert agent.stderr_path.read_text().count("the header line of the DataFrame is left out") == 1


@pytest.mark.parametrize("safe", [False, True])
def test_c11_large_unicode_strings(launch, safe):
    element = "('\\u4e2d\\U0001f600\\ud800' * 400000)"
    agent = returned(launch, f"[{element}, 'two\\nlines']", appendRowSafeOutput=safe)
    data = b""
    frame = agent.receive()
    while frame[0] == 19:
        data += frame[1][8:]
        frame = agent.receive()
    data += frame[1][60:]
    text = "\u4e2d\U0001f600\\ud800" * 400000 + "\ntwo\nlines\n"
    assert data == text.encode()


@pytest.mark.parametrize(("short", "kind"), [("Keep", None), ("Fail", "ShortReturn")])
def test_c12_a_short_return_is_kept_unless_the_job_says_fail(launch, short, kind):
    agent = returned(launch, "[]", shortReturn=short)
    if kind is None:
        assert agent.result()[6:] == (0, 0, b"")
    else:
        assert agent.failed().failure["kind"] == kind


@pytest.mark.parametrize("value", ["None", "'text'", "3", "{'k': 1}", "iter(mini_batch)"])
def test_c14_none_and_wrong_types_fail_the_attempt(launch, value):
    failure = returned(launch, value).failed().failure
    assert failure["kind"] == "BadReturn"
    assert failure["fatal"] is False


def test_c15_an_exception_fails_the_whole_mini_batch(launch):
    failed = returned(launch, "[1 / 0 if path.endswith('b') else path for path in mini_batch]")
    assert failed.failed().failure["type"] == "ZeroDivisionError"


def test_c16_the_mini_batch_itself(launch):
    assert data_of(launch, "mini_batch") == "/in/a\n/in/b\n"


def test_c17_component_mode_appends_the_field_output(launch):
    expression = """['{"output": {"a": "b c"}, "inputs": 1}', '{"output": "x"}']"""
    whole = '{"output": {"a": "b c"}, "inputs": 1}\n{"output": "x"}\n'
    assert data_of(launch, expression) == whole
    assert data_of(launch, expression, componentMode=True) == '{"a": "b c"}\n"x"\n'


def test_c17_what_has_no_output_is_appended_as_it_is(launch):
    expression = """['no JSON', '[1]', '{"a": 1}', 7]"""
    assert data_of(launch, expression, componentMode=True) == 'no JSON\n[1]\n{"a": 1}\n7\n'
