"""docs/reliability.md names tests that exist, and each promise and each fault has one."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
HEADINGS = {"": "held by", "Faults, and the tests that hold against them": "test"}


def sections():
    """(heading, text) of each."""
    for part in re.split(r"^## ", PAGE, flags=re.M):
        heading, _, text = part.partition("\n")
        yield ("" if heading.startswith("# ") else heading), text


def rows():
    """(what is promised, its cell of tests) of each line of the tables of promises and faults."""
    for heading, text in sections():
        if heading not in HEADINGS:
            continue
        for line in text.splitlines():
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if line.startswith("|") and not re.fullmatch(r"[-| ]+", line) and any(cells[:-1]):
                if cells[-1] not in HEADINGS.values():
                    yield cells[-2], cells[-1]


def names():
    """What the page calls by its name; `run()` and the like are none."""
    found = {name for _, tests in rows() for name in re.findall(r"`([^`]+)`", tests)}
    return sorted(name for name in found if not name.endswith("()"))


def python_tests():
    """{file name: names of its tests}"""
    found = {}
    for path in (ROOT / "tests").rglob("test_*.py"):
        there = re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.M)
        found.setdefault(path.name, set()).update(there)
    return found


def unit_tests():
    """Suites, and tests as Suite.Test."""
    found = set()
    for path in (ROOT / "tests" / "unit").rglob("*_test.cc"):
        for suite, test in re.findall(
            r"^TEST(?:_[FP])?\(\s*(\w+),\s*(\w+)", path.read_text(encoding="utf-8"), re.M
        ):
            found |= {suite, f"{suite}.{test}"}
    return found


def test_every_test_that_the_page_names_exists():
    python, unit = python_tests(), unit_tests()

    def exists(name):
        if name.startswith("tests/"):
            return (ROOT / name).exists()
        if ".py" in name:
            file, _, test = name.partition("::")
            return file in python and (not test or test in python[file])
        if name.startswith("test_"):
            return any(name in there for there in python.values())
        return name in unit

    assert len(names()) > 30
    assert [name for name in names() if not exists(name)] == []


def test_every_promise_and_fault_names_its_test():
    told = list(rows())
    assert len(told) > 35
    assert [what for what, tests in told if not re.search(r"`|simulation", tests)] == []
