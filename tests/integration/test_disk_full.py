"""A disk that is full: at the start, and while the job runs. Uses a small file system in memory."""

import os
import signal
import subprocess

import pytest
from support import processes
from support.refusal import expect_refusal

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a file system")


@pytest.fixture
def small_disk(work):
    """work.out on a file system of 4 MiB."""
    work.out.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", work.out]
    mounted = subprocess.run(command, capture_output=True, text=True)
    if mounted.returncode != 0:
        pytest.skip(f"cannot mount a file system here: {mounted.stderr.strip()}")
    yield work
    left = work.close()  # nothing can be in use now
    subprocess.run(["umount", work.out], check=True)
    assert left == []


def fill(work):
    """A file that takes all that is free."""
    path = work.out / "ballast"
    with open(path, "wb", buffering=0) as ballast:
        try:
            while True:
                ballast.write(b"x" * 4096)
        except OSError:
            pass
    return path


def test_full_at_the_start(small_disk):
    work = small_disk
    work.files(3)
    work.script()
    work.job()
    ballast = fill(work)
    result = work.run()
    expect_refusal(
        work, result, "No space left on device", str(work.out), "make room", "--volume out="
    )
    assert work.noted("calls") == []
    ballast.unlink()
    result = work.run()
    assert result.code == 0, result
    assert work.rows() == [f"row {index}" for index in range(3)]


SLOW = """
from steps import note, wait_for

def run(mini_batch, context):
    index = context.minibatch_index
    note("calls", index)
    if index >= 4:
        wait_for("filled")
    return [f"{index} " + "x" * 20_000]
"""


def test_full_while_the_job_runs(small_disk):
    work = small_disk
    work.files(40)
    work.script(SLOW)
    work.job()
    command = work.start_job(terminal=True)
    command.wait_for(lambda: len(work.noted("calls")) >= 6, "the job runs")
    ballast = fill(work)
    work.make("filled")
    command.wait_for_text("PAUSED")
    command.wait_for_text("No space left on device")
    command.wait_for_text(str(work.out))
    ballast.unlink()
    result = command.wait()
    assert result.code == 0, result
    assert work.rows() == [f"{index} " + "x" * 20_000 for index in range(40)]


def test_no_room_for_the_output(small_disk):
    """The rows are in the ledger; the output, as big again, does not fit beside it."""
    work = small_disk
    work.files(40)
    work.script(SLOW.replace("20_000", "70_000"))
    work.make("filled")
    work.job()
    command = work.start_job(terminal=True)
    command.wait_for_text("PAUSED")
    assert not work.output.exists()
    # The nodes have ended, and it says so again: it waits for room, and not for them.
    command.wait_for(lambda: not processes.running("agent"), "the nodes have ended")
    before = command.output.count("PAUSED")
    command.wait_for(lambda: command.output.count("PAUSED") >= before + 2, "it waits for room")
    subprocess.run(["mount", "-o", "remount,size=40m", work.out], check=True)
    result = command.wait()
    assert result.code == 0, result
    assert work.rows() == [f"{index} " + "x" * 70_000 for index in range(40)]


def test_ctrl_c_while_the_disk_is_full(small_disk):
    work = small_disk
    work.files(40)
    work.script(SLOW)
    work.job()
    command = work.start_job(terminal=True)
    command.wait_for(lambda: len(work.noted("calls")) >= 6, "the job runs")
    ballast = fill(work)
    work.make("filled")
    command.wait_for_text("PAUSED")
    command.send(signal.SIGINT)
    command.wait_for_text("Ctrl-C again stops at once")
    command.send(signal.SIGINT)
    result = command.wait()
    assert result.code == 130, result
    ballast.unlink()
    result = work.run("--resume")
    assert result.code == 0, result
    assert work.rows() == [f"{index} " + "x" * 20_000 for index in range(40)]


def test_one_ctrl_c_is_enough_while_the_disk_is_full(small_disk):
    work = small_disk
    work.files(40)
    work.script(SLOW)
    work.job()
    command = work.start_job(terminal=True)
    command.wait_for(lambda: len(work.noted("calls")) >= 6, "the job runs")
    ballast = fill(work)
    work.make("filled")
    command.wait_for_text("PAUSED")
    command.send(signal.SIGTERM)
    result = command.wait()
    assert result.code == 143, result
    assert "stopping at once" not in result.output
    ballast.unlink()
    result = work.run("--resume")
    assert result.code == 0, result
    assert work.rows() == [f"{index} " + "x" * 20_000 for index in range(40)]


def test_temporary_folder_that_is_full(small_disk):
    """The command's own folder, with the copies of the code, is elsewhere than the output."""
    work = small_disk
    work.files(3)
    work.script()
    work.job()
    fill(work)
    work.environment["TMPDIR"] = str(work.out)
    result = work.run("--volume", f"out={work.root}/elsewhere")
    assert result.code in (1, 2), result
    assert "No space left on device" in result.output
    assert "TMPDIR" in result.output
    assert [p.name for p in work.out.iterdir()] == ["ballast"]


def test_no_room_for_the_ledger(small_disk):
    """Folders and the lock still fit."""
    work = small_disk
    work.files(3)
    work.script()
    work.job()
    subprocess.run(["mount", "-o", "remount,size=48k", work.out], check=True)
    expect_refusal(work, work.run(), "No space left on device", str(work.out), "make room")
    subprocess.run(["mount", "-o", "remount,size=4m", work.out], check=True)
    result = work.run()
    assert result.code == 0, result
    assert work.rows() == [f"row {index}" for index in range(3)]


def test_read_only_output(small_disk):
    work = small_disk
    work.files(3)
    work.script()
    work.job()
    subprocess.run(["mount", "-o", "remount,ro", work.out], check=True)
    result = work.run()
    expect_refusal(work, result, "Read-only file system", str(work.out), "--volume out=")
    assert work.noted("calls") == []


@pytest.fixture
def small_temporary(work):
    """work.temporary on a file system of 4 MiB."""
    command = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", work.temporary]
    mounted = subprocess.run(command, capture_output=True, text=True)
    if mounted.returncode != 0:
        pytest.skip(f"cannot mount a file system here: {mounted.stderr.strip()}")
    yield work
    left = work.close()
    subprocess.run(["umount", work.temporary], check=True)
    assert left == []


def resize(folder, size):
    subprocess.run(["mount", "-o", f"remount,size={size}", folder], check=True)


# What is printed fills the temporary folder.
PRINTS = """
from steps import note

def run(mini_batch, context):
    note("calls", context.minibatch_index)
    print("x" * 500_000, flush=True)
    return [open(path).read() for path in mini_batch]
"""


def test_temporary_folder_that_fills_up_is_a_pause(small_temporary):
    """No row is lost by it, and no attempt counted: the processes print more than there is room."""
    work = small_temporary
    rows = work.files(30)
    work.script(PRINTS)
    work.job(runMaxTry=1)
    command = work.start_job(terminal=True)
    command.wait_for_text("PAUSED: node 0: no space is left in " + str(work.temporary))
    assert not work.output.exists()
    resize(work.temporary, "64m")
    result = command.wait()
    assert result.code == 0, result
    assert "0 failed, of 30" in result.output
    assert work.rows() == rows


# It has a use for more than there is, and gives it back: nobody sees that but the script.
SCRATCH = """
import os
import tempfile
from steps import note, there

def run(mini_batch, context):
    if context.minibatch_index == 3 and not there("room"):
        note("short", context.minibatch_index)
        with tempfile.TemporaryFile() as scratch:
            scratch.write(b"x" * 16_000_000)
            scratch.flush()
    return [open(path).read() for path in mini_batch]
"""


def test_a_script_that_runs_out_of_space_is_tried_again(small_temporary):
    work = small_temporary
    rows = work.files(10)
    work.script(SCRATCH)
    work.job(runMaxTry=1)
    command = work.start_job(terminal=True)
    command.wait_for(lambda: len(work.noted("short")) >= 2, "it is tried again")
    command.wait_for_text("the script ran out of space: OSError: [Errno 28]")
    work.make("room")
    result = command.wait()
    assert result.code == 0, result
    assert work.rows() == rows


def test_a_script_that_always_runs_out_of_space_ends_the_job(small_temporary):
    work = small_temporary
    work.files(10)
    work.script(SCRATCH)
    work.job(runMaxTry=1, progressUpdateTimeoutSeconds=8)
    result = work.run()
    assert result.code == 1, result
    assert "NoProgress" in result.output
    assert "node 0: the script ran out of space: OSError: [Errno 28]" in result.output


HELD = """
from steps import note, wait_for

def run(mini_batch, context):
    note("calls", context.minibatch_index)
    wait_for("go")
    return [open(path).read() for path in mini_batch]
"""


def test_a_node_waits_for_room_to_start_again(small_temporary):
    """Its agent is killed while there is no room for its successor's copy of the code."""
    work = small_temporary
    rows = work.files(6)
    (work.code / "model.bin").write_bytes(b"m" * 1_000_000)
    work.script(HELD)
    work.job()
    resize(work.temporary, "8m")  # the thread sanitizer keeps a file there for each program
    command = work.start_job(terminal=True)
    command.wait_for(lambda: len(work.noted("calls")) == 2, "both processes are at work")
    room = os.statvfs(work.temporary)
    used = (room.f_blocks - room.f_bfree) * room.f_frsize
    resize(work.temporary, f"{used // 1024 + 450}k")
    processes.running("agent")[0].kill()
    command.wait_for_text("paused: node 0: ")
    work.make("go")  # not before: the job could be over when the agent is killed
    resize(work.temporary, "64m")
    result = command.wait()
    assert result.code == 0, result
    assert work.rows() == rows


def test_no_room_for_the_copies_of_the_code_is_said_before_the_start(small_temporary):
    work = small_temporary
    work.files(3)
    (work.code / "model.bin").write_bytes(b"m" * 1_000_000)
    work.script()
    work.job()
    result = work.run("--nodes", "3")
    expect_refusal(work, result, "MB free", "3 nodes", "TMPDIR", code=2)
    assert work.noted("calls") == []
