"""parallelrun run --page: the live page, over HTTP and in a real browser."""

import gzip
import http.client
import http.server
import json
import os
import re
import socket
import threading

import browser
import pytest
from browser import Browser
from support.command import PATIENCE

needs_browser = pytest.mark.skipif(
    browser.PROGRAM is None or browser.AXE is None, reason="script/bootstrap test installs them"
)

WAITS = """
from steps import note, wait_for

def run(mini_batch, context):
    note("calls", context.minibatch_index)
    print(f"line of {context.minibatch_index} <i>x</i> \\x1b[31mred\\x1b[0m \\u202e\\r", flush=True)
    if context.minibatch_index == 2:
        raise ValueError("<b>bold</b> \u202e")
    if context.minibatch_index == 5:
        wait_for("go")
    if context.minibatch_index == 12:
        wait_for("rest")
    return [open(path).read() for path in mini_batch]
"""


class Page:
    """A run whose sixth mini-batch waits, and the thirteenth, and what it serves."""

    def __init__(self, work, *words, script=WAITS):
        self.work = work
        work.files(20)
        work.script(script)
        # A browser on a busy machine takes longer than run() may by default.
        limits = {"runMaxTry": 1, "allowedFailedCount": 1, "runInvocationTimeoutSeconds": 3600}
        work.job(processCountPerNode=1, **limits)
        self.command = work.start_job("--page", *words)
        self.command.wait_for_text("page: http")
        self.url = re.search(r"page: (\S+)", self.command.output)[1]
        self.port = int(re.search(r":(\d+)/", self.url)[1])
        self.token = self.url.partition("#t=")[2]
        # A coordinator that still starts has no page yet.
        self.command.wait_for(lambda: self.ask("/").status == 200, "the page is there")

    def until_it_waits(self):
        self.command.wait_for(lambda: "5" in self.work.noted("calls"), "the sixth mini-batch")

    def ask(self, path, method="GET", token="", host=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        if token:
            headers["Authorization"] = "Bearer " + token
        if host:
            headers["Host"] = host
        connection.request(method, path, headers=headers)
        return connection.getresponse()

    def events(self, answer):
        """What comes, as (event, data), to the end of the stream."""
        event = {}
        for line in answer:
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if name:
                event[name] = value
            elif event.get("data"):
                yield event["event"], json.loads(event["data"])
                event = {}

    def go(self):
        self.work.make("go")
        self.work.make("rest")

    def end(self):
        self.go()
        return self.command.wait(120)


def test_the_page_and_its_assets_are_there_without_a_token(work):
    page = Page(work)
    answer = page.ask("/")
    assert answer.status == 200
    assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    text = answer.read().decode()
    assert "page.js" in text and work.root.name not in text
    packed = page.ask("/page.js", Accept_Encoding="gzip")
    assert packed.headers["Content-Encoding"] == "gzip"
    script = gzip.decompress(packed.read())
    assert script == page.ask("/page.js").read()
    etag = packed.headers["ETag"]
    assert page.ask("/page.js", If_None_Match=etag).status == 304
    assert len(text) + len(script) + len(page.ask("/page.css").read()) < 150_000
    assert page.end().code == 0


def test_what_the_page_shows_needs_its_token_and_its_token_only_shows(work):
    page = Page(work)
    assert page.ask("/v1/events").status == 401
    assert page.ask("/v1/events", token="0" * 64).status == 401
    assert page.ask("/v1/control", method="PUT", token=page.token).status == 403
    assert page.ask("/v1/nodes/0/leave", method="POST", token=page.token).status in (401, 403)
    for path in ("/", "/v1/events"):
        assert page.ask(path, token=page.token, host="evil.example").status == 421
    assert page.end().code == 0
    # What has the token is the terminal alone.
    for folder, _, names in os.walk(work.out):
        for name in names:
            with open(os.path.join(folder, name), "rb") as file:
                assert page.token.encode() not in file.read(), name


def test_without_the_flag_there_is_no_page(work):
    work.files(1)
    work.script()
    work.job()
    result = work.run()
    assert result.code == 0
    assert "page:" not in result.output


def test_events_are_a_snapshot_then_changes_then_the_end(work):
    page = Page(work)
    page.until_it_waits()
    answer = page.ask("/v1/events", token=page.token)
    assert answer.headers["Content-Type"].startswith("text/event-stream")
    assert answer.headers["Cache-Control"] == "no-store"
    events = page.events(answer)
    name, document = next(events)
    assert name == "snapshot"
    assert document["live"] and document["name"] == "job"
    while document["miniBatches"]["succeeded"] < 1:  # when the others are told of is chance
        document.update(next(events)[1])
    assert document["state"] == "Running"
    page.go()
    rest = list(events)
    for _, changes in rest:
        document.update(changes)
    assert [name for name, _ in rest][-1] == "end"
    assert document["state"] == "Succeeded"
    assert document["miniBatches"]["succeeded"] == 19
    assert sum(document["series"]["succeeded"]) == 19
    assert sum(document["series"]["failed"]) == 1
    assert (sum(document["map"]["succeeded"]), sum(document["map"]["failed"])) == (19, 1)
    assert document["errors"]["list"][0]["message"].startswith("<b>bold</b>")
    assert page.end().code == 0


def test_init_that_takes_long_is_on_the_page_while_it_runs(work):
    page = Page(
        work,
        script="from steps import wait_for\n\n"
        "def init():\n    wait_for('go')\n\n"
        "def run(mini_batch):\n    return [open(path).read() for path in mini_batch]\n",
    )
    events = page.events(page.ask("/v1/events", token=page.token))
    _, document = next(events)
    while not document["init"]:
        document.update(next(events)[1])
    assert document["init"].startswith("init() has been running for ")
    assert " on 1 node" in document["init"]
    page.go()
    for _, changes in events:
        document.update(changes)
    assert (document["state"], document["init"]) == ("Succeeded", "")
    assert page.end().code == 0


def test_viewers_that_read_nothing_hold_up_nobody(work):
    page = Page(work)
    sockets = []
    for _ in range(33):
        viewer = socket.create_connection(("127.0.0.1", page.port), 60)
        request = (
            "GET /v1/events HTTP/1.1\r\nHost: localhost\r\n"
            f"Authorization: Bearer {page.token}\r\n\r\n"
        )
        viewer.sendall(request.encode())
        sockets.append(viewer)
    statuses = [viewer.recv(12)[-3:] for viewer in sockets]
    assert sorted(statuses) == [b"200"] * 32 + [b"503"]
    assert page.end().code == 0
    for viewer in sockets:
        viewer.close()


def test_a_part_of_a_log_is_read(work):
    page = Page(work)
    page.until_it_waits()
    path = "/v1/log?path=user/stdout/0/process000.stdout.txt"

    def there():
        answer = page.ask(path, token=page.token)
        return answer.status == 200 and b"line of 5" in (text := answer.read()) and (answer, text)

    answer, text = page.command.wait_for(there, "the log has come")
    assert answer.headers["Content-Type"].startswith("text/plain")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Log-From"] == "0"
    assert int(answer.headers["Log-Size"]) == len(text)
    assert page.ask(path + "&from=5", token=page.token).read() == text[5:]
    assert page.ask(path + f"&from={len(text)}", token=page.token).read() == b""

    assert page.ask(path).status == 401
    assert page.ask(path, token=page.token, host="evil.example").status == 421
    assert page.ask("/v1/log?path=user/none.txt", token=page.token).status == 404
    for wrong in ("", "?path=", "?path=/etc/passwd", "?path=../state/run.json", "?path=a/../b"):
        assert page.ask("/v1/log" + wrong, token=page.token).status == 400, wrong
    assert page.ask(path + "&from=-1", token=page.token).status == 400
    (work.logs / "link.txt").symlink_to("/etc/hostname")
    assert page.ask("/v1/log?path=link.txt", token=page.token).status == 503
    assert page.end().code == 0


@needs_browser
def test_a_browser_sees_the_run_live_and_keeps_it(work, tmp_path):
    page = Page(work)
    with Browser(tmp_path / "browser") as opened:
        tab = opened.open(page.url, width=1280)
        # The token is out of the address at once.
        assert tab.value("location.href") == page.url.partition("#")[0]
        state = "document.querySelector('.state').textContent"
        tab.wait_for(f"document.querySelector('.state') && {state}.includes('Running')")
        tab.wait_for("document.querySelector('.errors details') !== null")
        assert "<b>bold</b> \\u202e" in tab.text()
        # What somebody has opened stays open, and keeps the focus, while numbers change.
        tab.value(
            "var kept = document.querySelector('.errors summary'); kept.click(); kept.focus(); 0"
        )
        page.go()
        tab.wait_for(f"{state}.includes('Succeeded')")
        assert tab.value("document.activeElement === kept && kept.parentElement.open")
        tab.wait_for("document.querySelector('.banner').textContent.includes('The run is over')")
        assert "19 succeeded" in tab.text()
        assert str(work.logs / "report.html") in tab.text()
        tab.value("document.querySelectorAll('details').forEach(d => { d.open = true; })")
        assert tab.accessibility() == []
        assert tab.complaints() == []
        assert {url.partition("#")[0] for url in tab.asked()} == {
            f"http://127.0.0.1:{page.port}/{name}"
            for name in ("", "page.css", "page.js", "v1/events")
        }
        assert page.command.wait_only(120).code == 0


@needs_browser
def test_a_log_is_followed_and_searched(work, tmp_path):
    page = Page(work)
    page.until_it_waits()
    with Browser(tmp_path / "browser") as opened:
        tab = opened.open(page.url, width=1280)
        tab.wait_for("document.querySelector('.errors button') !== null")
        lines = "document.querySelector('pre.log').textContent"
        # Of an error: the log that it names, with its traceback.
        tab.value(
            "var error = document.querySelector('.errors details'); error.open = true;"
            "error.querySelector('button').click(); 0"
        )
        tab.wait_for(f"{lines}.includes('ValueError: <b>bold</b>')")
        # Another one, by hand.
        tab.value(
            "var [of, kind] = document.querySelectorAll('.controls select');"
            "of.value = '0/process000'; kind.selectedIndex = 0;"
            "kind.dispatchEvent(new Event('change')); 0"
        )
        tab.wait_for(f"{lines}.includes('line of 5 <i>x</i> red \\\\u202e')")
        assert not tab.value(f"{lines}.includes('line of 6')")
        assert tab.value("document.querySelector('pre.log i') === null")
        tab.value(
            "var find = document.querySelector('input[type=search]'); find.value = 'LINE OF 4';"
            "find.dispatchEvent(new Event('input')); 0"
        )
        assert tab.value(lines).strip() == "line of 4 <i>x</i> red \\u202e"
        assert "1 of 6 lines" in tab.text()
        assert tab.accessibility() == []
        tab.value("find.value = ''; find.dispatchEvent(new Event('input')); 0")
        work.make("go")
        tab.wait_for(f"{lines}.includes('line of 12')")
        page.go()
        tab.wait_for("document.querySelector('.banner').textContent.includes('The run is over')")
        assert f"{work.logs}/user/stdout/0/process000.stdout.txt" in tab.text()
        assert tab.value(f"{lines}.includes('line of 12')"), "what was read stays"
        assert tab.accessibility() == []
    page.command.wait_only(120)


class Prefix:
    """A proxy that has the page below a prefix, as jupyter-server-proxy does."""

    def __init__(self, page, prefix):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                if not self.path.startswith(prefix):
                    return self.send_error(404)
                rest = self.path[len(prefix) - 1 :]
                bearer = self.headers.get("Authorization", "").removeprefix("Bearer ")
                answer = page.ask(rest, token=bearer, Accept_Encoding="identity")
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    if name.lower() not in ("connection", "content-length", "date", "server"):
                        self.send_header(name, value)
                self.end_headers()
                try:
                    while part := answer.read1(65536):
                        self.wfile.write(part)
                except OSError:
                    pass  # either end has gone

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}{prefix}#t={page.token}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


@needs_browser
def test_it_fits_any_width_below_any_prefix(work, tmp_path):
    page = Page(work)
    page.until_it_waits()
    with Prefix(page, "/user/me/proxy/4711/") as proxy, Browser(tmp_path / "browser") as opened:
        for width, dark in ((360, False), (1280, True), (2560, False)):
            tab = opened.open(proxy.url, width=width, dark=dark)
            tab.wait_for("document.querySelector('.errors button') !== null")
            tab.value("document.querySelectorAll('details').forEach(d => { d.open = true; })")
            tab.wait_for("document.querySelector('pre.log').textContent !== ''")
            if os.environ.get("PICTURES"):
                tab.picture(f"{os.environ['PICTURES']}/page-{width}.png")
            assert tab.value("document.documentElement.scrollWidth") <= width
            assert tab.accessibility() == []
            assert tab.complaints() == []
            assert {url.partition("/user/me/proxy/4711/")[0] for url in tab.asked()} == {
                f"http://127.0.0.1:{proxy.server.server_port}"
            }
    assert page.end().code == 0


@needs_browser
def test_without_its_token_the_page_says_what_it_needs(work, tmp_path):
    page = Page(work)
    with Browser(tmp_path / "browser") as opened:
        tab = opened.open(page.url.partition("#")[0], width=360)
        assert "the whole address that the command has printed" in tab.text()
        assert tab.accessibility() == []
        assert not any("events" in url for url in tab.asked())
    assert page.end().code == 0
