"""The keys of a job: what the user's script, as the same user, can find of them."""

import os

import pytest
from support import processes
from support.command import PROGRAM

LOOK = """
import os
from steps import note, wait_for

def look_into(pid):
    found = []
    for name, look in (
        ("memory", lambda: open(f"/proc/{pid}/mem", "rb").close()),
        ("environment", lambda: open(f"/proc/{pid}/environ", "rb").read()),
        ("descriptors", lambda: os.readlink(f"/proc/{pid}/fd/1")),
    ):
        try:
            look()
            found.append(name)
        except PermissionError:
            pass
    return found

def run(mini_batch):
    wait_for("look")
    for line in open(os.path.join(os.environ["TEST_FOLDER"], "look")):
        role, pid = line.split()
        note("seen", role, *look_into(int(pid)))
    return ["a row"]
"""


@pytest.fixture
def looked(work):
    """A job whose script waits until it is told whom to look into."""
    work.script(LOOK)
    work.files(1)
    work.job(processCountPerNode=1)
    # Root may look into all: without its capabilities it is as anybody, who may look into processes
    # of the same user but for those that say no.
    drop = ["setpriv", "--bounding-set", "-all", "--inh-caps", "-all"] if os.geteuid() == 0 else []
    program, *words = [*drop, PROGRAM, "run", work.job_file.name]
    command = work.start(*words, program=program)
    command.wait_for(lambda: processes.running("worker"), "there is a worker")
    command.wait_for(lambda: (work.logs / "sys/node/0").exists(), "the node works")
    return work, command


def test_a_script_cannot_look_into_who_holds_a_key(looked):
    work, command = looked
    roles = ["command", "coordinator", "guardian", "agent", "worker"]
    found = [process for role in roles for process in processes.running(role)]
    assert [process.role for process in found] == roles
    lines = "".join(f"{process.role} {process.pid}\n" for process in found)
    (work.root / "look.new").write_text(lines)
    (work.root / "look.new").rename(work.root / "look")
    assert command.wait().code == 0, command.output
    *others, itself = work.noted("seen")
    assert others == roles[:-1]
    assert itself == "worker memory environment descriptors", "the script has looked"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root sees the descriptors of these")
def test_no_open_descriptor_leads_to_a_key(looked):
    work, command = looked
    seen = 0
    for process in processes.running():
        folder = f"/proc/{process.pid}/fd"
        for name in os.listdir(folder):
            try:
                place = os.readlink(f"{folder}/{name}")
                if not place.startswith(("/memfd:", str(work.root))):
                    continue
                seen += 1
                with open(f"{folder}/{name}", "rb") as file:
                    content = file.read()
            except (PermissionError, IsADirectoryError):
                continue
            except FileNotFoundError:  # closed by now, as the worker still reads its modules
                continue
            assert b'"key"' not in content and b'"token"' not in content, (process, place)
    assert seen > 0
    work.make("look")
    assert command.wait().code == 0, command.output
