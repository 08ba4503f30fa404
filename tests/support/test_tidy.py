"""script/tidy.py: when a source that was found clean is read again."""

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "script/tidy.py"


@pytest.fixture
def stamp(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("tidy", SCRIPT)
    tidy = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tidy)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "src/room").mkdir(parents=True)
    Path("src/room/deep.h").write_text("// deep\n")
    Path("src/room/near.h").write_text('#include "room/deep.h"\n#include "room/near.h"\n')
    Path("src/room/other.h").write_text("// other\n")
    Path("src/room/a.cc").write_text(
        '#include <vector>\n#include "room/near.h"\n#include "gone.h"\n'
    )

    def once(settings="settings"):
        tidy.included.cache_clear()
        return tidy.stamp("src/room/a.cc", settings)

    return once


@pytest.mark.parametrize("changed", ["a.cc", "near.h", "deep.h"])
def test_what_a_source_includes_makes_it_new(stamp, changed):
    before = stamp()
    with Path("src/room", changed).open("a") as file:
        file.write("// more\n")
    assert stamp() != before


def test_other_headers_do_not(stamp):
    before = stamp()
    Path("src/room/other.h").write_text("// more\n")
    assert stamp() == before
    assert stamp("other settings") != before
