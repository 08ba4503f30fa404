"""`parallelrun doctor`: whether jobs can run on this machine, or on a cluster."""

import json
import sys

import pytest

# A kubectl that answers from files; tests/controlplane asks a real cluster.
KUBECTL = """
import json, sys
from pathlib import Path

home, words = Path(HOME), sys.argv[1:]
with open(home / "words", "a") as file:
    file.write(json.dumps(words) + "\\n")
words = [w for w in words if not w.startswith(("--context=", "--namespace="))]
if words[0] == "create":
    denied = json.loads((home / "denied").read_text())
    for review in json.load(sys.stdin)["items"]:
        a = review["spec"]["resourceAttributes"]
        below = a.get("subresource", "")
        name = "/".join((a["verb"], a["group"], a["resource"], below))
        print(name + "=" + ("false" if name in denied else "true"))
    sys.exit()
answer = home / words[0 if words[0] != "get" else 1].rpartition("/")[2]
if not answer.exists():
    sys.exit("Error from server (Forbidden)")
print(answer.read_text(), end="")
"""

ANSWERS = {
    "version": {"serverVersion": {"gitVersion": "v1.35.4"}},
    "apis": {"groups": [{"name": "parallelrun.dev"}]},
    "pods": {
        "items": [
            {
                "metadata": {"name": "operator-1", "namespace": "system"},
                "status": {"conditions": [{"type": "Ready", "status": "True"}]},
            }
        ]
    },
    "storageclasses": {"items": []},
}


@pytest.fixture
def cluster(work):
    home = work.root / "cluster"
    home.mkdir()
    for name, answer in ANSWERS.items():
        (home / name).write_text(json.dumps(answer))
    (home / "config").write_text("own-one")
    (home / "denied").write_text("[]")
    folder = work.root / "bin"
    folder.mkdir()
    (folder / "kubectl").write_text(f"#!{sys.executable}\nHOME = {str(home)!r}\n{KUBECTL}")
    (folder / "kubectl").chmod(0o755)
    work.environment["PATH"] = f"{folder}:/usr/bin:/bin"
    return home


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


def levels(findings):
    return {subject: finding["level"] for subject, finding in findings.items()}


def test_a_cluster_can_run_jobs(work, cluster):
    findings = found(work, "--namespace", "team", "--context", "lab")
    assert levels(findings) == {
        "cluster": "ok",
        "definition": "ok",
        "operator": "ok",
        "may run": "ok",
        "may look": "ok",
        "may show": "ok",
        "storage": "warn",
    }
    assert findings["cluster"]["text"] == "Kubernetes v1.35.4"
    assert findings["may run"]["text"].endswith("in namespace team")
    words = [json.loads(line) for line in (cluster / "words").read_text().splitlines()]
    assert all(one[:2] == ["--context=lab", "--namespace=team"] for one in words)


def test_what_a_user_may_not_do(work, cluster):
    (cluster / "denied").write_text(json.dumps(["create//pods/exec", "list//pods/"]))
    findings = found(work, "--context", "lab")
    assert findings["may look"]["level"] == "warn"
    assert "in namespace own-one: list pods, create pods/exec" in findings["may look"]["text"]
    (cluster / "denied").write_text(json.dumps(["create/parallelrun.dev/parallelrunjobs/"]))
    findings = found(work, "--context", "lab", code=1)
    assert levels(findings)["may run"] == "fail"


def test_what_a_user_may_not_see_is_no_fault(work, cluster):
    for name in ("pods", "storageclasses"):
        (cluster / name).unlink()
    result = work.call("doctor", "--namespace", "team")
    assert result.code == 0, result
    assert "ok    operator         your rights do not let you see it" in result.output
    assert "ok    storage          your rights do not let you see" in result.output


def test_what_a_cluster_lacks(work, cluster):
    (cluster / "apis").write_text('{"groups": []}')
    (cluster / "pods").write_text('{"items": []}')
    findings = found(work, "--namespace", "team", code=1)
    assert levels(findings)["definition"] == levels(findings)["operator"] == "fail"
    assert "may run" not in findings
    (cluster / "version").unlink()
    result = work.call("doctor", "--namespace", "team")
    assert result.code == 1 and "it does not answer kubectl" in result.output, result
