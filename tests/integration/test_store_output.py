"""An output in a bucket: whole or not there, exactly once, whatever happens meanwhile."""

import random
import signal
import sys

import pytest
from s3_server import OWNER, REGION, Server
from support import processes
from support.faulty_store import FaultyStore
from support.stored import HELD
from waits import wait_until

# Rows of many kB, so that a few files make an output of several parts.
LARGE = """
def run(mini_batch):
    texts = [open(path).read() for path in mini_batch]
    return [text + " " + text[-1] * 1_000_000 for text in texts for _ in range(4)]
"""

OUTPUT = ["scores.txt", "scores.txt.index.jsonl"]
REPORTS = ["scores.txt.run/job_result.txt", "scores.txt.run/report.html"]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    running = Server(tmp_path_factory.mktemp("s3"))
    yield running
    running.close()


def set_up(work, url, keys=OWNER):
    """The environment of a user of that server."""
    for name in [name for name in work.environment if name.startswith("AWS_")]:
        del work.environment[name]
    work.environment.update(
        HOME=str(work.root),
        AWS_ENDPOINT_URL_S3=url,
        AWS_REGION=REGION,
        AWS_EC2_METADATA_DISABLED="true",
        AWS_ACCESS_KEY_ID=keys[0],
        AWS_SECRET_ACCESS_KEY=keys[1],
    )


def words(output, *more):
    return ["run", "code/score.py", "--input", "data", "--output", output, *more] + [
        "--python",
        sys.executable,
        "--mini-batch-size",
        "1",
    ]


def to_folder(work):
    """What the run gives in a folder."""
    result = work.call(*words("folder"))
    assert result.code == 0, result
    return (work.root / "folder/parallel_run_step.txt").read_bytes()


def objects(server, bucket):
    """All keys of a bucket."""
    folder = server.root / bucket
    return sorted(
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and ".sgwtmp" not in path.parts
    )


def expect_published(server, bucket, rows):
    assert objects(server, bucket) == OUTPUT + REPORTS, "neither a claim nor anything else is left"
    assert (server.root / bucket / "scores.txt").read_bytes() == rows
    assert b"<Upload>" not in server.request("GET", f"/{bucket}", "uploads=")


def test_an_output_is_byte_for_byte_that_of_a_folder(work, server):
    set_up(work, server.url)
    work.script(LARGE)
    work.files(12)
    rows = to_folder(work)
    assert len(rows) > 2 * (16 << 20)
    server.bucket("whole")
    with FaultyStore(server.port) as proxy:
        set_up(work, proxy.url)
        result = work.call(*words("s3://whole/scores.txt"))
        assert result.code == 0, result
        parts = [
            asked.size
            for asked in proxy.asked
            if asked.what == "part" and asked.path.endswith("/scores.txt")
        ]
    expect_published(server, "whole", rows)
    assert sorted(parts)[1:] == [16 << 20] * (len(parts) - 1) and sum(parts) == len(rows)
    assert f"logs and state lie in {work.root}/scores.txt.run" in result.output
    assert "s3://whole/scores.txt" in result.output
    assert (work.root / "scores.txt.run/logs").is_dir()
    set_up(work, server.url)
    verified = work.call("verify", "s3://whole/scores.txt")
    assert verified.code == 0 and "whole: s3://whole/scores.txt" in verified.output, verified


def test_a_prefix_and_an_own_state_folder(work, server):
    set_up(work, server.url)
    work.script()
    rows = "".join(f"{row}\n" for row in work.files(3)).encode()
    server.bucket("prefix")
    result = work.call(*words("s3://prefix/a/b/", "--state", "kept"))
    assert result.code == 0, result
    assert objects(server, "prefix") == [
        "a/b/parallel_run_step.txt",
        "a/b/parallel_run_step.txt.index.jsonl",
        "a/b/parallel_run_step.txt.run/job_result.txt",
        "a/b/parallel_run_step.txt.run/report.html",
    ]
    assert (server.root / "prefix/a/b/parallel_run_step.txt").read_bytes() == rows
    assert (work.root / "kept/state/epochs").is_dir()
    refused = work.call(*words("folder", "--state", "kept"))
    assert refused.code == 2 and "--state goes with an output in a store" in refused.output


def test_a_finished_output_is_kept_compared_and_replaced(work, server):
    set_up(work, server.url)
    work.script()
    rows = "".join(f"{row}\n" for row in work.files(3)).encode()
    server.bucket("again")
    address = "s3://again/scores.txt"
    assert work.call(*words(address)).code == 0
    refused = work.call(*words(address))
    assert refused.code == 2 and f"{address} exists" in refused.output, refused
    assert work.call(*words(address, "--resume")).code == 0

    server.delete("again", "scores.txt")
    assert "is not there" in work.call("verify", address).output
    republished = work.call(*words(address, "--resume"))
    assert republished.code == 0, republished
    expect_published(server, "again", rows)

    # An object of somebody else is neither taken for the output nor replaced but by order.
    server.put("again", "scores.txt", b"x" * len(rows))
    assert "has other bytes" in work.call("verify", address).output
    foreign = work.call(*words(address, "--resume"))
    assert foreign.code == 1, foreign
    assert f"{address} ({len(rows)} bytes, ETag" in foreign.output
    assert "is not what this run has published there: move it away" in foreign.output
    assert (server.root / "again/scores.txt").read_bytes() == b"x" * len(rows)
    overwritten = work.call(*words(address, "--overwrite"))
    assert overwritten.code == 0, overwritten
    expect_published(server, "again", rows)
    # With another state folder it is an output of somebody else from the start.
    other = work.call(*words(address, "--state", "other"))
    assert other.code == 2 and f"{address} exists, and is not of a run" in other.output, other


def held_run(work, server, bucket):
    set_up(work, server.url)
    work.script(HELD)
    rows = "".join(f"{row}\n" for row in work.files(4)).encode()
    server.bucket(bucket)
    command = work.start(*words(f"s3://{bucket}/scores.txt"))
    command.wait_for(lambda: work.noted("runs"), "run() works")
    return command, rows


def test_an_object_that_appears_meanwhile_stays(work, server):
    command, rows = held_run(work, server, "meanwhile")
    server.put("meanwhile", "scores.txt", b"a user's")
    work.make("open")
    result = command.wait()
    assert result.code == 1, result
    assert "s3://meanwhile/scores.txt (8 bytes, ETag" in result.output
    assert "has appeared since the run began, and is not this run's: move it away" in result.output
    assert (server.root / "meanwhile/scores.txt").read_bytes() == b"a user's"
    server.delete("meanwhile", "scores.txt")
    resumed = work.call(*words("s3://meanwhile/scores.txt", "--resume"))
    assert resumed.code == 0, resumed
    expect_published(server, "meanwhile", rows)


def test_nothing_replaces_rows_only_where_that_is_meant(work, server):
    set_up(work, server.url)
    work.script()
    server.bucket("empty")
    server.put("empty", "scores.txt", b"row 0\n")
    asked = words("s3://empty/scores.txt", "--overwrite")
    result = work.call(*asked, "--allow-empty")
    assert result.code == 1, result
    assert "would replace one that has something in it" in result.output
    assert (server.root / "empty/scores.txt").read_bytes() == b"row 0\n"
    result = work.call(*asked, "--allow-empty=Missing")
    assert result.code == 0, result
    expect_published(server, "empty", b"")


def test_overwrite_replaces_what_was_there_and_not_what_came(work, server):
    set_up(work, server.url)
    work.script(HELD)
    work.files(2)
    server.bucket("came")
    server.put("came", "scores.txt", b"of yesterday")
    command = work.start(*words("s3://came/scores.txt", "--overwrite"))
    command.wait_for(lambda: work.noted("runs"), "run() works")
    server.put("came", "scores.txt", b"of this minute")
    work.make("open")
    assert command.wait().code == 1
    assert (server.root / "came/scores.txt").read_bytes() == b"of this minute"


def test_two_runs_with_one_output(work, server):
    command, rows = held_run(work, server, "one")
    second = work.start(*words("s3://one/scores.txt", "--state", "second")).wait_only()
    assert second.code == 2, second
    assert "s3://one/scores.txt is what another run publishes to, which is at work" in second.output
    work.make("open")
    assert command.wait().code == 0
    expect_published(server, "one", rows)


# Each of the requests by which an output is claimed, looked at, published and given back.
POINTS = ["put 1", "look 1", "begin 1", "begin 2", "part 1", "look 2", "complete 1", "complete 2"]
POINTS += ["end 1", "report 1", "report 2", "remove 1"]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("point", POINTS)
def test_a_coordinator_that_is_killed_at_a_request_is_followed(work, server, point, when):
    what, number = point.split()
    bucket = f"kill-{what}-{number}-{when}"
    server.bucket(bucket)
    work.script()
    rows = "".join(f"{row}\n" for row in work.files(6)).encode()
    with FaultyStore(server.port) as proxy:
        met, killed = [], []

        def kill(asked):
            of_claim = what in ("put", "remove")
            if killed or asked.what != what or asked.of_claim != of_claim:
                return None
            met.append(asked)
            if len(met) < int(number):
                return None
            for coordinator in processes.running("coordinator"):
                coordinator.kill()
                killed.append(asked)
            return "lost" if when == "after" else "busy"

        proxy.fault = kill
        set_up(work, proxy.url)
        result = work.call(*words(f"s3://{bucket}/scores.txt"))
        assert killed
        assert result.code == 0, result
    # What was begun and not noted nobody knows of: it is for the bucket's rule.
    if point == "begin 2" or (point, when) == ("begin 1", "after"):
        assert objects(server, bucket) == OUTPUT + REPORTS
        assert (server.root / bucket / "scores.txt").read_bytes() == rows
    else:
        expect_published(server, bucket, rows)


@pytest.mark.parametrize("seed", range(4))
def test_a_command_that_is_killed_at_random_is_resumed(work, server, seed):
    bucket = f"random-{seed}"
    server.bucket(bucket)
    work.script(LARGE)
    work.files(6)
    rows = to_folder(work)
    chance = random.Random(seed)
    with FaultyStore(server.port) as proxy:
        set_up(work, proxy.url)
        for _ in range(3):
            reached = len(proxy.asked) + chance.randrange(1, 25)
            command = work.start(*words(f"s3://{bucket}/scores.txt", "--resume"))
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
            processes.expect_nothing_running()
        result = work.call(*words(f"s3://{bucket}/scores.txt", "--resume"))
    assert result.code == 0, result
    assert objects(server, bucket)[-4:] == OUTPUT + REPORTS
    assert (server.root / bucket / "scores.txt").read_bytes() == rows


@pytest.mark.parametrize("fault", ["busy", "broken", "lost", "cut"])
def test_a_store_that_fails_now_and_then(work, server, fault):
    bucket = f"fault-{fault}"
    server.bucket(bucket)
    work.script(LARGE)
    work.files(12)
    rows = to_folder(work)
    with FaultyStore(server.port) as proxy:
        met = {}

        def fail(asked):
            """The first two requests of each kind."""
            if fault == "broken" and asked.what != "complete":
                return None
            kind = asked.what, asked.of_claim
            met[kind] = met.get(kind, 0) + 1
            return fault if met[kind] <= 2 else None

        proxy.fault = fail
        set_up(work, proxy.url)
        result = work.call(*words(f"s3://{bucket}/scores.txt"))
        assert result.code == 0, result
        assert met["complete", False] >= 2
    assert (server.root / bucket / "scores.txt").read_bytes() == rows
    assert objects(server, bucket) == OUTPUT + REPORTS


def test_a_store_that_ignores_conditions_is_refused(work, server):
    server.bucket("ignores")
    work.script()
    work.files(2)
    with FaultyStore(server.port) as proxy:
        proxy.fault = lambda asked: "ignore"
        set_up(work, proxy.url)
        refused = work.call(*words("s3://ignores/scores.txt"))
    assert refused.code == 2, refused
    assert "s3://ignores/scores.txt: its store ignores the condition of a write" in refused.output
    assert objects(server, "ignores") == []


RIGHTS = ["s3:GetObject", "s3:PutObject", "s3:AbortMultipartUpload", "s3:DeleteObject"]


@pytest.mark.parametrize("missing", RIGHTS)
def test_each_right_that_is_missing_is_named(work, server, missing):
    bucket = "right-" + missing[3:].lower()
    server.bucket(bucket)
    keys = server.user(missing[3:15].lower())
    allowed = [(keys, right, "/*") for right in RIGHTS if right != missing]
    server.allow(bucket, (keys, "s3:ListBucket", ""), *allowed)
    work.script()
    work.files(2)
    set_up(work, server.url, keys)
    result = work.call(*words(f"s3://{bucket}/scores.txt"))
    assert keys[1] not in result.output
    if missing == "s3:DeleteObject":
        assert result.code == 0, result
        assert objects(server, bucket) == [".scores.txt.parallelrun-claim", *OUTPUT, *REPORTS]
        log = "".join(
            path.read_text() for path in (work.root / "scores.txt.run/logs").rglob("*.txt")
        )
        assert f"{missing} is missing on arn:aws:s3:::{bucket}/" in log
        return
    assert result.code == 2, result
    assert f"{missing} is missing on arn:aws:s3:::{bucket}/" in result.output
    assert "grant it to AWS_ACCESS_KEY_ID of the environment (AKIA" in result.output


def test_what_a_store_cannot_take_is_refused_in_words(work, server):
    set_up(work, server.url)
    work.script()
    work.files(1)
    missing = work.call(*words("s3://not-there/scores.txt"))
    assert missing.code == 2 and "there is no bucket" in missing.output, missing
    server.bucket("refused")
    stores = [{"name": "bucket", "url": "s3://refused"}]
    places = {
        "logs": {"volume": "out", "path": "logs"},
        "state": {"volume": "out", "path": "state"},
    }
    for output, more, problem in (
        ({"store": "bucket", "action": "SummaryOnly"}, places, "SummaryOnly leaves files"),
        ({"store": "bucket"}, {"state": {"ephemeral": True}}, "spec.state.ephemeral"),
        ({"store": "bucket", "volume": "out"}, places, "stands beside a store"),
        ({"store": "buckets"}, places, 'there is no store "buckets"'),
        ({"store": "bucket"}, {**places, "arguments": ["$(output)"]}, "$(output) is a folder"),
    ):
        work.job(stores=stores, output=output, **more)
        result = work.run()
        assert result.code == 2 and problem in result.output, result
    work.job(stores=stores, output={"store": "bucket", "path": "a", "fileName": "r.txt"}, **places)
    assert work.run().code == 0
    reports = ["a/r.txt.run/job_result.txt", "a/r.txt.run/report.html"]
    assert objects(server, "refused") == ["a/r.txt", "a/r.txt.index.jsonl", *reports]


FAILS = """
def run(mini_batch):
    raise ValueError("no such model")
"""


def test_what_explains_a_job_lies_beside_its_output(work, server):
    """Also where there is none; what is not of this job stays."""
    set_up(work, server.url)
    server.bucket("explained")
    folder = server.root / "explained/scores.txt.run"
    work.script(FAILS)
    work.files(3)
    address = "s3://explained/scores.txt"
    failed = work.call(*words(address))
    assert failed.code == 1, failed
    logs = work.root / "scores.txt.run/logs"
    names = ["failures.jsonl", "job_result.txt", "report.html"]
    assert objects(server, "explained") == [f"scores.txt.run/{name}" for name in names]
    for name in names:
        assert (folder / name).read_bytes() == (logs / name).read_bytes()
    assert "no such model" in (folder / "failures.jsonl").read_text()

    # Another run, which finds no output of the first: its reports stand for both.
    work.script()
    again = work.call(*words(address, "--state", "second"))
    assert again.code == 0, again
    assert (folder / "failures.jsonl").read_bytes() == b""
    whole = (folder / "job_result.txt").read_bytes()
    assert whole == (work.root / "second/logs/job_result.txt").read_bytes()

    # One that fails to replace that output leaves what explains it.
    work.script(FAILS)
    failed = work.call(*words(address, "--state", "third", "--overwrite"))
    assert failed.code == 1, failed
    assert "job_result.txt is there, of the run whose output is there" in failed.output
    assert (folder / "job_result.txt").read_bytes() == whole

    server.put("explained", "scores.txt.run/report.html", b"a user's")
    work.script()
    replaced = work.call(*words(address, "--state", "second", "--overwrite"))
    assert replaced.code == 0, replaced
    assert "report.html is there, and no run has put it there: move it away" in replaced.output
    assert (folder / "report.html").read_bytes() == b"a user's"
    now = (work.root / "second/logs/job_result.txt").read_bytes()
    assert (folder / "job_result.txt").read_bytes() == now


@pytest.mark.parametrize("said", [False, True])
def test_a_job_of_stores_alone(work, server, said):
    set_up(work, server.url)
    bucket = f"alone-{said}".lower()
    server.bucket(bucket)
    server.put(bucket, "in/a.txt", b"1")
    work.script("def run(mini_batch):\n    return [open(path).read() for path in mini_batch]\n")
    size = {"resources": {"requests": {"storage": "1Gi"}}}
    work.job(
        volumes=[],
        stores=[{"name": "bucket", "url": f"s3://{bucket}"}],
        inputs=[{"name": "files", "files": {"store": "bucket", "path": "in"}}],
        output={"store": "bucket", "path": "out"},
        logs=None,
        state={"volumeClaimTemplate": {"spec": size}} if said else None,
    )
    assert work.call("validate", "job.yaml").code == 0
    result = work.call("run", "job.yaml")
    assert result.code == 0, result
    assert ("state.volumeClaimTemplate" in result.output) == said
    published = server.root / bucket / "out/parallel_run_step.txt"
    assert published.read_bytes() == b"1\n"
    place = work.root / "job.run"
    assert (place / "logs/job_result.txt").is_file()
    assert list((place / "state").rglob("*.log"))
    assert work.call("run", "job.yaml", "--resume").code == 0
