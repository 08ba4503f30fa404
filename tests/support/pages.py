"""The commands of a page for users, taken out of it and run in order.

What a page's fenced blocks mean (indented blocks are only for reading):

    ```python     whose first line is `# NAME.py`: written to that file
    ```sh         run by bash, which stops at the first command that fails
    ```text       right behind one of `sh`: each of its lines must be in the output, in this order;
                  `...` stands for anything

`<!-- not run: REASON -->` on the line before a block leaves it out.
"""

import re
import string
import subprocess
from pathlib import Path

from waits import communicate

ROOT = Path(__file__).resolve().parents[2]

_BLOCK = re.compile(
    r"(?:^<!-- not run: (?P<reason>[^\n]+) -->\n)?^```(?P<kind>\w*)\n(?P<text>.*?)^```$",
    re.M | re.S,
)
_FILE_NAME = re.compile(r"# ([\w-]+\.py)\n")


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


def job_of(page, **variables):
    """The job file that a page writes, with the values of its shell variables."""
    text = (ROOT / page).read_text().split("cat > job.yaml <<END\n")[1].split("\nEND\n")[0]
    return string.Template(text).substitute(variables)


def first_missing(shown, output):
    """The first of the shown lines that is not in the output behind the one before, or None."""
    lines = iter(output.splitlines())
    for wanted in shown:
        pattern = re.compile(".*".join(re.escape(part) for part in wanted.split("...")))
        if not any(pattern.fullmatch(line) for line in lines):
            return wanted
    return None


def run_step(step, page, folder, environment, limit=180):
    where = f"{page}:{step.line}"
    if step.kind == "python":
        (folder / _FILE_NAME.match(step.text)[1]).write_text(step.text)
        return
    bash = subprocess.Popen(
        ["bash", "-euo", "pipefail", "-c", step.text],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    output, _ = communicate(bash, f"{where} ends:\n{step.text}", limit)
    told = f"{where}:\n{step.text}printed\n{output}"
    assert bash.returncode == 0, f"exit status {bash.returncode} of {told}"
    missing = first_missing(step.shown, output)
    assert missing is None, f"the page shows {missing!r}, but {told}"
