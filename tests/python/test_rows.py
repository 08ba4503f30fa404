"""What run() returns, and the bytes that come of it."""

import csv
import io
import json
import re

import pytest


def run_once(agent, names=("a", "b")):
    agent.ready()
    agent.run_files(names, root="/in", sequence=9)


FRAME = "pandas.DataFrame({'a': [1, 2], 'b': ['x y', 'z']})"


@pytest.mark.parametrize(
    ("returned", "data"),
    [
        ('["a.png: 3", "b.png: 7"]', "a.png: 3\nb.png: 7\n"),
        ('[("x", 1)]', "('x', 1)\n"),
        ('[{"k": 1}]', "{'k': 1}\n"),
        (FRAME, '1 "x y"\n2 z\n'),
        ("[['/x/y', 0]]", "['/x/y', 0]\n"),
        ("('p', 'q')", "p\nq\n"),
        ("[1, 2.5, None, True]", "1\n2.5\nNone\nTrue\n"),
        ("[Named('value')]", "by its __str__\n"),
        ("mini_batch", "/in/a\n/in/b\n"),
        ("[]", ""),
        ("pandas.DataFrame()", ""),
        ("pandas.Series([1.5, 2])", "1.5\n2.0\n"),
        ("numpy.array(['p', 'q'])", "p\nq\n"),
        ("numpy.array([[1, 2], [3, 4]])", "[1 2]\n[3 4]\n"),
        ("['\\u00e9 \\u4e2d \\U0001f600']", "\u00e9 \u4e2d \U0001f600\n"),
        ("['\\ud800', '\\ud83d']", "\\ud800\n\\ud83d\n"),
    ],
)
def test_bytes(launch, returned, data):
    agent = launch("returns.py", returned)
    run_once(agent)
    result = agent.result()
    assert result.sequence == 9
    assert result.data == data.encode()
    assert result.run_ns > 0


def aligned(numbers):
    """As numpy aligns a row of integers."""
    width = len(str(numbers[-1]))
    return f"[{' '.join(f'{number:{width}}' for number in numbers)}]\n"


LONG = "numpy.arange(2002).reshape(2, 1001)"
LONG_ROWS = aligned(range(1001)) + aligned(range(1001, 2002))
ZEROS = ["0."] * 40


@pytest.mark.parametrize(
    ("returned", "data"),
    [
        pytest.param(LONG, LONG_ROWS, id="long rows"),
        pytest.param(f"list({LONG})", LONG_ROWS, id="long arrays in a list"),
        pytest.param("numpy.zeros((2, 40))", f"[{' '.join(ZEROS)}]\n" * 2, id="wide rows"),
        pytest.param(
            "[['p', numpy.zeros(40)], 'q']",
            f"['p', array([{', '.join(ZEROS)}])]\nq\n",
            id="an array within an element",
        ),
        pytest.param(
            "[numpy.array([[1, 2], [3, 4]])]", "[[1 2]\n [3 4]]\n", id="lines of a matrix stay"
        ),
        pytest.param("['p\\nq...', Named(numpy)]", "p\nq...\nby its __str__\n", id="no array"),
    ],
)
def test_c7_arrays_are_written_whole(launch, returned, data):
    agent = launch("returns.py", returned)
    run_once(agent)
    result = agent.result()
    assert result.data == data.encode()
    assert result.rows == 2 - returned.startswith("[numpy")


RANGE = f"[{' '.join(f'{i:4}' for i in range(1536))}]"
FRAMES = "pandas.DataFrame({'file': ['a', 'b'], 'vector': "


@pytest.mark.parametrize(
    ("cells", "field"),
    [
        pytest.param("[numpy.arange(1536)] * 2})", RANGE, id="arrays"),
        pytest.param("[numpy.arange(1536), '...']})", RANGE, id="an array beside a text"),
        pytest.param(
            "[[numpy.zeros(1001)]] * 2})", f"[array([{', '.join(['0.'] * 1001)}])]", id="in a list"
        ),
        pytest.param("[{'v': numpy.ones(40)}] * 2})", f"{{'v': array([{', '.join(['1.'] * 40)}])}}",
                     id="a wide one in a dict"),
    ],
)  # fmt: skip
def test_c8_arrays_in_cells_are_written_whole(launch, cells, field):
    agent = launch("returns.py", FRAMES + cells)
    run_once(agent)
    read = list(csv.reader(io.StringIO(agent.result().data.decode()), delimiter=" "))
    assert [row[0] for row in read] == ["a", "b"]
    assert read[0][1] == field
    assert read[1][1] in (field, "...")


@pytest.mark.parametrize(
    "returned",
    [
        pytest.param("[pandas.Series(range(500))]", id="a Series"),
        pytest.param("[[pandas.Series(range(500))]]", id="a Series in a list"),
        pytest.param("[pandas.DataFrame({'n': range(500)})]", id="a DataFrame"),
        pytest.param("[pandas.DataFrame([range(500)])]", id="a wide DataFrame"),
        pytest.param("[pandas.Index(range(500), dtype=object)]", id="an Index"),
        pytest.param("[pandas.array(range(500))]", id="an array of pandas"),
        pytest.param(FRAMES + "[pandas.Series(range(500))] * 2})", id="a Series in a cell"),
    ],
)
def test_what_pandas_shortens_is_written_whole(launch, returned):
    agent = launch("returns.py", returned)
    run_once(agent)
    data = agent.result().data
    assert b"..." not in data
    assert {*range(500)} <= {*map(int, re.findall(rb"\d+", data))}


@pytest.mark.parametrize(
    ("returned", "place"),
    [
        ("['x', pandas.Categorical(map(str, range(500)))]", "Row 1 (counted from 0)"),
        ("[['x', {'k': pandas.Categorical(map(str, range(500)))}]]", "[1]['k'] is of type"),
        (FRAMES + "['', pandas.Categorical(map(str, range(500)))]})", "['vector'] is of type"),
        ("[numpy and pyarrow.array(range(500))]", "it is of type pyarrow.lib.Int64Array"),
        ("[pyarrow.array(range(500))]", "it is of type pyarrow.lib.Int64Array"),
    ],
)
def test_what_has_no_whole_text_is_refused(launch, returned, place):
    if "pyarrow" in returned:
        pytest.importorskip("pyarrow")
    agent = launch("returns.py", returned)
    run_once(agent)
    failure = agent.failed().failure
    assert failure["kind"] == "BadReturn"
    assert place in failure["message"]
    assert "whose text leaves out its middle. Convert it with .tolist()" in failure["message"]


@pytest.mark.parametrize(
    "returned", ["[['...'], numpy.array(['\u2026'])]", "[pandas.array(['...'])[0], 1]"]
)
def test_texts_with_dots_are_texts(launch, returned):
    agent = launch("returns.py", returned)
    run_once(agent)
    assert agent.result().rows == 2


def test_undecodable_file_names_come_back_as_they_are(launch):
    agent = launch("returns.py", "mini_batch")
    run_once(agent, [b"\xff.png"])
    assert agent.result().data == b"/in/\xff.png\n"


def test_undecodable_names_beside_a_lone_surrogate(launch):
    agent = launch("returns.py", "[mini_batch[0], '\\ud800' + mini_batch[0]]")
    run_once(agent, [b"\xff.png"])
    assert agent.result().data == b"/in/\xff.png\n\\ud800/in/\xff.png\n"


@pytest.mark.parametrize(
    ("settings", "data"),
    [
        ({"sep": ","}, "1,x y\n2,z\n"),
        ({"index": True}, '0 1 "x y"\n1 2 z\n'),
        ({"header": True}, 'a b\n1 "x y"\n2 z\n'),
    ],
)
def test_settings_file(launch, settings, data):
    content = json.dumps({"append_row": {"pandas.DataFrame.to_csv": settings}})
    agent = launch("returns.py", FRAME, files={"parallel_run_step.settings.json": content})
    run_once(agent)
    assert agent.result().data == data.encode()


@pytest.mark.parametrize("end", [";", "\n;"])
def test_rows_of_a_data_frame_that_do_not_end_with_a_line_feed(launch, end):
    content = json.dumps({"append_row": {"pandas.DataFrame.to_csv": {"lineterminator": end}}})
    agent = launch("returns.py", FRAME, files={"parallel_run_step.settings.json": content})
    run_once(agent)
    failure = agent.failed().failure
    assert failure["kind"] == "BadReturn"
    assert "lineterminator" in failure["message"]


def test_header_aliases_that_do_not_fit_fail_every_attempt(launch):
    content = json.dumps({"append_row": {"pandas.DataFrame.to_csv": {"header": ["x", "y", "z"]}}})
    agent = launch(
        "returns.py",
        FRAME,
        files={"parallel_run_step.settings.json": content},
        appendRowDataframeHeader=True,
        headers=True,
    )
    run_once(agent)
    assert "3 aliases" in agent.failed().failure["message"]
    agent.run_files(sequence=10)
    assert "3 aliases" in agent.failed().failure["message"]


@pytest.mark.parametrize("content", ["{", "[]", '{"append_row": 3}'])
def test_bad_settings_file(launch, content):
    agent = launch("returns.py", "[]", files={"parallel_run_step.settings.json": content})
    failure = agent.init_failure()
    assert failure["fatal"] is True
    assert "parallel_run_step.settings.json cannot be read" in failure["message"]


@pytest.mark.parametrize(
    ("returned", "succeeded", "rows"),
    [("[]", 0, 0), ("[1]", 1, 1), ("[1, 2]", 2, 2), ("[1, 2, 3]", 2, 3), (FRAME, 2, 2)],
)
def test_counts(launch, returned, succeeded, rows):
    agent = launch("returns.py", returned)
    run_once(agent)
    result = agent.result()
    assert (result.succeeded, result.rows) == (succeeded, rows)


def test_summary_only_counts_and_sends_nothing(launch):
    agent = launch("returns.py", "[Loud(), Loud(), Loud()]", outputAction="SummaryOnly")
    run_once(agent)
    result = agent.result()
    assert (result.succeeded, result.rows, result.data) == (2, 3, b"")


@pytest.mark.parametrize(
    ("returned", "advice"),
    [
        ("None", "returned None. Return a list"),
        ("'text'", "Return [text]"),
        ("b'text'", "Return [text]"),
        ("{'k': 1}", "Return a list"),
        ("iter(mini_batch)", "type list_iterator. Return a list"),
        ("promise()", "asyncio.run()"),
        ("3", "type int. Return a list"),
        ("{1, 2}", "type set. Return a list"),
        ("numpy.array(3)", "Return a list"),
    ],
)
def test_refused_values(launch, returned, advice):
    agent = launch("returns.py", returned)
    run_once(agent)
    failed = agent.failed()
    assert failed.sequence == 9
    assert failed.failure["kind"] == "BadReturn"
    assert failed.failure["location"] == "returns.py:20"
    assert failed.failure["fatal"] is False
    assert advice in failed.failure["message"]
    assert agent.stop() == (None, 0)
    assert agent.stderr_path.read_text() == ""


def test_short_return(launch):
    agent = launch("returns.py", "mini_batch[:1]", shortReturn="Fail")
    run_once(agent)
    failure = agent.failed().failure
    assert failure["kind"] == "ShortReturn"
    assert "returned 1 elements for 2 items" in failure["message"]
    agent.run_files(["only"], sequence=10)
    assert agent.result().succeeded == 1


def test_an_element_whose_str_raises(launch):
    agent = launch("returns.py", "[Loud()]")
    run_once(agent)
    failure = agent.failed().failure
    assert (failure["kind"], failure["message"]) == ("Exception", "no text for you")
    assert failure["location"] == "returns.py:8"


def test_big_rows_come_in_parts(launch):
    size = 9 << 20
    agent = launch("returns.py", f"['x' * {size - 1}]")
    run_once(agent)
    parts = []
    while len(parts) < 2:
        body = agent.expect(19)
        assert body[:8] == (9).to_bytes(8, "little")
        parts.append(body[8:])
    result = agent.result()
    assert [len(part) for part in parts] == [4 << 20, 4 << 20]
    assert b"".join(parts) + result.data == b"x" * (size - 1) + b"\n"
    assert result.rows == 1
