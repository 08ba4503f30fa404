"""The kinds of failures that worker processes tell of stand in docs/messages.md, and are literals.

`tests/unit/reasons` holds that page against the table of all reasons, of which each must be used.
"""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "worker-image/python"


def explained():
    """The words of docs/messages.md that it calls a kind of an error."""
    rows = (ROOT / "docs/messages.md").read_text().splitlines()
    named = (re.match(r"\| `(\w+)` \| ([^|]*) \|", row) for row in rows)
    return {found[1] for found in named if found and "kind of an error" in found[2]}


def kinds_in(tree):
    """What stands where a kind is given: to Failure, to from_exception, in a failure's JSON."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            if name in ("Failure", "from_exception") and node.args:
                yield node.args[0]
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values):
                if isinstance(key, ast.Constant) and key.value == "kind":
                    yield value
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            if getattr(node.targets[0], "id", "") == "kind":
                yield node.value


def test_every_kind_of_a_failure_is_explained():
    sources = [PACKAGE / "start_worker.py", *(PACKAGE / "parallelrun/worker").glob("*.py")]
    told = {}
    for source in sources:
        for kind in kinds_in(ast.parse(source.read_text())):
            where = f"{source.name}:{kind.lineno}"
            if isinstance(kind, ast.Constant):
                told[kind.value] = where
            else:  # failure.py makes a Failure of the kind that it is given
                assert source.name == "failure.py", f"{where}: no literal"
    assert len(told) > 8
    assert {kind: where for kind, where in told.items() if kind not in explained()} == {}
