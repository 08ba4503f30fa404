"""How the programs are built: what the loader and the kernel read in them."""

import platform
import re
import subprocess

import pytest
from support.command import BIN

PROGRAMS = ["parallelrun", "parallelrun-coordinator", "parallelrun-agent", "parallelrun-operator"]


def control_flow(file):
    """The features that its mark says it is fit for; of a library all that any object says."""
    read = subprocess.run(["readelf", "-nW", file], check=True, capture_output=True, text=True)
    return {frozenset(line.split(", ")) for line in re.findall("x86 feature: (.*)", read.stdout)}


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the mark is x86's")
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_is_marked_as_fit_for_a_shadow_stack(program):
    (features,) = control_flow(BIN / program)
    assert "SHSTK" in features


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
        marks = re.findall("x86 feature: IBT, SHSTK", read.stdout)
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
