"""Reads JUnit reports of ctest and pytest.

`junit_report.py REPORT` prints "PASSED FAILED SKIPPED" on stdout, and each failing test with its
output on stderr. `junit_report.py --slowest REPORT...` prints the ten slowest tests of each.
"""

import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

LINES_SHOWN = 120
SLOWEST = 10


def text_of(case):
    """What the test said: assertion and captured output, the last lines of it."""
    parts = []
    for child in case:
        message = child.get("message", "")
        body = (child.text or "").strip("\n")
        if message and message not in body:
            parts.append(message)
        if body:
            parts.append(body)
    lines = "\n".join(parts).splitlines()
    left_out = len(lines) - LINES_SHOWN
    if left_out > 0:
        lines = [f"... {left_out} lines left out", *lines[-LINES_SHOWN:]]
    return "\n".join(f"  {line}" for line in lines)


def main(report):
    passed = failed = skipped = 0
    for case in ElementTree.parse(report).iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            failed += 1
            place, name = case.get("classname"), case.get("name")
            if place and place != name:
                name = f"{place}::{name}"
            print(f"FAILED {name}\n{text_of(case)}", file=sys.stderr)
        elif case.find("skipped") is not None or case.get("status") == "disabled":
            skipped += 1
        else:
            passed += 1
    print(passed, failed, skipped)


def slowest(report):
    cases = [
        (float(case.get("time") or 0), case.get("name"))
        for case in ElementTree.parse(report).iter("testcase")
    ]
    cases.sort(key=lambda case: -case[0])
    told = ", ".join(f"{name} {seconds:.1f} s" for seconds, name in cases[:SLOWEST])
    print(f"slowest of {Path(report).stem}: {told}")


if __name__ == "__main__":
    if sys.argv[1] == "--slowest":
        for path in sys.argv[2:]:
            slowest(path)
    else:
        main(sys.argv[1])
