"""What a whole job does for its entry script; the names say the row of docs/contract.md."""

import csv
import json
import os
import re

import pytest
from support.cluster import ClusterJob
from waits import stalled

ECHO = "def run(mini_batch):\n    return mini_batch\n"
TWO_FAIL = """
def run(mini_batch):
    if mini_batch[0].endswith(("1.txt", "4.txt")):
        raise ValueError("one of two")
    return mini_batch
"""
# A line of a log: 2026-11-21 10:15:03,120|INFO|pid|tid|message
LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\|(DEBUG|INFO|WARNING|ERROR)\|\d+\|\d+\|")


def run_job(work, script, count=6, **fields):
    work.files(count)
    work.script(script)
    work.job(**fields)
    return work.run()


def first_line(work):
    return (work.logs / "job_result.txt").read_text().splitlines()[0]


def report(work):
    path = work.logs / "sys/job_report/processed_mini-batches.csv"
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


# --- section 5: what only a whole job decides


def test_c10_one_header_in_the_whole_output(work):
    script = "import pandas\ndef run(b):\n    return pandas.DataFrame({'p q': b, 'n': len(b)})\n"
    result = run_job(work, script, 20, arguments=["--append_row_dataframe_header", "True"])
    assert result.code == 0, result
    rows = work.rows()
    assert rows[0] == '"p q" n'
    assert len(rows) == 21
    assert rows.count(rows[0]) == 1


PETS = """
import os
import pandas

def run(mini_batch):
    # As get_dummies() and pivots make them: the columns come in the order of the values.
    names = [os.path.basename(path) for path in mini_batch]
    kinds = ["cat", "dog"] if int(names[0][:6]) % 2 else ["dog", "cat"]
    frame = pandas.DataFrame({"name": names})
    for kind in kinds:
        frame[kind] = [f"{kind} of {name}" for name in names]
    return frame
"""


def test_c10_values_stand_under_their_columns_in_the_whole_output(work):
    arguments = ["--append_row_dataframe_header", "True"]
    result = run_job(work, PETS, 40, arguments=arguments, processCountPerNode=4, miniBatchSize="1")
    assert result.code == 0, result
    rows = list(csv.DictReader(work.rows(), delimiter=" "))
    assert len(rows) == 40
    for row in rows:
        assert row["cat"] == f"cat of {row['name']}"
        assert row["dog"] == f"dog of {row['name']}"


@pytest.mark.parametrize(
    ("script", "lines"),
    [
        ("def run(b):\n    return ['two\\nlines'] + b[1:]\n", 7),
        ("def run(b):\n    return b\n", None),
    ],
)
def test_c11_more_lines_than_rows_are_told(work, script, lines):
    result = run_job(work, script, 6, miniBatchSize="6")
    assert result.code == 0, result
    words = f"the 6 rows of the output are {lines} lines"
    assert (words in result.output) == (lines is not None), result
    assert ("output.format: jsonl" in result.output) == (lines is not None)


def test_c13_no_row_at_all_fails_a_job_that_appends(work):
    result = run_job(work, "def run(b):\n    return []\n")
    assert result.code == 1, result
    assert first_line(work).startswith("Failed: NoRows: no run() returned a row")
    assert "SummaryOnly" in first_line(work)
    result = work.run("--overwrite", "--set", "spec.output.action=SummaryOnly")
    assert result.code == 0, result


def test_s4_2_async_mode_in_a_job(work):
    script = (
        "done, most, begun = {}, 0, 0\n"
        "def init(): pass\n"
        "def enqueue(mini_batch, context):\n"
        "    global most, begun\n"
        "    begun += 1\n"
        "    done[context.minibatch_index] = {'ret': list(mini_batch),\n"
        "        'mini_batch_context': context, 'exception': None}\n"
        "    most = max(most, len(done))\n"
        "def check_all_tasks_processed(): return not done\n"
        "def get_processing_batch_number(): return 0\n"
        "def get_finished_batch_result():\n"
        "    global done\n"
        "    if len(done) == 1 and begun < 200: return {}\n"  # until the next one is there
        "    now, done = done, {}\n"
        "    return now\n"
        "def shutdown(): print('most', most)\n"
    )
    result = run_job(
        work, script, 200, arguments=["--amlbi_async_mode", "True"], processCountPerNode=1
    )
    assert result.code == 0, result
    assert [row[-10:] for row in work.rows()] == [f"{index:06}.txt" for index in range(200)]
    most = int(re.search(r"most (\d+)", work.log_text("user/stdout/0/*.txt")).group(1))
    assert 1 < most <= 8


# --- section 7


def test_s7_one_gpu_index_for_each_process_until_they_are_used_up(work):
    script = (
        "import os, time\n"
        "from azureml_user.parallel_run import EntryScript\n"
        "from steps import FOLDER, note\n"
        "name = EntryScript().agent_name\n"
        "def init():\n"
        "    note('gpus', name, os.environ.get('CUDA_VISIBLE_DEVICES'))\n"
        "def wait_for(processes):\n"
        "    while len(open(os.path.join(FOLDER, 'gpus')).readlines()) < processes:\n"
        "        time.sleep(0.01)\n"
        "def run(b):\n"
        "    wait_for(4)\n"
        "    if name == 'process000': os._exit(1)\n"
        "    wait_for(5)\n"
        "    return b\n"
    )
    work.environment["CUDA_VISIBLE_DEVICES"] = "GPU-a,GPU-b"
    result = run_job(work, script, 20, processCountPerNode=4)
    assert result.code == 0, result
    assert dict(line.split() for line in work.noted("gpus")) == {
        "process000": "GPU-a",
        "process001": "GPU-b",
        "process002": "None",
        "process003": "None",
        "process004": "GPU-a",  # the one that was freed
    }
    without = "gets no GPU of its own, since this node has 2 and runs more processes"
    assert work.log_text("sys/node/*/_main.txt").count(without) == 1


def test_gpus_that_are_shared_on_purpose(work):
    script = (
        "import os, time\n"
        "from azureml_user.parallel_run import EntryScript\n"
        "from steps import FOLDER, note\n"
        "name = EntryScript().agent_name\n"
        "def init():\n"
        "    note('gpus', name, os.environ.get('CUDA_VISIBLE_DEVICES'))\n"
        "    note('found', os.environ.get('AZ_BATCHAI_GPU_COUNT_FOUND'))\n"
        "def run(b):\n"
        "    while len(open(os.path.join(FOLDER, 'gpus')).readlines()) < 5: time.sleep(0.01)\n"
        "    return b\n"
    )
    work.environment["CUDA_VISIBLE_DEVICES"] = "GPU-a,GPU-b"
    result = run_job(work, script, 20, processCountPerNode=5, processesPerGpu=2)
    assert result.code == 0, result
    given = [line.split()[1] for line in work.noted("gpus")]
    assert sorted(given) == ["GPU-a", "GPU-a", "GPU-b", "GPU-b", "None"]
    assert set(work.noted("found")) == {"2"}


def test_s7_metrics_end_in_a_file(work):
    script = (
        "from azureml.core import Run\n"
        "run_context = Run.get_context()\n"
        "def run(b):\n"
        "    run_context.log('images', len(b))\n"
        "    return b\n"
    )
    result = run_job(work, script)
    assert result.code == 0, result
    lines = (work.logs / "user/metrics.jsonl").read_text().splitlines()
    metrics = [json.loads(line) for line in lines]
    assert [metric["name"] for metric in metrics] == ["images"] * 6
    assert {metric["value"] for metric in metrics} == {1}


def test_s7_metrics_are_in_the_progress_of_a_job_that_runs(work):
    cluster = ClusterJob(work)
    work.files(2)
    # Mini-batches end once the progress was seen.
    go = work.root / "go"
    work.script(
        "import os, time\n"
        "from azureml.core import Run\n"
        "def run(b):\n"
        "    Run.get_context().log('accuracy', 0.5)\n"
        f"    while not os.path.exists({str(go)!r}): time.sleep(0.02)\n"
        "    return b\n"
    )
    cluster.mount_code()
    coordinator = cluster.start_coordinator(spec={"nodeCount": 1})
    node = cluster.start_node(0)
    shown = cluster.wait_for(lambda progress: progress["metrics"], "no metric came")
    assert shown["metrics"] == {"accuracy": 0.5}
    go.touch()
    assert coordinator.wait_only().code == 0, coordinator.output
    assert node.wait_only().code == 0, node.output


# --- section 12


def test_s12_flags_are_typed_abbreviated_and_stay_with_the_script(work):
    script = "import sys\ndef run(b):\n    return [' '.join(sys.argv[1:])]\n"
    arguments = ["--resource_monitor_interva", "0", "--mine", "1", "--error_threshold", "3"]
    result = run_job(work, script, 1, arguments=arguments)
    assert result.code == 0, result
    assert "is taken for --resource_monitor_interval" in result.output
    assert "--resource_monitor_interva 0 --mine 1 --error_threshold 3" in work.rows()[0]
    assert not (work.logs / "perf").exists()


def test_s12_the_field_wins_and_unknown_flags_are_reported(work):
    arguments = ["--error_threshold", "3", "--amlbi_unheard_of", "1"]
    result = run_job(work, ECHO, 1, arguments=arguments, errorThreshold=2)
    assert result.code == 0, result
    assert "--error_threshold 3 has no effect beside spec.errorThreshold" in result.output
    assert "--amlbi_unheard_of is not known here" in result.output


def test_s12_a_value_out_of_range_is_refused(work):
    result = run_job(work, ECHO, 1, arguments=["--allowed_failed_percent", "101"])
    assert result.code == 2, result
    assert "must be from 0 to 100" in result.output


def test_s12_the_error_threshold_of_the_arguments_counts(work):
    script = "def run(b):\n    raise ValueError('bad')\n"
    result = run_job(work, script, arguments=["--error_threshold", "0"], runMaxTry=1)
    assert result.code == 1, result
    assert first_line(work).startswith("Failed: ErrorThresholdExceeded: ")


# --- section 13


def test_s13_the_time_to_write_rows_has_a_limit_of_its_own(work):
    script = (
        "import time\n"
        "class Slow:\n"
        "    def __str__(self): time.sleep(100)\n"
        "def run(b):\n"
        "    return [Slow()] if b[0].endswith('2.txt') else b\n"
    )
    # A process that waits for its turn on a busy machine must not be taken for a slow one.
    result = run_job(
        work, script, runMaxTry=1, taskOverheadTimeoutSeconds=15, processCountPerNode=1
    )
    assert result.code == 3, result
    assert "OverheadTimeout" in result.output
    assert "taskOverheadTimeoutSeconds" in result.output
    failed = [row for row in report(work) if row["Error Category"]]
    assert [(row["Mini-batch Id"], row["Status"]) for row in failed] == [("2", "LOAD_TIMEOUT")]
    assert len(work.rows()) == 5


def test_s13_init_that_hangs_ends_the_job(work):
    script = "import time\ndef init():\n    time.sleep(1000)\n" + ECHO
    before = stalled()
    # The time of a mini-batch is not that of init().
    result = run_job(work, script, initTimeoutSeconds=8, progressUpdateTimeoutSeconds=2)
    assert result.code == 1, result
    assert first_line(work).startswith(
        "Failed: InitTimeout: no process has come through init() within 8.0s, on 1 node: "
    )
    assert "initTimeoutSeconds" in first_line(work)
    # Where each process was, and where the rest of that stands.
    where = r": node 0, process00\d.*: init score\.py:3 \(score\.py:3\);"
    if not re.search(where, first_line(work)):  # it had to wait for a processor when it was asked
        assert stalled() - before > 0.4, first_line(work)
        return
    assert "user/stderr/<node>/<process>.stderr.txt" in first_line(work)
    for log in work.logs.glob("user/stderr/0/*"):
        assert 'score.py", line 3 in init' in log.read_text()


def test_s13_the_first_mini_batch_must_be_there_in_time(work):
    # One mini-batch of a table that takes long to look through on any machine; it takes no room on
    # the disk.
    (work.data / "large.csv").write_text("a,b\n")
    os.truncate(work.data / "large.csv", 1 << 40)
    work.script()
    work.job(
        inputs=[{"name": "rows", "tabular": {"volume": "data", "maxFieldSize": "10000GB"}}],
        miniBatchSize="10000GB",
        firstTaskCreationTimeoutSeconds=1,
    )
    result = work.run()
    assert result.code == 1, result
    assert first_line(work).startswith("Failed: FirstTaskTimeout: no mini-batch was planned within")
    assert "firstTaskCreationTimeoutSeconds" in first_line(work)


# --- section 14


def test_e2_e10_every_attempt_is_recorded(work):
    """A mini-batch that fails twice of three times is a success, and its attempts are told."""
    script = (
        "def run(b, context):\n"
        "    if b[0].endswith('3.txt') and context.retry_count < 2:\n"
        "        raise ValueError('not yet, \"friend\"')\n"
        "    return b\n"
    )
    result = run_job(work, script, errorThreshold=0)
    assert result.code == 0, result
    rows = [row for row in report(work) if row["Mini-batch Id"] == "3"]
    assert [row["Picked Count"] for row in rows] == ["1", "2", "3"]
    assert [row["Status"] for row in rows] == ["RUN_EXCEPTION", "RUN_EXCEPTION", "RUN_DONE"]
    assert [row["Succeeded"] for row in rows] == ["0", "0", "1"]
    assert rows[0]["Error Message"].startswith('ValueError: not yet, "friend" (score.py:')
    details = [json.loads(row["Mini-batch Detail(JSON)"]) for row in rows]
    assert details[2]["rows"] == 1
    spent = [{key for key in detail if key.endswith("Seconds")} for detail in details]
    failed = {"waitedSeconds", "readSeconds"}  # it made no rows
    assert spent == [failed, failed, {*failed, "wroteSeconds"}]


@pytest.mark.parametrize(("allowed", "code"), [(2, 0), (1, 1)])
def test_e3_the_threshold_is_exceeded_not_reached(work, allowed, code):
    result = run_job(work, TWO_FAIL, errorThreshold=allowed, runMaxTry=1)
    assert result.code == code, result
    if code:
        assert "2 items have failed; spec.errorThreshold allows 1" in first_line(work)


def test_e5_e6_percent_and_count_together(work):
    limits = {"errorThreshold": 5, "allowedFailedCount": 5, "allowedFailedPercent": 20}
    result = run_job(work, TWO_FAIL, 8, runMaxTry=1, **limits)
    assert result.code == 1, result
    assert first_line(work).startswith("Failed: AllowedFailedPercentExceeded: 2 of 8 mini-batches")
    result = work.run("--overwrite", "--set", "spec.allowedFailedPercent=25")
    assert result.code == 0, result


# --- section 15


def test_s15_process_names_count_on_and_are_never_used_again(work):
    script = (
        "import os\n"
        "from azureml_user.parallel_run import EntryScript\n"
        "def run(b, context):\n"
        "    if context.retry_count == 0 and int(b[0][-5]) % 2: os._exit(9)\n"
        "    return [EntryScript().agent_name]\n"
    )
    result = run_job(work, script, processCountPerNode=1)
    assert result.code == 0, result
    names = work.rows()
    assert all(re.fullmatch(r"process\d{3}", name) for name in names)
    used = [row["Process"] for row in report(work)]
    assert set(used) == {f"process{number:03}" for number in range(4)}
    assert "process000 exited with status 9" in (work.logs / "job_error.txt").read_text()


def test_s15_a_kill_is_told_in_words(work):
    script = "import os, signal\ndef run(b):\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    result = run_job(work, script, 2, runMaxTry=1)
    assert result.code == 1, result
    assert re.search(r"process00\d was killed by signal 9", first_line(work)), first_line(work)


# --- section 16


def test_f1_f3_one_file_of_a_given_name_without_header(work):
    work.script()
    rows = work.files(30, "\N{SNOWMAN} {}")
    work.job(output={"volume": "out", "fileName": "predictions.csv"})
    result = work.run()
    assert result.code == 0, result
    assert work.beside_index("predictions.csv") == ["predictions.csv"]
    text = (work.output.parent / "predictions.csv").read_text(encoding="utf-8")
    assert text == "".join(row + "\n" for row in rows)


@pytest.mark.parametrize("models", ["$(output)/models", "${{output}}/models"])
def test_b16_folders_below_the_output_are_there_before_the_script(work, models):
    script = (
        "import argparse, os\n"
        "parser = argparse.ArgumentParser()\n"
        "parser.add_argument('--models')\n"
        "models = parser.parse_known_args()[0].models\n"
        "def run(b):\n"
        "    open(os.path.join(models, os.path.basename(b[0])), 'w').close()\n"
        "    return b\n"
    )
    arguments = ["--models", models]
    result = run_job(work, script, miniBatchSize="1", arguments=arguments)
    assert result.code == 0, result
    assert len(list((work.output.parent / "models").iterdir())) == 6


# --- section 17


def test_s17_the_log_tree(work):
    script = (
        "import logging, sys\n"
        "from azureml_user.parallel_run import EntryScript\n"
        "def init():\n"
        "    EntryScript().logger.info('hello')\n"
        "    logging.info('to stdout')\n"
        "def run(b):\n"
        "    print('to stderr', file=sys.stderr)\n"
        "    if b[0].endswith('2.txt'): raise ValueError('two is bad')\n"
        "    return b\n"
    )
    arguments = ["--resource_monitor_interval", "1", "--profiling_module", "cProfile"]
    result = run_job(work, script, arguments=arguments, processCountPerNode=1, runMaxTry=1)
    assert result.code == 3, result
    tree = {str(path.relative_to(work.logs)) for path in work.logs.rglob("*")}
    for name in (
        *("job_result.txt", "job_error.txt", "readme.txt", "user/error.txt"),
        *("user/error/0/process000.txt", "user/entry_script_log/0/process000.log.txt"),
        *("user/stdout/0/process000.stdout.txt", "user/stderr/0/process000.stderr.txt"),
        *("sys/node/0/process000.txt", "sys/node/0/_main.txt", "sys/node/0/process000.profile"),
        *("sys/job_report/processed_mini-batches.csv", "sys/job_report/node_summary.csv"),
        *("sys/job_report/process_summary.csv", "sys/master_role.txt"),
        *("perf/0/node_resource_usage.csv", "perf/0/processes_resource_usage.csv"),
        "perf/0/node_disk_usage.csv",
    ):
        assert name in tree, (name, sorted(tree))
    assert any(re.fullmatch(r"job_progress_overview\.\d{8}\.txt", name) for name in tree)
    assert any(re.fullmatch(r"perf/0/os/\d{10}/processes_\d\d", name) for name in tree)
    names = ("sys/node/0/process000.txt", "sys/node/0/_main.txt", "sys/master_role.txt")
    for name in names:
        for line in (work.logs / name).read_text().splitlines():
            assert LINE.match(line), (name, line)
    assert LINE.match((work.logs / "user/error/0/process000.txt").read_text())
    assert LINE.match((work.logs / "user/entry_script_log/0/process000.log.txt").read_text())
    assert LINE.match((work.logs / "user/stdout/0/process000.stdout.txt").read_text())
    readme = (work.logs / "readme.txt").read_text()
    assert "job_result.txt" in readme


def test_s17_pods_keep_their_own_logs_in_the_tree(work):
    cluster = ClusterJob(work)
    rows = work.files(3)
    work.script(
        "from steps import wait_for\n"
        "def run(b):\n"
        "    wait_for('go')\n"
        "    return [open(path).read() for path in b]\n"
    )
    cluster.mount_code()
    coordinator = cluster.start_coordinator()
    nodes = [cluster.start_node(index) for index in range(2)]
    cluster.wait_for_nodes(0, 1)
    work.make("go")
    assert coordinator.wait_only().code == 0, coordinator.output
    for node in nodes:
        assert node.wait_only().code == 0, node.output
    assert work.rows() == rows
    for name in ("sys/master_role.txt", "sys/node/0/_main.txt", "sys/node/1/_main.txt"):
        lines = (work.logs / name).read_text().splitlines()
        assert lines, name
        for line in lines:
            assert LINE.match(line), (name, line)


def test_s17_old_names_lead_to_the_new_ones(work):
    assert run_job(work, ECHO, arguments=["--resource_monitor_interval", "1"]).code == 0
    for old, new in (
        ("sys/report/processed_tasks.csv", "sys/job_report/processed_mini-batches.csv"),
        ("sys/perf/0/node_resource_usage.csv", "perf/0/node_resource_usage.csv"),
        ("user/error.txt", "job_error.txt"),
    ):
        assert (work.logs / old).read_bytes() == (work.logs / new).read_bytes()
    result = work.run("--overwrite")
    assert result.code == 0, result
    assert len((work.logs / "sys/report/processed_tasks.csv").read_text().splitlines()) == 7


def test_s17_the_tables_have_the_originals_columns(work):
    arguments = ["--resource_monitor_interval", "1"]
    assert run_job(work, ECHO, arguments=arguments).code == 0
    header = (work.logs / "sys/job_report/processed_mini-batches.csv").read_text().splitlines()[0]
    assert header == (
        "Mini-batch Id,Picked Count,Process,Process Start Time(UTC),Total,Succeeded,Failed,"
        "Elapsed Seconds,Process Seconds,Run Method Seconds,Status,Error Category,Error Message,"
        "Mini-batch Detail(JSON)"
    )
    header = (work.logs / "perf/0/node_resource_usage.csv").read_text().splitlines()[0]
    assert header == (
        "Utc Time,Cpu Percent,Memory Total (MB),Memory Available (MB),Memory Used (MB),"
        "Memory Used Percent,Disk Io Read Count,Disk Io Write Count,Disk Io Read (MB),"
        "Disk Io Write (MB),Network Sent (MB),Network Recv (MB),# TCP,# UDP"
    )
    for name, columns in (("node", ["Node"]), ("process", ["Node", "Process"])):
        with open(work.logs / f"sys/job_report/{name}_summary.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        assert list(rows[0])[: len(columns)] == columns
        assert sum(int(row["Total"]) for row in rows) == 6


def test_s17_the_output_of_a_failed_mini_batch_is_found_by_its_bytes(work):
    script = (
        "import time\n"
        "def run(b):\n"
        "    time.sleep(0.002)\n"
        "    print('reading', b[0][-5:])\n"
        "    if b[0].endswith('3.txt'): raise ValueError('three is bad')\n"
        "    return b\n"
    )
    result = run_job(work, script, processCountPerNode=1, runMaxTry=1)
    assert result.code == 3, result
    error = (work.logs / "user/error/0/process000.txt").read_text()
    begin, end = map(int, re.search(r"bytes (\d+) to (\d+) of stdout", error).groups())
    out = (work.logs / "user/stdout/0/process000.stdout.txt").read_bytes()
    assert out[begin:end] == b"reading 3.txt\n"
    detail = next(
        json.loads(row["Mini-batch Detail(JSON)"]) for row in report(work) if row["Error Category"]
    )
    assert detail["stdout"] == [begin, end]
    assert detail["stderr"][0] <= detail["stderr"][1]


def test_s17_the_output_of_a_process_that_died_is_found_by_its_bytes(work):
    script = (
        "import os, sys, time\n"
        "def run(b):\n"
        "    time.sleep(0.002)\n"
        "    print('reading', b[0][-5:])\n"
        "    if b[0].endswith('3.txt'):\n"
        "        print('going', file=sys.stderr)\n"
        "        os._exit(9)\n"
        "    return b\n"
    )
    result = run_job(work, script, processCountPerNode=1, runMaxTry=1)
    assert result.code == 3, result
    row = next(row for row in report(work) if row["Error Category"])
    assert (row["Mini-batch Id"], row["Error Category"]) == ("3", "ProcessEnded")
    detail = json.loads(row["Mini-batch Detail(JSON)"])
    for stream, words in (("stdout", b"reading 3.txt\n"), ("stderr", b"going\n")):
        begin, end = detail[stream]
        written = (work.logs / f"user/{stream}/0/{row['Process']}.{stream}.txt").read_bytes()
        assert written[begin:end] == words


# --- section 18


def test_s18_the_verdict_is_in_the_first_line(work):
    result = run_job(work, ECHO)
    assert result.code == 0, result
    assert first_line(work) == "Succeeded: Complete: all 6 mini-batches succeeded"
    overview = "".join(path.read_text() for path in work.logs.glob("job_progress_overview.*.txt"))
    assert re.search(
        r"^\S+Z Scheduling finished: 6 mini batches with 6 items\. Processed 6 of 6 mini batches "
        r"in \d:\d\d:\d\d, 0 failed\. Succeeded: Complete\.$",
        overview,
        re.M,
    )
