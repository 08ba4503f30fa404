"""A real browser, driven by the DevTools protocol over a pipe: no port, no driver, no network.

with Browser(tmp_path / "profile") as browser:
    tab = browser.open("file:///…/report.html", width=360)
    tab.value("document.title")
"""

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
from pathlib import Path

from waits import Limit, TooLate, wait_until

PROGRAM = next(
    (p for p in map(shutil.which, ("chromium", "chromium-browser", "chrome")) if p), None
)
LIMIT = 60.0  # seconds, of any wait
AXE = next(
    (Path(__file__).resolve().parents[2] / "build" / "tools").glob("axe-*/**/axe.min.js"), None
)

FLAGS = (
    "--headless=new",
    "--no-sandbox",  # the tests may be root, whom its sandbox refuses
    "--remote-debugging-pipe",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    # Whatever is asked for by name is not there: nothing leaves the machine.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
)


class Browser:
    def __init__(self, folder):
        """`folder` is its home, with its profile; made here."""
        self._folder = Path(folder)
        self._folder.mkdir()

    def __enter__(self):
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()

        def as_three_and_four():
            # Copies first, of free numbers, so that neither is closed before it was copied.
            reads = fcntl.fcntl(theirs_in, fcntl.F_DUPFD, 5)
            writes = fcntl.fcntl(theirs_out, fcntl.F_DUPFD, 5)
            os.dup2(reads, 3)
            os.dup2(writes, 4)

        home = str(self._folder)
        self._log = open(self._folder / "log.txt", "wb")
        self._process = subprocess.Popen(
            [PROGRAM, *FLAGS, f"--user-data-dir={home}/profile", "about:blank"],
            env={**os.environ, "HOME": home, "XDG_CONFIG_HOME": home, "XDG_CACHE_HOME": home},
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            preexec_fn=as_three_and_four,
            pass_fds=(3, 4, theirs_in, theirs_out),
            start_new_session=True,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._in, self._out = ours_in, ours_out
        self._rest = b""
        self._last = 0
        self.events = []
        return self

    def __exit__(self, *_):
        try:
            self.call("Browser.close")
            self._process.wait(10)
        except (RuntimeError, TooLate, OSError, subprocess.TimeoutExpired):
            pass
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._process.wait()
        os.close(self._in)
        os.close(self._out)
        self._log.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def call(self, method, session=None, **parameters):
        self._last += 1
        message = {"id": self._last, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        wait = Limit(LIMIT)
        while True:
            answer = self._receive(wait, method)
            if answer.get("id") == self._last:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def _receive(self, wait, what):
        while b"\0" not in self._rest:
            if not select.select([self._in], [], [], 0.5)[0]:
                if wait.over():
                    raise TooLate(f"the browser did not answer {what} within {LIMIT} s")
                continue
            data = os.read(self._in, 1 << 20)
            if not data:
                raise RuntimeError(
                    "the browser has ended: " + (self._folder / "log.txt").read_text()[-2000:]
                )
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\0")
        return json.loads(line)

    def open(self, url, width=1280, height=900, dark=False, reduced_motion=False):
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        tab = Tab(self, session)
        for domain in ("Page", "Runtime", "Network", "Log"):
            tab.call(f"{domain}.enable")
        tab.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip
        features = [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {
                "name": "prefers-reduced-motion",
                "value": "reduce" if reduced_motion else "no-preference",
            },
        ]
        tab.call("Emulation.setEmulatedMedia", features=features)
        tab.call("Page.navigate", url=url)
        tab.wait_for("document.readyState === 'complete'")
        return tab


class Tab:
    def __init__(self, browser, session):
        self._browser = browser
        self._session = session

    def call(self, method, **parameters):
        return self._browser.call(method, self._session, **parameters)

    def value(self, expression):
        """Of JavaScript; of a promise, what it becomes. It is not bound by the page's policy."""
        result = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression[:200]}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait_for(self, expression):
        return wait_until(lambda: self.value(expression), expression, LIMIT, pause=0.02)

    def text(self):
        return self.value("document.body.innerText")

    def press(self, key):
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key)

    def picture(self, path):
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {
            "x": 0,
            "y": 0,
            "width": size["width"],
            "height": min(size["height"], 6000),
            "scale": 1,
        }
        shot = self.call(
            "Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip
        )
        Path(path).write_bytes(base64.b64decode(shot["data"]))

    def asked(self):
        """The addresses of everything that it has asked for."""
        return [
            event["params"]["request"]["url"]
            for event in self._browser.events
            if event.get("sessionId") == self._session
            and event["method"] == "Network.requestWillBeSent"
        ]

    def complaints(self):
        """What it has said: errors, exceptions, and what the policy has refused."""
        found = []
        for event in self._browser.events:
            if event.get("sessionId") != self._session:
                continue
            if event["method"] == "Runtime.exceptionThrown":
                found.append(event["params"]["exceptionDetails"])
            if event["method"] == "Log.entryAdded":
                found.append(event["params"]["entry"]["text"])
            if event["method"] == "Runtime.consoleAPICalled" and event["params"]["type"] == "error":
                found.append(event["params"]["args"])
        return found

    def accessibility(self):
        """What axe-core finds: (rule, where) of each."""
        self.value(AXE.read_text() + ";0")
        violations = self.value("axe.run(document).then(r => r.violations)")
        return [(v["id"], [node["html"][:200] for node in v["nodes"][:5]]) for v in violations]
