import itertools
import json
import os
import sys
import tempfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from support.client import Client, eventually
from support.coordinator import ROOT
from support.job import World
from support.kubelet import Kubelet
from support.operator_process import SYSTEM, Operator
from support.plane import Plane, definitions

RBAC = ROOT / "deploy/base/rbac-operator.yaml"


def pytest_addoption(parser):
    parser.addoption(
        "--kubeconfig",
        default=os.environ.get("KUBECONFIG_TEST"),
        help="use the control plane of this kubeconfig (JSON, as `plane up` writes it)"
        " instead of starting one; also KUBECONFIG_TEST",
    )
    parser.addoption(
        "--kubernetes",
        help="have the API server emulate this older version, such as 1.32",
    )


def pytest_configure(config):
    if config.getoption("--kubeconfig") and config.getoption("numprocesses", None):
        raise pytest.UsageError("one process for the one control plane of --kubeconfig, without -n")


# With -n, each process has a control plane of its own. The files that take longest begin first.
FIRST = ["pods_fail", "operator_manners", "job_life", "job_waits", "chaos", "perturbations"]


def pytest_collection_modifyitems(items):
    def place(item):
        name = item.path.stem.removeprefix("test_")
        return FIRST.index(name) if name in FIRST else len(FIRST)

    items.sort(key=place)


@pytest.fixture(scope="session")
def plane(request):
    """A control plane with the CRDs and the operator's rights as they are shipped."""
    existing = request.config.getoption("--kubeconfig")
    if existing:
        found = Plane(Path(existing).parent)
        found.kubeconfig = Path(existing)
        found.url = json.loads(found.kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
        install(found)
        yield found
        return
    with tempfile.TemporaryDirectory(prefix="plane.") as folder:
        started = Plane(folder, emulate=request.config.getoption("--kubernetes"))
        try:
            started.start()
            install(started)
            started.start_controllers()
            yield started
        finally:
            started.kill()


def install(plane):
    for crd in definitions():
        plane.kubectl("apply", "--server-side", "-f", crd)
    admin = Client(plane.kubeconfig)
    eventually(lambda: "apis/parallelrun.dev/v1alpha1" in described(admin), within=60)
    if not admin.find("Namespace", None, SYSTEM):
        admin.create("Namespace", None, {"metadata": {"name": SYSTEM}})
    plane.kubectl("apply", "--server-side", "-n", SYSTEM, "-f", RBAC)


def described(admin):
    """What the server publishes descriptions of; it does so some time after it serves it."""
    return json.loads(admin.request("GET", "/openapi/v3"))["paths"]


@pytest.fixture(scope="session")
def admin(plane):
    return Client(plane.kubeconfig)


@pytest.fixture(scope="session")
def operator_user(plane, admin):
    """A kubeconfig with a real token of the operator's service account."""
    return account_user(plane, admin, "parallelrun-operator")


def account_user(plane, admin, name):
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": 7200},
    }
    answer = admin.request("POST", Client.path("ServiceAccount", SYSTEM, name, "token"), request)
    return plane.token_user(name, answer["status"]["token"])


_numbers = itertools.count(1)


@pytest.fixture
def namespace(request, admin):
    """A namespace of the test's own, where Pod Security is enforced."""
    name = f"t{os.getpid()}-{next(_numbers)}"
    admin.create(
        "Namespace",
        None,
        {
            "metadata": {
                "name": name,
                "labels": {"pod-security.kubernetes.io/enforce": "restricted"},
                "annotations": {"test": request.node.name},
            },
        },
    )
    eventually(lambda: admin.find("ServiceAccount", name, "default"), within=60)
    yield name
    admin.delete_if_there("Namespace", None, name)


@pytest.fixture
def kubelet(admin, namespace, tmp_path):
    played = Kubelet(admin, namespace, tmp_path / "pods")
    yield played
    played.close()
    assert played.problems == []


@pytest.fixture
def operators(plane, namespace, operator_user, tmp_path):
    """Makes operators that watch the test's namespace; none is left at the end."""
    made = []

    def make(*arguments, user=operator_user, watch=namespace, **options):
        watched = [f"--watch-namespaces={watch}"] if watch else []
        operator = Operator(
            user, tmp_path / f"operator{len(made)}.log", *watched, *arguments, **options
        )
        made.append(operator)
        return operator

    yield make
    for operator in made:
        operator.kill()
        if operator.log.exists():
            print(f"--- {operator.log.name}\n{operator.tail(200)}")


@pytest.fixture
def no_leader(admin):
    """Nobody has the lease that all operators of the cluster share."""
    admin.delete_if_there("Lease", SYSTEM, "parallelrun-operator")


@pytest.fixture
def operator(operators):
    return operators().start()


@pytest.fixture
def world(plane, admin, namespace, kubelet, operator):
    """A namespace with an operator and kubelets, and short words for what tests do in it."""
    return World(plane, admin, namespace, kubelet, operator)
