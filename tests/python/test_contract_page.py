"""docs/contract.md names tests that exist, and each row that a test is named after."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "contract.md").read_text(encoding="utf-8")


def functions(path):
    return re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.M)


def test_every_test_that_the_page_names_exists():
    named = set(re.findall(r"`(test_\w+)`", PAGE))
    there = set()
    for path in (ROOT / "tests").rglob("test_*.py"):
        there.update(functions(path))
    assert len(named) > 100
    assert named - there == set()


def test_every_unit_test_that_the_page_names_exists():
    named = set(re.findall(r"`([A-Z]\w+\.[A-Z]\w+)`", PAGE))
    there = set()
    for path in (ROOT / "tests" / "unit").rglob("*_test.cc"):
        found = re.findall(
            r"^(?:TYPED_)?TEST(?:_[FP])?\(\s*(\w+),\s*(\w+)", path.read_text(encoding="utf-8"), re.M
        )
        there.update(".".join(names) for names in found)
    assert len(named) > 50
    assert named - there == set()


def test_every_contract_test_is_named_on_the_page():
    for path in (ROOT / "tests").rglob("test_contract_*.py"):
        if path.name == "test_contract_page.py":
            continue
        for name in functions(path):
            for row in re.findall(r"_([bcdef]\d+)(?=_)", name):
                assert re.search(rf"^\| .*\b{row.upper()}\b", PAGE, re.M), name


def rows():
    """(row, all of its line) of each table row of the page."""
    for line in PAGE.splitlines():
        if line.startswith("| ") and not line.startswith(("| row |", "|--")):
            yield line.split("|")[1].strip(), line


def test_every_row_has_a_test_or_says_why_it_has_none():
    for row, line in rows():
        assert re.search(r"`(test_\w+|[A-Z]\w+\.[A-Z]\w+)`|does not apply|differs:", line), row


def test_no_row_is_left_out():
    have = {name for row, _ in rows() for name in re.findall(r"[A-F]\d+", row)}
    last = {"B": 20, "C": 17, "D": 15, "E": 10, "F": 8}
    wanted = {f"{letter}{n}" for letter, count in last.items() for n in range(1, count + 1)}
    assert wanted - have == set()
    for section in (
        "3, ",
        "4, ",
        "4.2",
        "6, ",
        "7, ",
        "8.1, ",
        "12, ",
        "13, ",
        "15, ",
        "17, ",
        "18, ",
    ):
        assert any(row.startswith(section) for row, _ in rows()), section
