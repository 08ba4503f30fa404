"""A bucket on a real server for S3: pages, names, ranges, changes, rights, keys, TLS."""

import hashlib
import shutil
import subprocess

import pytest
from certificates import Authority
from s3_server import OWNER, Server
from support.command import BIN
from support.s3 import Store


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    running = Server(tmp_path_factory.mktemp("s3"))
    yield running
    running.close()


def digest(data):
    return hashlib.sha256(data).hexdigest()


def test_ten_thousand_objects_come_in_order_and_from_anywhere(server):
    folder = server.bucket("many")
    names = []
    for part in ("a", "a-b", "a.b", "b/.git", "b/c"):
        (folder / "in" / part).mkdir(parents=True)
        for index in range(2000):
            (folder / "in" / part / f"{index:04}.txt").write_text("x" * (index % 7))
            names.append(f"{part}/{index:04}.txt")
    names.sort(key=str.encode)
    with Store("s3://many/in/", server.url) as store:
        listed = store.ask("list")
        assert listed["names"] == names
        assert listed["sizes"] == [int(name[-8:-4]) % 7 for name in names]
        # A page has 1,000: behind its last, in its middle, and behind all.
        for index in (999, 4321, 9999):
            assert store.ask("list", after=names[index])["names"] == names[index + 1 :]
        wanted = [name for name in names if "/.git/" not in name]
        assert store.ask("list", without=".git")["names"] == wanted


NAMES = [
    "a b.txt",
    "a+b",
    "a%20b",
    "ü/中文.txt",
    "q?&=#.csv",
    "'\"<>&.txt",
    "~x",
    "back\\slash",
    "c/d e/f",
]


def test_names_come_and_go_as_they_are(server):
    server.bucket("names")
    for name in NAMES:
        server.put("names", "in/" + name, name.encode())
    with Store("s3://names/in", server.url) as store:
        assert store.ask("list")["names"] == sorted(NAMES, key=str.encode)
        for name in NAMES:
            assert store.ask("open", name=name)["size"] == len(name.encode())
            assert store.ask("read", offset=0, size=1000)["sha256"] == digest(name.encode())


def test_ranges(server):
    server.bucket("ranges")
    data = hashlib.shake_256(b"x").digest(3_000_000)
    server.put("ranges", "data", data)
    server.put("ranges", "empty", b"")
    with Store("s3://ranges", server.url) as store:
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
        assert missing == {
            "error": "s3://ranges/none: there is no such object",
            "code": missing["code"],
        }


def test_what_changed_after_it_was_opened_is_not_read(server):
    server.bucket("changes")
    for name in ("changed", "deleted", "put-again"):
        server.put("changes", name, b"12345678")
    with Store("s3://changes", server.url) as store:
        was = store.ask("open", name="changed")
        server.put("changes", "changed", b"123456789")
        now = store.ask("stat", name="changed")
        assert (was["size"], now["size"]) == (8, 9) and was["version"] != now["version"]
        assert store.ask("read", offset=0, size=8)["error"] == (
            "s3://changes/changed was changed since it was opened: "
            f"it had 8 bytes, ETag {was['version']}; has 9 bytes, ETag {now['version']}"
        )
        store.ask("open", name="deleted")
        server.delete("changes", "deleted")
        gone = store.ask("read", offset=0, size=8)
        assert gone["error"] == "s3://changes/deleted was deleted since it was opened"
        # The same bytes are the same version.
        store.ask("open", name="put-again")
        server.put("changes", "put-again", b"12345678")
        assert store.ask("read", offset=0, size=8)["sha256"] == digest(b"12345678")


def test_no_such_bucket(server):
    with Store("s3://none-of-this-name/in", server.url) as store:
        error = store.ask("list")["error"]
        assert error.startswith(
            "listing s3://none-of-this-name/in/ (region eu-west-1): there is no bucket "
        )
        assert "NoSuchBucket" in error


def test_each_right_alone(server):
    server.bucket("rights")
    server.put("rights", "a", b"1")
    lister, reader = server.user("lister"), server.user("reader")
    server.allow("rights", (lister, "s3:ListBucket", ""), (reader, "s3:GetObject", "/*"))
    with Store("s3://rights", server.url, lister) as store:
        assert store.ask("list")["names"] == ["a"]
        error = store.ask("open", name="a")["error"]
        assert "s3:GetObject is missing on arn:aws:s3:::rights/a: grant it to AWS_ACC" in error
        assert "(AKIA…" in error and "403 AccessDenied" in error
        assert lister[1] not in error
    with Store("s3://rights", server.url, reader) as store:
        assert store.ask("open", name="a")["size"] == 1
        error = store.ask("list")["error"]
        assert (
            "s3:ListBucket is missing on arn:aws:s3:::rights: grant it to AWS_ACCESS_KEY_ID of"
            in error
        )


def test_keys_that_are_wrong_or_not_there(server):
    server.bucket("keys")
    with Store("s3://keys", server.url, (OWNER[0], "not-the-secret")) as store:
        for error in (store.ask("list")["error"], store.ask("stat", name="a")["error"]):
            assert (
                "the secret key does not belong to the access key: check AWS_ACCESS_KEY_ID" in error
            )
            assert "not-the-secret" not in error
    with Store("s3://keys", server.url, ("AKIANOBODYNOBODYNO00", "x")) as store:
        assert "does not know the access key" in store.ask("list")["error"]
    with Store("s3://keys", server.url, None) as store:
        assert store.first_line()["error"].startswith(
            "s3://keys: no credentials for S3: set AWS_ACCESS_KEY_ID"
        )


def test_keys_region_and_endpoint_of_a_profile(server, tmp_path):
    server.bucket("profiles")
    server.put("profiles", "a", b"1")
    (tmp_path / "credentials").write_text(
        f"[work]\naws_access_key_id = {OWNER[0]}\naws_secret_access_key = {OWNER[1]}\n"
    )
    (tmp_path / "config").write_text(
        f"[profile work]\nregion = eu-west-1\nendpoint_url = {server.url}\n"
    )
    variables = {
        "AWS_PROFILE": "work",
        "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "credentials"),
        "AWS_CONFIG_FILE": str(tmp_path / "config"),
    }
    with Store("s3://profiles", "", None, "", **variables) as store:
        assert store.ask("list")["names"] == ["a"]


def test_a_wrong_region_is_mended_by_what_the_server_says(server):
    server.bucket("regions")
    server.put("regions", "a", b"1")
    with Store("s3://regions", server.url, region="us-east-2") as store:
        assert store.ask("list")["names"] == ["a"]
        assert store.ask("open", name="a")["size"] == 1
    assert "s3://regions is in region eu-west-1, not in us-east-2" in store.log


def test_tls_is_trusted_by_its_certificate_alone(tmp_path):
    authority = Authority(tmp_path / "pki")
    cert, key = authority.issue("s3", "/CN=s3", "IP:127.0.0.1")
    server = Server(tmp_path / "s3", "--cert", cert, "--key", key)
    try:
        server.bucket("trust")
        server.put("trust", "a", b"1")
        with Store("s3://trust", server.url, AWS_CA_BUNDLE=str(authority.certificate)) as store:
            assert store.ask("list")["names"] == ["a"]
        with Store("s3://trust", server.url) as store:
            assert "certificate" in store.ask("list")["error"]
    finally:
        server.close()


def test_a_system_without_certificates_has_those_of_the_bundle(tmp_path):
    hidden = ["unshare", "--map-root-user", "--mount", "sh", "-c"]
    hidden += ['mount -t tmpfs none /etc/ssl && exec "$@"', "sh"]
    if subprocess.run([*hidden, "true"], capture_output=True).returncode != 0:
        pytest.skip("there are no namespaces of users here, in which certificates could be hidden")
    authority = Authority(tmp_path / "pki")
    cert, key = authority.issue("s3", "/CN=s3", "IP:127.0.0.1")
    bundle = tmp_path / "bundle"
    (bundle / "bin").mkdir(parents=True)
    shutil.copy(BIN / "read_bucket", bundle / "bin")
    server = Server(tmp_path / "s3", "--cert", cert, "--key", key)
    try:
        server.bucket("trust")
        server.put("trust", "a", b"1")
        program = [*hidden, bundle / "bin/read_bucket"]
        with Store("s3://trust", server.url, program=program) as store:
            assert "certificate" in store.ask("list")["error"]
        shutil.copy(authority.certificate, bundle / "ca-certificates.crt")
        with Store("s3://trust", server.url, program=program) as store:
            assert store.ask("list")["names"] == ["a"]
        # Where the system has some, those count alone.
        with Store("s3://trust", server.url, program=program[-1:]) as store:
            assert "certificate" in store.ask("list")["error"]
    finally:
        server.close()
