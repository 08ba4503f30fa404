"""Side inputs in stores: each node has them before init(), once, and all have the same bytes."""

import signal

import azurite_server
import pytest
from s3_server import OWNER, REGION, Server
from support import processes

MODEL = """
import sys
from pathlib import Path
from steps import note, wait_for

text = None

def init():
    global text
    folder = Path(sys.argv[sys.argv.index("--model") + 1])
    words = Path(sys.argv[sys.argv.index("--words") + 1])
    text = f"{(folder / 'deep' / 'weights.txt').read_text()} {words.read_text()}"
    note("inits", folder)

def run(mini_batch):
    note("runs", "run")
    wait_for("open")
    return [f"{text} {open(path).read()}" for path in mini_batch]
"""
ARGUMENTS = ["--model", "$(sideInputs.model)", "--words", "$(sideInputs.words)"]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    running = Server(tmp_path_factory.mktemp("s3"))
    yield running
    running.close()


@pytest.fixture
def azurite(tmp_path):
    running = azurite_server.Server(tmp_path / "azurite")
    yield running
    running.close()


def set_up(work, server, keys=OWNER):
    for name in [name for name in work.environment if name.startswith("AWS_")]:
        del work.environment[name]
    work.environment.update(
        HOME=str(work.root),
        AWS_ENDPOINT_URL_S3=server.url,
        AWS_REGION=REGION,
        AWS_EC2_METADATA_DISABLED="true",
        AWS_ACCESS_KEY_ID=keys[0],
        AWS_SECRET_ACCESS_KEY=keys[1],
    )


def put_model(server, place):
    server.put(place, "m/v1/deep/weights.txt", b"weights")
    server.put(place, "m/v1/empty.txt", b"")
    server.put(place, "words.txt", b"words")


def model_job(work, server, place, url, count=12, **fields):
    """A job of two side inputs, a prefix and an object; its rows."""
    put_model(server, place)
    work.script(MODEL)
    rows = [f"weights words {row}" for row in work.files(count)]
    fields.setdefault("stores", [{"name": "models", "url": url}])
    work.job(
        arguments=ARGUMENTS,
        sideInputs=[
            {"name": "model", "store": "models", "path": "m/v1/"},
            {"name": "words", "store": "models", "path": "words.txt"},
        ],
        **fields,
    )
    return rows


def test_those_of_a_bucket_are_there_before_init(work, server):
    set_up(work, server)
    server.bucket("there")
    rows = model_job(work, server, "there", "s3://there")
    work.make("open")
    result = work.run()
    assert result.code == 0, result
    assert work.rows() == rows
    folders = set(work.noted("inits"))
    assert len(folders) == 1 and folders.pop().endswith("/model"), "one copy for both processes"


def test_those_of_a_container_are_there_before_init(work, azurite):
    work.environment.update(
        HOME=str(work.root), AZURE_STORAGE_CONNECTION_STRING=azurite.connection_string()
    )
    azurite.container("models")
    rows = model_job(
        work,
        azurite,
        "models",
        None,
        stores=[{"name": "models", "url": azurite.url("models"), "endpoint": azurite.endpoint}],
    )
    work.make("open")
    result = work.run()
    assert result.code == 0, result
    assert work.rows() == rows


def test_an_agent_that_follows_one_fetches_nothing_again(work, server):
    set_up(work, server)
    server.bucket("kept")
    rows = model_job(work, server, "kept", "s3://kept", count=40)
    command = work.start_job()
    command.wait_for(lambda: len(work.noted("runs")) >= 2, "both processes run")
    # Nobody could fetch it any more.
    for key in ("m/v1/deep/weights.txt", "m/v1/empty.txt", "words.txt"):
        server.delete("kept", key)
    processes.running("agent")[0].kill()
    command.wait_for(lambda: len(work.noted("runs")) >= 4, "both processes of the next one run")
    assert len(set(work.noted("inits"))) == 1
    work.make("open")
    result = command.wait()
    assert result.code == 0, result
    assert work.rows() == rows


def test_a_run_that_goes_on_takes_no_other_bytes(work, server):
    set_up(work, server)
    server.bucket("other")
    rows = model_job(work, server, "other", "s3://other")
    command = work.start_job()
    command.wait_for(lambda: len(work.noted("runs")) >= 2, "both processes run")
    command.send(signal.SIGKILL)
    command.wait_only()
    processes.expect_nothing_running()
    work.make("open")
    server.put("other", "m/v1/deep/weights.txt", b"lighter")
    refused = work.run("--resume")
    assert refused.code != 0
    place = "the side input model: s3://other/m/v1/deep/weights.txt"
    words = f"{place} is not what was listed: it had ETag "
    assert "InputUnusable" in refused.output and words in refused.output, refused
    anew = work.run("--overwrite")
    assert anew.code == 0, anew
    assert work.rows() == [row.replace("weights", "lighter") for row in rows]


def test_what_no_node_could_have_is_refused_once(work, server):
    server.bucket("refused")
    reader, lister = server.user("sidereader"), server.user("sidelister")
    server.allow("refused", (lister, "s3:ListBucket", ""))
    set_up(work, server)
    model_job(work, server, "refused", "s3://refused", cache={"size": "10"})
    result = work.run()
    assert result.code != 0
    text = "side inputs in stores take 12 bytes or more, and a node keeps 10 of objects: raise "
    assert text + "spec.cache.size" in result.output, result
    model_job(work, server, "refused", "s3://refused")
    server.delete("refused", "words.txt")
    result = work.run()
    assert result.code != 0
    text = "spec.sideInputs (words): nothing is at s3://refused/words.txt"
    assert text in result.output, result
    server.put("refused", "words.txt", b"words")
    for keys, right in [(reader, "s3:ListBucket"), (lister, "s3:GetObject")]:
        set_up(work, server, keys)
        result = work.run()
        assert result.code != 0
        assert f"{right} is missing on arn:aws:s3:::refused" in result.output, result
        assert keys[1] not in result.output
    assert not work.noted("inits")


def test_debug_says_that_it_cannot_fetch_them(work, server):
    set_up(work, server)
    server.bucket("debugged")
    model_job(work, server, "debugged", "s3://debugged", count=1)
    work.make("open")
    assert work.run().code == 0
    result = work.call("debug", str(work.out), "--mini-batch", "0")
    assert result.code == 2, result
    assert "the side input model lies in a store, which debug cannot fetch yet" in result.output
