"""A state in a bucket: a chain of objects, each made once, from which every run goes on; what is
missing of it is never taken for its end."""

import json
import signal

import pytest
from s3_server import OWNER, REGION, Server
from support import processes
from support.faulty_store import FaultyStore
from support.stored import HELD


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    running = Server(tmp_path_factory.mktemp("s3"))
    yield running
    running.close()


def set_up(work, server, bucket, url=None):
    """A job with nothing but that bucket of that server for what it leaves."""
    for name in [name for name in work.environment if name.startswith("AWS_")]:
        del work.environment[name]
    work.environment.update(
        HOME=str(work.root),
        AWS_ENDPOINT_URL_S3=url or server.url,
        AWS_REGION=REGION,
        AWS_EC2_METADATA_DISABLED="true",
        AWS_ACCESS_KEY_ID=OWNER[0],
        AWS_SECRET_ACCESS_KEY=OWNER[1],
    )
    work.job(
        stores=[{"name": "bucket", "url": f"s3://{bucket}"}],
        output={"store": "bucket", "path": "scores", "fileName": "rows.txt"},
        state={"store": "bucket"},
    )


def chain(server, bucket):
    """The folder of the one state that is in the bucket, and the names of its links."""
    [place] = (server.root / bucket / "scores/.parallelrun").iterdir()
    return place, sorted(path.name for path in (place / "chain").iterdir())


def expect_rows(server, bucket, rows):
    text = "".join(f"{row}\n" for row in rows).encode()
    assert (server.root / bucket / "scores/rows.txt").read_bytes() == text
    assert b"<Upload>" not in server.request("GET", f"/{bucket}", "uploads=")


def last_claim(place, links):
    """The place in the list of the link with which the newest epoch begins."""
    kinds = [(place / "chain" / name).read_bytes()[64] for name in links]
    return len(kinds) - 1 - kinds[::-1].index(1)


def expect_dense(names):
    assert names == [f"{number:08}" for number in range(1, len(names) + 1)]


def test_a_run_has_its_state_in_a_bucket(work, server):
    server.bucket("whole")
    work.script()
    rows = work.files(6)
    set_up(work, server, "whole")
    result = work.run()
    assert result.code == 0, result
    expect_rows(server, "whole", rows)
    place, links = chain(server, "whole")
    assert place.name.startswith("job-") and len(place.name) == len("job-") + 16
    expect_dense(links)
    # On this machine there is what is of this machine.
    state = work.root / "job.run/state"
    note = json.loads((state / "chain.json").read_text())
    assert note["chain"] == f"s3://whole/scores/.parallelrun/{place.name}"
    assert not (state / "epochs").exists()
    # A finished run that is continued changes nothing, and reads it from there.
    again = work.run("--resume")
    assert again.code == 0, again
    expect_rows(server, "whole", rows)
    told = work.call("ledger", str(state))
    assert told.code == 0 and "sound: " in told.output, told
    assert "6 succeeded, 0 failed, 0 open, of 6" in told.output
    verified = work.call("verify", str(state))
    assert verified.code == 0 and "whole: s3://whole/scores/rows.txt" in verified.output, verified


def test_a_coordinator_that_is_killed_is_followed(work, server):
    server.bucket("killed")
    work.script(HELD)
    rows = work.files(4)
    set_up(work, server, "killed")
    command = work.start_job()
    command.wait_for(lambda: work.noted("runs"), "run() works")
    for coordinator in processes.running("coordinator"):
        coordinator.kill()
    work.make("open")
    result = command.wait()
    assert result.code == 0, result
    expect_rows(server, "killed", rows)
    expect_dense(chain(server, "killed")[1])


def test_a_command_that_is_killed_is_resumed(work, server):
    server.bucket("resumed")
    work.script(HELD)
    rows = work.files(4)
    set_up(work, server, "resumed")
    command = work.start_job()
    command.wait_for(lambda: work.noted("runs"), "run() works")
    command.send(signal.SIGKILL)
    command.wait_only()
    processes.expect_nothing_running()
    work.make("open")
    result = work.run("--resume")
    assert result.code == 0, result
    expect_rows(server, "resumed", rows)
    expect_dense(chain(server, "resumed")[1])


def test_a_run_that_is_started_over_goes_on_with_its_chain(work, server):
    server.bucket("anew")
    work.script()
    work.files(2)
    set_up(work, server, "anew")
    assert work.run().code == 0
    before = chain(server, "anew")[1]
    rows = work.files(3, "another row {}")
    result = work.run("--overwrite")
    assert result.code == 0, result
    expect_rows(server, "anew", rows)
    after = chain(server, "anew")[1]
    expect_dense(after)
    assert len(after) > len(before)
    assert work.run("--resume").code == 0


def test_a_store_that_loses_answers_and_refuses_gives_the_rows_once(work, server):
    server.bucket("faulty")
    work.script()
    rows = work.files(20)
    with FaultyStore(server.port) as proxy:
        met = {"lost": 0, "busy": 0}

        def fault(asked):
            """Of the links, each third is refused once, and the answers to others are lost."""
            if asked.what != "put" or "/chain/" not in asked.path:
                return None
            met["puts"] = met.get("puts", 0) + 1
            kind = {0: "busy", 1: "lost"}.get(met["puts"] % 3)
            if kind:
                met[kind] += 1
            return kind

        proxy.fault = fault
        set_up(work, server, "faulty", proxy.url)
        result = work.run()
        assert result.code == 0, result
        assert met["lost"] and met["busy"]
    expect_rows(server, "faulty", rows)
    expect_dense(chain(server, "faulty")[1])


def test_a_store_that_ignores_conditions_is_refused(work, server):
    server.bucket("ignores")
    work.script()
    work.files(2)
    with FaultyStore(server.port) as proxy:
        proxy.fault = lambda asked: (
            "ignore" if asked.what == "put" and "/chain/" in asked.path else None
        )
        set_up(work, server, "ignores", proxy.url)
        result = work.run()
    assert result.code == 2, result
    assert "could be made twice: this store ignores If-None-Match" in result.output


@pytest.mark.parametrize("which", ["first", "middle", "last", "all"])
def test_links_that_somebody_removed_are_told_and_no_fresh_start(work, server, which):
    bucket = f"removed-{which}"
    server.bucket(bucket)
    work.script()
    work.files(4)
    set_up(work, server, bucket)
    assert work.run().code == 0
    # A second epoch, which this machine has seen.
    assert work.run("--resume").code == 0
    place, links = chain(server, bucket)
    last = links[last_claim(place, links) :]
    gone = {"first": links[:1], "middle": links[1:2], "last": last, "all": links}[which]
    for name in gone:
        server.delete(bucket, f"scores/.parallelrun/{place.name}/chain/{name}")
    result = work.run("--resume")
    assert result.code == 2, result
    assert f"/chain/{gone[0]}" in result.output, result
    assert "a rule of the store or a person has removed or changed it" in result.output
    left = [name for name in links if name not in gone]
    assert sorted(path.name for path in (place / "chain").glob("*")) == left


def test_the_chain_of_another_job_is_refused_with_both_names(work, server):
    server.bucket("shared")
    work.script()
    work.files(2)
    set_up(work, server, "shared")
    assert work.run().code == 0
    place, links = chain(server, "shared")
    note = work.root / "job.run/state/chain.json"
    kept = json.loads(note.read_text())
    other = f"{place.parent.name}/job-0123456789abcdef"
    for name in links:
        text = (place / "chain" / name).read_bytes()
        server.put("shared", f"scores/{other}/chain/{name}", text)
    note.write_text(json.dumps({**kept, "chain": f"s3://shared/scores/{other}"}))
    result = work.run("--resume")
    assert result.code == 2, result
    assert place.name in result.output and "job-0123456789abcdef" in result.output, result
