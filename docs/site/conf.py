"""How the site is made of the pages in docs/: script/site.

The pages are plain Markdown, to be read on a forge as well, so nothing in them is for Sphinx. The
navigation is what docs/README.md says: each of its headings is a group, and the links in the first
column of its tables are the pages of it. The README.md of a folder of docs/ does the same for that
folder.
"""

import re
from pathlib import Path

from docutils import nodes
from pygments.lexers import TextLexer
from sphinx import addnodes

ROOT = Path(__file__).resolve().parents[2]

project = "ParallelRun"
version = re.search(
    r"project\(parallelrun VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text()
)[1]
root_doc = "docs/README"
source_suffix = {".md": "markdown"}
include_patterns = ["docs/**.md", "deploy/samples/*/README.md", "*.md"]
# Not walked through: they hold tens of thousands of files, and no page.
exclude_patterns = ["build*", ".git"]
extensions = ["myst_parser"]
myst_heading_anchors = 6  # those of a forge
nitpicky = True
smartquotes = False  # a dash in front of a flag is a dash

html_theme = "furo"
html_title = f"ParallelRun {version}"
html_additional_pages = {"index": "to-first-page.html"}
templates_path = ["."]
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_favicon = "icon.svg"
html_copy_source = False
html_use_index = False
html_show_copyright = False

_HEADING = re.compile(r"^## (.+)$")
_LINK = re.compile(r"\]\(([^)#:]+\.md)\)")


def navigation(text):
    """(heading or "", [target]) of each group of pages, in order."""
    groups = [("", [])]
    for line in text.splitlines():
        if heading := _HEADING.match(line):
            groups.append((heading[1], []))
        elif line.startswith("|"):
            groups[-1][1].extend(_LINK.findall(line.split("|")[1]))
    return [group for group in groups if group[1]]


def add_navigation(app, page, source):
    if not re.fullmatch(r"docs/(\w+/)?README", page):
        return
    folder = (ROOT / page).parent
    for heading, targets in navigation(source[0]):
        pages = [
            (folder / target).resolve().relative_to(ROOT).with_suffix("") for target in targets
        ]
        caption = f":caption: {heading}\n" if heading else ""
        lines = "\n".join(f"/{each.as_posix()}" for each in pages)
        source[0] += f"\n```{{toctree}}\n:hidden:\n{caption}\n{lines}\n```\n"


def leave_code_in_the_clone(app, doctree):
    """A link to a folder leads to its README.md; if that is no page, only its words are left."""
    for link in [*doctree.findall(addnodes.pending_xref)]:
        page = link["reftarget"]
        if link["refdomain"] != "doc":
            folder = Path(app.env.relfn2path(page)[1])
            if not folder.is_dir():
                continue
            page = app.env.path2doc(folder / "README.md")
        if page in app.env.found_docs:
            link["refdomain"], link["reftarget"] = "doc", page
            link["reftargetid"] = link.get("reftargetid")
        else:
            link.replace_self(nodes.inline("", "", *link.children[0].children))


# What the theme leaves for people who use no mouse, or no eyes.
_ACCESS = {
    'role="heading">': 'role="heading" aria-level="2">',
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="All pages">',
    '<aside class="toc-drawer': '<aside aria-label="This page" class="toc-drawer',
    "<pre>": '<pre tabindex="0">',
    '<div class="table-wrapper': '<div tabindex="0" class="table-wrapper',
    '<th class="head"><p></p></th>': "<td></td>",
    '<div id="search-results">': '<h1>Search</h1><div id="search-results">',
}


def give_access(app, error):
    for page in Path(app.outdir).rglob("*.html"):
        text = page.read_text()
        for written, wanted in _ACCESS.items():
            text = text.replace(written, wanted)
        page.write_text(text)


def setup(app):
    app.add_lexer("mermaid", TextLexer)  # a forge draws it; here it is read
    app.connect("source-read", add_navigation)
    app.connect("doctree-read", leave_code_in_the_clone)
    app.connect("build-finished", give_access)
