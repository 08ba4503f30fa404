"""What an interpreter says of a script before it is run (parallelrun/preflight.py)."""

import os
import subprocess
import sys

import pytest
from parallelrun import preflight


@pytest.fixture
def look(tmp_path, monkeypatch):
    """Looks at s.py of this text; other files are given by their paths."""

    def look(text, script="s.py", own=False, functions=("run",), needs=(), **files):
        monkeypatch.setattr(sys, "path", ["", *sys.path])
        for path, content in {script: text, **files}.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(content)
        folder = os.path.dirname(tmp_path / script) if own else ""
        return preflight.look(str(tmp_path), script, folder, functions, needs)

    return look


RUN = "def run(b): return b\n"


@pytest.mark.parametrize(
    "text",
    [
        RUN,
        "async def run(b): return b\n",
        "run = print\n",
        "run: object = print\n",
        "if True:\n    def run(b): return b\n",
        "try:\n    run = print\nexcept ValueError:\n    pass\n",
        "from os import path as run\n",
        "from os.path import *\n",
        "def init():\n    global run\n    run = print\n",
        "def __getattr__(name): return print\n",
        "globals()['run'] = print\n",
        "for run in [print]: pass\n",
        "(run := print)\n",
    ],
)
def test_run_is_found_wherever_it_may_come_from(look, text):
    assert look(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "def runs(b): return b\n",
        "class Scorer:\n    def run(self, b): return b\n",
        "def main():\n    def run(b): return b\n",
        "class Scorer:\n    run = None\n",
    ],
)
def test_a_script_without_run(look, text):
    (problem,) = look(text)
    assert problem[0] == "script"
    assert problem[1].startswith("s.py:1: there is no function run(). Define run(mini_batch)")


def test_async_mode_has_other_functions(look):
    (problem,) = look("def enqueue(): pass\n", functions=("enqueue", "check_all_tasks_processed"))
    assert "there is no function check_all_tasks_processed." in problem[1]


@pytest.mark.parametrize("text", ["def run(b)\n    return b\n", "\n\0", "# coding: nonsense\n"])
def test_what_does_not_compile(look, text):
    (problem,) = look(text)
    assert problem[0] == "script"
    assert "s.py:" in problem[1]
    assert "SyntaxError: " in problem[1]


@pytest.mark.parametrize(
    "text",
    [
        "try:\n    import no_such\nexcept ImportError:\n    no_such = None\n",
        "def init():\n    import no_such\n",
        "if not __name__:\n    import no_such\n",
        "from . import no_such\n",
        "import azureml.core, mlflow\n",
        "import sys\nsys.path.append('lib')\nimport no_such\n",
        "from sys import path\npath.append('lib')\nimport no_such\n",
        "import os\nos.system('pip install no_such')\nimport no_such\n",
        "import os.path, json, parallelrun\n",
    ],
)
def test_imports_that_may_be_well(look, text):
    assert look(text + RUN) == []


def test_an_import_that_the_users_own_code_may_make_good(look):
    text = "import helper\nimport no_such\n" + RUN
    assert look(text, **{"helper.py": "import sys\nsys.path.append('lib')\n"}) == []
    deep = {"helper.py": "import deeper\n", "deeper/__init__.py": "from sys import modules\n"}
    assert look(text, **deep) == []
    deep["deeper/__init__.py"] = "import os\n"
    ((part, told),) = look(text, **deep)
    assert part == "python"
    assert "No module named 'no_such' (s.py:2) in " in told


def test_what_is_missing_is_one_command(look):
    text = "import no_such\nimport bs4, no_other.part\nfrom no_such.below import x\n" + RUN
    hidden = [("no_pandas", "it reads the tabular input")]
    ((part, told),) = look(text, needs=hidden)
    assert part == "python"
    assert "'no_pandas' (it reads the tabular input), 'no_such' (s.py:1)" in told
    assert "'no_other' (s.py:2)" in told
    assert "Install them: " in told
    assert " -m pip install no_pandas no_such " in told
    assert "modules of your own belong into the code folder" in told


def test_a_package_that_is_called_otherwise(monkeypatch):
    monkeypatch.setattr(preflight, "_found", lambda name: name == "pip")
    told = preflight._missing([("sklearn", "s.py:1"), ("PIL", "s.py:2")], "/code")
    assert "pip install scikit-learn pillow" in told


def test_the_command_fits_the_interpreter(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "executable", "/my python")
    monkeypatch.setattr(preflight, "_found", lambda name: False)
    monkeypatch.setattr(sys, "base_prefix", "/elsewhere")  # it is a virtual environment
    install = "'/my python' -m ensurepip && '/my python' -m pip install x"
    assert preflight._install(["x"]) == install
    monkeypatch.setattr(preflight, "_found", lambda name: True)
    assert preflight._install(["x"]) == "'/my python' -m pip install x"
    # The system's own, which pip refuses to change.
    monkeypatch.setattr(sys, "base_prefix", sys.prefix)
    monkeypatch.setattr(os, "__file__", str(tmp_path / "os.py"))
    (tmp_path / "EXTERNALLY-MANAGED").touch()
    assert ".venv/bin/python3 -m pip install x, then add --python" in preflight._install(["x"])


def test_a_module_beside_the_script(look):
    text = "import beside\n" + RUN
    files = {"src/beside.py": ""}
    ((part, told),) = look(text, script="src/s.py", **files)
    assert part == "script"
    assert "src/s.py:1: No module named 'beside'. src/beside.py is there" in told
    assert told.endswith("import src.beside.")
    assert look(text, script="src/s.py", own=True, **files) == []


def test_nothing_of_the_script_is_executed(look, tmp_path):
    text = f"open({str(tmp_path / 'mark')!r}, 'w')\nimport helper\n" + RUN
    assert look(text, **{"helper.py": "raise SystemExit"}) == []
    assert not (tmp_path / "mark").exists()


def test_the_answer(tmp_path):
    (tmp_path / "s.py").write_text("import no_such\nif True:\n    from os import getcwd as run\n")
    for name in ("re", "ast", "enum", "types", "functools"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('executed')\n")
    folder = os.path.dirname(preflight.__file__)
    code = "import sys; path = sys.path[:]; sys.path.insert(0, sys.argv[1]); import preflight"
    code += "; sys.path[:] = path; preflight.main(sys.argv[2:])"
    answer = subprocess.run(  # as the command starts it: from the code folder
        [sys.executable, "-c", code, folder, tmp_path, "s.py", "", "run", "os", "why"],
        stdout=subprocess.PIPE,
        cwd=tmp_path,
        check=True,
    ).stdout
    front, mark, version, program, part, told, back, end = answer.split(b"\0")
    assert (front, mark) == (b"", back)
    assert version.decode() == ".".join(map(str, sys.version_info[:3]))
    assert program.decode() == sys.executable
    assert part == b"python"
    assert told.startswith(b"No module named 'no_such' (s.py:1)")
    assert end == b""
