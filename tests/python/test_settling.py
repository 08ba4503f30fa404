"""The values that settle types: of their type, whatever else is said of the table."""

import io
import json
from pathlib import Path

import pytest

pandas = pytest.importorskip("pandas")

from parallelrun.worker import column_types, settling  # noqa: E402 - with pandas only

KINDS = {
    "integer": column_types.INTEGER,
    "number": column_types.FRACTION,
    "boolean": column_types.BOOLEAN,
    "text": column_types.TEXT,
}
LETTERS = [chr(code) for code in range(ord("a"), ord("z") + 1)]


@pytest.mark.parametrize(
    "options",
    [
        *({"delimiter": mark} for mark in ",\t.0123456789exyTF-+"),
        {"delimiter": "-", "quote": ".", "comment": "+"},
        {"delimiter": ".", "quote": "", "escape": "-"},
        {"delimiter": ",", "na": ["0", "0.5", "x", "y", "True", "FALSE"]},
        {"delimiter": "2", "na": ["-0", "1.0", "+3", "5e-1", "1.5", "false", "true", "False"]},
        {"delimiter": ",", "na": [f"{n}.5" for n in range(100)]},
        {"delimiter": ",", "na": [str(n) for n in range(100)]},
        {"delimiter": ",", "na": [*LETTERS, *(f"a{letter}" for letter in LETTERS)]},
        {"delimiter": "T", "na": ["nan", "inf", " ", ""]},
    ],
)
def test_each_is_one_value_of_its_type(options):
    marks = {options["delimiter"], options.get("quote"), options.get("comment")} | {
        options.get("escape")
    }
    missing = options.get("na", [])
    for kind, text in settling.texts(options).items():
        text = text.decode()
        assert column_types.classify(text) == KINDS[kind], kind
        assert not marks & set(text) and text not in missing
        if kind in ("integer", "number"):
            numbers = [word for word in missing if word.strip() and not word.strip().isalpha()]
            assert float(text) not in map(float, numbers)


def test_where_no_truth_value_is_left_the_others_are_settled():
    every = sorted(set(settling._booleans()))
    assert len(every) == 16 + 32
    found = settling.texts({"delimiter": ",", "na": [*every, "x"]})
    assert found == {"integer": b"0", "number": b"0.5", "boolean": b"True", "text": b"y"}


# What the planner takes for missing (tests/unit/plan/missing_forms_test.cc reads the same table).
NUMBERS = json.loads((Path(__file__).parents[1] / "unit/data/na_values.json").read_text())


@pytest.mark.parametrize("case", NUMBERS, ids=[ascii(case["word"]) for case in NUMBERS])
def test_what_is_a_number_among_the_words_for_a_missing_value(case):
    word = case["word"]
    number = settling._number(word)
    assert repr(number) == repr(case["number"] and float(case["number"]))
    # As pandas has it, in a column where nothing but texts counts.
    texts = [word, *case["missing"], *case["there"]]
    rows = "".join('"{}"\n'.format(text.replace('"', '""')) for text in ["text", *texts])
    frame = pandas.read_csv(
        io.BytesIO(rows.encode()), dtype=str, na_values=[word], keep_default_na=False
    )
    missing = frame["text"].isna().tolist()
    assert dict(zip(texts, missing)) == {text: text not in case["there"] for text in texts}
    assert len(missing) == len(texts)
