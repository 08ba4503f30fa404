"""The site of the documentation (script/site): every link leads somewhere, every page of docs/
is in its navigation, it asks nothing of other hosts, and a mistake in a page ends the build.
"""

import functools
import http.server
import os
import re
import shutil
import subprocess
import threading
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

import pytest
from browser import AXE, PROGRAM, Browser
from support.render import ROOT

pytestmark = pytest.mark.skipif(
    not (ROOT / "build/tools/site/complete").exists(),
    reason="Sphinx could not be installed: script/bootstrap test",
)

# What makes a browser ask for something by itself.
LOADS = {
    *((tag, "src") for tag in ("script", "img", "iframe", "source", "video", "audio", "embed")),
    *(("img", "srcset"), ("object", "data"), ("use", "href"), ("link", "href")),
}


def build(root, out):
    return subprocess.run(
        [root / "script/site", out],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )


class Page(HTMLParser):
    """What a built page refers to, `links` and `loads`, and what others can refer to, `anchors`."""

    def __init__(self, path):
        super().__init__()
        self.links, self.loads, self.navigation, self.anchors = [], [], [], set()
        self._tree = 0  # open <div>s of the navigation
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if tag == "div" and (self._tree or given.get("class") == "sidebar-tree"):
            self._tree += 1
        if "id" in given:
            self.anchors.add(given["id"])
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
            if self._tree:
                self.navigation.append(given["href"])
        if tag == "meta" and given.get("http-equiv") == "refresh":
            self.links.append(given["content"].split("url=")[1])
        for name, value in attributes:
            if (tag, name) in LOADS and given.get("rel") not in ("next", "prev", "search", "index"):
                self.loads.append(value)
            if name == "style" and "url(" in (value or ""):
                self.loads += re.findall(r"url\(['\"]?([^)'\"]+)", value)

    def handle_endtag(self, tag):
        if tag == "div" and self._tree:
            self._tree -= 1


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site") / "site"
    built = build(ROOT, folder)
    assert built.returncode == 0, built.stdout
    assert built.stdout == f"{folder}/index.html\n"
    return folder


@pytest.fixture(scope="module")
def pages(site):
    return {path.relative_to(site).as_posix(): Page(path) for path in site.rglob("*.html")}


class Files(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def address(site):
    """Of a server of the site, on a port of its own."""
    handler = functools.partial(Files, directory=site)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def resolved(page, link):
    """(path in the site, anchor) of a link within it."""
    parts = urlsplit(urljoin(f"http://site/{page}", link))
    assert parts.netloc == "site", f"{page} leads to {link}"
    return unquote(parts.path)[1:], unquote(parts.fragment)


def test_every_link_leads_somewhere(site, pages):
    checked = 0
    for page, content in pages.items():
        for link in content.links + content.loads:
            if re.match(r"\w+:", link):
                continue
            target, anchor = resolved(page, link)
            assert (site / target).is_file(), f"{page} links to {link}, which is not there"
            if anchor and target.endswith(".html"):
                assert anchor in pages[target].anchors, (
                    f"{page} links to {link}, which is not there"
                )
                checked += 1
    assert checked > 1000  # of anchors alone


def test_links_to_other_hosts_have_the_form_of_one(pages):
    for page, content in pages.items():
        for link in content.links:
            if re.match(r"\w+:", link):
                parts = urlsplit(link)
                assert parts.scheme == "https" and re.fullmatch(
                    r"[a-z0-9-]+(\.[a-z0-9-]+)+", parts.netloc
                ), f"{page} links to {link}"


def test_each_page_of_the_documentation_is_in_the_navigation_of_each(pages):
    wanted = {
        path.relative_to(ROOT).with_suffix(".html").as_posix() for path in ROOT.glob("docs/**/*.md")
    }
    assert len(wanted) > 30
    for page, content in pages.items():
        if page == "index.html":
            continue  # it leads to the first page
        listed = {resolved(page, link)[0] for link in content.navigation}
        assert wanted - {"docs/README.html"} <= listed, page
    assert resolved("index.html", pages["index.html"].links[0])[0] == "docs/README.html"


def test_it_asks_nothing_of_other_hosts(site, pages):
    for page, content in pages.items():
        for load in content.loads:
            assert not re.match(r"(\w+:)?//", load), f"{page} asks for {load}"
    for sheet in site.rglob("*.css"):
        text = sheet.read_text()
        assert "@import" not in text, sheet
        for load in re.findall(r"url\(['\"]?([^)'\"]+)", text):
            assert load.startswith("data:") or not re.match(r"(\w+:)?//", load), (
                f"{sheet} asks for {load}"
            )


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if not PROGRAM or not AXE:
        pytest.skip("no browser: script/bootstrap test")
    with Browser(tmp_path_factory.mktemp("browser") / "profile") as browser:
        yield browser


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_it_fits_and_keeps_nobody_out(width, dark, address, browser):
    for page in ("docs/README", "docs/job"):
        tab = browser.open(f"{address}{page}.html", width=width, dark=dark)
        if folder := os.environ.get("PICTURES"):
            tab.picture(f"{folder}/{Path(page).name}-{width}-{'dark' if dark else 'light'}.png")
        assert tab.value("document.documentElement.scrollWidth") == width, page
        assert tab.accessibility() == [], page
        assert tab.complaints() == [], page
        assert all(url.startswith((address, "data:")) for url in tab.asked()), tab.asked()


def test_the_search_finds_a_page(address, browser):
    tab = browser.open(f"{address}search.html?q=fdatasync")
    tab.wait_for("document.querySelectorAll('ul.search li p.context').length > 0")
    found = tab.value("[...document.querySelectorAll('ul.search a')].map(a => a.href).join(' ')")
    assert f"{address}docs/architecture.html" in found
    assert tab.accessibility() == []
    assert tab.complaints() == []
    assert all(url.startswith((address, "data:")) for url in tab.asked()), tab.asked()


def test_a_mistake_ends_the_build(tmp_path):
    clone = tmp_path / "clone"
    (clone / "script").mkdir(parents=True)
    shutil.copy(ROOT / "script/site", clone / "script/site")
    shutil.copy(ROOT / "CMakeLists.txt", clone)
    shutil.copytree(ROOT / "docs/site", clone / "docs/site")
    (clone / "build").symlink_to(ROOT / "build")
    (clone / "docs/README.md").write_text(
        "# First\n\n## Group\n\n| page |\n|---|\n| [one](one.md) |\n"
    )
    (clone / "docs/one.md").write_text("# One\n\n[here](#one) and [there](README.md#group)\n")
    assert build(clone, tmp_path / "good").returncode == 0
    # All at once, for a build takes long: each is a warning, and one of them is enough.
    mistakes = {
        "[gone](gone.md)": "gone.md",
        "[gone](#gone)": "'gone'",
        "[gone](README.md#gone)": "'gone'",
    }
    (clone / "docs/one.md").write_text("# One\n\n" + "\n\n".join(mistakes) + "\n")
    (clone / "docs/two.md").write_text("# Two\n")
    built = build(clone, tmp_path / "bad")
    assert built.returncode != 0, built.stdout
    warnings = [line for line in built.stdout.splitlines() if "WARNING" in line]
    told = [f"docs/one.md:{3 + 2 * i}:" for i in range(len(mistakes))] + ["docs/two.md:"]
    for place, what in zip(told, [*mistakes.values(), ""]):
        assert any(place in line and what in line for line in warnings), (place, built.stdout)


def test_only_a_site_is_replaced(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    built = build(ROOT, tmp_path)
    assert built.returncode == 2 and "is there, and no site" in built.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
