"""The pages about the cluster: what they say of rights, metrics and commands is so."""

import re

import pytest
import yaml
from pages import job_of
from support import render
from support.render import ROOT

PAGES = [
    *(ROOT / f"docs/{name}.md" for name in ("gitops", "helm", "monitoring", "quickstart")),
    ROOT / "docs/security.md",
    *ROOT.glob("docs/runbooks/*.md"),
]


def rights(rules):
    """(group, resource, name or None, verb) of RBAC rules."""
    return {
        (group or "core", resource, name, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for name in rule.get("resourceNames", [None])
        for verb in rule["verbs"]
    }


def told_rights(heading):
    """The same, from the table below a line of docs/security.md."""
    page = (ROOT / "docs/security.md").read_text()
    assert page.count(heading) == 1
    told = set()
    for line in page.split(heading)[1].strip().splitlines()[2:]:
        if not line.startswith("|"):
            break
        group, resource, verbs, _ = (cell.strip() for cell in line.strip("|").split("|"))
        words = re.findall(r"`([^`]+)`", resource)
        name = words[1] if len(words) > 1 else None
        told |= {(group.strip("`"), words[0], name, verb) for verb in verbs.split(", ")}
    return told


def test_the_table_of_rights_is_complete(base):
    cluster = base["ClusterRole", None, "parallelrun-operator"]["rules"]
    own = base["Role", "parallelrun-system", "parallelrun-operator-leader"]["rules"]
    assert told_rights("or a Role in each of `watchNamespaces`):\n") == rights(cluster)
    assert told_rights("In its own namespace:\n") == rights(own)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    text = page.read_text()
    for target in re.findall(r"\]\((?!\w+:)([^)#\s]+)", text):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_page_warns_of_what_deletes_every_job():
    """The base with the definition alone does; the others hold no definition (test_kustomize)."""
    page = (ROOT / "docs/helm.md").read_text()
    (section,) = re.findall(r"^## With kustomize\n(.*?)^## ", page, re.M | re.S)
    assert (
        "**`kubectl delete -k crds` deletes every job of the cluster, with its pods.**" in section
    )
    for base in re.findall(r"kubectl \w+ (?:--server-side )?-k ([\w/]+)", section):
        assert (ROOT / base / "kustomization.yaml").exists(), base
        held = {kind for kind, _, _ in render.kustomize(base)}
        assert ("CustomResourceDefinition" in held) == (base == "crds"), base
    for command in ("kubectl delete crd parallelrunjobs.parallelrun.dev", "helm uninstall"):
        assert command in page


def policies_of_the_page():
    page = (ROOT / "docs/security.md").read_text()
    (block,) = re.findall(r"^```yaml\n(.*?)^```$", page, re.M | re.S)
    return block, {one["metadata"]["name"]: one["spec"] for one in yaml.safe_load_all(block)}


def test_the_policies_of_the_page_obey_the_schema(tmp_path):
    from support import schemas

    schemas.write(tmp_path)
    location = f"{tmp_path}/{schemas.LOCATION}"
    told = render.run(
        [render.tool("kubeconform"), "-summary", "-schema-location", location, "-"],
        input=policies_of_the_page()[0],
    )
    assert "Valid: 3, Invalid: 0, Errors: 0" in told


def test_the_policies_of_the_page_are_those_of_the_chart(chart):
    """And mean the pods that the operator makes, at the port where coordinators listen."""
    _, policies = policies_of_the_page()
    values = {"jobs": {"egress": {"enabled": True, "namespaces": ["team-a"]}}}
    made = render.chart(values)["NetworkPolicy", "team-a", "parallelrun-jobs"]["spec"]
    assert policies["parallelrun-jobs-out"] == made
    let_in = policies["parallelrun-coordinators-in"]
    (rule,) = let_in["ingress"]
    defaults = yaml.safe_load((render.CHART / "values.yaml").read_text())
    assert [port["port"] for port in rule["ports"]] == [defaults["jobs"]["coordinatorPort"]]
    nodes, operators = rule["from"]
    assert nodes == {"podSelector": {"matchLabels": {"parallelrun.dev/role": "node"}}}
    operator = chart["Deployment", "parallelrun-system", "parallelrun-operator"]
    space = {"kubernetes.io/metadata.name": operator["metadata"]["namespace"]}
    assert operators["namespaceSelector"]["matchLabels"] == space
    labels = operator["spec"]["template"]["metadata"]["labels"]
    assert operators["podSelector"]["matchLabels"].items() <= labels.items()
    assert let_in["podSelector"] == {"matchLabels": {"parallelrun.dev/role": "coordinator"}}
    stores = policies["parallelrun-stores-out"]
    assert stores["podSelector"] == policies["parallelrun-jobs-out"]["podSelector"]
    ((to,),) = (rule["to"] for rule in stores["egress"])
    assert "169.254.0.0/16" in to["ipBlock"]["except"], "the hosts' metadata service"


def test_the_metrics_of_the_page_are_exported():
    page = (ROOT / "docs/monitoring.md").read_text()
    sources = [*ROOT.glob("src/coordinator/**/*.cc"), *ROOT.glob("operator/**/*.cc")]
    code = "".join(source.read_text() for source in sources)
    exported = set(re.findall(r'"(parallelrun_[a-z_]+)"', code))
    told = set(re.findall(r"`(parallelrun_[a-z_]+)`", page))
    assert told == exported


def test_the_job_of_the_quickstart_obeys_the_schema(tmp_path):
    from support import schemas

    schemas.write(tmp_path)
    location = f"{tmp_path}/{schemas.LOCATION}"
    told = render.run(
        [render.tool("kubeconform"), "-summary", "-schema-location", location, "-"],
        input=job_of("docs/quickstart.md", BUCKET="b", REGION="r", ENDPOINT="https://h"),
    )
    assert "Valid: 1, Invalid: 0, Errors: 0" in told


def test_the_quickstart_uses_values_and_names_that_exist(chart):
    page = (ROOT / "docs/quickstart.md").read_text()
    assert ("Deployment", "parallelrun-system", "parallelrun-operator") in chart
    for value in re.findall(r"--set ([\w.]+)=", page):
        values = yaml.safe_load((render.CHART / "values.yaml").read_text())
        for key in value.split("."):
            values = values[key]
