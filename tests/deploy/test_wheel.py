"""The wheel: built, installed into a fresh environment without a network, used, and removed."""

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from pages import run_step, steps_of
from support import render
from support.render import ROOT

BUILD = Path(os.environ.get("PARALLELRUN_BIN", ROOT / "build/release/bin")).parent
PIP = ["-m", "pip", "--disable-pip-version-check", "--quiet"]
OFFLINE = ["install", "--no-index", "--no-deps"]

# What each worker says: which interpreter it is.
SCRIPT = """\
import sys


def run(mini_batch):
    return [sys.executable for path in mini_batch]
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    render.run([ROOT / "script/wheel", BUILD, folder])
    (path,) = folder.iterdir()
    return path


NO_HOME = "/dev/null"  # not "/nonexistent": root would make that folder


def plain(**more):
    """An environment in which nothing is active, and nothing of the build is found."""
    return {"PATH": "/usr/bin:/bin", "HOME": NO_HOME, "LANG": "C.UTF-8", **more}


def files_of(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_install_run_and_uninstall(wheel, tmp_path):
    """The environment that calls is the one that works, and removing it leaves nothing."""
    environment = tmp_path / "an environment"
    venv.create(environment, with_pip=True)
    python = environment / "bin/python"
    before = files_of(environment)
    render.run([python, *PIP, *OFFLINE, "--find-links", wheel.parent, "parallelrun"], env=plain())

    (tmp_path / "score.py").write_text(SCRIPT)
    (tmp_path / "texts").mkdir()
    for number in range(3):
        (tmp_path / "texts" / f"{number}.txt").write_text("text")
    job = ["run", tmp_path / "score.py", "--input", tmp_path / "texts", "--processes", "2"]
    for starts, out in (
        ([environment / "bin/parallelrun"], "by_name"),
        ([python, "-m", "parallelrun"], "by_module"),
    ):
        # The name is also called where another environment is active, and without a path.
        command = [*starts, *job, "--output", tmp_path / out]
        told = subprocess.run(command, env=plain(), capture_output=True, text=True, timeout=120)
        assert told.returncode == 0, told.stdout + told.stderr
        assert "Succeeded (Complete)" in told.stdout
        assert "of the environment that this command was called from" in told.stderr
        rows = (tmp_path / out / "parallel_run_step.txt").read_text()
        assert rows == f"{python}\n" * 3
    # kubectl finds it under this name, and calls it with the words behind its own.
    plugin = [environment / "bin/kubectl-parallelrun", "explain", "3"]
    assert render.run(plugin, env=plain()).startswith("exit status 3 of the command")
    # Where man(1) looks for it while the environment is active.
    page = (environment / "share/man/man1/parallelrun.1").read_text()
    assert page == render.run([environment / "bin/parallelrun", "help", "--man"], env=plain())
    modules = "import azureml_user.parallel_run, parallelrun.worker"
    render.run([python, "-c", modules], env=plain())
    # Tests of scripts too, by the command that lies beside the package.
    test = f"import parallelrun.testing as t; print(t.run_script({str(tmp_path / 'score.py')!r}, "
    test += f"{str(tmp_path / 'texts')!r}).rows)"
    assert render.run([python, "-c", test], env=plain()) == f"{[str(python)] * 3}\n"

    # And jobs from Python, by what is in the wheel: the function's module lies beside.
    (tmp_path / "who.py").write_text(SCRIPT)
    call = f"import parallelrun, who; job = parallelrun.run(who.run, {str(tmp_path / 'texts')!r}, "
    call += f"{str(tmp_path / 'by_python')!r}); print(job.result.state, list(job.rows()))"
    told = render.run([python, "-c", call], env=plain(PYTHONPATH=str(tmp_path)))
    assert told == f"Succeeded {[str(python)] * 3}\n"

    render.run([python, *PIP, "uninstall", "--yes", "parallelrun"], env=plain())
    left = files_of(environment) - {"share", "share/man"}  # pip leaves what is empty
    assert left == before


def test_the_demo(wheel, tmp_path):
    """It needs nothing but the wheel, and leaves every row."""
    folder = tmp_path / "packages"
    shutil.unpack_archive(wheel, folder, "zip")
    (folder / "parallelrun/bundle/lib/ld.so").chmod(0o755)  # zip's own modes are lost in this way
    command = [sys.executable, "-m", "parallelrun", "demo", str(tmp_path / "shown")]
    environment = plain(PYTHONPATH=str(folder))
    told = render.run(command, env=environment)
    assert "could not convert string to float: 'n/a" in told
    assert "All 120 rows, in the order of the input:" in told
    rows = (tmp_path / "shown/out/parallel_run_step.txt").read_text().splitlines()
    assert [row.split()[0] for row in rows] == [f"store-{store:03}" for store in range(120)]
    again = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert again.returncode == 2
    assert "shown is there already" in again.stderr


def test_the_tour_needs_nothing_else(wheel, tmp_path):
    """docs/tour.md, typed as it stands, where there is only Python and the wheel."""
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env/bin/python"
    render.run([python, *PIP, *OFFLINE, wheel], env=plain())
    folder = tmp_path / "tour"
    folder.mkdir()
    environment = plain(PATH=f"{python.parent}:/usr/bin:/bin")
    for step in steps_of("docs/tour.md"):
        run_step(step, "docs/tour.md", folder, environment)
    assert len((folder / "totals.csv").read_text().splitlines()) == 21
    assert (folder / "totals.csv.run/logs/report.html").exists()


def test_a_wrong_word_has_the_commands_exit_status(wheel, tmp_path):
    folder = tmp_path / "packages"
    shutil.unpack_archive(wheel, folder, "zip")
    (folder / "parallelrun/bundle/lib/ld.so").chmod(0o755)  # zip's own modes are lost in this way
    command = [sys.executable, "-m", "parallelrun", "run", "--no-such-flag"]
    result = subprocess.run(
        command, env=plain(PYTHONPATH=str(folder)), capture_output=True, text=True, timeout=60
    )
    assert result.returncode == 2
    assert "--no-such-flag is not a flag of run" in result.stderr


@pytest.mark.parametrize("machine", ["manylinux2014", "manylinux_2_17", "musllinux_1_1"])
def test_any_c_library_takes_it(wheel, tmp_path, machine):
    """Also one newer than the tag names; `--target` with a platform is how images are filled."""
    target = tmp_path / "packages"
    arch = os.uname().machine
    words = ["--only-binary", ":all:", "--platform", f"{machine}_{arch}", "--target", target]
    render.run([sys.executable, *PIP, *OFFLINE, *words, wheel])
    assert (target / "parallelrun/bundle/lib/ld.so").stat().st_mode & 0o111


def test_equal_parts_make_equal_wheels(wheel, tmp_path):
    shutil.unpack_archive(wheel, tmp_path / "parts", "zip")
    shutil.rmtree(next((tmp_path / "parts").glob("*.dist-info")))
    (tmp_path / "parts/parallelrun/bundle/lib/ld.so").chmod(0o755)
    made = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        render.run([sys.executable, ROOT / "script/wheel.py", tmp_path / "parts", tmp_path / name])
        (path,) = (tmp_path / name).iterdir()
        made.append((path.name, path.read_bytes()))
        for part in (tmp_path / "parts").rglob("*"):
            os.utime(part, (2e9, 2e9))
    assert made[0] == made[1]


STUB = """#!/bin/bash
set -e
echo "$(basename "$0") $*" >> "$CALLS"
case $0 in
  */build)
    mkdir -p build/release/bin
    printf '#!/bin/sh\necho a page\n' > build/release/bin/parallelrun
    chmod +x build/release/bin/parallelrun ;;
  */bundle) mkdir -p "$2"; echo licensed > "$2/LICENSE" ;;
esac
"""


@pytest.fixture
def clone(tmp_path):
    """A clone in which nothing is installed or built in earnest."""
    folder = tmp_path / "clone"
    for part in ("script/wheel", "script/wheel.py", "wheel/parallelrun/__main__.py"):
        (folder / part).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / part, folder / part)
    shutil.copytree(ROOT / "worker-image/python", folder / "worker-image/python")
    for name in ("bootstrap", "build", "bundle"):
        (folder / "script" / name).write_text(STUB)
        (folder / "script" / name).chmod(0o755)
    return folder


def test_without_words_it_builds_what_it_needs(clone, tmp_path):
    environment = plain(CALLS=str(tmp_path / "calls"))
    done = subprocess.run(
        [clone / "script/wheel"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (made,) = (clone / "build/wheel").iterdir()
    assert f"install it: pip install build/wheel/{made.name}\n" in done.stdout
    calls = (tmp_path / "calls").read_text().splitlines()
    assert calls[0] == "bootstrap "
    programs = "parallelrun parallelrun-coordinator parallelrun-agent"
    assert calls[1] == f"build release -DPARALLELRUN_TESTS=OFF {programs}"
    assert calls[2].startswith("bundle build/release ")

    # With one word nobody knows what is meant.
    command = [clone / "script/wheel", "build/release"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2 and "script/wheel BUILD OUT" in done.stderr


@pytest.fixture
def fake(tmp_path):
    """The launcher with a loader that prints the interpreter and the words that it was given."""
    folder = tmp_path / "fake/parallelrun"
    (folder / "bundle/lib").mkdir(parents=True)
    shutil.copy(ROOT / "wheel/parallelrun/__main__.py", folder)
    loader = folder / "bundle/lib/ld.so"
    loader.write_text('#!/bin/sh\necho "python=$PARALLELRUN_PYTHON"\nprintf "%s\\n" "$@"\n')
    loader.chmod(0o755)
    environment = tmp_path / "tool"
    venv.create(environment, with_pip=False)

    def start(*words, **variables):
        command = [environment / "bin/python", folder / "__main__.py", *words]
        return render.run(command, env=plain(**variables)).splitlines()

    start.environment = environment
    start.python = f"python={environment}/bin/python"
    return start


def test_the_words_reach_the_program(fake):
    words = ["run", "a file.py", "--", "--flag", "", "ü"]
    library, program = (fake("run")[index] for index in (2, 5))
    assert fake(*words)[1:] == [
        "--library-path", library, "--argv0", "parallelrun", program, *words,
    ]  # fmt: skip
    assert program.endswith("/parallelrun/bundle/bin/parallelrun")


@pytest.mark.parametrize("mark", ["pipx_metadata.json", "uv-receipt.toml"])
def test_which_environment_works(fake, mark):
    active = {"VIRTUAL_ENV": "/opt/active", "PARALLELRUN_PYTHON": "/of/another/python"}
    assert fake()[0] == fake.python
    assert fake(**active)[0] == fake.python, "it was called from here, whatever is active"
    # pipx and uv keep one for the command alone.
    (fake.environment / mark).touch()
    assert fake()[0] == fake.python
    assert fake(**active)[0] == "python="
