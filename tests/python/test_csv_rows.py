"""What run() returns as rows of CSV, read back by the readers that people have."""

import collections
import csv
import dataclasses
import datetime
import io
import json

import numpy
import pandas
import pytest
from parallelrun.worker.csv_rows import CsvRows
from parallelrun.worker.failure import Failure


@dataclasses.dataclass
class Box:
    label: str
    corners: tuple


class Odd:
    pass


Point = collections.namedtuple("Point", "x y")


def encoded(returned, columns=(), nan_as_null=False):
    """The bytes of what the expression `returned` gives."""
    loop = []
    loop.append(loop)
    names = {"Box": Box, "Odd": Odd, "Point": Point, "loop": loop}
    names.update(datetime=datetime, numpy=numpy, pandas=pandas)
    return CsvRows(list(columns), nan_as_null, "made.py").encode(eval(returned, names))


def rows(returned, **options):
    """(names, rows as texts) of these bytes, as Python's csv reads them."""
    names, _, body = encoded(returned, **options).decode("utf-8").partition("\n")
    assert body == "" or body.endswith("\n")
    return json.loads(names), list(csv.reader(io.StringIO(body, newline=""), strict=True))


@pytest.mark.parametrize(
    ("returned", "names", "fields"),
    [
        ("['a b', 1, 2.5, True, False]", ["Column1"],
         [["a b"], ["1"], ["2.5"], ["true"], ["false"]]),
        ("[None, '']", ["Column1"], [[""], [""]]),
        ("[{'a': 1, 'b': None}]", ["a", "b"], [["1", ""]]),
        ("[{'a': 1}, {'b': 2, 'a': 3}]", ["a", "b"], [["1", ""], ["3", "2"]]),
        ("[{1: 'a', 2.5: 'b', True: 'c', None: 'd'}]", ["1", "2.5", "null"], [["c", "b", "d"]]),
        ("(('x', 1), ['y'])", ["Column1", "Column2"], [["x", "1"], ["y", ""]]),
        ("[Point(1, 'p')]", ["x", "y"], [["1", "p"]]),
        ("[Box('cat', (1, 2))]", ["label", "corners"], [["cat", "[1, 2]"]]),
        ("[{'d': {'k': [1, None]}, 'box': Box('c', ())}]", ["d", "box"],
         [['{"k": [1, null]}', '{"label": "c", "corners": []}']]),
        ("['a,b', 'say \"hi\"', 'x\\ny', 'x\\ry', ' z ', '=1+1']", ["Column1"],
         [["a,b"], ['say "hi"'], ["x\ny"], ["x\ry"], [" z "], ["=1+1"]]),
        ("[{'n': 'a,\"\\nb', 'm,\"\\n': 1}]", ["n", 'm,"\n'], [['a,"\nb', "1"]]),
        ("['\\u2028\\x85 \\u00e9 \\U0001f600']", ["Column1"], [["\u2028\x85 \u00e9 \U0001f600"]]),
        ("[{'\\udce9': '\\udce9t', 'd': ['\\udce9']}]", ["\\udce9", "d"],
         [["\\udce9t", '["\\\\udce9"]']]),
        ("[float('nan'), float('inf'), -1e300, 0.1, numpy.float32(0.1), numpy.float32('nan')]",
         ["Column1"], [[""], ["inf"], ["-1e+300"], ["0.1"], ["0.1"], [""]]),
        ("[numpy.int64(3), numpy.bool_(True), numpy.str_('s'), numpy.array(7)]", ["Column1"],
         [["3"], ["true"], ["s"], ["7"]]),
        ("numpy.array([[1, 2], [3, 4]])", ["Column1", "Column2"], [["1", "2"], ["3", "4"]]),
        ("numpy.array([1.5, 2])", ["Column1"], [["1.5"], ["2.0"]]),
        ("[datetime.datetime(2024, 1, 2, 3), datetime.date(2024, 1, 2), numpy.datetime64('NaT')]",
         ["Column1"], [["2024-01-02T03:00:00"], ["2024-01-02"], [""]]),
        ("pandas.Series([1.5, None])", ["Column1"], [["1.5"], [""]]),
        ("[pandas.Series({'a': 1, 'b': 'x'})]", ["a", "b"], [["1", "x"]]),
        ("[{'a': pandas.NA, 'b': pandas.NaT, 'c': pandas.Timestamp('2024-01-02')}]",
         ["a", "b", "c"], [["", "", "2024-01-02T00:00:00"]]),
        ("pandas.DataFrame({'a': [1, 2], 'b': ['x,y', None], 'c': [0.1, None]}, index=[7, 8])",
         ["a", "b", "c"], [["1", "x,y", "0.1"], ["2", "", ""]]),
        ("pandas.DataFrame({'f': numpy.array([0.1, 'nan'], 'f4'), 'i': pandas.array([1, None])})",
         ["f", "i"], [["0.1", "1"], ["", ""]]),
        ("pandas.DataFrame({'c': pandas.Categorical(['u', 'v']), 't': [True, False]})",
         ["c", "t"], [["u", "true"], ["v", "false"]]),
        ("pandas.DataFrame({'o': [{'k': 1}, [2]], 's': ['', 'x']})", ["o", "s"],
         [['{"k": 1}', ""], ["[2]", "x"]]),
        ("pandas.DataFrame([[1, pandas.Timestamp('2024-01-02')]])", ["0", "1"],
         [["1", "2024-01-02T00:00:00"]]),
    ],
)  # fmt: skip
def test_rows_are_read_back(returned, names, fields):
    assert rows(returned) == (names, fields)


def test_an_empty_text_is_told_from_one_that_is_missing():
    data = encoded("[{'a': '', 'b': None, 'c': float('nan')}]")
    assert data == b'["a", "b", "c"]\n"",,\n'
    assert encoded("[None]") == b'["Column1"]\n""\n', "readers pass over empty lines"


def test_the_columns_of_the_job_come_in_its_order():
    assert rows("[{'a': 1, 'b': 2}, {}]", columns=["b", "c", "a"]) == (
        ["b", "c", "a"],
        [["2", "", "1"], ["", "", ""]],
    )
    assert rows("[(1, 2)]", columns=["b", "a"]) == (["b", "a"], [["1", "2"]])
    assert rows("[5]", columns=["score"]) == (["score"], [["5"]])
    frame = "pandas.DataFrame({'a': [1, 2], 'b': ['x', 'y']})"
    assert rows(frame, columns=["b", "c", "a"])[1] == [["x", "", "1"], ["y", "", "2"]]


@pytest.mark.parametrize(
    ("returned", "says"),
    [
        ("[{'a': 1}, {'b': b'x'}]",
         "Row 1 (counted from 0) of what run() returned cannot be CSV: ['b'] is of type bytes."),
        ("[b'x']", "['Column1'] is of type bytes"),
        ("[{'a': Odd()}]", "['a'] is of type Odd. Convert it to a dict"),
        ("[{'s': {1}}]", "['s'] is of type set"),
        ("[{'d': {'k': [0, float('nan')]}}]", "is nan. JSON has no such number."),
        ("[{'d': loop}]", "['d'] is nested too deep, or holds itself"),
        ("[{('x', 1): 2}]", "a dict with the key ('x', 1)"),
        ("[{1: 2, '1': 3}]", "a row with two columns '1'. Rename one."),
        ("[{}]", "it is without any column"),
        ("pandas.DataFrame(index=[1, 2])", "it is of a table without columns"),
        ("pandas.DataFrame([[1, 2]], columns=['a', 'a'])", "a table with two columns 'a'"),
        ("pandas.DataFrame({'a': [1, {2}]})", "Row 1 (counted from 0)"),
        ("pandas.DataFrame({'a': [1, {2}]})", "['a'] is of type set"),
    ],
)  # fmt: skip
def test_what_csv_cannot_say_is_refused_with_its_place(returned, says):
    with pytest.raises(Failure) as raised:
        encoded(returned)
    assert raised.value.kind == "BadReturn"
    assert says in raised.value.message
    assert raised.value.location == "made.py"


@pytest.mark.parametrize(
    ("returned", "says"),
    [
        ("[{'a': 1}, {'x': 2}]",
         "it is a row with the column 'x', which output.columns lacks: a, b. Add it there"),
        ("[(1, 2), (1,)]", "Row 1 (counted from 0)"),
        ("[(1, 2), (1,)]", "of 1 values, and output.columns has 2: a, b. Return as many, or"),
        ("['text']", "of 1 values"),
        ("pandas.DataFrame({'a': [1], 'x': [2]})", "with the column 'x', which output"),
    ],
)  # fmt: skip
def test_columns_that_the_job_does_not_have_are_refused_with_both(returned, says):
    with pytest.raises(Failure) as raised:
        encoded(returned, columns=["a", "b"])
    assert says in raised.value.message


def test_numbers_inside_of_a_value_become_null_where_the_job_says_so():
    assert rows("[{'d': [float('nan'), 1]}]", nan_as_null=True)[1] == [["[null, 1]"]]


def test_tables_and_their_rows_are_written_alike():
    frame = (
        "pandas.DataFrame({'i': [1, 2], 'f': [0.1, float('nan')], 't': ['a', None], "
        "'d': [pandas.Timestamp('2024-01-02'), pandas.NaT]})"
    )
    assert encoded(frame) == encoded(frame + ".to_dict('records')")


def run_once(launch, returned, **options):
    agent = launch("returns.py", returned, outputFormat="csv", **options)
    agent.ready()
    agent.run_files(("a", "b"), root="/in", sequence=9)
    return agent


def test_the_start_frame_chooses(launch):
    frame = "pandas.DataFrame({'a': [1.0, None]})"
    agent = run_once(launch, frame, appendRowDataframeHeader=True, headers=True)
    assert agent.result().data == b'["a"]\n1.0\n""\n', "and no header frame in front"
    agent = run_once(launch, "[1]", outputColumns=["score"])
    assert agent.result().data == b'["score"]\n1\n'


def test_what_has_no_rows_has_no_names(launch):
    result = run_once(launch, "[]").result()
    assert (result.rows, result.data) == (0, b"")


def test_a_failure_is_that_of_a_mini_batch(launch):
    failure = run_once(launch, "[{1}]").failed().failure
    assert failure["kind"] == "BadReturn"
    assert failure["location"].startswith("returns.py")


def test_where_rows_come_from(launch):
    def rows_of(returned, **options):
        data = run_once(launch, returned, provenance=True, **options).result().data
        names, _, body = data.decode().partition("\n")
        return json.loads(names), list(csv.reader(io.StringIO(body, newline="")))

    names = ["a", "_file", "_row", "_minibatch"]
    assert rows_of("[{'a': 1}, {'a': None}]") == (
        names,
        [["1", "/in/a", "0", "0"], ["", "/in/b", "1", "0"]],
    )
    assert rows_of("pandas.DataFrame({'a': [1]})") == (names, [["1", "", "0", "0"]])
    assert rows_of("[(1, 2)]", outputColumns=["b", "a"])[0] == ["b", *names]
    failure = run_once(launch, "[{'_row': 1}]", provenance=True).failed().failure
    assert "with the column '_row', which output.provenance adds" in failure["message"]
