"""The digits sample: 1,797 rows in input order, whatever the nodes, and after Ctrl-C."""

import shlex
import shutil
import signal

import pytest
from support.samples import SAMPLES, make_data, words_to_run
from support.workspace import STEPS

# Wraps the sample's script: notes every call, and holds the later ones until the test says go.
GATED = """
import score
from steps import note, wait_for

init = score.init

def run(mini_batch, context):
    note("started", context.minibatch_index)
    if context.minibatch_index >= 60:
        note("held", context.minibatch_index)
        wait_for("go")
    rows = score.run(mini_batch)
    note("returned", context.minibatch_index)
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
    shutil.copytree(SAMPLES / "digits", work.code, dirs_exist_ok=True)
    shutil.copy(STEPS, work.code)
    work.script(GATED, "gated.py")
    words = words_to_run("digits", data, work.out, "--code", work.code)
    words += ["--set", "spec.entryScript=gated.py", "--nodes", "2"]

    command = work.start(*words)
    command.wait_for(lambda: len(work.noted("held")) == 4, "all processes are held")
    command.send(signal.SIGINT)
    command.wait_for_text("finishing the mini-batches that run")
    work.make("go")
    result = command.wait()
    assert result.code == 130, result
    assert not list((work.out / "digits" / "output").glob("*.txt"))
    finished = set(work.noted("returned"))
    assert 60 <= len(finished) < 180
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


def test_interrupted_again_and_again(work, data, expected):
    words = words_to_run("digits", data, work.out)
    shutil.copytree(SAMPLES / "digits", work.code, dirs_exist_ok=True)
    shutil.copy(STEPS, work.code)
    work.script(GATED.replace(">= 60", "in (30, 90, 150)").replace('"go"', '"go%d" % context.minibatch_index'), "gated.py")
    words += ["--code", work.code, "--set", "spec.entryScript=gated.py"]
    more = []
    for round_, held in enumerate((30, 90, 150)):
        command = work.start(*words, *more)
        command.wait_for(lambda n=round_ + 1: len(work.noted("held")) == n, "one process is held")
        command.send(signal.SIGINT)
        command.wait_for_text("finishing the mini-batches that run")
        work.make(f"go{held}")
        result = command.wait()
        assert result.code == 130, result
        more = ["--resume"]
    result = work.call(*words, *more)
    assert result.code == 0, result
    assert output_of(work.out) == expected
    assert sorted(map(int, work.noted("started"))) == list(range(180))
