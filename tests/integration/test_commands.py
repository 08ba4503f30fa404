"""The command line: run with a script, init, validate, and the options of run."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.command import PATIENCE, PROGRAM, ROOT

SCORE = """
import sys

def run(mini_batch):
    return [open(path).read() + " " + " ".join(sys.argv[1:3]) for path in mini_batch]
"""

ONE_AFTER_THE_OTHER = """
import os, sys

def run(mini_batch):
    mended = os.path.join(os.path.dirname(mini_batch[0]), "..", "mended")
    if mini_batch[0].endswith("1.txt") and not os.path.exists(mended):
        raise ValueError("not yet")
    return [open(path).read() + " " + " ".join(sys.argv[1:3]) for path in mini_batch]
"""


def test_run_a_script_without_a_job_file(work):
    (work.root / "images").mkdir()
    for index in range(25):
        (work.root / "images" / f"{index:02}.txt").write_text(f"row {index}")
    (work.root / "score.py").write_text(SCORE)
    words = ["run", "score.py", "--input", "./images", "--output", "./out", "--processes", "2"]
    result = work.call(*words, "--", "--color", "dark red")
    assert result.code == 0, result
    rows = (work.root / "out" / "parallel_run_step.txt").read_text().splitlines()
    assert rows == [f"row {index} --color dark red" for index in range(25)]
    assert str(work.root / "out" / "parallel_run_step.txt") in result.output


def test_a_wrong_value_is_told_by_the_flag_that_was_typed(work):
    work.files(1)
    (work.root / "score.py").write_text(SCORE)
    words = ["run", "score.py", "--input", "data", "--output", "out"]
    result = work.call(*words, "--mini-batch-size", "10Mi")
    assert result.code == 2, result
    assert result.output.startswith("--mini-batch-size: "), result
    assert "command line" not in result.output
    assert "miniBatchSize" not in result.output


def test_run_a_script_over_a_table(work):
    (work.root / "table.csv").write_text("a,b\n" + "".join(f"{i},{i * i}\n" for i in range(200)))
    (work.root / "score.py").write_text("def run(mini_batch):\n    return mini_batch\n")
    words = ["run", "score.py", "--input", "table.csv", "--output", "out"]
    words += ["--mini-batch-size", "300", "--set", f"spec.environment.python={sys.executable}"]
    result = work.call(*words)
    assert result.code == 0, result
    rows = (work.root / "out" / "parallel_run_step.txt").read_text().splitlines()
    assert rows == [f"{i} {i * i}" for i in range(200)]


def test_words_that_a_glob_without_quotes_made_are_all_input(work):
    work.files(12)
    (work.root / "score.py").write_text(SCORE)
    names = [f"data/{name}" for name in sorted(p.name for p in (work.root / "data").iterdir())]
    result = work.call("run", "score.py", "--input", *names, "--output", "out")
    assert result.code == 0, result
    rows = (work.root / "out" / "parallel_run_step.txt").read_text().splitlines()
    assert [" ".join(row.split()[:2]) for row in rows] == [f"row {index}" for index in range(12)]


def test_brackets_of_what_is_there_are_no_pattern(work):
    home = work.root / "[DE]"
    for name in ("[DE]/data/right.txt", "D/data/wrong.txt", "[DE]/[a,b]/right.txt"):
        (work.root / name).parent.mkdir(parents=True)
        (work.root / name).write_text(name)
    (home / "score.py").write_text(SCORE)
    for number, word in enumerate(("data/*.txt", "data/r?ght.txt", "[a,b]", "[a,b]/*")):
        out = home / f"out{number}"
        words = ["score.py", "--input", word, "--output", str(out), "--only", "right.txt"]
        command = "import os, sys; os.chdir(sys.argv[1]); os.execv(sys.argv[2], sys.argv[2:])"
        wrapped = [sys.executable, "-c", command, str(home), str(PROGRAM), "run", *words]
        result = work.start(*wrapped[1:], program=wrapped[0]).wait()
        assert result.code == 0, (word, result)
        (row,) = (out / "parallel_run_step.txt").read_text().splitlines()
        assert row.split()[0] == f"[DE]/{'[a,b]' if ',' in word else 'data'}/right.txt"


def test_what_two_globs_have_in_common_is_run_once_and_that_is_told(work):
    work.files(12)
    (work.root / "score.py").write_text(SCORE)
    globs = ["data/*1.txt", "data/*0?.txt"]
    result = work.call("run", "score.py", "--input", *globs, "--output", "out")
    assert result.code == 0, result
    rows = (work.root / "out" / "parallel_run_step.txt").read_text().splitlines()
    assert [int(row.split()[1]) for row in rows] == [1, 11, 0, *range(2, 10)], result
    assert "an input before this one has it too, and each file is run once" in result.output


def test_a_word_too_many_is_no_argument_of_the_script(work):
    work.files(2)
    (work.root / "score.py").write_text(SCORE)
    result = work.call("run", "score.py", "stray", "--input", "data", "--output", "out")
    assert (result.code, "stray: one word too many" in result.output) == (2, True), result
    assert not (work.root / "out").exists()


def test_a_folder_of_tables_is_asked_back(work):
    (work.root / "tables").mkdir()
    for name in ("one", "two"):
        (work.root / "tables" / f"{name}.csv").write_text("a,b\n1,2\n")
    (work.root / "score.py").write_text("def run(mini_batch):\n    return [len(mini_batch)]\n")
    words = ["run", "score.py", "--input", "tables", "--output", "out"]
    words += ["--set", f"spec.environment.python={sys.executable}"]
    result = work.call(*words)
    assert result.code == 2, result
    assert not (work.root / "out").exists()
    commands = [line.strip() for line in result.output.splitlines() if "--format" in line]
    assert len(commands) == 2, result
    for command, row in zip(commands, ("1", "2"), strict=True):
        again = work.start(*shlex.split(command)[1:], "--overwrite").wait()
        assert again.code == 0, again
        assert (work.root / "out" / "parallel_run_step.txt").read_text().splitlines()[0] == row


def test_what_continues_a_run_keeps_values_and_the_scripts_arguments(work):
    work.files(2)
    (work.root / "score.py").write_text(ONE_AFTER_THE_OTHER)
    words = ["run", "score.py", "--input", "data", "--output", "--resume", "--processes", "1"]
    words += ["--mini-batch-size", "1", "--set", "spec.allowedFailedCount=0"]
    result = work.call(*words, "--overwrite", "--", "--overwrite", "a -- b")
    assert result.code == 1, result
    again = result.output.split("To continue: ")[1].splitlines()[0]
    program, *rest = shlex.split(again)
    assert rest == [*words, "--resume", "--", "--overwrite", "a -- b"]
    (work.root / "mended").touch()
    result = work.start(*rest, program=program).wait()
    assert result.code == 0, result
    rows = (work.root / "--resume" / "parallel_run_step.txt").read_text().splitlines()
    assert rows == ["row 0 --overwrite a -- b", "row 1 --overwrite a -- b"]


def test_init_writes_a_job_that_runs(work):
    work.files(12)
    (work.root / "score.py").write_text("def run(b):\n    return [open(p).read() for p in b]\n")
    words = ["init", "score.py", "--input", "data", "--output", "out", "--mini-batch-size", "5"]
    result = work.call(*words, "--file", "my job.yaml")
    assert result.code == 0, result
    assert "parallelrun run" in result.output
    assert work.call("validate", "my job.yaml").code == 0
    result = work.call("run", "my job.yaml")
    assert result.code == 0, result
    assert "3 succeeded, 0 failed, of 3" in result.output
    rows = (work.root / "out" / "parallel_run_step.txt").read_text().splitlines()
    assert rows == [f"row {index}" for index in range(12)]
    # It does not write over a file that somebody may have edited since.
    assert work.call(*words, "--file", "my job.yaml").code == 2


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["score.py", "--input", "data", "--output", "gs://bucket/out"], "--output is a URL"),
        (["score.py", "--input", "data", "--output", "https://host/out.csv"], "--output: rows go"),
        (["score.py", "--input", "gs://bucket/in", "--output", "out"], "--input is a URL"),
        (["job.yaml", "--volume", "out=s3://bucket/out"], "--volume out is a URL"),
        (["job.yaml", "--set", "spec.output.path=s3://bucket/out"], "spec.output.path: is a URL"),
        (["job.yaml", "--set", "spec.volumes[1].hostPath.path=s3://b/x"], "volume out is a URL"),
    ],
)
def test_a_url_becomes_no_folder(work, words, told):
    work.files(1)
    work.script()
    (work.root / "score.py").write_text(SCORE)
    work.job()
    before = sorted(work.root.iterdir())
    result = work.call("run", *words)
    assert (result.code, told in result.output) == (2, True), result
    log = work.root / "command-0.txt"
    assert sorted(path for path in work.root.iterdir() if path != log) == before


def test_script_that_is_missing(work):
    result = work.call("run", "score.py", "--input", "data", "--output", "out")
    assert result.code == 2
    assert f"score.py is not there, looked for from {work.root}" in result.output
    result = work.call("run", "score.py", "--input", "data")
    assert result.code == 2
    assert "--output" in result.output


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ["run", "score.py", "--inptu", "data"],
            "--inptu is not a flag of run: did you mean --input?",
        ),
        (
            ["run", "job.yaml", "--overwite=1"],
            "--overwite is not a flag of run: did you mean --overwrite?",
        ),
        (["validate", "job.yaml", "--frobnicate"], "--frobnicate is not a flag of validate\n"),
        (["rn", "job.yaml"], "rn is not a command: did you mean run?"),
        (["--verison"], "--verison is not a flag of parallelrun: did you mean --version?"),
        (["run", "job.yaml", "--nodes", "many"], "--nodes"),
        (["run", "score.py", "-i", "data"], "-i is not a flag of run: did you mean --input?"),
        (["run", "score.py", "--workers=4"], "--workers is not a flag of run: did you mean --pro"),
        (["convert", "a.yaml", "-j"], "-j is not a flag of convert\n"),
        (["status"], "status is not a command: did you mean ps?"),
        (["resume", "out"], "resume is not a command: did you mean run ... --resume?"),
        (["run"], "Say what to run: parallelrun run JOB.yaml, or parallelrun run SCRIPT.py "),
        ([], "Which command? run, init, validate,"),
    ],
)
def test_words_that_are_mistyped(work, words, told):
    result = work.call(*words)
    assert result.code == 2
    assert told in result.output
    command = " ".join(
        ["parallelrun", *[word for word in words[:1] if word in ("run", "validate", "convert")]]
    )
    assert result.output.endswith(f"See {command} --help\n")


def test_validate(work):
    work.job()
    work.script()
    work.files(1)
    result = work.call("validate", "job.yaml")
    assert result.code == 0
    assert result.output == "job.yaml: ok\n"
    assert not work.out.exists()
    job = json.loads(work.job_file.read_text())
    job["spec"]["nodeCout"] = 2
    (work.root / "wrong.yaml").write_text(json.dumps(job))
    result = work.call("validate", "job.yaml", "wrong.yaml", "none.yaml")
    assert result.code == 2
    assert "job.yaml: ok" in result.output
    assert "wrong.yaml:1: spec.nodeCout" in result.output
    assert "none.yaml is not there" in result.output


def test_validate_looks_at_what_is_here(work):
    claim = {"name": "side", "persistentVolumeClaim": {"claimName": "c"}}
    far = {"name": "far", "files": {"volume": "side"}}
    work.job(volumes=[*work.spec()["volumes"], claim], inputs=[*work.spec()["inputs"], far])
    work.script("def walk(b): return b\n")
    result = work.call("validate", "job.yaml")
    assert result.code == 2, result
    lines = result.output.splitlines()
    assert lines[0].startswith(f"job.yaml: inputs[files]: no file below {work.data}")
    assert lines[1].startswith("job.yaml: script: score.py:1: there is no function run()")
    assert len(lines) == 2
    (work.code / "score.py").unlink()
    work.files(1)
    result = work.call("validate", "job.yaml")
    assert (result.code, len(result.output.splitlines())) == (2, 1), result
    assert "job.yaml: code: spec.entryScript: score.py is not in the code folder" in result.output
    # For a cluster, nothing of this machine counts.
    result = work.call("validate", "--cluster", "job.yaml")
    assert "score.py" not in result.output


def test_explain(work):
    result = work.call("explain", "inputs.tabular.format")
    assert result.code == 0
    # docs/cli.md shows it.
    page = (ROOT / "docs/cli.md").read_text()
    assert result.output.rstrip().replace("\n", "\n    ").replace("    \n", "\n") in page
    assert "nodeCount" in work.call("explain").output
    result = work.call("explain", "spec.nodeCout")
    assert result.code == 2
    assert "did you mean spec.nodeCount?" in result.output


def test_explain_a_reason_and_an_exit_status(work):
    result = work.call("explain", "NodeBackOff")
    assert result.code == 0
    page = (ROOT / "docs/cli.md").read_text()
    assert result.output.rstrip().replace("\n", "\n    ").replace("    \n", "\n") in page
    assert "what to do: " in work.call("explain", "3").output
    result = work.call("explain", "NodeBakOff")
    assert result.code == 2
    assert "did you mean NodeBackOff?" in result.output


def complete_in_bash(work, *words):
    """What bash offers for the last of `words`, as if Tab were pressed behind it."""
    program = Path(os.environ["PARALLELRUN_BIN"]) / "parallelrun"
    script = f"""
        source <({shlex.quote(str(program))} completion bash)
        complete -p parallelrun > /dev/null || exit 1
        COMP_WORDS=({shlex.join([str(program), *words])}); COMP_CWORD={len(words)}
        _parallelrun
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    call = ["bash", "--norc", "-c", script]
    told = subprocess.run(call, capture_output=True, text=True, timeout=PATIENCE, cwd=work.root)
    assert told.returncode == 0, told.stderr
    assert told.stderr == ""
    return told.stdout.split()


def test_bash_completes_commands_flags_fields_and_files(work):
    assert complete_in_bash(work, "expl") == ["explain"]
    assert complete_in_bash(work, "run", "--over") == ["--overwrite"]
    assert complete_in_bash(work, "explain", "spec.errorT") == ["spec.errorThreshold"]
    assert complete_in_bash(work, "explain", "NodeBack") == ["NodeBackOff"]
    # bash takes "=" for a word of its own.
    fields = complete_in_bash(work, "run", "--set", "=", "spec.nodeC")
    assert fields == ["spec.nodeCount="]
    assert complete_in_bash(work, "run", "") == []  # bash's own: files
    result = work.call("completion", "tcsh")
    assert result.code == 2
    assert "tcsh is none of bash, fish or zsh" in result.output


def test_other_shells_read_their_script(work):
    """Where they are there; the syntax alone."""
    for shell in ("zsh", "fish"):
        if shutil.which(shell):
            script = work.call("completion", shell).output
            read = subprocess.run([shell, "-n"], input=script, text=True, timeout=PATIENCE)
            assert read.returncode == 0, shell


def test_help(work):
    assert work.call("help", "explain").output == work.call("explain", "--help").output
    assert work.call("help").output == work.call("--help").output
    result = work.call("help", "explian")
    assert result.code == 2
    assert "did you mean explain?" in result.output


def test_set_changes_fields(work):
    work.files(10)
    work.script(SCORE)
    work.job()
    changes = ["--set", "spec.miniBatchSize=3", "--set", "spec.output.fileName=rows.txt"]
    changes += ["--set", "spec.arguments[0]=--top", "--set", "spec.arguments[1]='5'"]
    result = work.run(*changes)
    assert result.code == 0, result
    assert "4 succeeded, 0 failed, of 4" in result.output
    rows = (work.output.parent / "rows.txt").read_text().splitlines()
    assert rows == [f"row {index} --top 5" for index in range(10)]


def test_code_option(work):
    work.files(4)
    work.job()
    work.script("raise ValueError('not this one')")
    other = work.root / "other"
    shutil.copytree(work.code, other)
    (other / "score.py").write_text("import near\n\ndef run(b):\n    return near.rows(b)\n")
    (other / "near.py").write_text("def rows(b):\n    return ['other'] * len(b)\n")
    result = work.run("--code", "other")
    assert result.code == 0, result
    assert work.rows() == ["other"] * 4
    # The user's own folder stays as it was: no __pycache__, no logs.
    assert sorted(path.name for path in other.iterdir()) == ["near.py", "score.py", "steps.py"]


def test_code_folder_with_odd_things_in_it(work):
    """Links stay links, a broken one too; the temporary folder may lie in the code folder."""
    work.files(4)
    (work.code / "loop").symlink_to("loop")
    (work.code / "files").symlink_to(work.data)
    (work.code / ".git").mkdir()
    work.job(code={"path": "."}, entryScript="code/score.py")
    work.script("def run(b):\n    return [open('code/files/000002.txt').read()]\n")
    result = work.run()
    assert result.code == 0, result
    assert work.rows() == ["row 2"] * 4


def test_volume_option(work):
    work.files(3)
    work.script()
    elsewhere = work.root / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "only.txt").write_text("only row")
    work.job()
    result = work.run("--volume", "data=elsewhere", "--volume", f"out={work.root}/o")
    assert result.code == 0, result
    output = work.root / "o" / "job" / "output" / "parallel_run_step.txt"
    assert output.read_text() == "only row\n"
    assert not work.out.exists()


def test_volumes_that_the_command_line_is_the_source_of(work):
    """A job file may leave it to --volume what a volume is; several stand behind one flag."""
    work.files(3)
    work.script()
    claim = {"name": "more", "persistentVolumeClaim": {"claimName": "c"}}
    work.job(
        volumes=[{"name": "data"}, {"name": "out"}, claim, {"name": "unused"}],
        sideInputs=[{"name": "side", "volume": "more"}],
    )
    words = ["--volume", f"data={work.data}", f"out={work.out}", "more=."]
    result = work.call("run", *words, "job.yaml")
    assert result.code == 0, result
    # The folder of a volume is no part of what must be the same, however it is said.
    changes = ["spec.volumes[2].hostPath.path=/tmp", "spec.runMaxTry=2"]
    result = work.run(*words[:-1], "--set", *changes, "--resume")
    assert result.code == 0, result
    assert work.rows() == ["row 0", "row 1", "row 2"]


def test_overwrite_starts_over(work):
    work.script()
    work.files(5)
    work.job()
    assert work.run().code == 0
    rows = work.files(7, "new row {}")
    result = work.run("--overwrite")
    assert result.code == 0, result
    assert work.rows() == rows
    assert len(work.noted("calls")) == 12
    assert work.beside_index() == [work.output.name]


def test_resume_of_a_finished_job_changes_nothing(work):
    work.script()
    rows = work.files(5)
    work.job()
    assert work.run().code == 0
    result = work.run("--resume")
    assert result.code == 0, result
    assert work.rows() == rows
    assert len(work.noted("calls")) == 5


def test_resume_with_other_mini_batches_is_refused(work):
    work.script(
        "def run(b):\n    if open(b[0]).read() == 'row 1': raise ValueError('no')\n    return b\n"
    )
    work.files(5)
    work.job(runMaxTry=1, errorThreshold=0)
    assert work.run().code == 1
    result = work.run("--resume", "--set", "spec.miniBatchSize=2")
    assert result.code == 2, result
    assert "miniBatchSize" in result.output
    assert "--overwrite" in result.output


def test_summary_only(work):
    work.script()
    work.files(5)
    work.job(output={"volume": "out", "action": "SummaryOnly"})
    result = work.run()
    assert result.code == 0, result
    assert "5 succeeded" in result.output
    assert not work.output.exists()


def test_environment_arguments_and_side_inputs(work):
    work.files(2)
    (work.root / "side").mkdir()
    (work.root / "side" / "model.txt").write_text("a model")
    work.script(
        "import os, sys\n\n"
        "def run(b):\n"
        "    model = open(sys.argv[sys.argv.index('--model') + 1]).read()\n"
        "    out = sys.argv[sys.argv.index('--out') + 1]\n"
        "    return [f\"{model} {os.environ['COLOR']} {out}\" for _ in b]\n"
    )
    spec = work.spec()
    spec["environment"]["env"] = [{"name": "COLOR", "value": "red"}]
    side = {"name": "side", "hostPath": {"path": str(work.root / "side")}}
    work.job(
        environment=spec["environment"],
        volumes=[*spec["volumes"], side],
        sideInputs=[{"name": "model", "volume": "side"}],
        arguments=["--model", "$(sideInputs.model)/model.txt", "--out", "$(output)"],
    )
    result = work.run()
    assert result.code == 0, result
    assert work.rows() == [f"a model red {work.output.parent}"] * 2


def test_version_and_help(work):
    for flag in ("--version", "-V"):
        said = work.call(flag)
        assert said.code == 0
        assert "OpenSSL 3" in said.output
    result = work.call("--help")
    assert result.code == 0
    for word in ("run", "init", "validate"):
        assert word in result.output
    assert "--resume" in work.call("run", "--help").output


def test_the_manual_page_has_every_flag_of_every_command(work):
    page = work.call("help", "--man")
    assert page.code == 0, page
    shown = page.output.replace("\\-", "-").replace("\\fB", "").replace("\\fR", "")
    sections = dict(part.split("\n", 1) for part in shown.split("\n.SS ")[1:])
    helps = work.call("--help").output.split("Subcommands:\n")[1]
    commands = [line.split()[0] for line in helps.splitlines() if re.match("  [a-z]", line)]
    assert [title.split()[0] for title in sections] == commands
    for title, section in sections.items():
        told = work.call(title.split()[0], "--help").output
        flags = set(re.findall(r"^  (?:-\w,)?(--[a-z-]+)", told, re.MULTILINE)) - {"--help"}
        assert flags == set(re.findall(r"^(?:-\w, )?(--[a-z-]+)", section, re.MULTILINE)), title
    if shutil.which("groff"):  # as man(1) calls it
        words = ["groff", "-man", "-Tutf8", "-ww", "-z"]
        checked = subprocess.run(words, input=page.output, capture_output=True, text=True)
        assert checked.stderr == ""
