"""Inputs in a bucket: the output is that of a folder's run, whatever happens meanwhile."""

import json
import signal
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import azurite_server
import pytest
from pages import run_step, steps_of
from s3_server import OWNER, REGION, Server
from support import processes
from support.command import BIN
from support.faulty_store import FaultyStore
from support.stored import HELD, TEXTS, copy, labelled_files, rows_of, table


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    running = Server(tmp_path_factory.mktemp("s3"))
    yield running
    running.close()


def set_up(work, server, keys=OWNER, **variables):
    """The environment of a user of that server."""
    for name in [name for name in work.environment if name.startswith("AWS_")]:
        del work.environment[name]
    work.environment.update(
        HOME=str(work.root),
        AWS_ENDPOINT_URL_S3=server.url,
        AWS_REGION=REGION,
        AWS_EC2_METADATA_DISABLED="true",
        **variables,
    )
    if keys:
        work.environment.update(AWS_ACCESS_KEY_ID=keys[0], AWS_SECRET_ACCESS_KEY=keys[1])


def test_files_of_a_bucket_give_what_those_of_a_folder_give(work, server):
    set_up(work, server)
    server.bucket("files")
    labelled_files(work)
    copy(server, "files", work.data)
    here = rows_of(work, "--input", "data")
    assert rows_of(work, "--input", "s3://files/in/") == here
    assert here.count(b"\n") == 60
    one_label = rows_of(work, "--input", "s3://files/in/label-1/*.txt")
    assert one_label == b"".join(line for line in here.splitlines(True) if b"label-1" in line)


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_tables_of_a_bucket_give_what_those_of_a_folder_give(work, server, kind):
    set_up(work, server)
    bucket = f"tables-{kind}"
    server.bucket(bucket)
    size = table(work, kind)
    copy(server, bucket, work.data)
    here = rows_of(work, "--input", f"data/t.{kind}", *size)
    assert here.count(b"\n") == 2000
    assert rows_of(work, "--input", f"s3://{bucket}/in/t.{kind}", *size) == here


def in_bucket(work, bucket, **fields):
    """A job file whose input is all of a bucket."""
    work.job(
        stores=[{"name": "bucket", "url": f"s3://{bucket}"}],
        inputs=[{"name": "files", "files": {"store": "bucket", "path": "in"}}],
        **fields,
    )


def test_a_manifest_in_a_bucket_names_its_objects(work, server):
    set_up(work, server)
    server.bucket("named")
    for name in ("a", "b/c", "z", "not named"):
        server.put("named", f"in/{name}", f"photo {name}".encode())
    lines = [
        {"key": "z", "n": 1},
        {"key": "s3://named/in/b/c", "n": 2},
        {"key": "gone", "n": 3},
        {"key": "a", "n": 4},
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    server.put("named", "lists/today.jsonl", text.encode())
    work.script(
        "def run(mini_batch, context):\n"
        "    (path,), (said,) = mini_batch, context.item_metadata\n"
        "    return [f\"{open(path).read()} {said['n']}\"]\n"
    )
    manifest = {"path": "lists/today.jsonl", "format": "JSONLines", "column": "key"}
    files = {"store": "bucket", "path": "in"}
    stores = [{"name": "bucket", "url": "s3://named"}]
    inputs = [{"name": "files", "files": files, "manifest": manifest}]
    work.job(stores=stores, inputs=inputs, runMaxTry=1, isolateFailures=True)
    result = work.run()
    assert result.code == 3, result
    assert work.rows() == ["photo z 1", "photo b/c 2", "photo a 4"]
    (letter,) = map(json.loads, work.log_text("dead-letter.jsonl").splitlines())
    assert "s3://named/in/gone is not there, though the manifest names it" in letter["message"]
    server.put("named", "in/gone", b"photo gone")
    result = work.run("--retry-failed")
    assert result.code == 0, result
    assert work.rows() == ["photo z 1", "photo b/c 2", "photo gone 3", "photo a 4"]
    server.delete("named", "in/gone")

    # Of URLs nothing is looked at, and nothing fetched.
    work.script("def run(mini_batch):\n    return list(mini_batch)\n")
    inputs[0]["files"]["access"] = "Uri"
    work.job(stores=stores, inputs=inputs)
    result = work.run("--overwrite")
    assert result.code == 0, result
    assert work.rows() == [f"s3://named/in/{name}" for name in ("z", "b/c", "gone", "a")]


def test_a_manifest_that_is_not_there_is_an_empty_day_only_in_a_bucket_that_is(work, server):
    set_up(work, server)
    server.bucket("unlisted")
    work.script("def run(mini_batch):\n    return list(mini_batch)\n")
    stores = [{"name": "bucket", "url": "s3://unlisted"}]
    files = {"name": "files", "files": {"store": "bucket", "path": "in"}}
    files["manifest"] = {"path": "lists/today.txt"}
    work.job(stores=stores, inputs=[files])
    result = work.run()
    assert result.code != 0, result
    assert "s3://unlisted/lists/today.txt: the manifest is not there" in result.output, result
    files["allowEmpty"] = "Missing"
    work.job(stores=stores, inputs=[files])
    result = work.run("--overwrite")
    assert result.code == 0, result
    assert "no item in s3://unlisted/lists/today.txt" in result.output, result
    stores[0]["url"] = "s3://not-there"
    work.job(stores=stores, inputs=[files])
    result = work.run("--overwrite")
    assert result.code != 0, result
    assert "there is no bucket" in result.output, result


def test_an_object_that_is_another_one_than_its_manifest_says_fails_alone(work, server):
    set_up(work, server)
    server.bucket("pinned")
    for name in ("a", "b", "c", "d"):
        server.put("pinned", f"in/{name}", f"photo {name}".encode())
    listed = ElementTree.fromstring(server.request("GET", "/pinned", "list-type=2"))
    etags = {
        found.findtext("{*}Key")[len("in/") :]: found.findtext("{*}ETag").strip('"')
        for found in listed.findall("{*}Contents")
    }
    rows = [
        ("d", '"' + etags["d"] + '"', 7),
        ("c", etags["a"], ""),
        ("b", etags["b"], 8),
        ("a", "", 7),
    ]
    text = "".join(json.dumps({"path": p, "ETag": e, "Size": s}) + "\n" for p, e, s in rows)
    server.put("pinned", "today.jsonl", text.encode())
    work.script("def run(mini_batch):\n    return [open(path).read() for path in mini_batch]\n")
    manifest = {"path": "today.jsonl", "format": "JSONLines"}
    manifest.update(sizeColumn="Size", etagColumn="ETag")
    files = {"store": "bucket", "path": "in"}
    work.job(
        stores=[{"name": "bucket", "url": "s3://pinned"}],
        inputs=[{"name": "files", "files": files, "manifest": manifest}],
        runMaxTry=1,
        isolateFailures=True,
    )
    result = work.run()
    assert result.code == 3, result
    assert work.rows() == ["photo d", "photo a"]
    letters = map(json.loads, work.log_text("dead-letter.jsonl").splitlines())
    of_b, of_c = sorted(letter["message"] for letter in letters)
    assert "s3://pinned/in/b is not what was listed: it had 8 bytes, has 7" in of_b
    assert f"s3://pinned/in/c is not what was listed: it had ETag {etags['a']}, has" in of_c
    assert etags["c"] in of_c


def held_job(work, server, bucket, count, **fields):
    """A job whose run() waits for the file `open`."""
    set_up(work, server)
    server.bucket(bucket)
    rows = work.files(count)
    copy(server, bucket, work.data)
    work.script(HELD)
    in_bucket(work, bucket, **fields)
    return rows


def test_a_url_of_one_object_is_that_object(work, server):
    set_up(work, server)
    server.bucket("single")
    for name in ("photo.png", "photo.png.old", "deep/object", "deep/below/other"):
        server.put("single", name, name.encode())
    work.script(TEXTS)
    for url, words, name in [
        ("s3://single/photo.png", [], b"photo.png"),
        ("s3://single/deep/object", [], b"deep/object"),
        ("s3://single/deep/below", [], b"deep/below/other"),
        ("s3://single/deep/below/other", ["--format", "files"], b"deep/below/other"),
    ]:
        rows = rows_of(work, "--input", url, *words).splitlines()
        assert [row.split(b" ")[-1] for row in rows] == [name], url


def test_a_slash_at_the_end_makes_a_prefix(work, server):
    set_up(work, server)
    server.bucket("slash")
    for name in ("photo.png", "rows.csv", "deep/below/other"):
        server.put("slash", name, name.encode())
    work.script(TEXTS)
    rows = rows_of(work, "--input", "s3://slash/deep/below/").splitlines()
    assert [row.split(b" ")[-1] for row in rows] == [b"deep/below/other"]
    words = ["run", "code/score.py", "--output", "out", "--input"]
    for url, hint in [
        ("s3://slash/photo.png/", "one object of that name is written without the /"),
        ("s3://slash/rows.csv/", "one object of that name is written without the /"),
        ("s3://slash/other.csv", "below a prefix of that name is written with a /"),
    ]:
        result = work.call(*words, url)
        assert result.code == 2 and "no object" in result.output and hint in result.output, result
    stores = [{"name": "all", "url": "s3://slash"}]
    for path, code in [("deep/below/", 0), ("photo.png", 0), ("photo.png/", 1)]:
        work.job(
            stores=stores,
            inputs=[{"name": "one", "files": {"store": "all", "path": path}}],
            output={"volume": "out", "ifExists": "Overwrite"},
        )
        result = work.run()
        assert result.code == code, result
    assert "no file below s3://slash/photo.png: " in result.output, result
    assert "is written without the / at the end of path" in result.output, result


def test_a_folder_that_holds_its_mark_alone_is_an_empty_day(work, server):
    set_up(work, server)
    server.bucket("marks")
    server.put("marks", "day/", b"")
    work.script("def run(mini_batch):\n    raise SystemExit('called')\n")
    words = ["run", "code/score.py", "--python", sys.executable, "--output", "out", "--input"]
    result = work.call(*words, "s3://marks/day/")
    assert result.code == 2 and "no object below s3://marks/day" in result.output, result
    result = work.call(*words, "s3://marks/days/", "--allow-empty")
    assert result.code == 2 and "no object below s3://marks/days" in result.output, result
    result = work.call(*words, "s3://marks/day/", "--allow-empty")
    assert result.code == 0, result
    assert "inputs[input]: EMPTY: no item below s3://marks/day" in result.output, result
    for path, code in [("day", 0), ("day/", 0), ("days", 1)]:
        work.job(
            stores=[{"name": "all", "url": "s3://marks"}],
            inputs=[
                {
                    "name": "one",
                    "tabular": {"store": "all", "path": path, "format": "CSV"},
                    "allowEmpty": "Existing",
                }
            ],
            output={"volume": "out", "ifExists": "Overwrite"},
        )
        result = work.run()
        assert result.code == code, result
    assert "allowEmpty: Existing is for what is there" in result.output, result


def test_a_path_of_one_object_in_a_job_file_is_that_object(work, server):
    set_up(work, server)
    server.bucket("keys")
    for name in ("in/photo.png", "in/photo.png.old", "in/deep/object", "in/deep/below/other"):
        server.put("keys", name, name.encode())
    work.script(TEXTS)
    stores = [{"name": "all", "url": "s3://keys"}, {"name": "in", "url": "s3://keys/in"}]
    for store, path, name in [
        ("all", "in/photo.png", "in/photo.png"),
        ("in", "photo.png", "in/photo.png"),
        ("in", "deep/object", "in/deep/object"),
        ("in", "deep/below", "in/deep/below/other"),
    ]:
        work.job(
            stores=stores,
            inputs=[{"name": "one", "files": {"store": store, "path": path}}],
            output={"volume": "out", "ifExists": "Overwrite"},
        )
        result = work.run()
        assert result.code == 0, result
        assert [row.split(" ")[-1] for row in work.rows()] == [name], path


@pytest.mark.parametrize(
    ("kind", "name"), [("tabular", "t.csv"), ("tabular", "t"), ("jsonLines", "t.jsonl")]
)
def test_a_path_of_one_table_in_a_job_file_is_that_table(work, server, kind, name):
    set_up(work, server)
    bucket = f"one-{name.replace('.', '-')}"
    server.bucket(bucket)
    lines = kind == "jsonLines"
    table(work, "jsonl" if lines else "csv")
    path = work.data / ("t.jsonl" if lines else "t.csv")
    server.put(bucket, f"in/{name}", path.read_bytes())
    server.put(bucket, f"in/{name}.old", b"not a table")
    work.job(
        stores=[{"name": "bucket", "url": f"s3://{bucket}"}],
        inputs=[{"name": "one", kind: {"store": "bucket", "path": f"in/{name}"}}],
    )
    result = work.run()
    assert result.code == 0, result
    rows = [f"{n}" if lines else f"n{n} {n}" for n in range(2000)]
    assert work.rows() == rows


def test_an_agent_that_is_killed_is_replaced_and_leaves_nothing(work, server):
    rows = held_job(work, server, "killed", 40)
    command = work.start_job()
    command.wait_for(lambda: len(work.noted("runs")) >= 2, "both processes run")
    processes.running("agent")[0].kill()
    command.wait_for(lambda: len(work.noted("runs")) >= 4, "both processes of the next one run")
    folders = list(work.temporary.glob("parallelrun-*/objects-0"))
    assert len(folders) == 1, "the next agent took the place over"
    work.make("open")
    result = command.wait()
    assert result.code == 0, result
    assert work.rows() == rows


def test_an_object_that_changes_meanwhile_is_named(work, server):
    held_job(work, server, "changed", 40, runMaxTry=1)
    command = work.start_job()
    command.wait_for(lambda: len(work.noted("runs")) >= 2, "both processes run")
    server.put("changed", "in/000039.txt", b"another text")
    work.make("open")
    result = command.wait()
    assert result.code != 0
    text = result.output + work.log_text("**/*.txt") + work.log_text("**/*.json*")
    assert "s3://changed/in/000039.txt is not what was listed: it had ETag " in text, text


def test_a_run_goes_on_where_it_was_killed(work, server):
    rows = held_job(work, server, "resumed", 12)
    command = work.start_job()
    command.wait_for(lambda: len(work.noted("runs")) >= 2, "both processes run")
    command.send(signal.SIGKILL)
    command.wait_only()
    processes.expect_nothing_running()
    work.make("open")
    result = work.run("--resume")
    assert result.code == 0, result
    assert work.rows() == rows
    server.put("resumed", "in/000011.txt", b"row 12")
    refused = work.run("--resume")
    assert refused.code != 0 and "s3://resumed/in/000011.txt had ETag " in refused.output, refused


def test_the_cache_is_as_large_as_it_may_be(work, server):
    set_up(work, server)
    server.bucket("large")
    server.put("large", "in/a", b"x" * 300_000)
    server.put("large", "in/b", b"y" * 10_000)
    work.script("def run(mini_batch):\n    return [str(len(open(p).read())) for p in mini_batch]\n")
    in_bucket(work, "large", cache={"size": "100KB"}, runMaxTry=1)
    result = work.run()
    assert result.code != 0
    text = result.output + work.log_text("**/*.txt") + work.log_text("**/*.json*")
    assert "raise spec.cache.size, lower miniBatchSize, or" in text, text
    in_bucket(work, "large", cache={"size": "310KB"})
    result = work.run("--overwrite")
    assert result.code == 0, result
    assert work.rows() == ["300000", "10000"]


def test_each_object_is_asked_for_once(work, server):
    server.bucket("counted")
    names = [f"in/{n:02}.txt" for n in range(20)]
    for name in names:
        server.put("counted", name, name.encode())
    work.script("def run(mini_batch):\n    return [open(p).read() for p in mini_batch]\n")
    in_bucket(work, "counted")
    with FaultyStore(server.port) as between:
        set_up(work, between)
        result = work.run()
        asked = {(one.method, one.path) for one in between.asked}
    assert result.code == 0, result
    assert work.rows() == names
    paths = {f"/counted/{name}" for name in names}
    assert {path for method, path in asked if method == "GET"} >= paths
    assert not {path for method, path in asked if method == "HEAD"} & paths, "the plan knows them"


def test_a_key_that_cannot_be_a_file_is_named_and_can_be_left_out(work, server):
    """A server on a disk has none, so the listing is made to say one."""
    server.bucket("odd")
    for name in ("a.txt", "b.txt"):
        server.put("odd", f"in/{name}", name.encode())
    work.script("def run(mini_batch):\n    return [open(p).read() for p in mini_batch]\n")
    with FaultyStore(server.port) as between:
        between.change = lambda asked, body: body.replace(b"in/a.txt<", b"in//a.txt<")
        set_up(work, between)
        in_bucket(work, "odd", runMaxTry=1, miniBatchSize="1")
        result = work.run()
        assert result.code != 0, result
        told = result.output + work.log_text("**/*.txt") + work.log_text("**/*.json*")
        assert (
            "s3://odd/in//a.txt: its key cannot be the name of a file: copy the object to another "
            "key, or leave it out with exclude"
        ) in told, told
        files = {"store": "bucket", "path": "in", "exclude": ["**/a.txt"]}
        work.job(
            stores=[{"name": "bucket", "url": "s3://odd"}],
            inputs=[{"name": "files", "files": files}],
        )
        result = work.run("--overwrite")
    assert result.code == 0, result
    assert work.rows() == ["b.txt"]


def test_a_store_that_throttles_is_named_in_the_progress(work, server):
    server.bucket("throttled")
    names = [f"in/{n:02}.txt" for n in range(20)]
    for name in names:
        server.put("throttled", name, name.encode())
    work.script("def run(mini_batch):\n    return [open(p).read() for p in mini_batch]\n")
    in_bucket(work, "throttled")
    with FaultyStore(server.port) as between:
        set_up(work, between)
        between.fault = lambda asked: "busy" if asked.path.startswith("/throttled/in/") else None
        command = work.start_job()
        command.wait_for_text("node 0: throttled by the store s3://throttled since ", 120)
        between.fault = lambda asked: None
        result = command.wait()
    assert result.code == 0, result
    assert work.rows() == names


def test_a_store_that_throttles_the_listing_is_named_in_the_progress_and_the_events(work, server):
    server.bucket("slowly")
    names = [f"in/{n}.txt" for n in range(3)]
    for name in names:
        server.put("slowly", name, name.encode())
    work.script("def run(mini_batch):\n    return [open(p).read() for p in mini_batch]\n")
    in_bucket(work, "slowly")
    with FaultyStore(server.port) as between:
        set_up(work, between)
        between.retry_after = 3  # so that the few requests that a listing repeats last long enough
        between.fault = lambda asked: "busy" if "list-type" in asked.query else None
        command = work.start_job("--events", "jsonl")
        told = "the coordinator: throttled by the store s3://slowly since "
        command.wait_for_text(told, 120)
        between.fault = lambda asked: None
        result = command.wait()
    assert result.code == 0, result
    assert work.rows() == names
    events = [json.loads(line) for line in result.output.splitlines() if line.startswith("{")]
    waits = [event for event in events if event["event"] == "storeWaits"]
    assert waits[0]["text"].startswith(told), waits
    assert all(set(event) == {"event", "seconds", "text"} for event in waits)


# The cache has no room for the whole table: a node fetches what its mini-batches read.
@pytest.mark.parametrize("kind", ["tabular", "jsonLines"])
def test_of_a_large_table_a_node_fetches_its_slices(work, server, kind):
    set_up(work, server)
    bucket = f"slices-{kind.lower()}"
    server.bucket(bucket)
    count = 180_000  # rows of 100 bytes: more than 16 MiB
    if kind == "tabular":
        text = "n,pad\n" + "".join(f"{n:07},{'x' * 91}\n" for n in range(count))
        work.script("def run(frame):\n    return [f'{int(n)}' for n in frame['n']]\n")
        path, size = "in/t.csv", "1MB"
    else:
        text = "".join(f'{{"n": {n:7}, "pad": "{"x" * 73}"}}\n' for n in range(count))
        work.script("def run(lines):\n    return [f\"{line['n']}\" for line in lines]\n")
        path, size = "in/t.jsonl", "10000"
    assert len(text) > 17_000_000
    server.put(bucket, path, text.encode())
    work.job(
        stores=[{"name": "bucket", "url": f"s3://{bucket}"}],
        inputs=[{"name": "rows", kind: {"store": "bucket", "path": path}}],
        miniBatchSize=size,
        cache={"size": "4MB"},
    )
    result = work.run()
    assert result.code == 0, result
    assert work.rows() == [str(n) for n in range(count)]


def test_urls_in_place_of_files(work, server):
    set_up(work, server)
    server.bucket("urls")
    for name in ("a b.txt", "ü/b.txt"):
        server.put("urls", f"in/{name}", b"x" * 300_000)
    work.script("def run(mini_batch):\n    return list(mini_batch)\n")
    work.job(
        stores=[{"name": "bucket", "url": "s3://urls"}],
        inputs=[{"name": "files", "files": {"store": "bucket", "path": "in", "access": "Uri"}}],
        cache={"size": "100KB"},  # too small for one of them
    )
    result = work.run()
    assert result.code == 0, result
    assert work.rows() == ["s3://urls/in/a b.txt", "s3://urls/in/ü/b.txt"]
    again = work.call("debug", str(work.out), "--mini-batch", "0")
    assert "s3://urls/in/a b.txt" in again.output, again


def refusal(work, url, *words):
    result = work.call("run", "code/score.py", "--input", url, "--output", "out", *words)
    assert result.code != 0
    assert OWNER[1] not in result.output
    return result.output


def test_each_refusal_says_cause_place_and_mend(work, server):
    set_up(work, server)
    work.script(TEXTS)
    assert "there is no bucket" in refusal(work, "s3://not-there/in/")
    server.bucket("empty")
    assert "no object below s3://empty/in" in refusal(work, "s3://empty/in/")
    # With a format nothing is looked at before the job begins; the coordinator says the same.
    assert "there is no bucket" in refusal(work, "s3://not-there/in/", "--format", "files")
    work.environment["AWS_ENDPOINT_URL_S3"] = "ftp://127.0.0.1"
    assert "endpoint" in refusal(work, "s3://empty/in/")


def test_rights_and_keys(work, server):
    server.bucket("rights")
    server.put("rights", "in/a.txt", b"1")
    work.script(TEXTS)
    nobody, lister = server.user("noright"), server.user("onlylist")
    server.allow("rights", (lister, "s3:ListBucket", ""))
    set_up(work, server, nobody)
    output = refusal(work, "s3://rights/in/")
    assert "s3:ListBucket is missing on arn:aws:s3:::rights" in output and nobody[1] not in output
    set_up(work, server, lister)
    output = refusal(work, "s3://rights/in/", "--set", "spec.runMaxTry=1")
    text = output + "".join(
        path.read_text() for path in (work.out / "logs").rglob("*") if path.is_file()
    )
    assert "s3:GetObject is missing on arn:aws:s3:::rights/in/a.txt" in text
    assert lister[1] not in text
    set_up(work, server, None)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        work.environment.pop(name, None)
    assert "no credentials for S3: set AWS_ACCESS_KEY_ID" in refusal(work, "s3://rights/in/")


@pytest.fixture
def azurite(tmp_path):
    running = azurite_server.Server(tmp_path / "azurite")
    yield running
    running.close()


def test_the_page_of_stores(work, server, azurite):
    set_up(work, server, AZURE_STORAGE_CONNECTION_STRING=azurite.connection_string())
    azurite.container("photos")
    server.bucket("photos")
    server.bucket("results")
    for name, size in (("a.png", 100), ("b.png", 200), ("notes.txt", 5)):
        server.put("photos", f"2026/{name}", bytes(size))
        azurite.put("photos", f"2026/{name}", bytes(size))
    path = f"{BIN}:{Path(sys.executable).parent}:{work.environment['PATH']}"
    for step in steps_of("docs/stores.md"):
        run_step(step, "docs/stores.md", work.root, {**work.environment, "PATH": path})
        processes.expect_nothing_running()
