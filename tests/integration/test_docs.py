"""The pages for users do what they say: their commands are run, in a scratch folder, in order.

tests/support/pages.py says what the blocks of a page mean. Also checked: every link from one file
of the repository to another leads somewhere.
"""

import os
import re
import sys
from pathlib import Path

import pytest
from pages import first_missing, run_step, steps_of
from support import arrow
from support.command import BIN, ROOT
from support.processes import expect_nothing_running

_LINK = re.compile(r"\[[^\]]*\]\((?!\w+:)([^)#\s]+)(#[^)\s]*)?\)")

# Each page with the files that its reader has already.
PAGES = {
    "README.md": [],
    "docs/tour.md": [],
    "docs/getting-started.md": [],
    "docs/coming-from.md": [],
    "docs/cookbook.md": [],
    "docs/debugging-scripts.md": [],
    "docs/sizing.md": [],
    "docs/formats.md": [],
    "docs/testing-scripts.md": [],
    "docs/python.md": [],
}
# The packages that a page says it needs, beside pandas.
NEEDED = {
    "docs/cookbook.md": ["PIL", "pyarrow", "sklearn"],
    "docs/coming-from.md": ["joblib"],
    "docs/formats.md": ["duckdb", "polars", "pyarrow"],
}
DOCUMENTS = sorted(
    path.relative_to(ROOT).as_posix()
    for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/proposals/*.md")]
)


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page(page, work):
    for package in NEEDED.get(page, []):
        pytest.importorskip(package)
    folder = work.root / "page"
    folder.mkdir()
    for name in PAGES[page]:
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(bytes(100))
    # The programs under test, then the interpreter of the tests, which has pandas.
    path = f"{BIN}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    # The package stands beside them, as the wheel installs it.
    environment = {
        **work.environment,
        "PATH": path,
        "PYTHONPATH": os.pathsep.join(map(str, [ROOT / "worker-image/python", *arrow.FOLDERS])),
        "PYTEST_ADDOPTS": f"--basetemp={work.root}/pytest",
    }
    steps = steps_of(page)
    assert any(step.kind == "sh" for step in steps)
    for step in steps:
        run_step(step, page, folder, environment)
        expect_nothing_running()


def test_what_counts_as_shown():
    output = "one\ntwo is 2\nthree\n"
    assert first_missing(["one", "two is ...", "three"], output) is None
    assert first_missing(["...", "three"], output) is None
    assert first_missing(["two"], output) == "two"
    assert first_missing(["three", "one"], output) == "one"
    assert first_missing(["three", "three"], output) == "three"


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_lead_somewhere(document):
    path = ROOT / document
    for target, anchor in _LINK.findall(path.read_text()):
        found = path.parent / target
        assert found.exists(), f"{document} links to {target}, which is not there"
        if anchor and found.suffix == ".md":
            headings = re.findall(r"^#+ (.*)$", found.read_text(), re.M)
            slugs = {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in headings}
            assert anchor[1:] in slugs, f"{document} links to {target}{anchor}, which is not there"
