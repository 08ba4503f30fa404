"""Which failed tests get a second try (script/second_try.py)."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
_spec = importlib.util.spec_from_file_location("second_try", ROOT / "script/second_try.py")
second_try = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(second_try)

A_WAIT = ["waits.TooLate: not within 60.0 s: the end of the job"]
NAME = "tests/integration/test_kills.py::test_a"


def named(count):
    return {f"tests/integration/test_kills.py::test_{i}": A_WAIT for i in range(count)}


def test_a_wait_that_ended_gets_one():
    assert second_try.who_may({NAME: A_WAIT}, [], set()) == ([NAME], {})


@pytest.mark.parametrize(
    "said",
    [
        ["AssertionError: assert ['a'] == ['a', 'b']"],
        [*A_WAIT, "AssertionError: these still run: agent 12"],
        ["failed on teardown with waits.TooLate: not within 20.0 s: these end: agent 12"],
    ],
)
def test_whatever_else_failed_gets_none(said):
    may, refused = second_try.who_may({NAME: said}, [], set())
    assert may == [] and refused == {NAME: "it failed by more than a wait"}


def test_one_pardon_a_test():
    assert second_try.who_may({NAME: A_WAIT}, [NAME], set())[0] == []
    assert second_try.who_may({NAME: A_WAIT}, ["another"] * 4, set())[0] == [NAME]
    assert second_try.who_may({NAME: A_WAIT}, ["another"] * 5, set())[0] == []


def test_none_for_a_test_that_the_change_touches():
    touched = {"tests/integration/test_kills.py"}
    assert second_try.who_may({NAME: A_WAIT}, [], touched)[0] == []


def test_three_at_most():
    assert len(second_try.who_may(named(3), [], set())[0]) == 3
    may, refused = second_try.who_may(named(4), [], set())
    assert may == [] and len(refused) == 4


def test_what_failed_stands_in_the_report(tmp_path):
    (tmp_path / "test_it.py").write_text(
        "import sys\n"
        f"sys.path.insert(0, {str(ROOT / 'tests/support')!r})\n"
        "import pytest\n"
        "from waits import wait_until\n"
        "@pytest.fixture\n"
        "def torn():\n"
        "    yield\n"
        "    wait_until(lambda: False, 'the end of it', 0)\n"
        "@pytest.mark.parametrize('case', ['a', 'b'])\n"
        "def test_late(case):\n"
        "    wait_until(lambda: case == 'b', 'the letter', 0)\n"
        "def test_torn(torn):\n"
        "    assert 1 == 2\n"
    )
    report = tmp_path / "report.xml"
    second_try.run_alone("test_it.py", tmp_path / "log", tmp_path, f"--junit-xml={report}")
    failed = second_try.failures(report)
    assert set(failed) == {"test_it.py::test_late[a]", "test_it.py::test_torn"}
    assert failed["test_it.py::test_late[a]"] == ["waits.TooLate: not within 0 s: the letter"]
    assert second_try.who_may(failed, [], set())[0] == ["test_it.py::test_late[a]"]
