"""Gives tests of real processes a second try: `second_try.py FOLDER SUITE...`, after all suites.

Only a failure that is nothing but a wait that ended (waits.TooLate) gets one: a busy machine can
make that, and nothing else. At most three in a run, each alone. One pardon a test: who meets it
adds it to tests/flaky.txt, where it gets no other, and with five tests there nobody does. None for
a test whose file the change at hand touches.

Reads FOLDER/SUITE.xml, tells on stderr, and prints the number of tests that passed at their second
try; they stand, with what they said at their first, in FOLDER/flaky.txt.
"""

import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PARDONS = 5  # of tests, in tests/flaky.txt
AT_ONCE = 3
LATE = "waits.TooLate: "


def failures(report):
    """What failed, by test: "tests/integration/test_x.py::test_y" to all that it said."""
    failed = {}
    for case in ElementTree.parse(report).iter("testcase"):
        for child in case:
            if child.tag in ("failure", "error"):
                name = case.get("classname", "").replace(".", "/") + ".py::" + case.get("name", "")
                failed.setdefault(name, []).append(child.get("message") or child.text or "")
    return failed


def who_may(failed, known, touched):
    """The tests that get a second try, and why the others do not.

    `failed`: as from failures(); `known`: the tests of flaky.txt; `touched`: the paths that the
    change at hand touches."""
    refused = {}
    for name, said in failed.items():
        if not all(text.startswith(LATE) for text in said):
            refused[name] = "it failed by more than a wait"
        elif name in known:
            refused[name] = "it had its second try before (tests/flaky.txt)"
        elif name.partition("::")[0] in touched:
            refused[name] = "the change touches it"
    late = [name for name in failed if name not in refused]
    if len(known) >= PARDONS:
        refused.update(dict.fromkeys(late, f"{len(known)} tests stand in tests/flaky.txt already"))
    elif len(late) > AT_ONCE:
        refused.update(
            dict.fromkeys(
                late, f"{len(late)} waits ended too late: it is the change, or the machine"
            )
        )
    return [name for name in late if name not in refused], refused


def touched():
    def git(*words):
        done = subprocess.run(["git", *words], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        return done.stdout.split("\n")[:-1]

    head = git("rev-parse", "HEAD")
    base = git("merge-base", "HEAD", "origin/main") or head
    if base == head:
        base = git("rev-parse", "--verify", "--quiet", "HEAD~1")
    return set(
        git("diff", "--name-only", *base) + git("ls-files", "--others", "--exclude-standard")
    )


def run_alone(name, log, folder=ROOT, *options):
    """Whether the test passes."""
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, name]
    with open(log, "wb") as out:
        return subprocess.run(words, cwd=folder, stdout=out, stderr=out).returncode == 0


def main(folder, suites):
    failed = {}
    for suite in suites:
        report = folder / f"{suite}.xml"
        if report.exists():
            failed.update(failures(report))
    lines = (ROOT / "tests/flaky.txt").read_text().splitlines()
    known = [line.split()[0] for line in lines if line and not line.startswith("#")]
    may, refused = who_may(failed, known, touched() if failed else set())
    for name, why in refused.items():
        print(f"no second try for {name}: {why}", file=sys.stderr)
    passed = 0
    for name in may:
        log = folder / f"second-try-{passed}.log"
        if not run_alone(name, log):
            print(f"FAILED {name}, at its second try too: {log}", file=sys.stderr)
            continue
        passed += 1
        with open(folder / "flaky.txt", "a") as out:
            print(name, *failed[name], sep="\n  ", file=out)
        print(f"FLAKY {name}: {log}; add it to tests/flaky.txt", file=sys.stderr)
    print(passed)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
