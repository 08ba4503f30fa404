"""render and submit: a job with its code, as a cluster takes it."""

import base64
import io
import os
import random
import shlex
import subprocess
import tarfile

import pytest
import yaml
from support.command import BIN, PATIENCE

VOLUMES = [
    {"name": "data", "persistentVolumeClaim": {"claimName": "digits", "readOnly": True}},
    {"name": "out", "persistentVolumeClaim": {"claimName": "results"}},
]


@pytest.fixture
def job(work):
    """Writes a job file for a cluster; code in ./code."""

    def write(**fields):
        defaults = {"volumes": VOLUMES, "environment": {"image": "images.example/digits:1"}}
        work.job(**{**defaults, **fields})

    work.script()
    (work.code / "steps.py").unlink()
    write()
    return write


def documents(text):
    return list(yaml.safe_load_all(text))


def fake_kubectl(work, exit_status=0):
    """On the path, alone; keeps its words and its standard input."""
    folder = work.root / "bin"
    folder.mkdir()
    program = folder / "kubectl"
    keep = shlex.quote(str(work.root))
    program.write_text(
        f'#!/bin/sh\nPATH=/usr/bin:/bin\necho "$@" > {keep}/words\ncat > {keep}/stdin\n'
        f"echo kubectl says so\nexit {exit_status}\n"
    )
    program.chmod(0o755)
    work.environment["PATH"] = str(folder)


def test_flat_code_is_readable_in_the_config_map(work, job):
    (work.code / "odd.py").write_text("#\ttabs\n\n   \n'---'\n")
    (work.code / "weights.bin").write_bytes(bytes(range(256)))
    result = work.call("render", "job.yaml")
    assert result.code == 0, result
    config_map, rendered = documents(result.output)
    assert config_map["kind"] == "ConfigMap"
    assert config_map["immutable"] is True
    assert config_map["data"]["score.py"] == (work.code / "score.py").read_text()
    assert config_map["data"]["odd.py"] == (work.code / "odd.py").read_text()
    assert base64.b64decode(config_map["binaryData"]["weights.bin"]) == bytes(range(256))
    assert rendered["spec"]["code"] == {"configMap": {"name": config_map["metadata"]["name"]}}
    (work.root / "rendered.yaml").write_text(result.output)
    assert work.call("validate", "--cluster", "rendered.yaml").code == 0


def test_a_job_of_two_buckets_names_no_volume(work, job):
    job(
        volumes=None,
        stores=[{"name": "photos", "url": "s3://photos"}, {"name": "scores", "url": "s3://scores"}],
        inputs=[{"name": "photos", "files": {"store": "photos"}}],
        sideInputs=None,
        output={"store": "scores", "path": "2026"},
        logs=None,
        state=None,
    )
    result = work.call("render", "job.yaml")
    assert result.code == 0, result
    rendered = documents(result.output)[1]
    assert not {"volumes", "logs", "state"} & set(rendered["spec"]), "the operator fills them in"
    assert rendered["spec"]["stores"][1]["url"] == "s3://scores"
    (work.root / "rendered.yaml").write_text(result.output)
    assert work.call("validate", "--cluster", "rendered.yaml").code == 0


def test_what_lies_in_stores_stays_as_it_is_written(work, job):
    stores = [{"name": "models", "url": "s3://models", "credentials": {"secretName": "reader"}}]
    side_inputs = [{"name": "model", "store": "models", "path": "digits/v3/"}]
    job(stores=stores, sideInputs=side_inputs)
    result = work.call("render", "job.yaml")
    assert result.code == 0, result
    rendered = documents(result.output)[-1]
    assert rendered["spec"]["stores"] == stores
    assert rendered["spec"]["sideInputs"] == side_inputs
    (work.root / "rendered.yaml").write_text(result.output)
    assert work.call("validate", "--cluster", "rendered.yaml").code == 0
    job(sideInputs=side_inputs)
    result = work.call("validate", "--cluster", "job.yaml")
    assert result.code == 2 and 'there is no store "models"' in result.output, result


def test_folders_become_one_archive(work, job):
    (work.code / "lib" / "deep").mkdir(parents=True)
    (work.code / "lib" / "deep" / "x.py").write_text("x = 1\n")
    (work.code / "run.sh").write_text("#!/bin/sh\n")
    (work.code / "run.sh").chmod(0o700)
    (work.code / "__pycache__").mkdir()
    (work.code / "__pycache__" / "score.pyc").write_text("x")
    first = work.call("render", "job.yaml")
    assert first.code == 0, first
    packed = base64.b64decode(documents(first.output)[0]["binaryData"]["code.tar.gz"])
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        members = {member.name: member for member in archive.getmembers()}
        assert list(members) == ["lib", "lib/deep", "lib/deep/x.py", "run.sh", "score.py"]
        assert members["run.sh"].mode == 0o755
        assert members["score.py"].mode == 0o644
        assert all(member.mtime == member.uid == 0 for member in members.values())
        assert archive.extractfile("score.py").read() == (work.code / "score.py").read_bytes()
    # The same bytes whenever and from wherever: GitOps sees no change.
    os.utime(work.code / "score.py", (1, 1))
    work.job_file.rename(work.root / "same.yaml")
    assert work.call("render", str(work.root / "same.yaml")).output == first.output


def test_what_cannot_be_packed(work, job):
    noise = random.Random(1)
    (work.code / "model.bin").write_bytes(noise.randbytes(900_000))
    (work.code / "small.bin").write_bytes(noise.randbytes(200_000))
    result = work.call("render", "job.yaml")
    assert result.code == 2
    assert "model.bin (879 KiB), small.bin (195 KiB)" in result.output
    assert "side input" in result.output
    result = work.call("render", "job.yaml", "--code", "nowhere")
    assert result.code == 2
    assert "nowhere is not there" in result.output
    job(volumes=[VOLUMES[0], {"name": "out", "hostPath": {"path": "./out"}}])
    result = work.call("submit", "job.yaml")
    assert result.code == 2
    assert "spec.volumes[1].hostPath.path" in result.output
    assert "persistentVolumeClaim" in result.output


def test_submit_hands_the_same_to_kubectl(work, job):
    rendered = work.call("render", "job.yaml")
    fake_kubectl(work)
    words = ["submit", "job.yaml", "--namespace", "team", "--context", "lab"]
    result = work.call(*words, "--force-conflicts")
    assert result.code == 0, result
    assert (work.root / "stdin").read_text() == rendered.output
    words = (work.root / "words").read_text().split()
    flags = ["--server-side", "--filename=-", "--force-conflicts"]
    assert words == ["--context=lab", "--namespace=team", "apply", *flags]
    assert "kubectl says so" in result.output
    assert "kubectl --context=lab --namespace=team get prj job --watch" in result.output


def read_from_standard_input(work, text, **given):
    """What `render -` says of a text, which comes by a pipe if nothing else is given."""
    return subprocess.run(
        [BIN / "parallelrun", "render", "-"],
        cwd=work.root,
        env=work.environment,
        capture_output=True,
        timeout=PATIENCE,
        **(given or {"input": text}),
    )


def test_a_job_from_standard_input(work, job):
    text = work.job_file.read_bytes()
    expected = work.call("render", "job.yaml").output.replace("job.yaml:", "the job:")
    with work.job_file.open("rb") as file:
        for done in (
            read_from_standard_input(work, text),
            read_from_standard_input(work, text, stdin=file),
        ):
            assert done.returncode == 0, done.stderr
            assert (done.stderr + done.stdout).decode() == expected
    wrong = read_from_standard_input(work, text.replace(b"miniBatchSize", b"miniBatchSizes"))
    assert wrong.returncode == 2 and b"the job:" in wrong.stderr, wrong


def test_submit_passes_on_what_kubectl_says(work, job):
    fake_kubectl(work, exit_status=7)
    result = work.call("submit", "job.yaml")
    assert result.code == 7
    assert "kubectl says so" in result.output
    assert "watch" not in result.output


def test_submit_without_kubectl(work, job):
    work.environment["PATH"] = str(work.root)
    result = work.call("submit", "job.yaml")
    assert result.code == 2
    assert "kubectl is not on the path" in result.output
