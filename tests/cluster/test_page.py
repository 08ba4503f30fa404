"""parallelrun page, for a user who may do what docs/page.md says, and no more."""

import contextlib
import http.client
import json
import re
import subprocess

import pytest
from support import jobs
from support.kube import wait_until
from support.viewer import FORWARD, environment_of_viewer, role

RULES = [
    {"apiGroups": ["parallelrun.dev"], "resources": ["parallelrunjobs"], "verbs": ["get"]},
    {"apiGroups": [""], "resources": ["services", "pods"], "verbs": ["get", "list"]},
]


class Page:
    def __init__(self, space, job, environment, folder):
        self._log = folder / f"page-{len(list(folder.iterdir()))}.txt"
        words = [str(jobs.BIN / "parallelrun"), "page", job, "--namespace", space.name]
        with open(self._log, "wb") as log:
            self.process = subprocess.Popen(words, env=environment, stdout=log, stderr=log)

    @property
    def said(self):
        return self._log.read_text()

    def address(self):
        """Port and token, once it has said them."""
        pattern = r"page: http://127.0.0.1:(\d+)/#t=(\w+)"
        found = wait_until(
            lambda: self.process.poll() is not None or re.search(pattern, self.said),
            lambda: f"the address of the page\n{self.said}",
        )
        assert found is not True, self.said
        return int(found[1]), found[2]

    def wait(self):
        wait_until(lambda: self.process.poll() is not None, lambda: f"its end\n{self.said}")
        return self.process.returncode

    def close(self):
        self.process.kill()
        self.process.wait()


def first_document(port, token):
    """None while the coordinator is out of reach."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    with contextlib.closing(connection):
        try:
            connection.request("GET", "/v1/events", headers={"Authorization": f"Bearer {token}"})
            for line in connection.getresponse():
                if line.startswith(b"data: "):
                    return json.loads(line[6:])
        except (OSError, http.client.HTTPException):
            return None


def answer_to(port, token, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    with contextlib.closing(connection):
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
        return connection.getresponse().read()


@pytest.fixture
def pages(space, tmp_path):
    started = []

    def start(job, environment):
        started.append(Page(space, job, environment, tmp_path))
        return started[-1]

    yield start
    for page in started:
        page.close()


@pytest.mark.own_cluster
def test_a_user_sees_a_job_by_kubectl_and_its_own_rights(space, operator, cluster, pages, tmp_path):
    job, data, *_ = space.run("seen", arguments=["--wait", "go"])
    job.wait_for_phase("Running")
    environment = environment_of_viewer(space, cluster, tmp_path)

    # Without a right it says which one is missing, and shows nothing.
    refused = pages("seen", environment)
    assert refused.wait() == 2
    assert "cannot get resource" in refused.said and "page: http" not in refused.said
    uid = job.get()["metadata"]["uid"][:5]
    role(space, RULES)
    refused = pages("seen", environment)
    assert refused.wait() == 2
    assert f"needs the right to get Secret seen-{uid}-access" in refused.said
    names = [f"seen-{uid}-access"]
    secret = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"], "resourceNames": names}
    role(space, [*RULES, secret])
    refused = pages("seen", environment)
    assert refused.wait() == 2
    assert "pods/portforward" in refused.said and "page: http" not in refused.said

    role(space, [*RULES, secret, FORWARD])
    page = pages("seen", environment)
    port, token = page.address()
    document = first_document(port, token)
    assert document["live"] is True and document["name"] == "seen"
    assert document["miniBatches"]["planned"] == 8
    log = answer_to(port, token, "/v1/log?path=sys/master_role.txt")
    assert b"epoch 1 of run" in log

    # Another coordinator is found, and shown under the same address.
    gone = job.pod("coordinator")["metadata"]["name"]
    space.kube.kubectl("delete", "pod", gone, "-n", space.name, "--wait=false")
    wait_until(
        lambda: (
            (job.pod("coordinator") or {"metadata": {"name": gone}})["metadata"]["name"] != gone
            and first_document(port, token)
        ),
        lambda: f"the page of the next coordinator\n{page.said}\n{job.tell()}",
    )
    data.write(jobs.GO)
    job.succeeded()
    wait_until(
        lambda: first_document(port, token) is None and page.process.poll() is not None,
        lambda: f"the end of the page\n{page.said}",
    )
    assert page.process.returncode == 0, page.said
    assert "job seen is over: Succeeded" in page.said
