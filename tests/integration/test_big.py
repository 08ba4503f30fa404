"""Big rows, many rows, many files."""

import hashlib

import pytest


@pytest.fixture
def many(sanitized):
    """The share of the thousands that is enough: a sanitizer takes many times as long for each."""
    return 1 if sanitized is None else 0.1


@pytest.mark.parametrize("parts", [1, 300_000])
def test_thirty_megabytes_of_rows_from_one_mini_batch(work, many, parts):
    work.files(3)
    rows = max(1, round(parts * many))
    size = round(30_000_000 * many) // rows - 1
    work.script(
        "def run(b, context):\n"
        "    letter = 'abc'[context.minibatch_index]\n"
        f"    return [letter * {size}] * {rows}\n"
    )
    work.job()
    result = work.run()
    assert result.code == 0, result
    expected = hashlib.sha256()
    for letter in "abc":
        expected.update((letter * size + "\n").encode() * rows)
    assert hashlib.sha256(work.output.read_bytes()).hexdigest() == expected.hexdigest()


def test_twenty_thousand_mini_batches_of_one_file(work, many):
    count = round(20_000 * many)
    for index in range(count):
        folder = work.data / f"{index // 1000:02}"
        folder.mkdir(exist_ok=True)
        (folder / f"{index:05}").touch()
    work.script("def run(b):\n    return [path[-8:] for path in b]\n")
    work.job()
    result = work.run("--nodes", "2")
    assert result.code == 0, result
    assert work.rows() == [f"{index // 1000:02}/{index:05}" for index in range(count)]
    assert f"{count} succeeded, 0 failed, of {count}" in result.output


def test_empty_rows_and_rows_that_need_care(work):
    work.files(4)
    work.script(
        "def run(b, context):\n"
        "    return [['', None, ('x', 1), 'snow \\N{SNOWMAN}'][context.minibatch_index]]\n"
    )
    work.job()
    result = work.run()
    assert result.code == 0, result
    assert work.output.read_text() == "\nNone\n('x', 1)\nsnow \N{SNOWMAN}\n"
