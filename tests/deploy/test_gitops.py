"""What Argo CD and Flux make of a job at each stage of its life, by the libraries they use."""

from pathlib import Path

import yaml
from support.render import ROOT
from verdicts import ask, kstatus
from verdicts import flux as verdicts_of_flux

ARGO = ROOT / "deploy/gitops/argocd"
RESOURCE = ARGO / "parallelrun.dev/ParallelRunJob"
ACTIONS = RESOURCE / "actions"

# Of each stage in testdata: what Flux makes of the expressions, and what kstatus says without them.
# Error: Flux cannot tell, and goes on waiting.
VERDICTS = {
    "new": ("Error", "Current"),  # kstatus knows no better before the operator's first write
    "starting": ("InProgress", "InProgress"),
    "running": ("InProgress", "Current"),  # as of a batch/v1 Job: it was started
    "changed": ("InProgress", "InProgress"),
    "suspended": ("InProgress", "Current"),
    "invalid": ("Failed", "Failed"),
    "mended": ("InProgress", "InProgress"),
    "failing": ("InProgress", "InProgress"),
    "failed": ("Failed", "Failed"),
    "canceled": ("Failed", "Failed"),
    "complete": ("Current", "Current"),
    "complete-with-failures": ("Current", "Current"),  # the thresholds say what is a failure
    "complete-shutdown-failed": ("Current", "Current"),  # every row is there
    "complete-and-changed": ("InProgress", "InProgress"),
}


def load(path):
    return yaml.safe_load(Path(path).read_text())


def stages():
    return {path.stem: load(path) for path in sorted((RESOURCE / "testdata").glob("*.yaml"))}


def test_each_stage_has_its_verdicts():
    tests = load(RESOURCE / "health_test.yaml")["tests"]
    tested = {Path(test["inputPath"]).stem for test in tests}
    assert set(stages()) == set(VERDICTS) == tested


def test_argo_cds_health():
    tests = load(RESOURCE / "health_test.yaml")["tests"]
    script = (RESOURCE / "health.lua").read_text()
    questions = [{"lua": script, "object": load(RESOURCE / test["inputPath"])} for test in tests]
    for test, answer in zip(tests, ask(questions)):
        assert answer == test["healthStatus"], test["inputPath"]


def test_argo_cds_actions_are_offered():
    script = (ACTIONS / "discovery.lua").read_text()
    tests = load(ACTIONS / "action_test.yaml")["discoveryTests"]
    questions = [{"lua": script, "object": load(ACTIONS / test["inputPath"])} for test in tests]
    for test, answer in zip(tests, ask(questions)):
        expected = {one["name"]: {"iconClass": one["iconClass"]} for one in test["result"]}
        assert (answer or {}) == expected, test["inputPath"]


def test_argo_cds_actions_change_what_they_say():
    tests = load(ACTIONS / "action_test.yaml")["actionTests"]
    assert {test["action"] for test in tests} == {"suspend", "resume", "cancel"}
    questions = [
        {
            "lua": (ACTIONS / test["action"] / "action.lua").read_text(),
            "object": load(ACTIONS / test["inputPath"]),
        }
        for test in tests
    ]
    for test, answer in zip(tests, ask(questions)):
        assert answer == load(ACTIONS / test["expectedOutputPath"]), test["action"]


def test_the_config_map_of_argo_cd_holds_the_scripts():
    """Written by hand nowhere: `python3 -m support.argocd` in this folder makes it anew."""
    from support import argocd

    assert (ARGO / "argocd-cm.yaml").read_text() == argocd.config_map()


def test_flux_waits_for_the_end():
    found = stages()
    verdicts = dict(zip(VERDICTS, verdicts_of_flux([found[name] for name in VERDICTS])))
    assert verdicts == {name: flux for name, (flux, _) in VERDICTS.items()}


def test_kstatus():
    found = stages()
    verdicts = dict(zip(VERDICTS, kstatus([found[name] for name in VERDICTS])))
    assert verdicts == {name: verdict for name, (_, verdict) in VERDICTS.items()}


def test_the_stages_are_jobs():
    """The stages obey the CRD, so they cannot grow old unnoticed."""
    crd = load(ROOT / "crds/parallelrunjobs.parallelrun.dev.yaml")
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]

    def known(value, schema, path):
        if isinstance(value, dict) and "properties" in schema:
            for key, one in value.items():
                assert key in schema["properties"], f"{path}.{key}"
                known(one, schema["properties"][key], f"{path}.{key}")
        if isinstance(value, list):
            for one in value:
                known(one, schema["items"], f"{path}[]")

    for name, stage in stages().items():
        known(stage["spec"], schema["spec"], f"{name}: spec")
        known(stage.get("status", {}), schema["status"], f"{name}: status")
