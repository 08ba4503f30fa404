"""The digits sample: 1,797 rows in input order, whatever the nodes, and after Ctrl-C."""

import shlex
import shutil
import signal

import pytest
from support.samples import SAMPLES, make_data, words_to_run

# Wraps the sample's script: notes every call, and holds some until the test says go.
GATED = """
import score
from steps import note, wait_for

init = score.init

def run(mini_batch, context):
    index = context.minibatch_index
    note("started", index)
    if index HELD:
        note("held", index)
        wait_for("GO".replace("%d", str(index)))
    rows = score.run(mini_batch)
    note("returned", index)
    return rows
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return make_data("digits", tmp_path_factory.mktemp("digits"))


@pytest.fixture(scope="module")
def expected(data):
    import joblib
    import numpy as np
    from PIL import Image

    paths = sorted((data / "images").iterdir())
    pixels = np.stack([np.asarray(Image.open(path)).ravel() for path in paths])
    digits = joblib.load(data / "model" / "digits.joblib").predict(pixels)
    return "".join(f"{path.name}: {digit}\n" for path, digit in zip(paths, digits))


def copy_sample(work, held, go):
    shutil.copytree(SAMPLES / "digits", work.code, dirs_exist_ok=True)
    work.script(GATED.replace("HELD", held).replace("GO", go), "gated.py")


def output_of(folder):
    return (folder / "digits" / "output" / "parallel_run_step.txt").read_text()


@pytest.mark.parametrize("nodes", [1, 2, 5])
def test_output_is_the_same_on_any_number_of_nodes(work, data, expected, nodes):
    result = work.call(*words_to_run("digits", data, work.out, "--nodes", nodes))
    assert result.code == 0, result
    assert output_of(work.out) == expected
    assert expected.count("\n") == 1797
    assert "180 succeeded, 0 failed, of 180" in result.output
    assert "1797 rows" in result.output


def test_ctrl_c_and_resume(work, data, expected):
    copy_sample(work, ">= 60", "go")
    words = words_to_run("digits", data, work.out, "--code", work.code)
    words += ["--set", "spec.entryScript=gated.py", "--nodes", "2"]

    command = work.start(*words)
    command.wait_for(lambda: len(work.noted("held")) >= 2, "processes are held")
    command.send(signal.SIGINT)
    command.wait_for_text("finishing the mini-batches that run")
    work.make("go")
    result = command.wait()
    assert result.code == 130, result
    assert not list((work.out / "digits" / "output").glob("*.txt"))
    finished = set(work.noted("returned"))
    assert 30 <= len(finished) < 180
    assert f"{len(finished)} succeeded, 0 failed, of" in result.output

    again = result.output.split("To continue: ")[1].splitlines()[0]
    assert again.endswith(" --resume")
    (work.root / "started").unlink()
    program, *rest = shlex.split(again)
    result = work.start(*rest, program=program).wait()
    assert result.code == 0, result
    assert output_of(work.out) == expected
    restarted = work.noted("started")
    assert finished.isdisjoint(restarted)
    assert len(restarted) == 180 - len(finished)


def test_interrupted_three_times(work, data, expected):
    copy_sample(work, "in (30, 90, 150)", "go %d")
    words = words_to_run("digits", data, work.out, "--code", work.code)
    words += ["--set", "spec.entryScript=gated.py"]
    more = []
    for held in ("30", "90", "150"):
        command = work.start(*words, *more)
        command.wait_for(lambda n=held: n in work.noted("held"), f"mini-batch {held} is held")
        command.send(signal.SIGINT)
        command.wait_for_text("finishing the mini-batches that run")
        work.make(f"go {held}")
        result = command.wait()
        assert result.code == 130, result
        more = ["--resume"]
    result = work.call(*words, *more)
    assert result.code == 0, result
    assert output_of(work.out) == expected
    assert sorted(map(int, work.noted("started"))) == list(range(180))
