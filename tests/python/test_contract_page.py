"""docs/contract.md names tests that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_every_test_that_the_page_names_exists():
    page = (ROOT / "docs" / "contract.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(test_\w+)`", page))
    there = set()
    for path in (ROOT / "tests").rglob("test_*.py"):
        there.update(re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.M))
    assert len(named) > 60
    assert named - there == set()


def test_every_contract_test_is_named_on_the_page():
    page = (ROOT / "docs" / "contract.md").read_text(encoding="utf-8")
    for path in Path(__file__).parent.glob("test_contract_*.py"):
        for name in re.findall(r"^def (test_[bcd]\d\w*)", path.read_text(encoding="utf-8"), re.M):
            row = name.split("_")[1].upper()
            assert re.search(rf"^\| .*\b{row}\b", page, re.M), name
