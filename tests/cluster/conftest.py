"""A cluster for all tests of this folder, and a namespace with volumes for each.

Without options the cluster is started here and removed at the end (support/cluster.py; needs root
on Linux). With --kubeconfig it is an existing one, where the images have to be.
"""

import itertools
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from support import images, jobs
from support.cluster import Cluster, missing
from support.kube import Kube, wait_until
from support.volumes import FolderVolume, PodVolume

_numbers = itertools.count(1)


def pytest_addoption(parser):
    parser.addoption("--kubeconfig", help="use the cluster of this file")
    parser.addoption(
        "--storage-class", default="standard", help="ReadWriteMany class of that cluster"
    )
    parser.addoption(
        "--volumes",
        type=Path,
        help="instead: a folder that all its nodes see, as this machine does",
    )


def pytest_configure(config):
    config.addinivalue_line(
        "markers", "own_cluster: needs the machines of the cluster in its hands"
    )
    config.addinivalue_line("markers", "last: kubelets are slow for a while after it")
    config.figures = []
    # `timeout` sends it; the default action would leave the cluster behind.
    signal.signal(signal.SIGTERM, signal.default_int_handler)


def pytest_collection_modifyitems(items):
    """Tests that bring their own operator come before those that share one, which stays."""

    def place(item):
        return "operator" in item.fixturenames, item.get_closest_marker("last") is not None

    items.sort(key=place)


def pytest_terminal_summary(terminalreporter, config):
    if config.figures:
        terminalreporter.section("figures")
        for line in config.figures:
            terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def figures(request):
    """Lines that are printed at the end."""
    return request.config.figures


@pytest.fixture(scope="session")
def own(request):
    return not request.config.getoption("--kubeconfig")


@pytest.fixture(autouse=True)
def _possible(request, own):
    if request.node.get_closest_marker("own_cluster") and not own:
        pytest.skip("it has the machines of the cluster in its hands: not with --kubeconfig")


@pytest.fixture(scope="session")
def work():
    """A folder for all of the session. Its path is short: sockets are in it."""
    folder = Path(tempfile.mkdtemp(prefix="prtest-"))
    os.chmod(folder, 0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def builder(own, work):
    if own and (reason := missing()):
        pytest.skip(reason)
    return images.Builder(work / "images")


@pytest.fixture(scope="session")
def archives(builder):
    """Docker archives of our images, by name."""
    folder = builder.folder
    made = {
        images.PAUSE: images.pause(builder, folder),
        images.RUNTIME: images.runtime(builder, folder),
    }
    made[images.OPERATOR] = images.operator(builder, folder)
    return made


@pytest.fixture(scope="session")
def cluster(request, own, work, figures):
    """The Cluster, or None with --kubeconfig."""
    if not own:
        yield None
        return
    made = request.getfixturevalue("archives")
    started = time.monotonic()
    cluster = Cluster(work / "cluster")
    cluster.start()
    try:
        cluster.load(made.values())
        cluster.start_kubelets()
        figures.append(
            f"cluster of two nodes up, with images, after {time.monotonic() - started:.1f} s"
        )
        yield cluster
    finally:
        left = cluster.close()
    assert left == []


@pytest.fixture
def empty_cluster(own, cluster):
    """The cluster for tests that bring an operator themselves, and remove it."""
    if not own:
        pytest.skip("it needs a cluster without an operator: not with --kubeconfig")
    return cluster


@pytest.fixture(scope="session")
def kube(request, own, cluster):
    if own:
        kube = Kube(cluster.programs / "kubectl", cluster.kubeconfig)
    else:
        kube = Kube("kubectl", request.config.getoption("--kubeconfig"))
    yield kube
    kube.close()


@pytest.fixture(scope="session")
def operator(kube):
    """The operator, as crds and deploy/base install it; its namespace."""
    for base in ("crds", "deploy/base"):
        kube.kubectl("apply", "--server-side", "-k", images.ROOT / base)
    namespace = "parallelrun-system"
    rolled = [
        "rollout",
        "status",
        "-n",
        namespace,
        "deployment/parallelrun-operator",
        "--timeout=280s",
    ]
    done = kube.kubectl(*rolled, check=False, limit=300)
    if done.returncode != 0:
        said = kube.kubectl("describe", "pods", "-n", namespace)
        for pod in kube.list("pods", namespace):
            said += kube.log(namespace, pod["metadata"]["name"])
        pytest.fail(
            f"the operator did not get ready: {done.stderr}{done.stdout}\n{said}", pytrace=False
        )
    return namespace


class Space:
    """A namespace with Pod Security `restricted` enforced; deleted at the end of the test."""

    def __init__(self, kube, name, folder, storage_class):
        self.kube = kube
        self.name = name
        self.folder = folder
        self._storage_class = storage_class
        self._volumes = []
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        kube.apply(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
        )
        account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
        wait_until(lambda: kube.raw(account), "the namespace's service account")

    def volume(self, name, mode="ReadWriteMany", folder=None):
        if self.folder:
            made = FolderVolume(self.kube, self.name, name, folder or self.folder / name, mode)
        else:
            made = PodVolume(self.kube, self.name, name, self._storage_class, "newer:1", mode)
        self._volumes.append(made)
        return made

    def code(self, script=jobs.SCRIPT, name="code", **files):
        self.kube.apply(jobs.code_map(self.name, {"score.py": script, **files}, name))

    def apply(self, job):
        self.kube.apply(job)
        return jobs.Job(self.kube, self.name, job["metadata"]["name"])

    def run(self, name, count=8, **fields):
        """Applies a job of jobs.manifest with its code and `count` rows.

        Returns it, both volumes and the output that it has to make.
        """
        files, output = jobs.rows(count)
        data, out = self.volume("data"), self.volume("out")
        data.write(files)
        self.code()
        job = self.apply(jobs.manifest(self.name, name, **fields))
        return job, data, out, output

    def close(self):
        self.kube.kubectl("delete", "namespace", self.name, "--wait=false", "--ignore-not-found")
        for volume in self._volumes:
            volume.close()


@pytest.fixture
def space(request, kube, own, work):
    name = f"t{next(_numbers)}-{os.getpid()}"
    shared = work if own else request.config.getoption("--volumes")
    folder = shared.resolve() / name if shared else None
    space = Space(kube, name, folder, request.config.getoption("--storage-class"))
    yield space
    space.close()
