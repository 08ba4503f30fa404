"""Rules, dashboards and runbooks: checked by Prometheus itself, and against what is exported."""

import json
import re
import shutil

import pytest
import yaml
from support import live, render
from support.render import ROOT

RULES = ROOT / "deploy/monitoring/rules.yaml"
DASHBOARDS = sorted((ROOT / "deploy/monitoring/dashboards").glob("*.json"))
needs_prometheus = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="needs Debian's package prometheus"
)

VARIABLES = {"$namespace": "team", "$job": "digits"}
# What one coordinator without a node has nothing to say about.
SILENT = (
    "parallelrun_jobs|_total|leader_election|workqueue|controller_runtime|rest_client"
    "|build_info|process_"
)


def rules():
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def alerts():
    return [rule for rule in rules() if "alert" in rule]


def panels(path):
    return json.loads(path.read_text())["panels"]


def queries(path):
    """The queries of a dashboard, with its variables replaced."""
    found = []
    for panel in panels(path):
        for target in panel["targets"]:
            expression = target["expr"]
            for variable, value in VARIABLES.items():
                expression = expression.replace(variable, value)
            assert "$" not in expression, f"{path.name}: unknown variable in {expression}"
            found.append(expression)
    return found


def named_metrics(expression):
    names = re.findall(
        r"\b(?:namespace_job_name:)?[a-z]+_[a-z_]+(?::[a-z]+)?(?=[{\[ )]|$)", expression
    )
    words = {"group_left", "group_right", "histogram_quantile", "clamp_min", "job_name"}
    return {name for name in names if name not in words}


def exported_metrics():
    """The names of metrics in the sources of coordinator and operator, and the recorded ones."""
    names = {rule["record"] for rule in rules() if "record" in rule}
    prefixes = "parallelrun|controller_runtime|workqueue|rest_client|leader_election|process"
    for source in [*ROOT.glob("src/coordinator/**/*.cc"), *ROOT.glob("operator/**/*.cc")]:
        for name in re.findall(rf'"((?:{prefixes})_[a-z_]+)"', source.read_text()):
            names.add(name)
            if name.endswith("_seconds"):
                names |= {f"{name}_bucket", f"{name}_count", f"{name}_sum"}
    return names


@needs_prometheus
def test_the_rules_are_valid():
    assert "SUCCESS" in render.run(["promtool", "check", "rules", RULES])


@needs_prometheus
def test_each_alert_fires_and_stays_silent_as_it_should():
    render.run(["promtool", "test", "rules", "tests/deploy/rules_test.yaml"])


def test_no_rule_is_without_a_test():
    tests = yaml.safe_load((ROOT / "tests/deploy/rules_test.yaml").read_text())["tests"]
    fires, silent = set(), set()
    for test in tests:
        for alert in test["alert_rule_test"]:
            (fires if alert.get("exp_alerts") else silent).add(alert["alertname"])
    names = {alert["alert"] for alert in alerts()}
    assert names == fires == silent
    asked = [one["expr"] for test in tests for one in test.get("promql_expr_test", [])]
    records = {rule["record"] for rule in rules() if "record" in rule}
    assert {expression.split("{")[0] for expression in asked} == records


@pytest.mark.parametrize("alert", alerts(), ids=lambda alert: alert["alert"])
def test_conventions_of_alerts(alert):
    name = alert["alert"]
    assert re.fullmatch(r"ParallelRun([A-Z][a-z]+)+", name)
    assert alert["labels"]["severity"] in ("critical", "warning", "info")
    assert alert["labels"]["kubernetes_operator_part_of"] == "parallelrun"
    annotations = alert["annotations"]
    assert set(annotations) == {"summary", "description", "runbook_url"}
    assert annotations["runbook_url"] == f"docs/runbooks/{name}.md"
    runbook = (ROOT / annotations["runbook_url"]).read_text()
    assert runbook.startswith(f"# {name}\n")
    for heading in ("## Meaning", "## Impact", "## Diagnosis", "## Fix"):
        assert f"\n{heading}\n" in runbook, f"{name} has no {heading}"


def test_no_runbook_is_without_an_alert():
    pages = {path.stem for path in ROOT.glob("docs/runbooks/*.md")} - {"README"}
    assert pages == {alert["alert"] for alert in alerts()}


def test_reasons_that_alerts_name_are_reasons():
    known = set(re.findall(r"^\| `(\w+)` \|", (ROOT / "docs/messages.md").read_text(), re.M))
    named = re.findall(r'reason=~"([^"]+)"', " ".join(rule["expr"] for rule in rules()))
    assert named
    assert not set("|".join(named).split("|")) - known


def test_only_exported_metrics_are_asked_for():
    exported = exported_metrics()
    asked = [(RULES.name, rule["expr"]) for rule in rules()]
    asked += [(path.name, query) for path in DASHBOARDS for query in queries(path)]
    for where, expression in asked:
        for name in named_metrics(expression):
            assert name in exported, f"{where} asks for {name}, which nothing exports: {expression}"


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_conventions_of_dashboards(path):
    board = json.loads(path.read_text())
    assert board["id"] is None
    assert board["uid"] == f"parallelrun-{path.stem}"
    assert board["title"].startswith("ParallelRun: ")
    assert "parallelrun" in board["tags"]
    variables = {variable["name"]: variable for variable in board["templating"]["list"]}
    assert variables["datasource"]["type"] == "datasource"
    for variable in variables.values():
        if variable["type"] == "query":
            assert variable["datasource"]["uid"] == "${datasource}"
    identifiers = [panel["id"] for panel in board["panels"]]
    assert len(set(identifiers)) == len(identifiers)
    taken = set()
    for panel in board["panels"]:
        assert panel["title"]
        assert panel["description"], panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        for target in panel["targets"]:
            assert target["datasource"]["uid"] == "${datasource}"
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert max(x for x, _ in cells) < 24
        assert not cells & taken, f"{panel['title']} covers another panel"
        taken |= cells


@pytest.mark.parametrize(
    "path, shown",
    [
        ("operator", "process_cpu_seconds_total"),
        ("operator", "process_resident_memory_bytes"),
        ("jobs", "sum by (namespace) (rate(parallelrun_node_seconds_total"),
        ("jobs", "sum by (namespace) (rate(parallelrun_gpu_seconds_total"),
        ("jobs", "sum by (reason) (increase(parallelrun_node_restarts_total"),
    ],
)
def test_the_dashboards_show_what_jobs_cost_and_why_nodes_fail(path, shown):
    (file,) = (file for file in DASHBOARDS if file.stem == path)
    assert any(shown in query for query in queries(file))


def test_links_between_dashboards():
    known = {json.loads(path.read_text())["uid"] for path in DASHBOARDS}
    assert len(known) == len(DASHBOARDS)
    for path in DASHBOARDS:
        for uid in re.findall(r'"/d/([\w-]+)', path.read_text()):
            assert uid in known


@needs_prometheus
def test_prometheus_understands_every_query(tmp_path):
    recorded = [
        {"record": f"query{number}", "expr": query}
        for number, query in enumerate(query for path in DASHBOARDS for query in queries(path))
    ]
    path = tmp_path / "queries.yaml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": recorded}]}))
    told = render.run(["promtool", "check", "rules", path])
    assert f"{len(recorded)} rules found" in told


@needs_prometheus
def test_the_coordinators_metrics_are_well_formed_and_fill_the_panels(tmp_path):
    with live.coordinator(tmp_path / "job") as port:
        text = live.get(f"http://127.0.0.1:{port}/metrics")
        render.run(["promtool", "check", "metrics"], input=text)
        targets = [(port, {"namespace": "team", "job_name": "digits"})]
        with live.prometheus(tmp_path, targets) as query:
            rate = 'deriv(parallelrun_mini_batches{job_name="digits"}[5m])'
            live.wait_for(lambda: query(rate), query.process, query.log)
            live.wait_for(
                lambda: query("namespace_job_name:parallelrun_mini_batches_open:sum"),
                query.process,
                query.log,
            )
            (open_batches,) = query("namespace_job_name:parallelrun_mini_batches_open:sum")
            assert open_batches["metric"]["job_name"] == "digits"
            assert open_batches["value"][1] == "5"
            asked = [q for path in DASHBOARDS for q in queries(path)]
            told = [q for q in asked if not re.search(SILENT, q) and "> 0" not in q]
            assert len(told) > 8
            for expression in told:
                assert query(expression), f"no data for {expression}"
