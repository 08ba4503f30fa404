"""What the docs say of the rooms is what is there."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROOMS = {path.name for path in (ROOT / "src").iterdir() if path.is_dir()}


def cells(page, folder):
    """The rows of the table whose first cell names `folder`, as lists of cells."""
    for table in re.split(r"\n\s*\n", (ROOT / page).read_text()):
        rows = [line.strip("| ").split(" | ") for line in table.splitlines() if "|" in line]
        if any(folder in row[0] for row in rows):
            return rows
    raise AssertionError(f"{page} has no table with {folder}")


def rooms_of(rows):
    return {name for row in rows for name in re.findall(r"`src/(\w+)`", row[0])}


def test_the_readme_names_every_room():
    assert rooms_of(cells("README.md", "`src/base`")) == ROOMS


def test_the_architecture_names_every_room_and_its_namespace():
    rows = cells("docs/architecture.md", "[`src/base`]")
    assert rooms_of(rows) == ROOMS
    for row in rows:
        for room in rooms_of([row]) - {"base"}:
            opened = {
                name
                for header in (ROOT / "src" / room).rglob("*.h")
                for name in re.findall(r"^namespace parallelrun::(\w+)", header.read_text(), re.M)
            }
            assert opened <= set(re.findall(r"`(\w+)[`:]", row[1])), room


def test_the_architecture_names_every_gate():
    header = (ROOT / "src/coordinator/core/gates.h").read_text()
    gates = re.findall(r"^  k\w+, *//", header, re.M)
    rows = cells("docs/architecture.md", "not all are heard")
    assert len(rows) - 2 == len(gates)
