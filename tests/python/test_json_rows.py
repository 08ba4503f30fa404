"""What run() returns as rows of JSON, read back by the readers that people have."""

import collections
import dataclasses
import datetime
import io
import json

import numpy
import pandas
import pytest
from parallelrun.worker.failure import Failure
from parallelrun.worker.json_rows import JsonRows


@dataclasses.dataclass
class Box:
    label: str
    corners: tuple


class Odd:
    pass


def encoded(returned, nan_as_null=False):
    """The bytes of what the expression `returned` gives."""
    loop = []
    loop.append(loop)
    names = {"Box": Box, "Odd": Odd, "loop": loop}
    names.update(collections=collections, datetime=datetime, numpy=numpy, pandas=pandas)
    return JsonRows(nan_as_null, "made.py").encode(eval(returned, names))


@pytest.mark.parametrize(
    ("returned", "rows"),
    [
        ("['a b', 1, 2.5, None, True]", ["a b", 1, 2.5, None, True]),
        ("[{'k': 1, 'l': [1, {'m': None}]}]", [{"k": 1, "l": [1, {"m": None}]}]),
        ("[{1: 'a', None: 'b', False: 'c'}]", [{"1": "a", "null": "b", "false": "c"}]),
        ("[{numpy.str_('k'): [{2: numpy.int64(3)}]}]", [{"k": [{"2": 3}]}]),
        ("(('x', 1),)", [["x", 1]]),
        ("['\\n\\r\\u2028']", ["\n\r\u2028"]),
        ("['\\u00e9 \\U0001f600']", ["\u00e9 \U0001f600"]),
        ("['\\udce9t']", ["\\udce9t"]),
        ("[Box('cat', (1, 2))]", [{"label": "cat", "corners": [1, 2]}]),
        ("[{'box': Box('cat', ())}]", [{"box": {"label": "cat", "corners": []}}]),
        ("[datetime.datetime(2024, 1, 2, 3), datetime.date(2024, 1, 2)]",
         ["2024-01-02T03:00:00", "2024-01-02"]),
        ("[numpy.int64(3), numpy.float32(0.5), numpy.bool_(True), numpy.longdouble(2)]",
         [3, 0.5, True, 2]),
        ("[{numpy.int64(3): 1}, {'x': numpy.array([[1, 2]])}]", [{"3": 1}, {"x": [[1, 2]]}]),
        ("numpy.array([[1, 2], [3, 4]])", [[1, 2], [3, 4]]),
        ("[numpy.datetime64('2024-01-02'), numpy.datetime64('NaT')]", ["2024-01-02", None]),
        ("numpy.array(['2024-01-02T03:04'], dtype='M8[ns]')", ["2024-01-02T03:04:00.000000000"]),
        ("pandas.Series([1.5, 2])", [1.5, 2]),
        ("[pandas.Series({'a': 1, 'b': 'x'})]", [{"a": 1, "b": "x"}]),
        ("[pandas.NaT, pandas.NA, pandas.Timestamp('2024-01-02')]",
         [None, None, "2024-01-02T00:00:00"]),
        ("pandas.DataFrame({'a': [1, 2], 'b': ['x y', None]}, index=[7, 8])",
         [{"a": 1, "b": "x y"}, {"a": 2, "b": None}]),
        ("pandas.DataFrame([[1, pandas.Timestamp('2024-01-02')]])",
         [{"0": 1, "1": "2024-01-02T00:00:00"}]),
        ("pandas.DataFrame({'c': pandas.Categorical(['u', 'v'])})", [{"c": "u"}, {"c": "v"}]),
        ("pandas.DataFrame({'n': pandas.array([1, None], dtype='Int64')})",
         [{"n": 1}, {"n": None}]),
        ("[]", []),
        ("pandas.DataFrame()", []),
    ],
)  # fmt: skip
def test_rows_are_read_back(returned, rows):
    data = encoded(returned)
    assert data == b"" or data.endswith(b"\n")
    lines = data.decode("utf-8").split("\n")[:-1]
    assert [json.loads(line) for line in lines] == rows


def test_pandas_takes_what_was_written():
    data = encoded("[{'name': 'a\\u2028\\udce9', 'n': 1}, {'name': 'b', 'n': None}]")
    frame = pandas.read_json(io.BytesIO(data), lines=True)
    assert list(frame["name"]) == ["a\u2028\\udce9", "b"]


@pytest.mark.parametrize(
    ("returned", "says"),
    [
        ("[1, float('nan')]", "Row 1 (counted from 0) of what run() returned cannot be JSON"),
        ("[float('nan')]", "Return None, or set output.nanAsNull: true"),
        ("[{'a': [0, float('-inf')]}]", "['a'][1] is -inf"),
        ("pandas.DataFrame({'a': [1, 2], 'b': [1.5, None]})", "Row 1 (counted from 0)"),
        ("pandas.DataFrame([[1, 2]], columns=['a', 'a'])",
         "a table with two columns 'a'. Rename one."),
        ("pandas.DataFrame([[1]], columns=pandas.MultiIndex.from_tuples([('a', 'b')]))",
         "the key ('a', 'b'). Make its keys texts."),
        ("[{'a': Odd()}]", "['a'] is of type Odd. Convert it to a dict"),
        ("[b'x']", "it is of type bytes. Decode it."),
        ("[{('x', 1): 2}]", "a dict with the key ('x', 1)"),
        ("[{1: 'a', '1': 'b'}]", "it is a dict with two keys '1'. Rename one."),
        ("[{'in': [{True: 1, 'true': 2}]}]", "['in'][0] is a dict with two keys 'true'"),
        ("[{None: 1, 'null': 2}]", "two keys 'null'"),
        ("[({1.5: 1, '1.5': 2},)]", "[0] is a dict with two keys '1.5'"),
        ("[Box({1: 'a', '1': 'b'}, ())]", "['label'] is a dict with two keys '1'"),
        ("[{'s': pandas.Series([{2: 'a', '2': 'b'}])}]", "two keys '2'"),
        ("[collections.Counter({3: 1, '3': 2})]", "two keys '3'"),
        ("[{float('nan'): 2}]", "a dict with the key nan"),
        ("[{'s': {1}}]", "['s'] is of type set"),
        ("[numpy.timedelta64(1, 'Y')]", "which is no number of microseconds. Return a number."),
        ("[loop]", "nested too deep, or holds itself"),
    ],
)  # fmt: skip
def test_what_json_cannot_say_is_refused_with_its_place(returned, says):
    with pytest.raises(Failure) as raised:
        encoded(returned)
    assert raised.value.kind == "BadReturn"
    assert says in raised.value.message
    assert raised.value.location == "made.py"


def test_numbers_that_json_does_not_have_become_null_where_the_job_says_so():
    data = encoded("[{'a': [float('nan'), 1.5]}, numpy.float32('inf')]", nan_as_null=True)
    assert data == b'{"a": [null, 1.5]}\nnull\n'
    data = encoded("pandas.DataFrame({'b': [1.5, None]})", nan_as_null=True)
    assert data == b'{"b": 1.5}\n{"b": null}\n'


def test_a_text_is_a_text_even_if_it_holds_json():
    assert encoded("['{}']") == b'"{}"\n'


def run_once(launch, returned, **options):
    agent = launch("returns.py", returned, outputFormat="jsonl", **options)
    agent.ready()
    agent.run_files(("a", "b"), root="/in", sequence=9)
    return agent


def test_the_start_frame_chooses(launch):
    frame = "pandas.DataFrame({'a': [1.0, None]})"
    agent = run_once(launch, frame, nanAsNull=True, appendRowDataframeHeader=True, headers=True)
    assert agent.result().data == b'{"a": 1.0}\n{"a": null}\n', "and no header frame in front"


def test_a_failure_is_that_of_a_mini_batch(launch):
    failure = run_once(launch, "[float('nan')]").failed().failure
    assert failure["kind"] == "BadReturn"
    assert failure["location"].startswith("returns.py")


def test_a_dict_is_no_list_of_rows(launch):
    failure = run_once(launch, "{'a': 1}").failed().failure
    assert "Return a list: [result] for one row" in failure["message"]


def test_rows_that_are_only_counted_need_not_be_json(launch):
    result = run_once(launch, "[object()]", outputAction="SummaryOnly").result()
    assert (result.rows, result.data) == (1, b"")


def test_where_rows_come_from(launch):
    def rows_of(returned):
        data = run_once(launch, returned, provenance=True).result().data
        return [json.loads(line) for line in data.decode().splitlines()]

    def origin(file, row):
        return {"_file": file, "_row": row, "_minibatch": 0}

    assert rows_of("[{'a': '\"_row\": '}, {}]") == [
        {"a": '"_row": ', **origin("/in/a", 0)},
        origin("/in/b", 1),
    ]
    assert rows_of("pandas.DataFrame({'a': [1]})") == [{"a": 1, **origin(None, 0)}]
    for returned, says in (
        ("[{'a': 1}, {'_file': 1}]", "Row 1 (counted from 0)"),
        ("[{'_file': 1}]", "with the column '_file', which output.provenance adds"),
        ("['text']", "it is no object. Return a dict for each row"),
    ):
        assert says in run_once(launch, returned, provenance=True).failed().failure["message"]
