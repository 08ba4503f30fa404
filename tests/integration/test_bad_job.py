"""Job files and command lines that are wrong: every problem, with its line, and exit status 2."""

import pytest


def refused(work, *words, arguments=()):
    result = work.run(*arguments)
    assert result.code == 2, result
    for word in words:
        assert word in result.output, (word, result)
    assert "Traceback" not in result.output
    assert "terminate called" not in result.output
    assert not work.out.exists()
    return result


@pytest.fixture
def ready(work):
    work.files(3)
    work.script()
    work.job()
    return work


@pytest.mark.parametrize(
    "content",
    [b"{ a: [never closed", b"just a sentence\n", b"", bytes(range(256)), b"a: b\n\tc: d\n"],
    ids=["open", "text", "empty", "binary", "tab"],
)
def test_no_yaml(ready, content):
    ready.job_file.write_bytes(content)
    result = refused(ready, "job.yaml")
    assert result.output.count("job.yaml") == 1
    assert len(result.output.splitlines()) == 1


def test_job_file_that_is_missing(ready):
    ready.job_file.unlink()
    refused(ready, "job.yaml is not there", "parallelrun init")


def test_job_file_that_is_a_folder(ready):
    ready.job_file.unlink()
    ready.job_file.mkdir()
    refused(ready, "job.yaml")


def test_unknown_field(ready):
    ready.job(miniBatchSise=3)
    line = 1 + ready.job_file.read_text().splitlines().index('    "miniBatchSise": 3')
    refused(ready, f"job.yaml:{line}: spec.miniBatchSise: ", "did you mean miniBatchSize?")


def test_all_problems_at_once(ready):
    ready.job(miniBatchSise=3, processCountPerNode="many", runMaxTry=-1, entryScript=None)
    result = refused(
        ready,
        "spec.entryScript: ",
        "spec.miniBatchSise: ",
        "spec.processCountPerNode: ",
        "spec.runMaxTry: ",
    )
    lines = result.output.splitlines()
    assert len(lines) == 4
    numbers = [int(line.split(":")[1]) for line in lines]
    assert numbers == sorted(numbers)
    validated = ready.call("validate", "job.yaml")
    assert validated.code == 2
    assert validated.output.splitlines() == lines


def test_unmapped_volume(ready):
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": "c"}}
    ready.job(volumes=[claim, {"name": "out", "hostPath": {"path": str(ready.out)}}])
    refused(ready, 'volume "data"', "--volume data=FOLDER")
    # All of them at once, also those that the job file leaves open.
    ready.job(volumes=[claim, {"name": "out"}])
    refused(ready, "--volume data=FOLDER --volume out=FOLDER")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--volume", "images=."], ["images", "data, out"]),
        (["--volume", "images"], ["--volume images", "NAME=FOLDER"]),
        (["--set", "spec.nodeCout=2"], ["spec.nodeCout", "nodeCount"]),
        (["--set", "spec.runMaxTry=often"], ["spec.runMaxTry"]),
        (["--set", "nonsense"], ["nonsense"]),
        (["--code", "nowhere"], ["nowhere", "--code"]),
        (["--nodes", "0"], ["--nodes"]),
        (["--resume", "--overwrite"], ["--resume", "--overwrite"]),
        (["--nonsense"], ["--nonsense"]),
        (["--format", "cvs"], ["cvs is none of files, csv,", "did you mean csv?"]),
        (["--input", "data"], ["--input"]),
    ],
)
def test_wrong_option(ready, arguments, words):
    refused(ready, *words, arguments=arguments)


def test_no_command(work):
    result = work.call()
    assert result.code == 2
    assert "--help" in result.output
