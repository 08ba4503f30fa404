"""The Helm chart: what its values do, which it refuses, and that the API server would take it."""

import json
import re
import subprocess

import pytest
import yaml
from support import render, schemas
from support.render import CHART, NAMESPACE, ROOT

SECRET_LISTING = {"list", "watch", "*"}
# Everything on, so that each template is rendered.
EVERYTHING = {
    "global": {"imageRegistry": "mirror.example:5000", "imagePullSecrets": ["all"]},
    "commonLabels": {"team": "data"},
    "commonAnnotations": {"note": "x"},
    "propagateLabels": {"cost": "7", "area": "a"},
    "image": {"digest": "sha256:" + "1" * 64, "pullSecrets": ["mine"]},
    "runtimeImage": {"pullPolicy": "Always", "pullSecrets": ["theirs", "all"]},
    "replicas": 2,
    "serviceAccount": {"annotations": {"role": "reader"}},
    "podDisruptionBudget": {"enabled": True},
    "networkPolicy": {"enabled": True},
    "jobs": {
        "disruptionBudgets": True,
        "metricsNamespaces": ["monitoring", "teams"],
        "egress": {
            "enabled": True,
            "namespaces": ["team-a"],
            "rules": [
                {
                    "to": [{"ipBlock": {"cidr": "0.0.0.0/0", "except": ["169.254.0.0/16"]}}],
                    "ports": [{"protocol": "TCP", "port": 443}],
                }
            ],
        },
    },
    "metrics": {
        "perJob": True,
        "serviceMonitor": {"enabled": True, "labels": {"release": "p"}},
        "podMonitor": {"enabled": True},
    },
    "prometheusRule": {"enabled": True, "runbookBaseUrl": "https://docs.example/runbooks"},
    "dashboards": {"enabled": True},
    "podLabels": {"a": "b"},
    "podAnnotations": {"c": "d"},
    "nodeSelector": {"disk": "ssd"},
    "tolerations": [{"key": "k", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
    ],
    "priorityClassName": "high",
    "extraArgs": ["--x"],
    "extraEnv": [{"name": "A", "value": "b"}],
    "extraVolumes": [{"name": "tmp", "emptyDir": {}}],
    "extraVolumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
}


def kinds(found):
    return sorted(kind for kind, _, _ in found)


def rules_of(found):
    """(kind, namespace, rule) of every rule of the operator's roles, not of those for people."""
    return [
        (kind, namespace, rule)
        for (kind, namespace, name), role in found.items()
        if kind in ("ClusterRole", "Role") and "-jobs-" not in name
        for rule in role["rules"]
    ]


def helm_test_pod(values=None):
    text = render.template("--show-only", "templates/tests/ready.yaml", values=values)
    (pod,) = render.objects(text).values()
    return pod


def test_lint():
    strict = [render.tool("helm"), "lint", "--strict", CHART]
    render.run(strict)
    render.run([*strict, "--values", "-"], input=yaml.safe_dump(EVERYTHING))


def test_the_default_objects(chart):
    assert kinds(chart) == [
        "ClusterRole",
        "ClusterRole",
        "ClusterRole",
        "ClusterRoleBinding",
        "CustomResourceDefinition",
        "Deployment",
        "Role",
        "RoleBinding",
        "Service",
        "ServiceAccount",
    ]
    for key, found in chart.items():
        labels = found["metadata"]["labels"]
        assert labels["app.kubernetes.io/managed-by"] == "Helm", key
        assert labels["helm.sh/chart"] == "parallelrun-0.1.0", key


def test_the_version_is_the_programs():
    metadata = yaml.safe_load((CHART / "Chart.yaml").read_text())
    lists = (ROOT / "CMakeLists.txt").read_text()
    assert f"project(parallelrun VERSION {metadata['appVersion']} " in lists
    assert metadata["version"] == metadata["appVersion"]
    for image in yaml.safe_load(metadata["annotations"]["helm.sh/images"]):
        assert image["image"] == f"parallelrun/{image['name']}:{metadata['appVersion']}"


def test_the_crd_is_the_one_of_the_project(chart):
    ours = yaml.safe_load((ROOT / "crds/parallelrunjobs.parallelrun.dev.yaml").read_text())
    theirs = chart["CustomResourceDefinition", None, "parallelrunjobs.parallelrun.dev"]
    assert theirs["spec"] == ours["spec"]
    assert theirs["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}


def test_the_chart_has_what_the_project_has():
    monitoring = ROOT / "deploy/monitoring"
    sources = {
        "crd.yaml": ROOT / "crds/parallelrunjobs.parallelrun.dev.yaml",
        "rules.yaml": monitoring / "rules.yaml",
        **{f"dashboards/{path.name}": path for path in (monitoring / "dashboards").glob("*.json")},
    }
    files = CHART / "files"
    held = {p.relative_to(files).as_posix(): p for p in files.rglob("*") if not p.is_dir()}
    assert held.keys() == sources.keys(), "run script/chart"
    for name, path in held.items():
        assert path.read_bytes() == sources[name].read_bytes(), f"{name}: run script/chart"


def test_helm_says_nothing_beside_what_it_renders():
    """Of each link in a chart it says that it found it."""
    command = [render.tool("helm"), "template", "parallelrun", CHART, "--namespace", NAMESPACE]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_package_makes_the_same(tmp_path):
    helm = render.tool("helm")
    render.run([helm, "package", CHART, "--destination", tmp_path])
    package = tmp_path / "parallelrun-0.1.0.tgz"
    command = [helm, "template", "parallelrun", package, "--namespace", NAMESPACE, "--skip-tests"]
    everything = [*command, "--values", "-"]
    values = yaml.safe_dump(EVERYTHING)
    packed = render.objects(render.run(everything, input=values))
    assert packed == render.chart(EVERYTHING)
    assert package.stat().st_size < 200_000  # a release is kept in a Secret of at most 1 MB


def test_crd_switches():
    assert "CustomResourceDefinition" not in kinds(render.chart({"crds": {"install": False}}))
    found = render.chart({"crds": {"keep": False}})
    crd = found["CustomResourceDefinition", None, "parallelrunjobs.parallelrun.dev"]
    assert "annotations" not in crd["metadata"]


def test_images_of_a_mirror():
    found = render.chart({**EVERYTHING, "extraArgs": []})
    pod = render.operator_pod(found)
    flags = render.arguments(found)
    image = "mirror.example:5000/parallelrun/operator@sha256:" + "1" * 64
    assert pod["containers"][0]["image"] == image
    assert pod["imagePullSecrets"] == [{"name": "all"}, {"name": "mine"}]
    test_pod = helm_test_pod(EVERYTHING)
    assert test_pod["spec"]["containers"][0]["image"] == image
    assert test_pod["spec"]["imagePullSecrets"] == pod["imagePullSecrets"]
    assert flags["runtime-image"] == "mirror.example:5000/parallelrun/runtime:0.1.0"
    assert flags["runtime-image-pull-policy"] == "Always"
    assert flags["image-pull-secrets"] == "all,theirs"
    assert flags["job-labels"] == "area=a,cost=7"
    assert flags["per-job-metrics"] == "true"
    assert flags["metrics-namespaces"] == "monitoring,teams"


def test_the_operator_knows_its_flags():
    known = re.findall(r'"--([a-z-]+)', (ROOT / "operator/options.cc").read_text())
    jobs = {**EVERYTHING["jobs"], "coordinatorPort": 9443}
    values = {**EVERYTHING, "watchNamespaces": ["a"], "jobs": jobs}
    passed = render.arguments(render.chart({**values, "extraArgs": []}))
    assert set(passed) <= set(known)
    assert passed["coordinator-port"] == "9443"
    # --check is for `helm test`, the others for an operator outside of a cluster.
    assert set(known) - set(passed) <= {"check", "kubeconfig", "namespace", "version"}


def test_the_operator_listens_on_every_address_of_either_family(chart):
    args = render.operator_pod(chart)["containers"][0]["args"]
    assert {"--metrics-address=:8080", "--health-address=:8081"} <= set(args)


def test_an_images_own_registry():
    values = {"image": {"registry": "r.example", "repository": "a/b", "tag": "9"}}
    assert render.operator_pod(render.chart(values))["containers"][0]["image"] == "r.example/a/b:9"


def test_labels_and_annotations_reach_every_object():
    found = render.chart(EVERYTHING)
    for key, one in found.items():
        assert one["metadata"]["labels"]["team"] == "data", key
        assert one["metadata"]["annotations"]["note"] == "x", key
    account = found["ServiceAccount", NAMESPACE, "parallelrun-operator"]
    assert account["metadata"]["annotations"] == {"note": "x", "role": "reader"}


def test_where_the_operator_runs():
    found = render.chart(EVERYTHING)
    pod = render.operator_pod(found)
    assert pod["nodeSelector"] == {"disk": "ssd"}
    assert pod["tolerations"] == [{"key": "k", "operator": "Exists"}]
    assert pod["priorityClassName"] == "high"
    spread = pod["topologySpreadConstraints"][0]
    deployment = found["Deployment", NAMESPACE, "parallelrun-operator"]["spec"]
    assert spread["labelSelector"] == deployment["selector"]
    assert spread["maxSkew"] == 1
    labels = deployment["template"]["metadata"]["labels"]
    assert deployment["selector"]["matchLabels"].items() <= labels.items()


def test_the_operator_may_not_read_all_secrets(chart):
    rules = rules_of(chart)
    assert rules
    for _, _, rule in rules:
        assert "*" not in rule["apiGroups"] + rule["resources"] + rule["verbs"]
        if "secrets" in rule["resources"]:
            assert not SECRET_LISTING & set(rule["verbs"])


def test_two_operators_without_an_election_never_overlap():
    def strategy(values):
        found = render.chart(values)
        return found["Deployment", NAMESPACE, "parallelrun-operator"]["spec"].get("strategy")

    assert strategy({"leaderElection": {"enabled": False}}) == {"type": "Recreate"}
    assert strategy({"replicas": 2}) is None


def test_watched_namespaces_need_no_cluster_role():
    found = render.chart({"watchNamespaces": ["a", "b"]})
    assert not [kind for kind in kinds(found) if kind.startswith("ClusterRole")]
    everywhere = [rule for kind, _, rule in rules_of(render.chart()) if kind == "ClusterRole"]
    for namespace in "ab":
        assert found["Role", namespace, "parallelrun-operator"]["rules"] == everywhere
        binding = found["RoleBinding", namespace, "parallelrun-operator"]
        assert binding["subjects"][0]["namespace"] == NAMESPACE
    assert render.arguments(found)["watch-namespaces"] == "a,b"
    own = found["Role", NAMESPACE, "parallelrun-operator-leader"]
    assert own == render.chart()["Role", NAMESPACE, "parallelrun-operator-leader"]


def test_rights_follow_the_switches():
    values = {"jobs": {"networkPolicies": False}}
    resources = [r for _, _, rule in rules_of(render.chart(values)) for r in rule["resources"]]
    assert "networkpolicies" not in resources
    assert render.arguments(render.chart(values))["network-policies"] == "false"
    assert "poddisruptionbudgets" not in resources
    budgets = {"jobs": {"disruptionBudgets": True}}
    assert {
        "apiGroups": ["policy"],
        "resources": ["poddisruptionbudgets"],
        "verbs": ["get", "create", "patch", "delete"],
    } in [rule for _, _, rule in rules_of(render.chart(budgets))]
    assert kinds(render.chart({"rbac": {"create": False}})).count("Role") == 0
    assert kinds(render.chart({"rbac": {"userRoles": False}})).count("ClusterRole") == 1


def test_an_own_service_account():
    found = render.chart({"serviceAccount": {"create": False, "name": "mine"}})
    assert "ServiceAccount" not in kinds(found)
    assert render.operator_pod(found)["serviceAccountName"] == "mine"
    subjects = [o["subjects"][0]["name"] for (k, _, _), o in found.items() if "Binding" in k]
    assert subjects == ["mine", "mine"]


def test_names_follow_the_release():
    found = render.chart(release="blue", namespace="here")
    assert ("Deployment", "here", "blue-parallelrun-operator") in found
    found = render.chart({"fullnameOverride": "x"}, release="blue")
    assert ("Deployment", NAMESPACE, "x-operator") in found
    long = render.chart(release="r" * 53)
    assert all(len(name) <= 63 for _, _, name in long)


def test_the_pods_obey_the_restricted_standard(chart):
    for pod in (render.operator_pod(chart), helm_test_pod()["spec"]):
        assert pod["securityContext"]["runAsNonRoot"]
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in pod["containers"]:
            context = container["securityContext"]
            assert context["allowPrivilegeEscalation"] is False
            assert context["capabilities"] == {"drop": ["ALL"]}
            assert context["readOnlyRootFilesystem"]
            assert {"cpu", "memory"} == set(container["resources"]["requests"])


def test_openshift_assigns_users_itself():
    found = render.chart(
        {
            "jobs": {"podSecurityDefaults": False},
            "podSecurityContext": {"runAsUser": None, "runAsGroup": None},
        }
    )
    assert render.arguments(found)["pod-security-defaults"] == "false"
    assert set(render.operator_pod(found)["securityContext"]) == {"runAsNonRoot", "seccompProfile"}


def test_the_operators_network_policy():
    values = {"networkPolicy": {"enabled": True, "apiServerPorts": [6443]}}
    found = render.chart(values)
    policy = found["NetworkPolicy", NAMESPACE, "parallelrun-operator"]["spec"]
    deployment = found["Deployment", NAMESPACE, "parallelrun-operator"]["spec"]
    assert policy["podSelector"] == deployment["selector"]
    metrics, health = policy["ingress"]
    assert metrics["ports"][0]["port"] == "metrics"
    assert metrics["from"] == [{"namespaceSelector": {}}]
    tester = health["from"][0]["podSelector"]["matchLabels"]
    assert tester.items() <= helm_test_pod()["metadata"]["labels"].items()
    names, servers, coordinators = policy["egress"]
    assert [rule["ports"][0]["port"] for rule in (names, servers)] == [53, 6443]
    assert set(coordinators) == {"to"}, "a job keeps its port when jobs.coordinatorPort changes"
    selector = coordinators["to"][0]["podSelector"]["matchLabels"]
    assert selector == {"parallelrun.dev/role": "coordinator"}
    monitors = [{"namespaceSelector": {"matchLabels": {"metrics": "enabled"}}}]
    values["networkPolicy"]["metricsFrom"] = monitors
    policy = render.chart(values)["NetworkPolicy", NAMESPACE, "parallelrun-operator"]["spec"]
    assert policy["ingress"][0]["from"] == monitors


def test_where_pods_of_jobs_may_connect_to():
    """An opt-in: a policy with Egress denies all that it does not name."""
    none = render.chart({**EVERYTHING, "jobs": {"metricsNamespaces": ["monitoring"]}})
    assert [key for key in none if key[0] == "NetworkPolicy" and key[2] == "parallelrun-jobs"] == []
    rules = EVERYTHING["jobs"]["egress"]["rules"]
    own = {"jobs": {"egress": {"enabled": True, "namespaces": ["a", "b"], "rules": rules}}}
    watched = {"watchNamespaces": ["a", "b"], "jobs": {"egress": {"enabled": True}}}
    for values, more in ((own, rules), (watched, [])):
        found = render.chart(values)
        made = [key for key in found if key[0] == "NetworkPolicy"]
        assert sorted(made) == [("NetworkPolicy", name, "parallelrun-jobs") for name in "ab"]
        for key in made:
            policy = found[key]["spec"]
            assert policy["policyTypes"] == ["Egress"], "who may connect is each job's own policy"
            (chosen,) = policy["podSelector"]["matchExpressions"]
            assert chosen["key"] == "parallelrun.dev/role"
            assert chosen["values"] == ["coordinator", "node"], "nobody else's pods"
            names, coordinators, *others = policy["egress"]
            assert [(one["protocol"], one["port"]) for one in names["ports"]] == [
                ("UDP", 53),
                ("TCP", 53),
            ]
            assert set(coordinators) == {"to"}, "a job keeps its port"
            selector = coordinators["to"][0]["podSelector"]["matchLabels"]
            assert selector == {"parallelrun.dev/role": "coordinator"}
            assert others == more


def test_policies_of_jobs_say_nothing_of_where_they_connect_to():
    """Or a namespace that denies nothing would, to whatever scripts ask."""
    source = (ROOT / "operator/builders/objects.cc").read_text()
    assert '{"policyTypes", {"Ingress"}}' in source
    assert "Egress" not in source


def test_the_labels_by_which_jobs_know_the_operator():
    """The operator's builders name them in the NetworkPolicy of each job."""
    source = (ROOT / "operator/builders/objects.cc").read_text()
    deployment = render.chart(release="blue")["Deployment", NAMESPACE, "blue-parallelrun-operator"]
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    for name in ("app.kubernetes.io/name", "app.kubernetes.io/component"):
        assert f'"{name}", "{labels[name]}"' in source


def test_monitoring_objects():
    found = render.chart(EVERYTHING)
    monitor = found["ServiceMonitor", NAMESPACE, "parallelrun-operator"]
    assert monitor["metadata"]["labels"]["release"] == "p"
    assert monitor["spec"]["endpoints"][0]["honorLabels"]
    service = found["Service", NAMESPACE, "parallelrun-operator"]
    assert monitor["spec"]["selector"]["matchLabels"] == service["spec"]["selector"]
    assert monitor["spec"]["endpoints"][0]["port"] in [p["name"] for p in service["spec"]["ports"]]
    jobs = found["PodMonitor", NAMESPACE, "parallelrun-jobs"]
    assert jobs["spec"]["namespaceSelector"] == {"any": True}
    some = render.chart({**EVERYTHING, "watchNamespaces": ["a"]})
    jobs = some["PodMonitor", NAMESPACE, "parallelrun-jobs"]
    assert jobs["spec"]["namespaceSelector"] == {"matchNames": ["a"]}


def test_the_prometheus_rule_is_the_rules_file():
    ours = yaml.safe_load((ROOT / "deploy/monitoring/rules.yaml").read_text())
    values = {"prometheusRule": {"enabled": True}}
    found = render.chart(values)["PrometheusRule", NAMESPACE, "parallelrun"]
    assert found["spec"] == ours
    found = render.chart(EVERYTHING)["PrometheusRule", NAMESPACE, "parallelrun"]
    rules = [rule for group in found["spec"]["groups"] for rule in group["rules"]]
    urls = [rule["annotations"]["runbook_url"] for rule in rules if "alert" in rule]
    assert urls
    assert all(url.startswith("https://docs.example/runbooks/ParallelRun") for url in urls)


def test_the_dashboards_are_the_files():
    found = render.chart(EVERYTHING)
    for path in (ROOT / "deploy/monitoring/dashboards").glob("*.json"):
        made = found["ConfigMap", NAMESPACE, f"parallelrun-dashboard-{path.stem}"]
        assert json.loads(made["data"][path.name]) == json.loads(path.read_text())
        assert made["metadata"]["labels"]["grafana_dashboard"] == "1"


def test_helm_test_asks_for_readiness():
    pod = helm_test_pod()
    service = render.chart()["Service", NAMESPACE, "parallelrun-operator"]
    address = f"http://parallelrun-operator.{NAMESPACE}.svc:8081/readyz"
    assert pod["spec"]["containers"][0]["args"] == ["--check", address]
    assert pod["metadata"]["annotations"]["helm.sh/hook"] == "test"
    assert 8081 in [port["port"] for port in service["spec"]["ports"]]
    selector = service["spec"]["selector"]
    assert not selector.items() <= pod["metadata"]["labels"].items()


def test_the_notes_tell_the_next_three_commands(tmp_path):
    # `helm template` leaves the notes out; a client-side dry run prints them.
    command = [render.tool("helm"), "install", "parallelrun", CHART, "--namespace", "here"]
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "KUBECONFIG": "/dev/null"}
    told = render.run([*command, "--dry-run=client"], env=environment)
    notes = told.split("NOTES:")[1]
    assert "kubectl --namespace here rollout status deployment/parallelrun-operator" in notes
    assert "kubectl explain parallelrunjobs.spec" in notes
    assert "kubectl get parallelrunjobs --watch" in notes


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"replica": 2}, "replica"),
        ({"image": {"pullPolicy": "Sometimes"}}, "pullPolicy"),
        ({"image": {"digest": "1234"}}, "digest"),
        ({"watchNamespaces": "default"}, "watchNamespaces"),
        ({"watchNamespaces": ["Not_A_Name"]}, "watchNamespaces"),
        ({"leaderElection": {"leaseDuration": "15"}}, "leaseDuration"),
        ({"prometheusRule": {"runbookBaseUrl": "https://x.example/"}}, "runbookBaseUrl"),
        ({"log": {"level": "verbose"}}, "level"),
        ({"jobs": {"egress": {"enabled": True}}}, "jobs.egress.namespaces"),
        ({"jobs": {"egress": {"rules": [{"from": []}]}}}, "from"),
        ({"replicas": 2, "leaderElection": {"enabled": False}}, "leaderElection.enabled is false"),
    ],
)
def test_values_that_are_refused(values, told):
    assert told in render.refusal(values)


def test_an_old_kubernetes_is_refused():
    command = [render.tool("helm"), "template", "parallelrun", CHART, "--kube-version"]
    old = subprocess.run([*command, "1.31.14"], capture_output=True, text=True, timeout=60)
    assert "incompatible with Kubernetes" in old.stderr
    render.run([*command, "1.32.0-gke.100"])


def test_the_oldest_kubernetes_is_one_that_is_tested():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    floor = re.fullmatch(r">=(1\.\d+)\.0-0", chart["kubeVersion"]).group(1)
    assert f"--kubernetes {floor}" in (ROOT / "script/test").read_text()
    assert f"| {floor} |" in (ROOT / "docs/platforms.md").read_text()


def test_every_value_is_described_and_every_description_has_a_value():
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    schema = json.loads((CHART / "values.schema.json").read_text())

    def compare(values, schema, path):
        assert schema.get("description"), f"{path} has no description"
        fields = schema.get("properties")
        if fields is not None:
            assert set(fields) == set(values), path
            for name, field in fields.items():
                compare(values[name], field, f"{path}.{name}")

    compare(values, schema, "values")


def test_the_page_of_values_is_current():
    """Written by hand nowhere: `python3 -m support.values_table` in this folder makes its table."""
    from support import values_table

    text = values_table.PAGE.read_text()
    assert values_table.HEAD in text
    assert text == values_table.page(text)


@pytest.fixture(scope="module")
def schema_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("schemas")
    schemas.write(folder)
    return folder


def conform(folder, text, *options):
    location = f"{folder}/{schemas.LOCATION}"
    command = [render.tool("kubeconform"), "-summary", "-schema-location", location, *options]
    return render.run([*command, "-"], input=text)


def test_kubernetes_schemas_accept_the_chart(schema_folder):
    monitoring = ["-skip", "ServiceMonitor,PodMonitor,PrometheusRule"]
    assert "Invalid: 0, Errors: 0" in conform(schema_folder, render.template())
    everything = render.template(values={**EVERYTHING, "watchNamespaces": ["a", "b"]})
    told = conform(schema_folder, everything, *monitoring)
    assert "Invalid: 0, Errors: 0, Skipped: 3" in told


def test_kubernetes_schemas_accept_kustomize(schema_folder):
    for folder in ("crds", "deploy/base", "deploy/overlays/namespaced"):
        text = render.run([render.kubectl(), "kustomize", folder])
        assert "Invalid: 0, Errors: 0" in conform(schema_folder, text)


def test_a_misspelt_field_is_found(schema_folder):
    text = render.template().replace("serviceAccountName:", "serviceAccountNane:")
    with pytest.raises(AssertionError, match="serviceAccountNane"):
        conform(schema_folder, text)


@pytest.mark.parametrize("sample", ["digits", "wine"])
def test_the_crd_accepts_the_samples(schema_folder, sample):
    folder = ROOT / "deploy/samples" / sample
    for text in (
        (folder / "job.yaml").read_text(),
        (folder / "data.yaml").read_text(),
        render.run([render.kubectl(), "kustomize", folder]),
    ):
        assert "Invalid: 0, Errors: 0" in conform(schema_folder, text)


@pytest.mark.long
def test_helm_unittest():
    told = render.run([render.tool("helm-unittest"), "--strict", CHART])
    assert re.search(r"Tests: +(\d+) passed, \1 total", told), told


@pytest.mark.long
def test_kube_score():
    """Best practices, but for those that are not this chart's to decide."""
    ignored = [
        "pod-networkpolicy",  # on by networkPolicy.enabled
        "networkpolicy-targets-pod",  # the operator makes the pods of jobs
        "deployment-has-poddisruptionbudget",  # of use from 2 replicas on
        "deployment-has-host-podantiaffinity",  # likewise
        "container-ephemeral-storage-request-and-limit",  # it writes no files
        "container-image-pull-policy",  # IfNotPresent: a version's image never changes
        "pod-probes",  # liveness and readiness ask different paths of one port; test pods none
    ]
    command = [render.tool("kube-score"), "score", "--kubernetes-version", "v1.35", "-"]
    for name in ignored:
        command[2:2] = ["--ignore-test", name]
    values = {**EVERYTHING, "watchNamespaces": ["a"], "crds": {"install": False}}
    for wanted in ({"crds": {"install": False}}, values):
        render.run(command, input=render.template("--skip-tests", values=wanted))
