"""What is known to be wrong before anything is started: told at once, in a list, with status 2."""

import os
import sys
from pathlib import Path

import pytest

TABLE = {"name": "rows", "tabular": {"volume": "data"}}


def refused(work, *words, arguments=()):
    result = work.run(*arguments)
    assert result.code == 2, result
    assert result.output.startswith("nothing was started; fix it and run again:\n"), result
    for word in words:
        assert result.output.count(word) == 1, (word, result)
    assert not work.out.exists()
    return result


def bare_python(work):
    """A Python like the one of the tests, in a virtual environment without a package."""
    environment = work.root / "venv"
    (environment / "bin").mkdir(parents=True)
    (environment / "bin/python3").symlink_to(os.path.realpath(sys.executable))
    home = f"home = {Path(sys.base_prefix) / 'bin'}\n"
    (environment / "pyvenv.cfg").write_text(home + "include-system-site-packages = false\n")
    return environment


def test_everything_that_is_wrong_is_told_at_once(work):
    work.script("import not_there, json\n\ndef walk(b): return b\n")
    work.job(inputs=[{"name": "files", "files": {"volume": "data", "path": "images"}}])
    work.out.write_text("a file")
    result = work.run()
    assert result.code == 2, result
    for word in (
        f"\n  inputs[files]: {work.data}/images does not exist",
        f"\n  output: {work.out} is not a folder: move it away, or choose another folder with --",
        "\n  script: score.py:1: there is no function run()",
        "\n  python: No module named 'not_there' (score.py:1)",
    ):
        assert result.output.count(word) == 1, (word, result)
    assert len(result.output.splitlines()) == 5, result


def test_the_code_is_on_a_volume_that_is_a_folder_here(work):
    rows = work.files(2)
    work.script()
    shared = work.root / "shared"
    shared.mkdir()
    work.code.rename(shared / "scripts")
    volumes = [*work.spec()["volumes"], {"name": "models", "hostPath": {"path": "shared"}}]
    work.job(code={"volume": "models", "path": "mistyped"}, volumes=volumes)
    refused(work, f'(spec.code: {shared}/mistyped, on the volume "models", is not there)')
    work.job(code={"volume": "models", "path": "scripts"}, volumes=volumes)
    result = work.run()
    assert result.code == 0, result
    assert work.output.read_text().splitlines() == rows


def test_a_missing_input_of_a_script(work):
    (work.root / "score.py").write_text("def run(b):\n    return b\n")
    words = ["run", "score.py", "--input", "imgs", "--output", "out"]
    result = work.call(*words)
    assert result.code == 2, result
    assert f"--input: {work.root}/imgs does not exist" in result.output
    assert not work.out.exists()


def test_tables_need_pandas_and_the_command_installs_it_into_that_python(work):
    (work.data / "a.csv").write_text("a,b\n1,2\n")
    work.script("def run(b):\n    return b\n")
    environment = bare_python(work)
    work.job(inputs=[TABLE], environment=None)
    python = environment / "bin/python3"
    words = [f"No module named 'pandas' (it reads the tabular input) in {python}, Python 3."]
    refused(work, *words, f"{python} -m pip install pandas", arguments=["--python", str(python)])


def test_the_active_virtual_environment_runs_the_script(work):
    work.files(1)
    work.script("import sys\n\ndef run(b):\n    return [sys.prefix]\n")
    work.job(environment=None)
    environment = bare_python(work)
    work.environment["VIRTUAL_ENV"] = str(environment)
    result = work.run()
    assert result.code == 0, result
    assert f"({environment}/bin/python3, of the active environment (VIRTUAL_ENV))" in result.output
    assert "; 1 input file, 5 bytes\n" in result.output
    assert work.rows() == [str(environment)]
    # Whoever names one means that one.
    result = work.run("--overwrite", "--python", sys.executable)
    assert result.code == 0, result
    assert work.rows() == [sys.prefix]


def test_an_interpreter_that_is_too_old_or_cannot_start(work):
    work.files(1)
    work.script()
    work.job(environment=None)
    old = work.root / "old"
    mark = r"\000parallelrun-preflight\000"
    old.write_text(f"#!/bin/sh\nprintf '{mark}3.6.15\\000/usr/bin/python3.6{mark}'\n")
    broken = work.root / "broken"
    broken.write_text("#!/bin/sh\necho 'no encodings here' >&2\nexit 1\n")
    for path in (old, broken):
        path.chmod(0o755)
    words = ["/usr/bin/python3.6 is Python 3.6.15, and ParallelRun needs 3.8 or newer", "--python"]
    refused(work, *words, arguments=["--python", "./old"])
    words = [f"{broken} ended with status 1: no encodings here", "--python PATH"]
    refused(work, *words, arguments=["--python", "./broken"])
    refused(work, "no_such_python is not in the PATH", arguments=["--python", "no_such_python"])


GREETINGS = {
    "sitecustomize": "print('Welcome, see the intranet for help')",
    "usercustomize": "print('2.7 is no longer supported here')",
    "flushed": "print('loaded', flush=True)",
    "a child that stays": "import subprocess; subprocess.Popen(['sleep', '600'])",
}


@pytest.mark.parametrize("how", [*GREETINGS, "wrapper", "without an end"])
def test_a_python_that_prints_at_its_start_is_like_any_other(work, how):
    rows = work.files(3)
    work.script()
    work.job()
    arguments = []
    if how in GREETINGS:
        site = work.root / "site"
        site.mkdir()
        name = how if how.endswith("customize") else "sitecustomize"
        (site / f"{name}.py").write_text(GREETINGS[how] + "\n")
        work.environment["PYTHONPATH"] = str(site)
    else:
        wrapper = work.root / "python-module"
        greets = "echo module python/3 loaded" if how == "wrapper" else "test $# -gt 6 && exec yes"
        wrapper.write_text(f'#!/bin/sh\n{greets}\nexec {sys.executable} "$@"\n')
        wrapper.chmod(0o755)
        arguments = ["--python", str(wrapper)]
    result = work.run(*arguments)
    if how == "without an end":
        assert result.code == 2, result
        assert f"{wrapper} prints without an end and does not answer" in result.output
        return
    assert result.code == 0, result
    assert work.rows() == rows


def test_a_script_that_changes_where_modules_are_looked_for_is_believed(work):
    rows = work.files(2)
    (work.code / "lib").mkdir()
    (work.code / "lib/near.py").write_text("def read(path):\n    return open(path).read()\n")
    work.script(
        "import os, sys\n\n"
        "sys.path.insert(0, os.path.join(os.path.dirname(__file__), 'lib'))\n"
        "import near\n\ndef run(b):\n    return [near.read(path) for path in b]\n"
    )
    work.job()
    result = work.run()
    assert result.code == 0, result
    assert work.rows() == rows


def test_a_script_in_a_folder_of_its_project(work):
    """Its own folder comes first, the code's root second; a job file has the root alone."""
    work.files(2)
    project = work.root / "project"
    (project / "src").mkdir(parents=True)
    (project / "pyproject.toml").touch()
    (project / "src/s.py").write_text(
        "import beside, shared\nfrom lib import below\n\n"
        "def run(b):\n    return [f'{beside.NAME} {shared.NAME} {below.NAME}'] * len(b)\n"
    )
    (project / "src/beside.py").write_text("NAME = 'beside'\n")
    (project / "src/shared.py").write_text("NAME = 'own'\n")
    (project / "shared.py").write_text("NAME = 'root'\n")
    (project / "lib").mkdir()
    (project / "lib/below.py").write_text("NAME = 'below'\n")
    words = ["--input", "data", "--output", "out"]
    result = work.call("run", "project/src/s.py", *words)
    assert result.code == 0, result
    output = work.out / "parallel_run_step.txt"
    assert output.read_text() == "beside own below\n" * 2
    # The folder is named: nothing of it gets lost.
    result = work.call("run", "project/src/s.py", "--code", ".", *words, "--overwrite")
    assert result.code == 2, result
    assert "No module named 'lib' (project/src/s.py:2)" in result.output
    result = work.call("run", "project/src/s.py", "--code", "data", *words, "--overwrite")
    assert (result.code, "does not lie below the code folder" in result.output) == (2, True), result

    init = work.call("init", "project/src/s.py", *words)
    assert init.code == 0, init
    result = work.call("run", "job.yaml", "--overwrite")
    assert result.code == 2, result
    assert "src/beside.py is there, but modules are looked for in the code folder" in result.output
    assert "import src.beside." in result.output
