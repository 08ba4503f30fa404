"""logs/report.html: what it says, and what a real browser makes of it, hostile names in it."""

import json
import os
import re
import signal

import browser
import pytest
from browser import Browser
from support.workspace import drains

needs_browser = pytest.mark.skipif(
    browser.PROGRAM is None or browser.AXE is None, reason="script/bootstrap test installs them"
)

WIDTHS = (360, 1280, 2560)

# Shown as they are, they would be elements, end the data, or turn the text around.
HOSTILE = (
    b"<img src=x onerror=alert(1)>.txt",
    b"<!--<script>.txt",
    b"\"quotes' & &lt;b&gt;.txt",
    "\u202etxt.exe".encode(),
    b"\x01bell\x07 line\nbreak.txt",
    b"no utf-8 \xff\xfe.txt",
)

FAILS = """
import os

def run(mini_batch):
    for path in mini_batch:
        if not os.path.basename(path).startswith("0"):
            raise ValueError(f"</script><b>bold</b><!-- {os.path.basename(path)} -->")
    return [open(path).read() for path in mini_batch]
"""


HELD = """
from steps import note, wait_for

def run(mini_batch):
    note("held", 0)
    wait_for("go")
    return [open(path).read() for path in mini_batch]
"""

REPORTS = (
    "job_result.txt",
    "report.html",
    "user/error.txt",
    "sys/job_report/processed_mini-batches.csv",
)


@pytest.mark.parametrize("name", REPORTS)
def test_a_report_that_cannot_be_written_is_told(work, name):
    """And the others are there: a folder stands in its place."""
    rows = work.files(2)
    work.script(HELD)
    work.job()
    command = work.start_job()
    command.wait_for(lambda: work.noted("held"), "a process is held")
    (work.logs / name / "in the way").mkdir(parents=True)
    work.make("go")
    result = command.wait()
    assert result.code == 0, result
    assert work.rows() == rows
    assert "the reports of the job are not complete" in result.output
    assert name in result.output.partition("not complete")[2]
    assert all((work.logs / other).is_file() for other in REPORTS if other != name)


def report_of(work):
    return (work.logs / "report.html").read_text()


def data_of(page):
    return json.loads(
        re.search(r'<script type="application/json" id="data">(.*)</script>', page)[1]
    )


def hostile(work):
    """Six files that fail, each by itself, among thirty that do not."""
    work.files(30)
    for name in HOSTILE:
        with open(os.fsencode(work.data) + b"/" + name, "w") as file:
            file.write("row")
    work.script(FAILS)
    work.job(runMaxTry=2)
    assert work.run().code == 3
    return report_of(work)


def test_the_report_says_what_init_was_at_when_it_ended(work):
    work.files(2)
    work.script(
        "import time\n\n"
        "def load():\n    time.sleep(3600)\n\n"
        "def init():\n    load()\n\n"
        "def run(mini_batch):\n    return []\n"
    )
    # What takes less than ten seconds is no news.
    work.job(initTimeoutSeconds=13, processCountPerNode=1)
    assert work.run().code == 1
    data = data_of(report_of(work))
    assert data["verdict"]["reason"] == "InitTimeout"
    assert data["init"].startswith("init() has been running for ")
    assert " on 1 node" in data["init"]


def test_the_report_tells_of_the_run(work):
    data = data_of(hostile(work))
    assert (data["name"], data["state"]) == ("job", "Succeeded")
    assert data["verdict"]["reason"] == "CompletedWithFailures"
    assert data["miniBatches"] == {"planned": 36, "listed": True, "succeeded": 30, "failed": 6}
    assert (data["items"]["succeeded"], data["items"]["failed"], data["rows"]) == (30, 6, 30)
    series = data["series"]
    assert (sum(series["succeeded"]), sum(series["failed"])) == (30, 12)
    assert len(series["mean"]) == len(series["longest"]) == len(series["failed"]) <= 600
    assert (sum(data["map"]["succeeded"]), sum(data["map"]["failed"])) == (30, 6)
    assert sum(p["attempts"] for p in data["processes"]["list"]) == 42
    assert sum(p["run"] for p in data["processes"]["list"]) > 0
    assert len(data["slowest"]) == 20
    assert data["advice"]
    settings = {path: (value, default) for path, value, default in data["settings"]}
    assert settings["spec.runMaxTry"] == ("2", False)
    assert settings["spec.entryScript"] == ("score.py", False)


def test_errors_are_grouped_and_have_their_tracebacks(work):
    errors = data_of(hostile(work))["errors"]
    assert errors["attempts"] == 12
    assert sum(e["count"] for e in errors["list"]) == 12
    for error in errors["list"]:
        assert error["type"] == "ValueError"
        assert error["location"] == "score.py:7"
        assert error["traceback"].startswith("Traceback (most recent call last)")
        assert 'raise ValueError(f"</script><b>bold</b>' in error["traceback"]


def test_nothing_in_the_data_is_markup(work):
    page = hostile(work)
    assert page.count("</script") == 2
    assert "<!--" not in page
    assert "<img" not in page
    data = re.search(r'id="data">(.*)</script>', page)[1]
    assert not set(data) & set("<>&")
    assert data.isascii()


def test_a_run_that_goes_on_has_one_report_of_all_of_it(work):
    work.files(20)
    work.script(
        """
from steps import note, wait_for

def run(mini_batch, context):
    if context.minibatch_index == 10:
        note("there", 1)
        wait_for("go")
    return [open(path).read() for path in mini_batch]
"""
    )
    work.job(processCountPerNode=1)
    command = work.start_job()
    command.wait_for(lambda: work.noted("there"), "the tenth mini-batch")
    command.send(signal.SIGINT)
    command.wait_for(lambda: drains(work.logs), "the node has heard of it")
    work.make("go")
    assert command.wait(120).code == 130
    assert not (work.logs / "report.html").exists()
    assert work.run("--resume").code == 0
    data = data_of(report_of(work))
    assert sum(data["series"]["succeeded"]) == 20
    assert data["processes"]["count"] == 2
    assert len(data["series"]["cuts"]) <= 1  # what lay between is not counted


@needs_browser
def test_in_a_browser_everything_is_text_and_nothing_is_asked_for(work, tmp_path):
    hostile(work)
    address = (work.logs / "report.html").as_uri()
    with Browser(tmp_path / "browser") as opened:
        for width in WIDTHS:
            tab = opened.open(address, width=width, dark=width == 2560, reduced_motion=True)
            assert tab.complaints() == []
            assert tab.asked() == [address]
            assert tab.value("document.title") == "Succeeded: job"
            tab.value("document.querySelectorAll('details').forEach(d => { d.open = true; })")
            text = tab.text()
            assert "<img src=x onerror=alert(1)>.txt" in text
            assert "</script><b>bold</b><!--" in text
            assert "\\u202etxt.exe" in text
            assert "\u202e" not in text
            assert tab.value("document.querySelectorAll('img, b b, script[src], link').length") == 0
            # Nothing is wider than the window but what scrolls by itself.
            assert tab.value("document.documentElement.scrollWidth") <= width
            assert tab.accessibility() == []
            if os.environ.get("PICTURES"):
                tab.picture(f"{os.environ['PICTURES']}/report-{width}.png")


@needs_browser
def test_a_chart_is_read_with_the_keyboard(work, tmp_path):
    hostile(work)
    with Browser(tmp_path / "browser") as opened:
        tab = opened.open((work.logs / "report.html").as_uri())
        tab.value("document.querySelector('[role=slider]').focus()")
        tab.press("Home")
        first = tab.value("document.activeElement.getAttribute('aria-valuetext')")
        assert first.startswith("after 0 s: succeeded ")
        assert tab.value("document.querySelector('output').textContent") == first
        tab.press("ArrowRight")
        assert tab.value("document.activeElement.getAttribute('aria-valuenow')") in ("0", "1")
