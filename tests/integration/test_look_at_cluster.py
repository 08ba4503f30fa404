"""parallelrun failures and logs of a job of a cluster: the same as of a run on this machine."""

import json
import signal

import pytest
from support.job_on_cluster import Cluster

SCRIPT = """
def run(mini_batch):
    [path] = mini_batch
    print("looks at", path[-10:])
    if open(path).read() in ("row 1", "row 3"):
        raise ValueError("bad")
    return ["row"]
"""
WHERE = ["-n", "team", "--context", "lab"]


@pytest.fixture
def cluster(work):
    return Cluster(work, SCRIPT, code=3, miniBatchSize="1", runMaxTry=1)


def call(cluster, *words):
    result = cluster.work.call(*words)
    cluster.nothing_left()
    return result


def executed(cluster):
    return [words for words in cluster.words() if "exec" in words]


def test_what_failed_by_a_pod_that_is_removed(cluster):
    result = call(cluster, "failures", "job", *WHERE)
    assert result.code == 0, result
    assert "2 items failed; logs: out/job/logs\n" in result.output
    assert "2      1  score.py:6  ValueError: bad\n" in result.output
    assert "Traceback" not in result.output
    assert all(words[:2] == ["--context=lab", "--namespace=team"] for words in cluster.words())
    created = json.loads((cluster.home / "created").read_text())
    assert created["spec"]["containers"][0]["volumeMounts"][0]["readOnly"] is True
    [brings] = executed(cluster)
    assert [word for word in brings if word.startswith("--only=")] == [
        "--only=job_result.txt",
        "--only=failures.jsonl",
    ]


def test_every_flag_is_that_of_a_run_here(cluster):
    result = call(cluster, "failures", "job", "--paths", *WHERE)
    assert result.code == 0, result
    data = cluster.work.data
    wanted = {str(data / "000001.txt"), str(data / "000003.txt")}
    assert wanted <= set(result.output.splitlines())

    result = call(cluster, "failures", "job", "--json", "--traceback", *WHERE)
    assert result.code == 0, result
    [told] = [line for line in result.output.splitlines() if line.startswith('{"logs"')]
    told = json.loads(result.output[result.output.index(told) :])
    assert (told["logs"], told["items"]) == ("out/job/logs", 2)
    [error] = told["errors"]
    assert "ValueError: bad" in error["traceback"]
    # Of the error logs no more than what is shown.
    brings = executed(cluster)[-1]
    name = error["log"].removeprefix("user/error/")
    assert [word for word in brings if word.startswith("--only=")] == [f"--only={name}"]


def test_while_it_runs_there_is_no_verdict_yet(cluster):
    pod = {"metadata": {"name": "job-0a1b2-coordinator-1"}, "status": {"phase": "Running"}}
    cluster.coordinators(pod)
    for name in ("job_result.txt", "failures.jsonl"):
        (cluster.work.logs / name).unlink()
    result = call(cluster, "failures", "job", *WHERE)
    assert result.code == 2, result
    assert "no verdict yet" in result.output
    assert "parallelrun logs job --namespace team --context lab" in result.output
    assert not (cluster.home / "created").exists()


def test_nothing_has_failed(cluster):
    (cluster.work.logs / "failures.jsonl").unlink()
    result = call(cluster, "failures", "job", *WHERE)
    assert result.code == 0 and "no item has failed" in result.output, result


def lines(output):
    return sorted(line for line in output.splitlines() if " | " in line)


def test_the_lines_of_its_scripts(cluster):
    here = cluster.work.call("logs", cluster.work.out / "job")
    assert here.code == 0 and "0/process000 out | looks at " in here.output, here
    there = call(cluster, "logs", "job", *WHERE)
    assert there.code == 0 and lines(there.output) == lines(here.output), there

    # One pod serves for all parts of them.
    assert [words.count("create") for words in cluster.words()].count(1) == 1

    here = cluster.work.call("logs", cluster.work.out / "job", "--node", "0")
    there = call(cluster, "logs", "job", "--node", "0", *WHERE)
    assert "0/agent | " in there.output and lines(there.output) == lines(here.output), there
    there = call(cluster, "logs", "job", "--node", "7", *WHERE)
    assert there.code == 0 and lines(there.output) == [], there


@pytest.mark.parametrize(
    ("flags", "instead"), [(["-f"], "parallelrun page job"), (["--item", "a"], "--traceback")]
)
def test_what_needs_the_state_of_a_run_says_what_there_is(cluster, flags, instead):
    result = call(cluster, "logs", "job", *flags, *WHERE)
    assert result.code == 2 and instead in result.output, result
    assert not (cluster.home / "words").exists()


def test_what_is_cut_comes_again(cluster):
    (cluster.home / "cut").write_text("1")
    result = call(cluster, "failures", "job", "--traceback", *WHERE)
    assert result.code == 0, result
    assert "trying again" in result.output and "ValueError: bad" in result.output


def test_a_job_is_followed_to_its_end(cluster):
    status = cluster.object["status"]
    counts = {"total": 5, "succeeded": 1, "failed": 0, "running": 2}
    status.update(
        phase="Running",
        nodes={"ready": 1},
        progress={"miniBatches": counts, "items": counts, "perSecond": 2.0},
    )
    cluster.tell()
    left = cluster.work.start("attach", "job", *WHERE)
    left.wait_for_text("1 of 5 mini-batches, 2.0/s, 0 failed, 1 node")
    left.send(signal.SIGINT)
    assert left.wait().code == -signal.SIGINT

    attached = cluster.work.start("attach", "job", *WHERE)
    attached.wait_for_text("1 of 5 mini-batches")
    obstacle = {"status": "False", "reason": "Unschedulable", "message": "no host"}
    status["conditions"] = [{"type": "NodesReady", **obstacle}]
    cluster.tell()
    attached.wait_for_text("waiting: Unschedulable: no host")
    end = {"status": "True", "reason": "CompletedWithFailures", "message": "2 items are lost"}
    status["conditions"] = [{"type": "Complete", **end}]
    status["progress"]["items"] = {"total": 5, "succeeded": 3, "failed": 2}
    cluster.tell()
    result = attached.wait()
    assert result.code == 3, result
    assert "Succeeded (CompletedWithFailures): 2 items are lost\n" in result.output
    words = "job --namespace team --context lab"
    assert f"parallelrun failures {words} --traceback\n" in result.output
    assert f"parallelrun fetch {words} output FOLDER\n" in result.output

    # A job that says how many items it may lose has no loss.
    cluster.object["spec"]["allowedFailedCount"] = 2
    cluster.tell()
    assert call(cluster, "attach", "job", *WHERE).code == 0


@pytest.mark.parametrize("command", ["failures", "logs"])
def test_who_stops_it_leaves_nothing(cluster, command):
    (cluster.home / "hangs").touch()
    waits = cluster.work.start(command, "job", *WHERE)
    waits.wait_for((cluster.home / "hung").exists, "it hangs")
    waits.send(signal.SIGINT)
    assert waits.wait().code == -signal.SIGINT
    cluster.nothing_left()


def test_what_is_not_there(cluster):
    (cluster.home / "job.json").unlink()
    for command in ("failures", "logs"):
        result = call(cluster, command, "job", *WHERE)
        assert result.code == 2 and "not found" in result.output, result
    del cluster.object["status"]["logs"]
    cluster.tell()
    for command in ("failures", "logs"):
        result = call(cluster, command, "job", *WHERE)
        assert result.code == 2 and "has no logs yet" in result.output, result
