"""What people see of a run: a bar on a terminal of any width, plain lines elsewhere, and errors."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios

import pytest
from support.command import PROGRAM
from support.processes import expect_nothing_running
from support.workspace import drains
from waits import communicate, wait_for_process, wait_until

HELD = """
from steps import note, wait_for

def run(mini_batch, context):
    note("held", 1)
    if context.minibatch_index == 0:
        wait_for("go")
    if context.minibatch_index == 1:
        raise ValueError("bad \\x1b[31m")
    return [open(path).read() for path in mini_batch]
"""


class Screen:
    """The command on a terminal: stdout and stderr are it; what it wrote is in `text`."""

    def __init__(self, work, columns, *words, **environment):
        self._ours, theirs = pty.openpty()
        self.resize(columns, theirs)
        self._run = subprocess.Popen(
            [str(PROGRAM), "run", work.job_file.name, *words],
            cwd=work.root,
            env={**work.environment, "TERM": "xterm", **environment},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        self.text = ""

    def resize(self, columns, terminal=None):
        size = struct.pack("4H", 24, columns, 0, 0)
        fcntl.ioctl(self._ours if terminal is None else terminal, termios.TIOCSWINSZ, size)

    def _read(self):
        if select.select([self._ours], [], [], 0.1)[0]:
            try:
                self.text += os.read(self._ours, 65536).decode()
            except OSError:  # nobody has it open any more
                return False
        return True

    def wait_for(self, pattern):
        def seen():
            return re.search(pattern, self.text) or not self._read()

        wait_until(seen, lambda: f"{pattern}\n{self.text!r}")
        assert re.search(pattern, self.text), f"it ended before: {pattern}\n{self.text!r}"

    def wait(self):
        wait_until(lambda: not self._read(), lambda: f"its output ends\n{self.text!r}", 240.0)
        code = wait_for_process(self._run, lambda: f"it ends\n{self.text!r}", 60.0)
        os.close(self._ours)
        expect_nothing_running()
        return code

    def send(self, signo):
        self._run.send_signal(signo)

    def lines(self):
        """What stood in a line at one time, without colour."""
        plain = re.sub(r"\x1b\[\d*m", "", self.text)
        return [line for line in re.split(r"\r\n|\r\x1b\[K|\n", plain) if line]


@pytest.fixture
def held(work):
    work.files(4)
    work.script(HELD)
    work.job(runMaxTry=1)
    return work


@pytest.mark.parametrize("columns", [20, 40, 80, 200])
def test_no_line_of_the_bar_is_wider_than_the_terminal(held, columns):
    screen = Screen(held, columns)
    wide = columns >= 60
    screen.wait_for(r"3 of 4 mini-batches" if wide else r"3/4")
    # It lives: time goes on while one mini-batch runs.
    screen.wait_for(r"slowest ([6-9]|\d\d+)s" if columns > 40 else r"3/4.*3/4.*3/4")
    held.make("go")
    assert screen.wait() == 3
    bars = [line for line in screen.lines() if re.match(r"\[[=> ]+\]|\d/\d", line)]
    assert len(bars) >= 3
    assert max(map(len, bars)) < columns
    assert not wide or any(line.startswith("[=") for line in bars)
    assert "\x1b[31m1 failed\x1b[0m" in screen.text


def test_the_bar_follows_the_terminal(held):
    screen = Screen(held, 100)
    screen.wait_for(r"3 of 4 mini-batches")
    screen.resize(30)
    seen = len(screen.text)
    wait_until(lambda: screen._read() and "3/4" in screen.text[seen:], lambda: screen.text)
    held.make("go")
    assert screen.wait() == 3


def test_a_failure_is_shown_as_it_comes(held):
    screen = Screen(held, 200)
    told = r"failed: \S+/000001\.txt: ValueError: bad \\x1b\[31m \(score\.py:9\)"
    screen.wait_for(told)
    held.make("go")
    assert screen.wait() == 3
    assert len(re.findall(told, screen.text)) == 1


def test_no_colour_where_none_is_wanted(held):
    held.make("go")
    screen = Screen(held, 100, NO_COLOR="1")
    assert screen.wait() == 3
    assert not re.search(r"\x1b\[\d+m", screen.text)


@pytest.mark.parametrize(
    ("words", "environment"), [(["--progress", "plain"], {}), ([], {"TERM": "dumb"})]
)
def test_plain_lines_on_a_terminal(held, words, environment):
    screen = Screen(held, 100, *words, **environment)
    screen.wait_for(" mini-batches, ")
    held.make("go")
    assert screen.wait() == 3
    assert "\x1b" not in screen.text


def parts(work, *words, until=""):
    """The command without a terminal: its exit status, stdout and stderr. Once it has said `until`
    on the latter, the test says go."""
    said = work.root / "stderr.txt"
    with open(said, "w") as errors:
        run = subprocess.Popen(
            [str(PROGRAM), "run", work.job_file.name, *words],
            cwd=work.root,
            env=work.environment,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    if until:
        wait_until(lambda: until in said.read_text(), said.read_text)
        work.make("go")
    out, _ = communicate(run, "the command ends")
    expect_nothing_running()
    return run.returncode, out, said.read_text()


def test_only_the_summary_goes_to_stdout(held):
    code, out, err = parts(held, until=" mini-batches, ")
    assert code == 3
    assert out.startswith("Finished with losses: ")
    assert "Python " in err


def test_no_progress_and_nothing_but_trouble(work):
    work.files(3)
    work.script()
    work.job()
    code, out, err = parts(work, "--progress", "none")
    assert (code, out.startswith("Succeeded")) == (0, True)
    assert " mini-batches, " not in err
    assert parts(work, "--overwrite", "--quiet") == (0, "", "")
    work.script("def run(mini_batch):\n    raise ValueError('bad')\n")
    code, out, err = parts(work, "--overwrite", "-q")
    assert code == 1
    assert out.startswith("Failed ")
    assert err == ""
    code, out, err = parts(work, "-q")  # an earlier run is there
    assert (code, out) == (2, "")
    assert "nothing was started" in err


def test_rates_count_this_run_only(work):
    """What an earlier run has done is not its work."""
    work.files(3)
    work.script(HELD.replace("== 0", ">= 0").replace("== 1", "== -1"))
    work.job(processCountPerNode=1)
    screen = Screen(work, 200)
    wait_until(lambda: work.noted("held"), lambda: "the first one is held")
    screen.send(signal.SIGINT)
    screen.wait_for("Ctrl-C again stops at once")
    wait_until(lambda: drains(work.logs), lambda: "the node is told to stop")
    work.make("go")
    assert screen.wait() == 130
    code, out, _ = parts(work, "--resume")
    assert code == 0
    # The other two alone, in whatever time they took.
    time_of = re.search(r"time +([\d.]+)(ms|s), ([\d.]+)/s", out)
    took = float(time_of[1]) / (1000 if time_of[2] == "ms" else 1)
    assert 1.5 < took * float(time_of[3]) < 2.5, out
