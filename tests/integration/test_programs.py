"""How the programs are built: what the loader and the kernel read in them."""

import platform
import re
import subprocess
from pathlib import Path

import pytest
from support.command import BIN

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ["parallelrun", "parallelrun-coordinator", "parallelrun-agent", "parallelrun-operator"]


def control_flow(file):
    """The features that its mark says it is fit for; of a library all that any object says."""
    read = subprocess.run(["readelf", "-nW", file], check=True, capture_output=True, text=True)
    return {
        frozenset(line.split(", "))
        for line in re.findall("x86 feature: ([A-Z]+(?:, [A-Z]+)*)", read.stdout)
    }


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the mark is x86's")
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_is_marked_as_fit_for_a_shadow_stack(program):
    (features,) = control_flow(BIN / program)
    assert features == {"SHSTK"}  # all that CMakeLists.txt compiles for


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the mark is x86's")
def test_the_mark_is_true_of_all_that_is_compiled_here():
    """The linker is told to set it, as Debian's start files lack it: ours must have earned it."""
    libraries = sorted(BIN.parent.rglob("libparallelrun_*.a"))
    assert {"libparallelrun_base.a", "libparallelrun_agent.a"} <= {file.name for file in libraries}
    for library in libraries:
        objects = subprocess.run(["ar", "t", library], check=True, capture_output=True, text=True)
        read = subprocess.run(
            ["readelf", "-nW", library], check=True, capture_output=True, text=True
        )
        marks = re.findall("x86 feature: SHSTK$", read.stdout, re.M)
        assert len(marks) == len(objects.stdout.split()) > 0, library


@pytest.mark.parametrize("program", PROGRAMS)
def test_nothing_is_written_to_after_it_was_loaded_and_no_stack_is_executed(program, sanitized):
    read = subprocess.run(["readelf", "-lhdW", BIN / program], check=True, capture_output=True)
    text = read.stdout.decode()
    assert "GNU_RELRO" in text
    assert re.search(r"FLAGS.*(BIND_)?NOW", text)
    assert re.search(r"GNU_STACK .* RW  ", text)
    if sanitized is None:
        assert re.search("Type: +DYN", text), "at an address of its own each time"


def needed(program):
    read = subprocess.run(["readelf", "-dW", BIN / program], check=True, capture_output=True)
    return set(re.findall(r"NEEDED.*\[(lib\w+)\.so", read.stdout.decode()))


def test_who_speaks_through_cpprestsdk_is_what_the_page_says():
    page = (ROOT / "docs/architecture.md").read_text()
    (told,) = re.findall(r"^\| (.*?) \| cpprestsdk \(`rest_client/client.h`\) \|", page, re.M)
    assert "the command and the operator" in told
    for program in PROGRAMS:
        libraries = needed(program)
        assert "libssl" in libraries  # nobody speaks without TLS
        through_it = program in ("parallelrun", "parallelrun-operator")
        assert ("libcpprest" in libraries) == through_it, program
    # Boost is compiled in, so that a security release of it means a new build.
    assert not [name for program in PROGRAMS for name in needed(program) if "boost" in name]


@pytest.mark.parametrize("program", PROGRAMS)
def test_each_program_names_the_libraries_of_security_fixes(program):
    told = subprocess.run([BIN / program, "-V"], check=True, capture_output=True, text=True)
    assert re.fullmatch(
        program + r" \d+\.\d+\.\d+\nOpenSSL \d+\.\d+\.\d+.*; Boost \d+\.\d+\n", told.stdout
    )


def test_who_is_told_of_a_weakness_and_how_a_fix_reaches_users():
    policy = (ROOT / "SECURITY.md").read_text()
    assert "Report a vulnerability" in policy and "`parallelrun -V`" in policy
    assert "(docs/releasing.md)" in policy and "(docs/third-party.md)" in policy
    recipe = (ROOT / "docs/releasing.md").read_text().split("## A security fix of a library")[1]
    assert "OpenSSL" in recipe and "Boost" in recipe
    for command in re.findall(r"`(script/\w+)", recipe):
        assert (ROOT / command).exists()
    assert {"script/build", "script/bundle"} <= set(re.findall(r"`(script/\w+)", recipe))
    builds = (ROOT / "docs/releasing.md").read_text()
    for file in ("operator/Dockerfile", "worker-image/Dockerfile"):
        assert f"docker build --no-cache --pull -f {file} " in builds
        assert (ROOT / file).exists()
