"""Side files of a job whose output lies in a bucket: each once, of attempts that count, and after
the verdict, whatever happens to processes and store meanwhile."""

import hashlib
import json
import random
import signal

import pytest
from s3_server import OWNER, REGION, Server
from support import processes
from support.faulty_store import FaultyStore
from support.processes import expect_nothing_running
from waits import wait_until

LIST = "_files.jsonl"
LARGE = 16 << 20  # bytes, beyond which a file has several parts

# Each first attempt leaves half of what it is to leave, and what the second one does not write.
SCRIPT = """
import os, sys
from steps import first, note, there, wait_for

def put(name, text):
    path = os.path.join(sys.argv[sys.argv.index("--to") + 1], name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)

def run(mini_batch, context):
    index = context.minibatch_index
    note("runs", index)
    if there("fails") and first(f"tried-{index}"):
        put(f"{index:03}.txt", "half")
        put(f"of-an-attempt-{index}.txt", "x")
        raise ValueError("once")
    put(f"{index:03}.txt", f"whole {index}")
    put(f"models/{index % 3}/{index:03}.bin", "x" * index)
    if there("large") and index == 0:
        put("large.bin", "y" * int(os.environ["LARGE"]))
    note("held", index)
    waits = there("waits") or (there("waits-late") and index >= 2)
    if waits and not there("go"):
        wait_for("go")
    return [open(path).read() for path in mini_batch]
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    running = Server(tmp_path_factory.mktemp("s3"))
    yield running
    running.close()


def set_up(work, url):
    for name in [name for name in work.environment if name.startswith("AWS_")]:
        del work.environment[name]
    work.environment.update(
        HOME=str(work.root),
        AWS_ENDPOINT_URL_S3=url,
        AWS_REGION=REGION,
        AWS_EC2_METADATA_DISABLED="true",
        AWS_ACCESS_KEY_ID=OWNER[0],
        AWS_SECRET_ACCESS_KEY=OWNER[1],
        LARGE=str(2 * LARGE + 1),
    )


def job(work, server, bucket, count, action="SummaryOnly", **fields):
    """Whose output lies in the prefix `job` of a bucket of its own."""
    server.bucket(bucket)
    rows = work.files(count)
    work.script(SCRIPT)
    options = {"arguments": ["--to", "$(output)"], "processCountPerNode": 2}
    output = {"store": "out", "path": "job", "sideFiles": "Staged", "action": action}
    work.job(
        stores=[{"name": "out", "url": f"s3://{bucket}"}],
        output={**output, **fields.pop("output", {})},
        logs={"volume": "out", "path": "job/logs"},
        state={"volume": "out", "path": "job/state"},
        **{**options, **fields},
    )
    return rows


def expected(count):
    """{name: content} of the side files of a whole run."""
    files = {f"{index:03}.txt": f"whole {index}" for index in range(count)}
    files.update({f"models/{index % 3}/{index:03}.bin": "x" * index for index in range(count)})
    return files


def objects(server, bucket):
    """{key below the job's prefix: bytes} of a bucket, without the reports of the run."""
    folder = server.root / bucket / "job"
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".sgwtmp" not in path.parts and ".run/" not in str(path)
    }


def uploads(server, bucket):
    """How many uploads wait in a bucket."""
    return server.request("GET", f"/{bucket}", "uploads=").count(b"<Upload>")


def expect_whole(server, bucket, count, own=(LIST, f"{LIST}.index.jsonl")):
    there = objects(server, bucket)
    wanted = {name: text.encode() for name, text in expected(count).items()}
    assert {name: there[name] for name in there if name not in own} == wanted
    assert uploads(server, bucket) == 0
    if LIST in own:
        lines = map(json.loads, there[LIST].decode().splitlines())
        assert {line["name"]: (line["bytes"], line["sha256"]) for line in lines} == {
            name: (len(text), hashlib.sha256(text).hexdigest()) for name, text in wanted.items()
        }


def test_side_files_of_attempts_that_count_are_objects_and_no_others(work, server):
    set_up(work, server.url)
    job(work, server, "counts", 8)
    work.make("fails")
    result = work.run("--nodes", "2")
    assert result.code == 0, result
    expect_whole(server, "counts", 8)
    verified = work.call("verify", work.out / "job/state")
    assert verified.code == 0, verified
    assert "whole: s3://counts/job/_files.jsonl (16 side files, " in verified.output
    assert "whole: 16 side files (" in verified.output
    server.put("counts", "job/models/1/004.bin", b"yyyy")
    verified = work.call("verify", work.out / "job/state")
    assert verified.code == 1, verified
    assert "damaged: the side file models/1/004.bin has other bytes" in verified.output


def test_beside_rows_the_index_lists_them(work, server):
    set_up(work, server.url)
    rows = job(work, server, "rows", 4, "AppendRow", output={"fileName": "rows.txt"})
    result = work.run()
    assert result.code == 0, result
    there = objects(server, "rows")
    assert there["rows.txt"].decode().splitlines() == rows
    expect_whole(server, "rows", 4, own=("rows.txt", "rows.txt.index.jsonl"))
    _, *batches, _ = map(json.loads, there["rows.txt.index.jsonl"].decode().splitlines())
    assert [[file["name"] for file in batch["files"]] for batch in batches] == [
        [f"{index:03}.txt", f"models/{index % 3}/{index:03}.bin"] for index in range(4)
    ]


def test_a_file_of_several_parts(work, server):
    with FaultyStore(server.port) as proxy:
        set_up(work, proxy.url)
        job(work, server, "parts", 1)
        work.make("large")
        result = work.run()
        assert result.code == 0, result
        sent = [one for one in proxy.asked if one.what == "part" and "large.bin" in one.path]
    assert sorted(one.size for one in sent) == [1, LARGE, LARGE]
    assert all("X-Amz-Signature" in one.query for one in sent), "by URLs, and no keys"
    large = objects(server, "parts")["large.bin"]
    assert large == b"y" * (2 * LARGE + 1)


def test_until_the_job_has_succeeded_there_is_nothing(work, server):
    set_up(work, server.url)
    job(work, server, "until", 4)
    work.make("waits")
    command = work.start_job()
    command.wait_for(lambda: work.noted("held"), "a mini-batch has written")
    names = [name for name in objects(server, "until") if not name.startswith(".")]
    assert names == []
    work.make("go")
    result = command.wait()
    assert result.code == 0, result
    expect_whole(server, "until", 4)


@pytest.mark.parametrize("role", ["coordinator", "agent", "worker"])
def test_whatever_is_killed_the_files_are_there_once(work, server, role):
    set_up(work, server.url)
    bucket = f"killed-{role}"
    job(work, server, bucket, 20)
    work.make("waits")
    command = work.start_job("--nodes", "2")
    command.wait_for(lambda: len(work.noted("held")) >= 4, "all processes are in run()")
    known = {process.pid for process in processes.running(role)}
    min(processes.running(role), key=lambda process: process.pid).kill()
    command.wait_for(
        lambda: [p for p in processes.running(role) if p.pid not in known], f"a new {role} runs"
    )
    work.make("go")
    result = command.wait()
    assert result.code == 0, result
    expect_whole(server, bucket, 20)


# While an attempt sends, and while the publisher is at it.
POINTS = ["begin 3", "part 3", "complete 1", "complete 3", "end 1", "complete 7"]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("point", POINTS)
def test_a_coordinator_that_is_killed_at_a_request_is_followed(work, server, point, when):
    what, number = point.split()
    bucket = f"at-{what}-{number}-{when}"
    with FaultyStore(server.port) as proxy:
        met, killed = [], []

        def kill(asked):
            if killed or asked.what != what or ".parallelrun" in asked.path:
                return None
            met.append(asked)
            if len(met) < int(number):
                return None
            for coordinator in processes.running("coordinator"):
                coordinator.kill()
                killed.append(asked)
            return "lost" if when == "after" else "busy"

        set_up(work, proxy.url)
        # One process: nothing else is begun meanwhile.
        job(work, server, bucket, 3, processCountPerNode=1)
        work.make("fails")
        proxy.fault = kill
        result = work.run()
        assert result.code == 0, result
    there = objects(server, bucket)
    own = (LIST, f"{LIST}.index.jsonl")
    assert {name: there[name] for name in there if name not in own} == {
        name: text.encode() for name, text in expected(3).items()
    }
    # What was begun and not noted nobody knows of: it is for the bucket's rule.
    if what != "begin":
        assert uploads(server, bucket) == 0


@pytest.mark.parametrize("seed", range(3))
def test_a_command_that_is_killed_at_random_is_resumed(work, server, seed):
    bucket = f"random-{seed}"
    chance = random.Random(seed)
    with FaultyStore(server.port) as proxy:
        set_up(work, proxy.url)
        job(work, server, bucket, 12)
        for _ in range(3):
            reached = len(proxy.asked) + chance.randrange(1, 60)
            command = work.start_job("--resume")
            wait_until(
                lambda reached=reached, command=command: (
                    len(proxy.asked) >= reached or command.ended
                ),
                lambda command=command: command.output,
                120.0,
            )
            if not command.ended:
                command.send(signal.SIGKILL)
            command.wait_only()
            expect_nothing_running()
        result = work.run("--resume")
    assert result.code == 0, result
    there = objects(server, bucket)
    own = (LIST, f"{LIST}.index.jsonl")
    assert {name: there[name] for name in there if name not in own} == {
        name: text.encode() for name, text in expected(12).items()
    }


@pytest.mark.parametrize("fault", ["busy", "broken", "lost", "cut"])
def test_a_store_that_fails_now_and_then(work, server, fault):
    bucket = f"fault-{fault}"
    with FaultyStore(server.port) as proxy:
        met = {}

        def fail(asked):
            """The first two requests of each kind."""
            if fault == "broken" and asked.what != "complete":
                return None
            kind = asked.what, ".parallelrun" in asked.path
            met[kind] = met.get(kind, 0) + 1
            return fault if met[kind] <= 2 else None

        proxy.fault = fail
        set_up(work, proxy.url)
        job(work, server, bucket, 6)
        result = work.run()
        assert result.code == 0, result
        assert met["complete", False] >= 2
    there = objects(server, bucket)
    own = (LIST, f"{LIST}.index.jsonl")
    assert {name: there[name] for name in there if name not in own} == {
        name: text.encode() for name, text in expected(6).items()
    }
    assert work.noted("held") and sorted(map(int, work.noted("runs"))) == list(range(6)), (
        "a store that is away costs no try"
    )


def test_uploads_that_somebody_has_ended_are_made_again(work, server):
    """As by a rule of the bucket, between a run that has failed and its resume."""
    with FaultyStore(server.port) as proxy:
        set_up(work, proxy.url)
        job(work, server, "ended", 4, runMaxTry=1, errorThreshold=0, processCountPerNode=1)
        work.make("fails")
        for index in range(3):
            (work.root / f"tried-{index}").touch()
        assert work.run().code == 1
        begun = [one for one in proxy.asked if one.what == "part" and "/job/001.txt" in one.path]
        assert begun, "the second mini-batch has sent its file"
    upload = begun[0].query["uploadId"][0]
    server.request("DELETE", "/ended/job/001.txt", f"uploadId={upload}", expect=204)
    set_up(work, server.url)
    result = work.run("--resume")
    assert result.code == 0, result
    assert sorted(work.noted("held")) == ["0", "1", "1", "2", "3"]
    expect_whole(server, "ended", 4)


def test_what_is_not_this_runs_is_not_replaced(work, server):
    set_up(work, server.url)
    job(work, server, "foreign", 3)
    work.make("waits")
    command = work.start_job()
    command.wait_for(lambda: work.noted("held"), "a mini-batch has written")
    server.put("foreign", "job/002.txt", b"a user's")
    work.make("go")
    result = command.wait()
    assert result.code == 1, result
    assert "s3://foreign/job/002.txt is there, and is not this run's" in result.output
    assert LIST not in objects(server, "foreign")
    assert objects(server, "foreign")["002.txt"] == b"a user's"
    server.delete("foreign", "job/002.txt")
    result = work.run("--resume")
    assert result.code == 0, result
    expect_whole(server, "foreign", 3)


def test_a_list_that_is_gone_is_published_again(work, server):
    set_up(work, server.url)
    job(work, server, "gone", 3)
    assert work.run().code == 0
    refused = work.run()
    assert refused.code == 2, refused
    server.delete("gone", f"job/{LIST}")
    result = work.run("--resume")
    assert result.code == 0, result
    assert sorted(work.noted("held")) == ["0", "1", "2"]
    expect_whole(server, "gone", 3)


def test_a_run_that_starts_over_ends_what_the_one_before_has_sent(work, server):
    set_up(work, server.url)
    job(work, server, "over", 6)
    work.make("waits-late")
    command = work.start_job()
    command.wait_for(lambda: len(work.noted("held")) == 4, "the first two have sent their files")
    assert uploads(server, "over") == 4
    command.send(signal.SIGKILL)
    command.wait_only()
    expect_nothing_running()
    work.make("go")
    for path in sorted(work.data.iterdir())[3:]:
        path.unlink()
    result = work.run("--overwrite")
    assert result.code == 0, result
    expect_whole(server, "over", 3)


APPENDS = """
import os, sys

def run(mini_batch):
    with open(os.path.join(sys.argv[sys.argv.index("--to") + 1], "all.txt"), "a") as file:
        file.write("x")
    return mini_batch
"""


def test_appending_to_the_file_of_another_mini_batch_is_refused(work, server):
    set_up(work, server.url)
    job(work, server, "appends", 4)
    work.script(APPENDS)
    result = work.run()
    assert result.code == 1, result
    assert "SideFilesUnusable" in result.output
    assert "have both written the side file all.txt" in result.output
    assert [name for name in objects(server, "appends") if not name.startswith(".")] == []
