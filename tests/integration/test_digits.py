"""The digits sample: 1,797 rows in input order, whatever the nodes, and after Ctrl-C."""

import shlex
import shutil
import signal

import pytest
from support.samples import SAMPLES, make_data, words_to_run
from support.workspace import drains

# Wraps the sample's script: notes every call, and holds those from a number on until the test says
# that this number may go.
GATED = """
import os
import score
from steps import FOLDER, note, wait_for

init = score.init
with open(os.path.join(FOLDER, "from")) as file:
    first = int(file.read())

def run(mini_batch, context):
    index = context.minibatch_index
    note("started", index)
    if index >= first:
        note(f"held {first}", index)
        wait_for(f"go {first}")
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


@pytest.fixture
def gated(work, data):
    """The sample with GATED, and the words that run it."""
    shutil.copytree(SAMPLES / "digits", work.code, dirs_exist_ok=True)
    work.script(GATED, "gated.py")
    work.words = words_to_run("digits", data, work.out, "--code", work.code)
    # What takes longest is that each process loads the model.
    work.words += ["--set", "spec.entryScript=gated.py", "--set", "spec.processCountPerNode=1"]
    return work


def interrupt(work, first, nodes, *more):
    """Ctrl-C while all processes are held; returns how the command ended."""
    (work.root / "from").write_text(str(first))
    logs = work.out / "digits" / "logs"
    before = drains(logs)
    command = work.start(*work.words, "--nodes", nodes, *more)
    command.wait_for(lambda: len(work.noted(f"held {first}")) == nodes, "all processes are held")
    command.send(signal.SIGINT)
    command.wait_for_text("finishing the mini-batches that run")
    command.wait_for(lambda: drains(logs) == before + nodes, "all nodes have heard of it")
    work.make(f"go {first}")
    return command.wait()


def output_of(folder):
    return (folder / "digits" / "output" / "parallel_run_step.txt").read_text()


@pytest.mark.parametrize(("nodes", "processes"), [(1, 2), (2, 2), (5, 1)])
def test_output_is_the_same_on_any_number_of_nodes(work, data, expected, nodes, processes):
    more = ["--nodes", nodes, "--set", f"spec.processCountPerNode={processes}"]
    result = work.call(*words_to_run("digits", data, work.out, *more))
    assert result.code == 0, result
    assert output_of(work.out) == expected
    assert expected.count("\n") == 1797
    assert "180 succeeded, 0 failed, of 180" in result.output
    assert "1797 rows" in result.output


def test_ctrl_c_and_resume(gated, expected):
    work = gated
    result = interrupt(work, 60, 2)
    assert result.code == 130, result
    assert not list((work.out / "digits" / "output").glob("*.txt"))
    finished = set(work.noted("returned"))
    assert 2 <= len(finished) < 180
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


def test_interrupted_three_times(gated, expected):
    work = gated
    more = []
    for first in (30, 80, 130):
        result = interrupt(work, first, 1, *more)
        assert result.code == 130, result
        more = ["--resume"]
    result = work.call(*work.words, *more)
    assert result.code == 0, result
    assert output_of(work.out) == expected
    assert sorted(map(int, work.noted("started"))) == list(range(180))
