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
    for path in (ROOT / "tests" / "unit").glob("*_test.cc"):
        found = re.findall(
            r"^TEST(?:_[FP])?\(\s*(\w+),\s*(\w+)", path.read_text(encoding="utf-8"), re.M
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
