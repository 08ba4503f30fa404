"""convert: a file of Azure ML becomes a job that runs, and the other commands know one."""

import sys

TABLE = """
type: mltable
paths: [{pattern: ./in/*.csv}]
transformations:
  - read_delimited: {delimiter: ";", header: no_header}
  - convert_column_types: [{columns: [Column1], column_type: string}]
"""

COMPONENT = """
type: parallel
inputs:
  table: {type: mltable, mode: direct}
  words: {type: uri_file}
  extra: {type: uri_folder, optional: true}
outputs:
  rows: {type: uri_file}
input_data: ${{inputs.table}}
task:
  entry_script: score.py
  environment: {image: "images.example/rows:1"}
  program_arguments: --words ${{inputs.words}} $[[--extra ${{inputs.extra}}]]
  append_row_to: ${{outputs.rows}}
"""

PIPELINE = """
$schema: https://azuremlschemas.example/latest/pipelineJob.schema.json
type: pipeline
jobs:
  score:
    type: parallel
    component: ./code/component.yml
    inputs:
      table: {path: ./data}
      words: {path: ./lists/words.txt}
    outputs:
      rows: {path: azureml://datastores/main/paths/rows.txt}
"""

SCRIPT = """
import argparse

def init():
    global words
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--words")
    parser.add_argument("--extra")
    arguments = parser.parse_known_args()[0]
    assert arguments.extra is None
    words = open(arguments.words).read()

def run(mini_batch):
    return [f"{words} {row.Column1} {row.Column2 + 1}" for row in mini_batch.itertuples()]
"""


def write(work):
    (work.data / "in").mkdir()
    (work.data / "in" / "a.csv").write_text("007;1\n008;2\n")
    (work.data / "in" / "b.csv").write_text("x9;3\n")
    (work.data / "other.csv").write_text("no;no\n")
    (work.data / "MLTable").write_text(TABLE)
    (work.root / "lists").mkdir()
    (work.root / "lists" / "words.txt").write_text("word")
    (work.code / "component.yml").write_text(COMPONENT)
    work.script(SCRIPT)
    (work.root / "azure.yml").write_text(PIPELINE)


def test_a_step_with_its_component_and_its_mltable_runs(work):
    write(work)
    assert work.call("convert", "azure.yml", "-o", "job.yaml").code == 0
    folders = {"table": "data", "words": "lists", "results": "out"}
    words = [part for name, path in folders.items() for part in ("--volume", f"{name}={path}")]
    work.out.mkdir()
    python = f"spec.environment.python={sys.executable}"
    result = work.run(*words, "--set", python, "--set", "spec.processCountPerNode=1")
    assert result.code == 0, result
    output = work.out / "score" / "output" / "rows.txt"
    assert output.read_text() == "word 007 2\nword 008 3\nword x9 4\n"


def test_what_is_still_to_be_filled_in_is_reported(work):
    write(work)
    work.call("convert", "azure.yml", "-o", "job.yaml")
    lines = work.job_file.read_text().splitlines()
    claims = [number for number, line in enumerate(lines, 1) if "FILL IN the claim" in line]
    assert len(claims) == 3
    fields = [f"spec.volumes[{index}].persistentVolumeClaim.claimName" for index in range(3)]

    def told(label, output):
        return [f"job.yaml:{n}: {label}{field}: " in output for n, field in zip(claims, fields)]

    local = work.call("validate", "job.yaml")
    assert local.code == 0, local
    assert told("warning: ", local.output) == [True] * 3, local
    for words in (["validate", "--cluster"], ["render"]):
        cluster = work.call(*words, "job.yaml")
        assert cluster.code == 2, cluster
        assert told("", cluster.output) == [True] * 3, cluster
        assert "is still to be filled in" in cluster.output
    claims = {field: f"real-{index}" for index, field in enumerate(fields)}
    given = [part for field, claim in claims.items() for part in ("--set", f"{field}={claim}")]
    rendered = work.call("render", "job.yaml", *given)
    assert rendered.code == 0, rendered
    assert "claimName: real-2" in rendered.output


def test_the_commands_for_job_files_say_convert(work):
    write(work)
    (work.root / "endpoint.yml").write_text(
        "$schema: https://azuremlschemas.example/latest/batchDeployment.schema.json\n"
        "name: heart\nmodel: azureml:heart@latest\n"
    )
    for file in ("azure.yml", "endpoint.yml"):
        for words in (["run"], ["validate"], ["render"], ["submit"]):
            result = work.call(*words, file)
            assert result.code == 2, result
            told = f"{file} is a file of Azure ML, and no job file yet: parallelrun convert {file} "
            assert result.output == told + "-o job.yaml makes one of it\n", result


OPEN = """
type: parallel
inputs:
  rows: {type: uri_folder, path: ./data/in}
  workers: {type: integer}
input_data: ${{inputs.rows}}
task:
  code: ./code
  entry_script: score.py
  environment: {image: "images.example/rows:1"}
  program_arguments: --process_count_per_node ${{inputs.workers}}
"""


def test_an_open_value_has_a_file_and_no_command_takes_it_for_one(work):
    write(work)
    (work.root / "open.yml").write_text(OPEN)
    made = work.call("convert", "open.yml", "-o", "open.yaml")
    assert made.code == 0, made
    assert "replace FILL_IN in spec.arguments[1]: the integer workers" in made.output
    assert (
        "to run it here: parallelrun run open.yaml --volume rows=data/in --volume results=FOLDER\n"
    ) in made.output
    line = 1 + (work.root / "open.yaml").read_text().split("\n").index(
        '    - "FILL_IN"  # FILL IN: the integer workers'
    )
    told = f'open.yaml:{line}: spec.arguments[1]: "FILL_IN" is still to be filled in'
    checked = work.call("validate", "open.yaml")
    assert checked.code == 2 and told in checked.output, checked
    volumes = ["--volume", "rows=data/in", "--volume", f"results={work.out}"]
    ran = work.call("run", "open.yaml", *volumes)
    assert ran.code == 2, ran
    assert 'spec.arguments[1]: "FILL_IN" is still to be filled in' in ran.output


def test_a_delimiter_that_no_job_takes_is_left_open(work):
    write(work)
    (work.data / "MLTable").write_text(TABLE.replace('";"', '"<column>-"'))
    made = work.call("convert", "azure.yml", "-o", "job.yaml")
    assert made.code == 0, made
    assert '"<column>-" cannot separate columns here: write another one' in made.output
    told = 'spec.inputs[0].tabular.delimiter: "FILL_IN" is still to be filled in'
    checked = work.call("validate", "job.yaml")
    assert checked.code == 2 and told in checked.output, checked
    folders = {"table": "data", "words": "lists", "results": "out"}
    volumes = [part for name, path in folders.items() for part in ("--volume", f"{name}={path}")]
    work.out.mkdir()
    ran = work.run(*volumes)
    assert ran.code == 2 and told in ran.output, ran
    # Said on the command line it is filled in too.
    python = f"spec.environment.python={sys.executable}"
    semicolon = "spec.inputs[0].tabular.delimiter=;"
    given = work.run(*volumes, "--set", python, "--set", semicolon)
    assert given.code == 0, given


STEPS = """
type: pipeline
jobs:
  first: {type: parallel, task: {entry_script: score.py, code: ./code}}
  Second_one: {type: parallel, task: {entry_script: score.py, code: ./code}}
  far: {type: parallel, component: "azureml:far:1"}
"""


def test_all_steps_of_a_pipeline_become_files(work):
    write(work)
    (work.root / "steps.yml").write_text(STEPS)
    assert "with -o" in work.call("convert", "steps.yml", "--all-steps").output
    made = work.call("convert", "steps.yml", "--all-steps", "-o", "jobs")
    assert made.code == 2, "one of them is not here"
    assert "jobs.far.component: " in made.output
    names = {path.name for path in (work.root / "jobs").iterdir()}
    assert names == {"first.yaml", "second-one.yaml"}
    assert 'code: {path: "../code"}' in (work.root / "jobs" / "first.yaml").read_text()
    again = work.call("convert", "steps.yml", "--all-steps", "-o", "jobs")
    assert again.code == 2
    assert "first.yaml exists: name another folder with -o" in again.output
