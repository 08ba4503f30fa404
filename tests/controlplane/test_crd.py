"""The CustomResourceDefinition as the API server sees it."""

import json
import re

import pytest
import yaml
from support.bad_specs import BASE, cases, job_of, merged
from support.client import ApiError
from support.job import spec
from support.plane import definitions

NAME = "parallelrunjobs.parallelrun.dev"


def bad(kind):
    return [pytest.param(case, id=case["name"].replace(" ", "-")) for case in cases(kind)]


def try_create(admin, namespace, job, **query):
    """The object, or what the server says against it."""
    path = admin.path("ParallelRunJob", namespace)
    return admin.request("POST", path, job, query={"dryRun": "All", **query})


@pytest.fixture(scope="module")
def shared(admin):
    """A namespace in which nothing is ever stored."""
    name = "crd-tests"
    if not admin.find("Namespace", None, name):
        admin.create("Namespace", None, {"metadata": {"name": name}})
    yield name
    admin.delete("Namespace", None, name)


@pytest.fixture
def job(admin, namespace):
    """A stored job with a status, and functions that change it."""

    class Stored:
        def __init__(self):
            body = {"metadata": {"name": "digits"}, "spec": spec()}
            self.made = admin.create("ParallelRunJob", namespace, body, fieldValidation="Strict")

        def change(self, **fields):
            return admin.merge("ParallelRunJob", namespace, "digits", {"spec": fields})

        def status(self, **fields):
            return admin.merge("ParallelRunJob", namespace, "digits", {"status": fields}, "status")

        def get(self):
            return admin.get("ParallelRunJob", namespace, "digits")

    return Stored()


def condition(kind, status="True", reason="Test"):
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": "",
        "lastTransitionTime": "2026-11-21T09:00:00Z",
    }


def test_the_definition_is_established_and_structural(admin):
    crd = admin.get("CustomResourceDefinition", None, NAME)
    states = {c["type"]: c["status"] for c in crd["status"]["conditions"]}
    assert states["Established"] == "True"
    assert states["NamesAccepted"] == "True"
    assert states.get("NonStructuralSchema", "False") == "False"


def test_the_definition_is_small_enough_for_client_side_apply(plane, admin):
    files = definitions()
    assert len(files) == 1
    # kubectl keeps it in an annotation, and an object's have room for 262,144 bytes.
    assert len(json.dumps(yaml.safe_load(files[0].read_text()))) < 200_000
    done = plane.kubectl("apply", "--dry-run=server", "-f", files[0])
    assert NAME in done.stdout


def test_server_side_apply_twice_changes_nothing(plane, admin):
    (file,) = definitions()
    before = admin.get("CustomResourceDefinition", None, NAME)["metadata"]["generation"]
    plane.kubectl("apply", "--server-side", "-f", file)
    assert admin.get("CustomResourceDefinition", None, NAME)["metadata"]["generation"] == before


def test_names(plane):
    table = plane.kubectl("api-resources", "--api-group=parallelrun.dev", "-o", "wide").stdout
    words = table.split("\n")[1].split()
    assert words[:5] == [
        "parallelrunjobs",
        "prj",
        "parallelrun.dev/v1alpha1",
        "true",
        "ParallelRunJob",
    ]
    # `kubectl get all` shows it, as it does a Job of Kubernetes.
    assert words[-1] == "all,parallelrun"


def test_every_field_is_explained(plane, admin):
    text = plane.kubectl("explain", "prj.spec").stdout
    assert "entryScript" in text
    assert "<no description>" not in text
    for field in (
        "spec.inputs.tabular",
        "spec.volumes",
        "spec.output",
        "status",
        "status.progress",
    ):
        plane.kubectl("explain", f"prj.{field}")


def test_the_base_of_the_table_is_taken(admin, shared):
    try_create(admin, shared, BASE, fieldValidation="Strict")


@pytest.mark.parametrize("case", bad("schema"))
def test_refused_by_the_schema(admin, shared, case):
    with pytest.raises(ApiError) as refused:
        try_create(admin, shared, job_of(case))
    assert refused.value.status in (400, 404, 422)
    told = refused.value.message
    assert case["says"] in told or any(
        name in told for name in re.split(r"[.\[\]0-9]+", case["field"]) if name
    )


@pytest.mark.parametrize("case", bad("strict"))
def test_refused_by_strict_validation(admin, shared, case):
    job = job_of(case)
    with pytest.raises(ApiError) as refused:
        try_create(admin, shared, job, fieldValidation="Strict")
    assert "unknown field" in refused.value.message


@pytest.mark.parametrize("case", bad("api") + bad("cluster"))
def test_let_through_by_the_server(admin, shared, case):
    try_create(admin, shared, job_of(case), fieldValidation="Strict")


@pytest.mark.parametrize(
    "marks",
    [
        {"delimiter": "||"},
        {"delimiter": ", ", "quote": "'", "comment": "#", "escape": "\\"},
        {"delimiter": "§§§§"},
        {"delimiter": "\t\t", "format": "TSV"},
        # A word, and no character.
        {"delimiter": "None", "quote": "None"},
    ],
)
def test_marks_of_tables_that_can_be_told_apart(admin, shared, marks):
    inputs = [{"name": "rows", "tabular": {"volume": "data", **marks}}]
    job = merged(BASE, {"metadata": {"name": "marks"}, "spec": {"inputs": inputs}})
    made = try_create(admin, shared, job, fieldValidation="Strict")
    assert made["spec"]["inputs"][0]["tabular"]["delimiter"] == marks["delimiter"]


def test_defaults(admin, shared):
    made = try_create(admin, shared, {**BASE, "metadata": {"name": "digits"}})["spec"]
    expected = {
        "nodeCount": 1,
        "shortReturn": "Keep",
        "runMaxTry": 3,
        "runInvocationTimeoutSeconds": 60,
        "loggingLevel": "INFO",
        "suspend": False,
        "cancel": False,
    }
    assert {key: made.get(key) for key in expected} == expected
    # That a threshold was written means something.
    for threshold in ("errorThreshold", "allowedFailedCount", "allowedFailedPercent"):
        assert threshold not in made


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("entryScript", "other.py"),
        ("code", {"configMap": {"name": "other"}}),
        ("arguments", ["--other"]),
        ("environment", {"image": "images.test/other:1"}),
        ("output", {"fileName": "other.txt"}),
        ("rankMiniBatchCount", 21),
        ("runMaxTry", 4),
        ("processCountPerNode", 3),
        ("miniBatchSize", "11"),
        ("volumes", [{"name": "out", "persistentVolumeClaim": {"claimName": "other"}}]),
    ],
)
def test_what_may_not_change(job, field, value):
    with pytest.raises(ApiError) as refused:
        job.change(**{field: value})
    assert refused.value.status == 422
    assert field in refused.value.message


@pytest.mark.parametrize(
    "changes",
    [
        {"processCountPerNode": None},
        {"sharedMemory": "1Gi"},
        # What may come and what may not, at once.
        {"rankMiniBatchCount": None, "inputs": [], "ttlSecondsAfterFinished": 60},
        {"miniBatchSize": 5, "ttlSecondsAfterFinished": 60},
    ],
)
@pytest.mark.parametrize("has_status", [False, True])
def test_what_may_not_come_or_go(job, changes, has_status):
    if has_status:
        job.status(phase="Running", conditions=[condition("Accepted")])
    with pytest.raises(ApiError) as refused:
        job.change(**changes)
    assert refused.value.status == 422
    assert "cannot be added or removed" in refused.value.message
    assert next(iter(changes)) in refused.value.message


def test_a_status_in_the_same_request_does_not_help(admin, namespace, job):
    job.status(phase="Running")
    body = {"spec": {"processCountPerNode": None}, "status": {"phase": "Failed"}}
    with pytest.raises(ApiError) as refused:
        admin.merge("ParallelRunJob", namespace, "digits", body)
    assert refused.value.status == 422


def test_the_way_of_running_changes_only_while_suspended(job):
    job.status(phase="Running")
    changes = {"resources": {"limits": {"cpu": "2"}}, "podTemplate": {"spec": {"hostname": "x"}}}
    for field, value in changes.items():
        with pytest.raises(ApiError) as refused:
            job.change(**{field: value})
        assert refused.value.status == 422
        assert "set suspend: true first" in refused.value.message
    job.change(suspend=True)
    job.change(**changes)
    job.change(suspend=False)
    with pytest.raises(ApiError):
        job.change(resources={"limits": {"cpu": "3"}})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("nodeCount", 5),
        ("suspend", True),
        ("cancel", True),
        ("ttlSecondsAfterFinished", 60),
        ("activeDeadlineSeconds", 3600),
        ("errorThreshold", 7),
        ("allowedFailedCount", 7),
        ("allowedFailedPercent", 50),
    ],
)
def test_what_may_change(job, field, value):
    assert job.change(**{field: value})["spec"][field] == value


def test_cancel_is_one_way(job):
    job.change(cancel=True)
    with pytest.raises(ApiError) as refused:
        job.change(cancel=False)
    assert refused.value.status == 422


@pytest.mark.parametrize("kind", ["Complete", "Failed"])
def test_a_verdict_never_goes_back(job, kind):
    job.status(conditions=[condition(kind)])
    with pytest.raises(ApiError) as refused:
        job.status(conditions=[condition(kind, "False")])
    assert refused.value.status == 422
    with pytest.raises(ApiError):
        job.status(conditions=[condition("Accepted")])
    job.status(conditions=[condition(kind), condition("Accepted")])


def test_a_status_from_an_old_reading_is_refused(admin, namespace, job):
    old = job.get()["metadata"]["resourceVersion"]
    job.status(phase="Running")
    body = {
        "apiVersion": "parallelrun.dev/v1alpha1",
        "kind": "ParallelRunJob",
        "metadata": {"name": "digits", "resourceVersion": old},
        "status": {"phase": "Pending"},
    }
    with pytest.raises(ApiError) as refused:
        admin.request(
            "PATCH",
            admin.path("ParallelRunJob", namespace, "digits", "status"),
            body,
            "application/apply-patch+yaml",
            {"fieldManager": "parallelrun-operator", "force": "true"},
        )
    assert refused.value.status == 409
    assert job.get()["status"]["phase"] == "Running"


def test_never_complete_and_failed(job):
    with pytest.raises(ApiError) as refused:
        job.status(conditions=[condition("Complete"), condition("Failed")])
    assert refused.value.status == 422


def test_status_and_spec_are_written_apart(job):
    assert "status" not in job.made
    job.status(phase="Running")
    assert job.change(nodeCount=3)["status"]["phase"] == "Running"
    assert job.get()["spec"]["nodeCount"] == 3


def test_kubectl_scale(plane, namespace, job):
    job.status(replicas=2, selector="parallelrun.dev/job=digits")
    plane.kubectl("-n", namespace, "scale", "prj/digits", "--replicas=7")
    assert job.get()["spec"]["nodeCount"] == 7
    with pytest.raises(AssertionError):
        plane.kubectl("-n", namespace, "scale", "prj/digits", "--replicas=-1")


def test_columns(plane, namespace, job):
    columns = {"status": "Running", "done": "61/180", "failed": "1", "nodes": "2/2", "eta": "6s"}
    job.status(display=columns)
    table = plane.kubectl("-n", namespace, "get", "prj").stdout.splitlines()
    assert table[0].split() == ["NAME", "STATUS", "DONE", "FAILED", "NODES", "ETA", "AGE"]
    assert table[1].split()[:2] == ["digits", "Running"]
    assert "61/180" in table[1]


def test_jobs_of_a_phase(plane, namespace, job):
    job.status(phase="Running")
    found = plane.kubectl("-n", namespace, "get", "prj", "--field-selector=status.phase=Running")
    assert "digits" in found.stdout
    found = plane.kubectl("-n", namespace, "get", "prj", "--field-selector=status.phase=Failed")
    assert "digits" not in found.stdout
