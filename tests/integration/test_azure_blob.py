"""A container on a real server for Azure Blob Storage: pages, names, ranges, changes, keys, SAS."""

import hashlib

import pytest
from azurite_server import ACCOUNT, KEY, OTHER_KEY, Server
from support.s3 import Store


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    running = Server(tmp_path_factory.mktemp("azurite"))
    yield running
    running.close()


def asking(server, container, prefix="", **variables):
    """The program over one container, with the account's key if nothing else is said."""
    if not variables:
        variables = {"AZURE_STORAGE_ACCOUNT": ACCOUNT, "AZURE_STORAGE_KEY": KEY}
    return Store(server.url(container, prefix), server.endpoint, None, "", **variables)


def digest(data):
    return hashlib.sha256(data).hexdigest()


def test_pages_come_in_order_and_from_anywhere(server):
    server.container("many")
    names = [
        f"{part}/{index:04}.txt"
        for part in ("a", "a-b", "a.b", "b/.git", "b/c")
        for index in range(90)
    ]
    sizes = {name: index % 7 for index, name in enumerate(names)}
    for name, size in sizes.items():
        server.put("many", f"in/{name}", b"x" * size)
    names.sort(key=str.encode)
    with asking(server, "many", "in/") as store:
        listed = store.ask("list")
        assert listed["names"] == names
        assert listed["sizes"] == [sizes[name] for name in names]
        # A page has 100 here: in its middle, behind its last, and behind all.
        for index in (234, 299, 449):
            assert store.ask("list", after=names[index])["names"] == names[index + 1 :]
        wanted = [name for name in names if "/.git/" not in name]
        assert store.ask("list", without=".git")["names"] == wanted


NAMES = ["a b.txt", "a+b", "a%20b", "ü/中文.txt", "q?&=#.csv", "'\"<>&.txt", "~x", "c/d e/f"]


def test_names_come_and_go_as_they_are(server):
    server.container("names")
    for name in NAMES:
        server.put("names", "in/" + name, name.encode())
    with asking(server, "names", "in") as store:
        assert store.ask("list")["names"] == sorted(NAMES, key=str.encode)
        for name in NAMES:
            assert store.ask("open", name=name)["size"] == len(name.encode())
            assert store.ask("read", offset=0, size=1000)["sha256"] == digest(name.encode())


def test_where_tools_have_laid_folders_they_are_left_out(server):
    server.container("folders")
    server.put("folders", "a", b"", hdi_isfolder="true")
    for name in ("a/1", "a/b/2", "a-b", "a.b/3", "a0"):
        server.put("folders", name, b"1")
    with asking(server, "folders") as store:
        assert store.ask("list")["names"] == ["a-b", "a.b/3", "a/1", "a/b/2", "a0"]
        assert store.ask("list", after="a.b/3")["names"] == ["a/1", "a/b/2", "a0"]


def test_ranges(server):
    server.container("ranges")
    data = hashlib.shake_256(b"x").digest(3_000_000)
    server.put("ranges", "data", data)
    server.put("ranges", "empty", b"")
    with asking(server, "ranges") as store:
        assert store.ask("open", name="data")["size"] == len(data)
        for offset, size in (
            (0, 3_000_000),
            (0, 1),
            (1_234_567, 1_000_000),
            (2_999_999, 10),
            (3_000_000, 10),
        ):
            part = data[offset : offset + size]
            assert store.ask("read", offset=offset, size=size) == {
                "size": len(part),
                "sha256": digest(part),
            }
        assert store.ask("open", name="empty")["size"] == 0
        assert store.ask("read", offset=0, size=10)["size"] == 0
        assert store.ask("stat", name="none") == {}
        missing = store.ask("open", name="none")
        assert missing["error"] == server.url("ranges", "none") + ": there is no such object"


def test_what_changed_after_it_was_opened_is_not_read(server):
    server.container("changes")
    for name in ("changed", "deleted"):
        server.put("changes", name, b"12345678")
    with asking(server, "changes") as store:
        was = store.ask("open", name="changed")
        server.put("changes", "changed", b"123456789")
        now = store.ask("stat", name="changed")
        assert (was["size"], now["size"]) == (8, 9) and was["version"] != now["version"]
        assert store.ask("read", offset=0, size=8)["error"] == (
            server.url("changes", "changed") + " was changed since it was opened: "
            f"it had 8 bytes, ETag {was['version']}; has 9 bytes, ETag {now['version']}"
        )
        # The list tells the same version.
        store.ask("open", name="deleted")
        server.delete("changes", "deleted")
        gone = store.ask("read", offset=0, size=8)
        assert gone["error"] == (
            server.url("changes", "deleted") + " was deleted since it was opened"
        )


def test_no_such_container(server):
    with asking(server, "none-of-this-name", "in") as store:
        error = store.ask("list")["error"]
        assert error.startswith(
            f"listing {server.url('none-of-this-name', 'in/')}: there is no container "
            f"none-of-this-name in account {ACCOUNT} at 127.0.0.1:"
        )
        assert "404 ContainerNotFound" in error


def test_a_key_that_is_wrong_or_not_there(server):
    server.container("keys")
    wrong = {"AZURE_STORAGE_ACCOUNT": ACCOUNT, "AZURE_STORAGE_KEY": OTHER_KEY}
    with asking(server, "keys", **wrong) as store:
        for error in (store.ask("list")["error"], store.ask("stat", name="a")["error"]):
            assert f"the key does not belong to account {ACCOUNT}" in error
            assert "check AZURE_STORAGE_KEY of the environment" in error
            assert OTHER_KEY not in error
    with Store(server.url("keys"), server.endpoint, None, "") as store:
        assert (
            "no credentials for Azure: set AZURE_STORAGE_CONNECTION_STRING"
            in (store.first_line()["error"])
        )


def test_a_connection_string_names_the_endpoint_too(server):
    server.container("connected")
    server.put("connected", "a", b"1")
    string = {"AZURE_STORAGE_CONNECTION_STRING": server.connection_string()}
    with Store(server.url("connected"), "", None, "", **string) as store:
        assert store.ask("list")["names"] == ["a"]
        assert store.ask("open", name="a")["size"] == 1


def test_a_sas_allows_what_it_says(server):
    server.container("shared")
    server.put("shared", "a", b"1")

    def with_sas(permissions):
        sas = server.sas("shared", permissions)
        return asking(server, "shared", AZURE_STORAGE_SAS_TOKEN=sas)

    with with_sas("rl") as store:
        assert store.ask("list")["names"] == ["a"]
        assert store.ask("open", name="a")["size"] == 1
        assert store.ask("read", offset=0, size=1)["size"] == 1
    with with_sas("l") as store:
        assert store.ask("list")["names"] == ["a"]
        error = store.ask("open", name="a")["error"]
        assert "AZURE_STORAGE_SAS_TOKEN of the environment (a SAS, sp=l, until 2099-01-01" in error
        assert "it needs permission read (sp=r)" in error
    with with_sas("r") as store:
        assert store.ask("open", name="a")["size"] == 1
        assert "it needs permission list (sp=l)" in store.ask("list")["error"]
    for terms, key in (("2020-01-01T00:00:00Z", KEY), ("2099-01-01T00:00:00Z", OTHER_KEY)):
        sas = server.sas("shared", "rl", terms, key)
        with asking(server, "shared", AZURE_STORAGE_SAS_TOKEN=sas) as store:
            error = store.ask("list")["error"]
            assert "does not accept AZURE_STORAGE_SAS_TOKEN" in error
        signature = sas.partition("sig=")[2]
        assert signature and signature not in error + store.log
