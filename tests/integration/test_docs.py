"""The pages for users do what they say: their commands are run, in a scratch folder, in order.

What a page's fenced blocks mean here (indented blocks are only for reading):

    ```python     whose first line is `# NAME.py`: written to that file
    ```sh         run by bash, which stops at the first command that fails
    ```text       right behind one of `sh`: each of its lines must be in the output, in this order;
                  `...` stands for anything

`<!-- not run: REASON -->` on the line before a block leaves it out. Also checked: every link from
one file of the repository to another leads somewhere.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.command import BIN, ROOT
from support.processes import expect_nothing_running

_BLOCK = re.compile(
    r"(?:^<!-- not run: (?P<reason>.+) -->\n)?^```(?P<kind>\w*)\n(?P<text>.*?)^```$", re.M | re.S
)
_LINK = re.compile(r"\[[^\]]*\]\((?!\w+:)([^)#\s]+)(#[^)\s]*)?\)")
_FILE_NAME = re.compile(r"# ([\w-]+\.py)\n")

# Each page with the files that its reader has already.
PAGES = {
    "README.md": ["images/0.png", "images/1.png", "images/2.png"],
    "docs/getting-started.md": [],
}
DOCUMENTS = sorted(
    path.relative_to(ROOT).as_posix()
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/*.md")]
)


class Step:
    """One block that is run, and the lines that the page shows behind it."""

    def __init__(self, line, kind, text):
        self.line = line
        self.kind = kind
        self.text = text
        self.shown = []


def steps_of(page):
    """The blocks of a page that are run or written, in order."""
    steps = []
    text = (ROOT / page).read_text()
    run_before = False
    for block in _BLOCK.finditer(text):
        line = text.count("\n", 0, block.start("text"))
        where = f"{page}:{line}"
        kind = block["kind"]
        if kind == "text":
            assert run_before or block["reason"], f"{where}: no sh block that is run precedes it"
            if run_before:
                steps[-1].shown = block["text"].splitlines()
            run_before = False
            continue
        run_before = kind == "sh" and not block["reason"]
        if run_before or (kind == "python" and _FILE_NAME.match(block["text"])):
            steps.append(Step(line, kind, block["text"]))
    return steps


def first_missing(shown, output):
    """The first of the shown lines that is not in the output behind the one before, or None."""
    lines = iter(output.splitlines())
    for wanted in shown:
        pattern = re.compile(".*".join(re.escape(part) for part in wanted.split("...")))
        if not any(pattern.fullmatch(line) for line in lines):
            return wanted
    return None


def run_step(step, page, folder, environment):
    where = f"{page}:{step.line}"
    if step.kind == "python":
        (folder / _FILE_NAME.match(step.text)[1]).write_text(step.text)
        return
    result = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", step.text],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=60,
        text=True,
    )
    told = f"{where}:\n{step.text}printed\n{result.stdout}"
    assert result.returncode == 0, f"exit status {result.returncode} of {told}"
    missing = first_missing(step.shown, result.stdout)
    assert missing is None, f"the page shows {missing!r}, but {told}"
    expect_nothing_running()


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page(page, work):
    folder = work.root / "page"
    folder.mkdir()
    for name in PAGES[page]:
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(bytes(100))
    # The programs under test, then the interpreter of the tests, which has pandas.
    path = f"{BIN}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    steps = steps_of(page)
    assert any(step.kind == "sh" for step in steps)
    for step in steps:
        run_step(step, page, folder, {**work.environment, "PATH": path})


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
