"""What GitOps tools make of a real job, at each change of it."""

import contextlib
import http.client
import itertools
import json
import threading
import urllib.request

import pytest
from support import jobs
from support.kube import wait_until
from verdicts import argo, flux, kstatus


class Recorder:
    """Every version of a job, as a watch tells them."""

    def __init__(self, kube, namespace, name):
        self.versions = []
        path = f"/apis/parallelrun.dev/v1alpha1/namespaces/{namespace}/parallelrunjobs"
        url = f"{kube.url}{path}?watch=1&fieldSelector=metadata.name={name}"
        self._answer = urllib.request.urlopen(url, timeout=300)
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self):
        with contextlib.suppress(OSError, http.client.HTTPException):  # the end of the tests
            for line in self._answer:
                self.versions.append(json.loads(line)["object"])

    def until(self, condition, what):
        """All versions so far, once one fulfils the condition."""
        wait_until(lambda: any(condition(job) for job in list(self.versions)), what)
        return list(self.versions)


def in_order(verdicts):
    return [verdict for verdict, _ in itertools.groupby(verdicts)]


def ended(kind):
    def condition(job):
        found = job.get("status", {}).get("conditions", [])
        return any(c["type"] == kind and c["status"] == "True" for c in found)

    return condition


def patch(space, name, spec):
    words = ["patch", "prj", name, "-n", space.name, "--type=merge", "-p"]
    space.kube.kubectl(*words, json.dumps({"spec": spec}))


def test_a_job_that_is_suspended_and_completes(space, operator):
    recorder = Recorder(space.kube, space.name, "stages")
    # At work for minutes until it is told to go on, and soon suspended: what runs ends in between.
    pace = ["--wait", "go", "--seconds", "0.5"]
    job, data, _out, _output = space.run("stages", count=600, arguments=pace)
    job.wait_for_phase("Running")
    patch(space, "stages", {"suspend": True})
    job.wait_for_phase("Suspended")
    wait_until(lambda: job.condition("Suspended").get("status") == "True", job.tell)
    patch(space, "stages", {"suspend": False})
    job.wait_for_phase("Running")
    data.write(jobs.GO)
    versions = recorder.until(ended("Complete"), job.tell)

    health = argo(versions)
    seen = in_order(one["status"] for one in health)
    assert seen == ["Progressing", "Suspended", "Progressing", "Healthy"], health
    seen = in_order(flux(versions))
    # Before the operator's first write there is no status to ask.
    assert seen[seen[0] == "Error" :] == ["InProgress", "Current"], seen
    assert set(kstatus(versions)) == {"InProgress", "Current"}
    assert kstatus(versions[-1:]) == ["Current"]


def test_a_job_that_is_canceled(space, operator):
    recorder = Recorder(space.kube, space.name, "stopped")
    job, _data, _out, _output = space.run("stopped", count=4, arguments=["--wait", "go"])
    job.wait_for_phase("Running")
    patch(space, "stopped", {"cancel": True})
    versions = recorder.until(ended("Failed"), job.tell)
    assert in_order(one["status"] for one in argo(versions)) == ["Progressing", "Degraded"]
    assert "Canceled" in argo(versions[-1:])[0]["message"]
    assert in_order(flux(versions))[-2:] == ["InProgress", "Failed"]
    assert kstatus(versions[-1:]) == ["Failed"]


def diff(space, git, manifest):
    return space.kube.kubectl("diff", *git, "-f", "-", text=manifest, check=False)


def same(space, git, manifest):
    done = diff(space, git, manifest)
    assert done.returncode in (0, 1), done.stderr  # 1: there is a difference
    return done.returncode == 0 and done.stdout == ""


@pytest.mark.parametrize("way", ["client", "server"])
def test_a_file_from_git_is_applied_again(space, operator, way):
    """No difference, no new version, no second run; while it runs, and when it has ended."""
    fields = {"arguments": ["--wait", "go"], "speculation": False}
    job, data, out, output = space.run("again", **fields)
    manifest = json.dumps(jobs.manifest(space.name, "again", **fields))
    git = ["--server-side", "--field-manager=git"] if way == "server" else []
    if git:
        git.append("--force-conflicts")  # the first was applied by the client
        space.kube.kubectl("apply", *git, "-f", "-", text=manifest)
    job.wait_for_phase("Running")
    for end in (False, True):
        if end:
            data.write(jobs.GO)
            job.succeeded()
        # Between its two reads the operator may write the status, which it then takes for a change.
        wait_until(lambda: same(space, git, manifest), lambda: diff(space, git, manifest).stdout)
        before = job.get()
        said = space.kube.kubectl("apply", *git, "-f", "-", text=manifest)
        assert ("unchanged" if way == "client" else "serverside-applied") in said
        after = job.get()
        assert after["metadata"]["generation"] == before["metadata"]["generation"]
        assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert out.read("again/output/parallel_run_step.txt") == output
    names = [mark[0] for mark in jobs.marks(out)]
    assert len(names) == len(set(names))
