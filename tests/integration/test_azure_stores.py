"""Inputs in a container of Azure Blob Storage: the output is that of a folder's run."""

import sys

import pytest
from azurite_server import ACCOUNT, KEY, OTHER_KEY, Server
from support.stored import HELD, ROWS, TEXTS, copy, labelled_files, rows_of, table


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    running = Server(tmp_path_factory.mktemp("azurite"))
    yield running
    running.close()


def set_up(work, server, **variables):
    """The environment of a user of that server."""
    for name in [name for name in work.environment if name.startswith(("AWS_", "AZURE_"))]:
        del work.environment[name]
    if not variables:
        variables = {"AZURE_STORAGE_CONNECTION_STRING": server.connection_string()}
    work.environment.update(HOME=str(work.root), **variables)


def told(work, result):
    """All that a run says, wherever it says it."""
    return result.output + "".join(
        path.read_text(errors="replace") for path in work.root.rglob("*") if path.is_file()
    )


def test_files_of_a_container_give_what_those_of_a_folder_give(work, server):
    set_up(work, server)
    server.container("files")
    labelled_files(work)
    copy(server, "files", work.data)
    here = rows_of(work, "--input", "data")
    assert here.count(b"\n") == 60
    assert rows_of(work, "--input", server.url("files", "in/")) == here
    other = f"https://{ACCOUNT}.blob.core.windows.net/files/in/label-1/*.txt"
    one_label = rows_of(work, "--input", other)
    assert one_label == b"".join(line for line in here.splitlines(True) if b"label-1" in line)


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_tables_of_a_container_give_what_those_of_a_folder_give(work, server, kind):
    set_up(work, server)
    container = f"tables-{kind}"
    server.container(container)
    size = table(work, kind)
    copy(server, container, work.data)
    here = rows_of(work, "--input", f"data/t.{kind}", *size)
    assert here.count(b"\n") == 2000
    assert rows_of(work, "--input", server.url(container, f"in/t.{kind}"), *size) == here


def in_container(work, server, container, **fields):
    """A job file whose input is all of a container, at an endpoint of its own."""
    work.job(
        stores=[{"name": "blobs", "url": server.url(container), "endpoint": server.endpoint}],
        inputs=[{"name": "files", "files": {"store": "blobs", "path": "in"}}],
        **fields,
    )


def test_a_blob_that_changes_meanwhile_is_named(work, server):
    set_up(work, server, AZURE_STORAGE_ACCOUNT=ACCOUNT, AZURE_STORAGE_KEY=KEY)
    server.container("changed")
    work.files(40)
    copy(server, "changed", work.data)
    work.script(HELD)
    in_container(work, server, "changed", runMaxTry=1)
    command = work.start_job()
    command.wait_for(lambda: len(work.noted("runs")) >= 2, "both processes run")
    server.put("changed", "in/000039.txt", b"another text")
    work.make("open")
    result = command.wait()
    assert result.code != 0
    text = told(work, result)
    place = server.url("changed", "in/000039.txt")
    assert f"{place} is not what was listed: it had ETag " in text, text


def test_types_of_a_table_in_a_container(work, server):
    set_up(work, server)
    server.container("types")
    server.put("types", "in/t.csv", b"a,b\n1,x\n2,y\n")
    work.script(ROWS)
    work.job(
        stores=[{"name": "blobs", "url": server.url("types")}],
        inputs=[{"name": "rows", "tabular": {"store": "blobs", "path": "in"}}],
    )
    result = work.call("types", "job.yaml")
    assert result.code == 0, result
    assert "a\tinteger" in result.output and "b\ttext" in result.output


def test_a_blob_that_stands_for_a_folder_is_a_prefix(work, server):
    set_up(work, server, AZURE_STORAGE_CONNECTION_STRING=server.connection_string())
    server.container("marks")
    for name in ("full", "day"):
        server.put("marks", name, b"", hdi_isfolder="true")
    server.put("marks", "full/a.txt", b"text")
    work.script(TEXTS)
    assert rows_of(work, "--input", server.url("marks", "full")).endswith(b" a.txt text\n")
    words = ["run", "code/score.py", "--python", sys.executable, "--output", "empty", "--input"]
    for name in ("day", "day/"):
        result = work.call(*words, server.url("marks", name), "--allow-empty", "--overwrite")
        assert result.code == 0, result
        assert "EMPTY: no item below " + server.url("marks", "day") in result.output, result
    result = work.call(*words, server.url("marks", "days"), "--allow-empty")
    assert result.code == 2 and "no object below" in result.output, result


def refusal(work, url, *words, output="out"):
    result = work.call("run", "code/score.py", "--input", url, "--output", output, *words)
    assert result.code != 0
    return result


def test_each_refusal_says_cause_place_and_mend(work, server):
    set_up(work, server)
    work.script(TEXTS)
    server.container("empty")
    missing = server.url("not-there", "in/")
    assert "there is no container not-there" in refusal(work, missing).output
    # With a format nothing is looked at before the job begins; the coordinator says the same.
    output = refusal(work, missing, "--format", "files").output
    assert f"there is no container not-there in account {ACCOUNT}" in output
    empty = server.url("empty", "in/")
    assert f"no object below {empty[:-1]}" in refusal(work, empty).output
    to_azure = refusal(work, empty, output=server.url("empty", "out/"))
    assert "of Azure Blob Storage only inputs are read" in to_azure.output
    set_up(work, server, AZURE_STORAGE_KEY="")
    assert "no credentials for Azure" in refusal(work, empty).output


def test_a_wrong_key_and_a_sas_without_the_right_are_told_and_never_shown(work, server):
    server.container("rights")
    server.put("rights", "in/a.txt", b"1")
    url = server.url("rights", "in/")
    work.script(TEXTS)
    set_up(work, server, AZURE_STORAGE_CONNECTION_STRING=server.connection_string(OTHER_KEY))
    text = told(work, refusal(work, url, "--format", "files"))
    assert f"the key does not belong to account {ACCOUNT}" in text and OTHER_KEY not in text
    sas = server.sas("rights", "l")
    signature = sas.partition("sig=")[2]
    work.out.mkdir(exist_ok=True)
    set_up(
        work,
        server,
        AZURE_STORAGE_CONNECTION_STRING=(
            f"BlobEndpoint={server.endpoint};SharedAccessSignature={sas}"
        ),
    )
    text = told(work, refusal(work, url, "--overwrite", "--set", "spec.runMaxTry=1"))
    assert "it needs permission read (sp=r)" in text
    assert f"reading {url}a.txt" in text or f"looking at {url}a.txt" in text
    assert signature not in text


def test_a_sas_in_a_url_is_refused_and_shown_to_nobody(work, server):
    set_up(work, server)
    work.script(TEXTS)
    sas = server.sas("files", "rl")
    signature = sas.partition("sig=")[2]
    url = f"https://{ACCOUNT}.blob.core.windows.net/files/in/?{sas}"
    result = refusal(work, url)
    assert "AZURE_STORAGE_SAS_TOKEN" in result.output
    assert signature not in told(work, result)
