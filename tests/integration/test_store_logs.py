"""Logs in a bucket: all that the log folder holds is there once the job has ended, however it ended
and whatever the store did meanwhile; and no store keeps a job from its rows."""

import json
import os
import signal

import pytest
from s3_server import OWNER, REGION, Server
from support import processes
from support.faulty_store import FaultyStore
from support.stored import HELD
from support.workspace import drains

# Above what one request takes.
LOUD = """
def run(mini_batch):
    print("x" * 3_000_000)
    return [open(path).read() for path in mini_batch]
"""

FAILS = """
def run(mini_batch):
    raise ValueError("no such row")
"""


PRINTS_AND_FAILS = """
def run(mini_batch):
    print("a word of the script")
    raise ValueError("no such row")
"""


SPEAKS_AND_WAITS = """
from steps import note, wait_for

def run(mini_batch):
    print("before the gate", flush=True)
    note("runs", "run")
    wait_for("open")
    print("behind the gate")
    return [open(path).read() for path in mini_batch]
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    running = Server(tmp_path_factory.mktemp("s3"))
    yield running
    running.close()


def set_up(work, server, bucket, url=None, keys=OWNER):
    """A job whose logs go to a bucket of that server."""
    for name in [name for name in work.environment if name.startswith("AWS_")]:
        del work.environment[name]
    work.environment.update(
        HOME=str(work.root),
        AWS_ENDPOINT_URL_S3=url or server.url,
        AWS_REGION=REGION,
        AWS_EC2_METADATA_DISABLED="true",
        AWS_ACCESS_KEY_ID=keys[0],
        AWS_SECRET_ACCESS_KEY=keys[1],
    )
    work.job(
        stores=[{"name": "bucket", "url": f"s3://{bucket}"}],
        logs={"store": "bucket", "path": "kept"},
        runMaxTry=1,
    )


def files_below(folder):
    """By their paths below it; links are nobody's."""
    found = {}
    for place, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(place, name)
            if not os.path.islink(path):
                with open(path, "rb") as file:
                    found[os.path.relpath(path, folder)] = file.read()
    return found


def runs_in(server, bucket):
    """The prefixes of its runs, in their order."""
    folder = server.root / bucket / "kept"
    return sorted(folder.iterdir()) if folder.is_dir() else []


def expect_all(work, server, bucket):
    """What the coordinator has gathered, file by file; returns it."""
    [run] = runs_in(server, bucket)
    here = files_below(work.out / "job/logs")
    there = files_below(run)
    # The store has it from the start, the folder with the verdict.
    assert {*there} - {"readme.txt"} == {*here} - {"readme.txt"}
    for name, text in here.items():
        # The command writes these two, until the programs end.
        grows = name == "sys/master_role.txt" or name.endswith("/_main.txt")
        assert text.startswith(there[name]) if grows else text == there[name], name
    assert b"<Upload>" not in server.request("GET", f"/{bucket}", "uploads=")
    return there


def test_all_of_the_log_folder_is_in_the_bucket(work, server):
    server.bucket("whole")
    work.script(LOUD)
    work.files(3)
    set_up(work, server, "whole")
    result = work.run()
    assert result.code == 0, result
    logs = expect_all(work, server, "whole")
    assert logs["job_result.txt"].startswith(b"Succeeded")
    assert b"x" * 3_000_000 in b"".join(
        text for name, text in logs.items() if name.startswith("user/stdout/0/")
    )
    assert "report.html" in logs and "readme.txt" in logs

    # Another run has another prefix, and takes nothing from this one.
    [first] = runs_in(server, "whole")
    assert work.run("--overwrite").code == 0
    [second] = [run for run in runs_in(server, "whole") if run != first]
    assert files_below(first) == logs
    assert (second / "job_result.txt").is_file()
    assert not (second / "previous").exists()


def test_those_of_a_job_that_failed(work, server):
    server.bucket("failed")
    work.script(FAILS)
    work.files(2)
    set_up(work, server, "failed")
    assert work.run().code == 1
    logs = expect_all(work, server, "failed")
    assert logs["job_result.txt"].startswith(b"Failed: NothingSucceeded")
    assert b"no such row" in logs["failures.jsonl"]
    assert b"ValueError: no such row" in b"".join(
        text for name, text in logs.items() if name.startswith("user/error/0/")
    )


def test_a_job_that_runs_shows_what_its_nodes_write(work, server):
    server.bucket("runs")
    work.script(SPEAKS_AND_WAITS)
    rows = work.files(2)
    set_up(work, server, "runs")
    command = work.start_job()
    command.wait_for(lambda: len(work.noted("runs")) == 2, "both run() work")

    def lines():
        return work.start("logs", "s3://runs/kept").wait_only().output

    command.wait_for(lambda: lines().count("out | before the gate") == 2, "the store has the lines")
    assert "job_result.txt" not in files_below(runs_in(server, "runs")[0])
    refused = work.start("failures", "s3://runs/kept").wait_only()
    assert refused.code == 2 and "no verdict yet" in refused.output, refused

    # One that dies has lost nothing that it took, and nobody reads anything twice. A process may
    # run its mini-batch again meanwhile.
    for coordinator in processes.running("coordinator"):
        coordinator.kill()
    work.make("open")
    result = command.wait()
    assert result.code == 0, result
    assert (work.out / "job/output/parallel_run_step.txt").read_text().split("\n")[:-1] == rows
    expect_all(work, server, "runs")
    here = work.log_text("user/stdout/0/*.stdout.txt")
    for words in ("before the gate", "behind the gate"):
        assert lines().count(f"out | {words}") == here.count(words) >= 2


def test_failures_and_logs_are_read_from_there(work, server):
    server.bucket("read")
    work.script(PRINTS_AND_FAILS)
    work.files(2)
    set_up(work, server, "read")
    assert work.run().code == 1
    [run] = runs_in(server, "read")
    # An older run is there too, and something that is none.
    server.put("read", "kept/20200101T000000Z-0000000000000001/job_result.txt", b"Succeeded: old\n")
    server.put("read", "kept/notes.txt", b"mine")
    for url in ("s3://read/kept", "s3://read/kept/", f"s3://read/kept/{run.name}"):
        told = work.call("failures", url)
        assert told.code == 0 and "ValueError: no such row" in told.output, told
        here = work.call("failures", "out/job/logs", "--json", "--traceback").output
        there = work.call("failures", url, "--json", "--traceback").output
        here, there = json.loads(here), json.loads(there)
        assert there.pop("logs") == f"s3://read/kept/{run.name}"
        here.pop("logs")
        assert there == here and "Traceback" in there["errors"][0]["traceback"]
    paths = work.call("failures", "s3://read/kept", "--paths")
    assert sorted(paths.output.split()) == [str(work.data / f"{n:06}.txt") for n in range(2)]
    old = work.call("failures", "s3://read/kept/20200101T000000Z-0000000000000001")
    assert old.code == 0 and "no item has failed" in old.output, old

    lines = work.call("logs", "s3://read/kept")
    assert lines.code == 0 and "out | a word of the script" in lines.output, lines
    assert "/agent | " not in lines.output
    assert "0/agent | " in work.call("logs", "s3://read/kept", "--node", "0").output
    assert work.call("logs", "s3://read/kept", "--node", "7").output == ""
    followed = work.call("logs", "s3://read/kept", "--follow")
    assert followed.code == 2 and "--follow is for runs on this machine" in followed.output, (
        followed
    )

    nothing = work.call("failures", "s3://read/other")
    assert nothing.code == 2, nothing
    assert "there are no logs of a run in s3://read/other" in nothing.output
    missing = work.call("failures", "s3://not-there/kept")
    assert missing.code in (1, 2) and "there is no bucket" in missing.output, missing


def test_those_of_a_run_that_was_stopped_and_of_its_end(work, server):
    server.bucket("stopped")
    work.script(HELD)
    work.files(4)
    set_up(work, server, "stopped")
    command = work.start_job()
    command.wait_for(lambda: work.noted("runs"), "run() works")
    command.send(signal.SIGINT)
    command.wait_for(lambda: drains(work.logs), "the node has heard of it")
    work.make("open")
    assert command.wait().code == 130
    logs = expect_all(work, server, "stopped")
    assert "job_result.txt" not in logs, "there is no verdict yet"
    result = work.run("--resume")
    assert result.code == 0, result
    assert expect_all(work, server, "stopped")["job_result.txt"].startswith(b"Succeeded")


def test_a_store_that_refuses_keeps_no_job_from_its_rows(work, server):
    server.bucket("refuses")
    keys = server.user("nobody")
    server.allow("refuses", (keys, "s3:ListBucket", ""))
    work.script()
    rows = work.files(3)
    set_up(work, server, "refuses", keys=keys)
    result = work.run()
    assert result.code == 0, result
    assert (work.out / "job/output/parallel_run_step.txt").read_text().split("\n")[:-1] == rows
    assert "logs cannot be written to their store" in result.output
    assert "s3:PutObject is missing on arn:aws:s3:::refuses/" in result.output
    assert "the logs are not whole in s3://refuses/kept/" in result.output
    assert (work.out / "job/logs/job_result.txt").is_file()
    assert keys[1] not in result.output
    assert runs_in(server, "refuses") == []


@pytest.mark.parametrize("fault", ["busy", "broken", "lost"])
def test_a_store_that_fails_now_and_then(work, server, fault):
    bucket = f"fault-{fault}"
    server.bucket(bucket)
    work.script(LOUD)
    work.files(2)
    with FaultyStore(server.port) as proxy:
        met = {}

        def fail(asked):
            """The first two requests of each kind."""
            if fault == "broken" and asked.what != "complete":
                return None
            met[asked.what] = met.get(asked.what, 0) + 1
            return fault if met[asked.what] <= 2 else None

        proxy.fault = fail
        set_up(work, server, bucket, proxy.url)
        result = work.run()
        assert result.code == 0, result
        assert met["complete"] >= 2
    [run] = runs_in(server, bucket)
    assert files_below(run).keys() == files_below(work.out / "job/logs").keys()
    assert (run / "job_result.txt").read_bytes().startswith(b"Succeeded")


# The readme at the start is the first; the files of the end follow, in no order.
POINTS = ["put 1", "put 5", "part 1", "complete 1"]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("point", POINTS)
def test_a_coordinator_that_is_killed_at_a_request_is_followed(work, server, point, when):
    what, number = point.split()
    bucket = f"kill-{what}-{number}-{when}"
    server.bucket(bucket)
    work.script(LOUD)
    rows = work.files(2)
    with FaultyStore(server.port) as proxy:
        met, killed = [], []

        def kill(asked):
            if killed or asked.what != what:
                return None
            met.append(asked)
            if len(met) < int(number):
                return None
            for coordinator in processes.running("coordinator"):
                coordinator.kill()
                killed.append(asked)
            return "lost" if when == "after" else "busy"

        proxy.fault = kill
        set_up(work, server, bucket, proxy.url)
        result = work.run()
        assert killed
        assert result.code == 0, result
    assert (work.out / "job/output/parallel_run_step.txt").read_text().split("\n")[:-1] == rows
    [run] = runs_in(server, bucket)
    here = files_below(work.out / "job/logs")
    there = files_below(run)
    assert sorted(there) == sorted(here)
    for name in here:
        if name.startswith("user/") or name in ("job_result.txt", "failures.jsonl"):
            assert there[name] == here[name], name
