"""`parallelrun doctor`: whether jobs can run on this machine."""

import json
import sys


def found(work, *words, code=0):
    result = work.call("doctor", "--json", *words)
    assert result.code == code, result
    return {finding["subject"]: finding for finding in json.loads(result.output)["findings"]}


def test_this_machine_can_run_jobs(work):
    result = work.call("doctor", "--python", sys.executable)
    assert result.code == 0, result
    assert f"ok    python           {sys.version.split()[0]} ({sys.executable}" in result.output
    assert "ok    loopback " in result.output
    assert f"{work.root}: " in result.output
    kept = {"code", "data", "tmp", "runtime", "findings"}  # the last one under a sanitizer
    left = {path.name for path in work.root.iterdir() if not path.name.startswith("command-")}
    assert left | {"findings"} == kept, left


def test_what_is_missing_is_told_with_what_to_do(work):
    findings = found(work, "nowhere", "--python", "/no/python", code=1)
    assert findings["python"]["level"] == "fail"
    assert "/no/python" in findings["python"]["text"]
    assert "--python" in findings["python"]["toDo"]
    assert findings["this folder"]["level"] == "fail"
    assert "No such file" in findings["this folder"]["text"]
    assert findings["loopback"]["level"] == "ok"


def test_runs_that_cannot_be_found(work):
    (work.runtime / "parallelrun").mkdir()
    (work.runtime / "parallelrun").chmod(0o755)
    findings = found(work, "--python", sys.executable)
    assert findings["other runs"]["level"] == "warn"
    assert "is not a folder of this user alone" in findings["other runs"]["text"]
