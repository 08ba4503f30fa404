"""A disk that is full: at the start, and while the job runs. Uses a small file system in memory."""

import os
import signal
import subprocess

import pytest
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
    # The nodes have ended. For longer than a verdict is waited for, the command waits for room.
    with pytest.raises(AssertionError, match="still running"):
        command.wait_only(25)
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
    assert result.seconds < 60
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
