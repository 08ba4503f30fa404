"""parallelrun fetch, for a user who may do what docs/cli.md says, and no more."""

import subprocess

import pytest
from support import jobs
from support.kube import wait_until
from support.viewer import environment_of_viewer, role

RULES = [
    {"apiGroups": ["parallelrun.dev"], "resources": ["parallelrunjobs"], "verbs": ["get"]},
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "create", "delete"]},
]
EXECUTE = {"apiGroups": [""], "resources": ["pods/exec"], "verbs": ["create"]}


class Fetcher:
    def __init__(self, space, environment, folder):
        self._space = space
        self._environment = environment
        self._folder = folder

    def call(self, command, *words):
        words = [jobs.BIN / "parallelrun", command, "brought", *words]
        words += ["--namespace", self._space.name]
        return subprocess.run(
            list(map(str, words)),
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=240,
        )

    def fetch(self, what, to):
        folder = self._folder / to
        return self.call("fetch", what, folder), folder

    def fetched(self, what, to):
        done, folder = self.fetch(what, to)
        assert done.returncode == 0, done.stdout + done.stderr
        return folder, done

    def readers(self):
        """Those that are not told to go."""
        pods = self._space.kube.list(
            "pods", self._space.name, labelSelector="app.kubernetes.io/component=reader"
        )
        return [pod for pod in pods if not pod["metadata"].get("deletionTimestamp")]


def names(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if not p.is_dir())


@pytest.mark.own_cluster
def test_what_a_job_has_written_comes_also_when_its_pods_are_gone(
    space, operator, cluster, tmp_path
):
    job, data, out, output = space.run(
        "brought",
        arguments=["--wait", "go", "--marks", "$(output)/marks"],
        ttlSecondsAfterFinished=1,
    )
    fetcher = Fetcher(space, environment_of_viewer(space, cluster, tmp_path), tmp_path)

    # Without a right it says which one is missing, and leaves nothing.
    done, folder = fetcher.fetch("logs", "refused")
    assert done.returncode == 2 and "cannot get resource" in done.stderr
    role(space, RULES)
    wait_until(
        lambda: (job.pod("coordinator") or {"status": {}})["status"].get("phase") == "Running",
        lambda: f"a coordinator\n{job.tell()}",
    )
    done, folder = fetcher.fetch("logs", "refused")
    assert done.returncode == 1 and "pods/exec" in done.stderr, done.stderr
    assert not folder.exists() and [p.name for p in tmp_path.iterdir()] == ["viewer.json"]

    # While it runs, by its coordinator's pod.
    role(space, [*RULES, EXECUTE])
    job.wait_for_phase("Running")
    logs, done = fetcher.fetched("logs", "running")
    assert "epoch 1 of run" in (logs / "sys/master_role.txt").read_text()
    assert "reads its volume" not in done.stderr
    done, _ = fetcher.fetch("output", "early")
    assert done.returncode == 2 and "has no output yet" in done.stderr

    # Its pods are gone.
    data.write(jobs.GO)
    job.succeeded()
    wait_until(lambda: job.pods() == [], lambda: f"no pods\n{job.tell()}")
    link = out.folder / "brought/logs/link"
    link.symlink_to("/etc")
    got, done = fetcher.fetched("output", "output")
    assert (got / "parallel_run_step.txt").read_bytes() == output
    assert names(got) == ["parallel_run_step.txt", "parallel_run_step.txt.index.jsonl"]
    assert "reads its volume out" in done.stderr
    got, _ = fetcher.fetched("side-files", "side")
    expected = [f for f in out.files() if f.startswith("brought/output/marks/")]
    assert len(expected) >= 8
    assert names(got) == [f.removeprefix("brought/output/") for f in expected]
    got, _ = fetcher.fetched("report", "report")
    assert names(got) == ["job_result.txt", "report.html"]
    got, _ = fetcher.fetched("logs", "logs")
    kept = [f for f in out.files() if f.startswith("brought/logs/") and f != "brought/logs/link"]
    there = {f.removeprefix("brought/logs/") for f in kept}
    # Names that older versions had are links.
    assert set(names(got)) <= there and "job_result.txt" in names(got)
    assert not (got / "link").exists()
    assert (got / "job_result.txt").read_bytes() == out.read("brought/logs/job_result.txt")

    # What looks at it brings no more than it shows, and leaves nothing.
    done = fetcher.call("failures")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "no item has failed; logs: out/brought/logs\n"
    done = fetcher.call("logs", "--node", "0")
    assert done.returncode == 0 and "0/agent | " in done.stdout, done.stdout + done.stderr

    # What is not what was published does not come.
    file = out.folder / "brought/output/parallel_run_step.txt"
    file.write_bytes(output.replace(b"row 3", b"row 4"))
    done, folder = fetcher.fetch("output", "damaged")
    assert done.returncode == 1 and "is not what the job published" in done.stderr
    assert not folder.exists()
    assert list(tmp_path.glob("*.partial-*")) == []
    assert fetcher.readers() == []
