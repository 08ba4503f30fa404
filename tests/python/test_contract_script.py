"""Entry scripts written for the original; the names say the row of docs/contract.md."""

import json
import os

import pytest
from fake_agent import RUNNING, STOP, STOPPED, frame
from waits import wait_until


def one(agent, names=("a",), **work):
    agent.ready()
    agent.run_files(names, **work)
    return agent.result()


def score(launch, text, *arguments, **options):
    return launch("score.py", *arguments, files={"score.py": text}, **options)


def test_b1_run_is_required_and_init_is_optional(launch):
    assert "there is no function run()" in score(launch, "x = 1").init_failure()["message"]
    environment = {"AZUREML_BI_OUTPUT_PATH": str(launch.folder / "out")}
    agent = launch("many_models.py", environment=environment)
    result = one(agent, context={"Store": "1000", "Brand": "tropicana"})
    assert result.succeeded == 1
    assert (launch.folder / "out/models/1000_tropicana.txt").read_text() == "1000"


def test_b2_shutdown_is_optional_and_called_once(launch):
    agent = launch("lifetime.py")
    one(agent)
    assert agent.owes == 1  # the verdict waits for it
    assert agent.stop() == (None, 0)
    assert agent.stdout_path.read_text().count("shutdown") == 1
    agent = launch("nothing.py")
    one(agent)
    assert agent.owes == 0
    assert agent.stop() == (None, 0)


AT_THE_END = """
import atexit, os, threading, time
from concurrent.futures import ThreadPoolExecutor
rows = []
def write(name):
    go.wait()
    with open(name, "w") as file:
        file.writelines(rows)
go = threading.Event()
{imports}
def init():
    {init}
def run(mini_batch):
    {run}
    rows.extend(os.path.basename(path) for path in mini_batch)
    return mini_batch
def shutdown():
    go.set()
"""


@pytest.mark.parametrize(
    ("imports", "init", "run"),
    [
        ("atexit.register(write, 'own')", "pass", "pass"),
        ("", "atexit.register(lambda: write('own'))", "pass"),
        ("", "pass", "atexit.register(write, 'own')"),
        ("", "pass", "threading.Thread(target=write, args=('own',)).start()"),
        ("pool = ThreadPoolExecutor(1)", "pass", "pool.submit(write, 'own')"),
    ],
)
def test_b2_what_a_script_leaves_for_the_end_is_a_part_of_it(launch, imports, init, run):
    agent = score(launch, AT_THE_END.format(imports=imports, init=init, run=run))
    one(agent, ["a", "b"])
    agent.send(frame(STOP))
    assert agent.expect(STOPPED) == b""
    assert (agent.code / "own").read_text() == "ab"
    assert agent.wait() == 0


@pytest.mark.parametrize(
    ("text", "owes"),
    [
        ("import atexit\natexit.register(print, 'by the script')", 1),
        ("import atexit\n@atexit.register\ndef end(): print('by the script')", 1),
        ("import atexit\ndef init(): atexit.register(print, 'by the script')", 1),
        ("import logging, multiprocessing.util", 0),
    ],
)
def test_b2_what_is_given_to_atexit_is_waited_for_like_a_shutdown(launch, text, owes):
    agent = score(launch, f"{text}\ndef run(mini_batch): return mini_batch\n")
    one(agent)
    assert agent.owes == owes
    assert agent.stop() == (None, 0)
    assert agent.stdout_path.read_text().count("by the script") == owes


BEGUN = """
import atexit, multiprocessing, os, threading, time
from concurrent.futures import ThreadPoolExecutor
def wait():
    while not os.path.exists("go"):
        time.sleep(0.005)
    print("by the script", flush=True)
def begin():
    {begin}
def init():
    {init}
def run(mini_batch):
    {run}
    return mini_batch
"""


@pytest.mark.parametrize(
    ("begin", "owes"),
    [
        ("atexit.register(wait)", 1),
        ("threading.Thread(target=wait).start()", 1),
        ("ThreadPoolExecutor(1).submit(wait)", 1),
        ("multiprocessing.get_context('fork').Process(target=wait).start()", 1),
        ("threading.Thread(target=wait, daemon=True).start()", 0),
    ],
)
@pytest.mark.parametrize("where", ["init", "run"])
def test_b2_what_is_begun_is_waited_for_like_a_shutdown(launch, begin, where, owes):
    places = {"init": "pass", "run": "pass", where: "begin()"}
    agent = score(launch, BEGUN.format(begin=begin, **places))
    agent.ready()
    assert agent.owes == (owes if where == "init" else 0)
    agent.run_files()
    agent.result()
    assert agent.owes == owes
    (agent.code / "go").touch()
    assert agent.stop() == (None, 0)
    assert "by the script" in agent.stdout_path.read_text() or not owes


AT_REST = """
import concurrent.futures, multiprocessing, time
from parallelrun.worker import at_exit
def init():
    global pool
    pool = concurrent.futures.{executor}
def run(mini_batch):
    lengths = list(pool.map(len, mini_batch))
    while at_exit._at_work():  # it says that it has a result a moment before it rests
        time.sleep(0.001)
    return lengths
"""


@pytest.mark.parametrize(
    "executor",
    [
        "ThreadPoolExecutor(2)",
        "ProcessPoolExecutor(2, multiprocessing.get_context('fork'))",
    ],
)
def test_b2_an_executor_at_rest_is_not_waited_for(launch, executor):
    agent = score(launch, AT_REST.format(executor=executor))
    one(agent, ["a", "b"])
    assert agent.owes == 0
    assert agent.stop() == (None, 0)


def test_b2_a_thread_that_only_looks_like_one_of_an_executor_is_waited_for(launch):
    text = (
        "import threading, time\n"
        "def run(mini_batch):\n"
        "    global odd\n"
        "    odd = threading.Thread(target=time.sleep, args=(0.1,))\n"
        "    odd.pending_work_items = 3\n"
        "    odd.start()\n"
        "    return mini_batch\n"
    )
    agent = score(launch, text)
    one(agent)
    assert agent.owes == 1
    assert agent.stop() == (None, 0)


def test_b2_a_handler_of_atexit_that_raises_is_told(launch):
    text = (
        "import atexit\n"
        "def end():\n"
        "    raise OSError('no such table')\n"
        "atexit.register(end)\n"
        "def run(mini_batch): return mini_batch\n"
    )
    agent = score(launch, text)
    one(agent)
    failure, code = agent.stop()
    assert (failure["type"], failure["location"], code) == ("OSError", "score.py:3", 0)
    assert "|atexit: OSError: no such table" in agent.log("user/error/0/process000.txt")


def test_b2_a_thread_that_goes_on_is_named(launch):
    text = (
        "import signal, threading\n"
        "def run(mini_batch):\n"
        "    threading.Thread(target=signal.sigwait, args=([10],), name='feeder').start()\n"
        "    return mini_batch\n"
    )
    agent = score(launch, f"import signal\nsignal.pthread_sigmask(0, [10])\n{text}")
    one(agent)
    agent.send(frame(STOP))
    named = "waits for threads of the script: feeder"
    wait_until(
        lambda: named in agent.stderr_path.read_text() or agent.process.poll() is not None, named
    )
    assert agent.process.poll() is None
    os.kill(agent.process.pid, 10)
    assert agent.expect(STOPPED) == b""


def test_b2_a_shutdown_that_is_async_is_awaited(launch):
    text = "def run(mini_batch): return mini_batch\nasync def shutdown(): print('awaited')\n"
    agent = score(launch, text)
    one(agent)
    assert agent.stop() == (None, 0)
    assert agent.stdout_path.read_text() == "awaited\n"


def test_b3_init_runs_once_in_each_process(launch):
    agent = launch("lifetime.py")
    one(agent)
    agent.run_files(sequence=2)
    assert agent.result().data == b"init run run\n"


@pytest.mark.parametrize(
    "parameters", ["mini_batch", "mini_batch, mini_batch_context", "mini_batch, context=None"]
)
def test_b4_one_or_two_positional_parameters(launch, parameters):
    agent = score(launch, f"def run({parameters}):\n  return mini_batch\n")
    assert one(agent).data == b"/in/a\n"


@pytest.mark.parametrize(
    "parameters",
    ["input_data", "mini_batches: 'List[str]'", "data, /", "batch, ctx", "b: 'pd.DataFrame', c"],
)
def test_b5_parameter_names_do_not_matter(launch, parameters):
    agent = score(launch, f"def run({parameters}) -> list:\n  return ['x']\n")
    assert one(agent).data == b"x\n"


SYSTEM = ["--output", "/out", "--logging_level", "INFO"]


def arguments_of(launch, *arguments, **start):
    agent = launch("argument_styles.py", *arguments, **start)
    return json.loads(one(agent).data)


def test_b6_known_arguments_are_found_among_the_systems(launch):
    seen = arguments_of(launch, "--flag", "1", *SYSTEM, "--other", "2")
    assert seen["unknown"] == ["--flag", "1", "--other", "2"]
    assert (seen["output"], seen["logging_level"]) == ("/out", "INFO")


def test_b7_arguments_and_environment_are_there_at_import(launch):
    environment = {"AZUREML_BI_OUTPUT_PATH": "/results"}
    seen = arguments_of(launch, environment=environment, runId="team.digits")
    assert seen["AZUREML_BI_OUTPUT_PATH"] == "/results"
    assert seen["AZUREML_RUN_ID"] == "team.digits"


def test_b8_argument_styles(launch):
    arguments = ["--columns", "a", "b c", "--r-output", "/r", "--overwrite", "True"]
    seen = arguments_of(launch, *arguments, "--model_name", "m")
    assert seen["columns"] == ["a", "b c"]
    assert (seen["r_output"], seen["overwrite"], seen["scanned"]) == ("/r", "True", "m")
    assert seen["unknown"] == ["--model_name", "m"]


def test_b10_file_is_real_and_the_mini_batch_prints(launch):
    launch.write("store/digits", "seven")
    agent = launch("digits.py", modelFolder=str(launch.folder / "store"))
    assert one(agent, ["1.png", "2.png"]).data == b"1.png: seven\n2.png: seven\n"
    said = agent.stdout_path.read_text()
    assert said == (f"run method start: {agent.code}/digits.py, run(['/in/1.png', '/in/2.png'])\n")


def test_b11_the_root_is_on_the_path_and_the_scripts_folder_is_not(launch):
    assert one(launch("src/entry.py")).data == b"src.entry helper at the root None\n"


def test_b11_without_a_job_file_the_scripts_folder_comes_first(launch):
    """As where it is run by hand; then the root."""
    beside = {"src/helper.py": "NAME = 'own'\n", "below.py": "NAME = 'root'\n"}
    text = "import helper, below\ndef run(b): return [helper.NAME + below.NAME]\n"
    script = {"src/near.py": text, **beside}
    assert one(launch("src/near.py", files=script, scriptFolderFirst=True)).data == b"ownroot\n"


@pytest.mark.parametrize("script", ["batch_score.main", "batch_score/main.py", "describe.py"])
def test_b12_file_nested_path_or_dotted_module(launch, script):
    assert one(launch(script)).succeeded == 1


def test_b13_the_main_block_does_not_run(launch):
    text = "def run(m): return m\nif __name__ == '__main__': raise SystemExit(9)\n"
    assert one(score(launch, text)).rows == 1


def test_b15_imported_once_with_its_globals(launch):
    agent = launch("describe.py")
    one(agent)
    agent.run_files(sequence=2)
    assert json.loads(agent.result().data)["imports"] == 1


def test_b16_side_files(launch):
    agent = launch("embed.py")
    one(agent, ["x/a", "x/b"], index=7)
    output = launch.folder / "output"
    assert (output / "part_7").read_text() == "/in/x/a\n/in/x/b"


def test_b17_swallowed_init_and_none(launch):
    agent = launch("careless.py")
    agent.ready()
    agent.run_files()
    failure = agent.failed().failure
    assert failure["kind"] == "BadReturn"
    assert "returned None. Return a list" in failure["message"]
    assert agent.stdout_path.read_text().startswith("init failed: ")


def test_b18_what_a_generator_yields_are_the_rows(launch):
    agent = launch("yields.py")
    result = one(agent, ["a", "b", "c"])
    assert (result.succeeded, result.rows, result.data) == (3, 3, b"True\nTrue\nTrue\n")


@pytest.mark.parametrize(
    "body",
    [
        "return (work(path) for path in mini_batch)",
        "return map(work, mini_batch)",
        "return filter(work, mini_batch)",
        "yield from map(work, mini_batch)",
        "return zip(map(work, mini_batch))",
    ],
)
def test_b18_what_is_read_is_a_part_of_run(launch, body):
    """It counts as run(): for its time limit, for its failures and for what it prints."""
    text = f"def work(path):\n    raise KeyError(path)\ndef run(mini_batch):\n    {body}\n"
    agent = launch("lazy.py", files={"lazy.py": text})
    agent.ready()
    agent.run_files(["a"])
    failure = agent.failed().failure
    assert (failure["kind"], failure["type"]) == ("Exception", "KeyError")
    assert failure["location"] == "lazy.py:2"


def test_b18_the_status_page_shows_run_while_it_is_read(launch):
    text = (
        "import signal\n"
        "def run(mini_batch):\n"
        "    open('begun', 'w').close()\n"
        "    signal.pause()\n"
        "    yield from mini_batch\n"
    )
    agent = launch("slow.py", files={"slow.py": text})
    os.mkfifo(agent.code / "begun")
    agent.ready()
    agent.run_files(["a"], sequence=3)
    (agent.code / "begun").read_text()  # once it is read
    assert agent.phase() == (3, RUNNING)


def test_b18_a_generator_that_is_async_is_refused(launch):
    text = "async def run(mini_batch):\n    yield mini_batch\n"
    agent = launch("lazy.py", files={"lazy.py": text})
    agent.ready()
    agent.run_files()
    assert "Define it with def, not async def" in agent.failed().failure["message"]


def test_b19_subprocesses_share_stdout_and_stderr(launch, tmp_path):
    (tmp_path / "item").write_text("content\n")
    agent = launch("calls_tool.py")
    assert one(agent, ["item", "gone"], root=str(tmp_path)).data == b"content\n"
    assert agent.stdout_path.read_text() == f"{tmp_path}/item\n"
    assert "gone" in agent.stderr_path.read_text()


def test_s3_files_are_a_list_with_a_task_id(launch):
    agent = launch("embed.py")
    one(agent, ["x/a"], index=0)
    assert (launch.folder / "output/metadata").read_text() == "/in/x"
    agent.run_files(["x/b"], index=1, sequence=2)
    agent.result()
    assert sorted(os.listdir(launch.folder / "output")) == ["metadata", "part_0", "part_1"]


def test_s4_context_attributes(launch):
    keys = {"user": "user1", "genres": "disco"}
    agent = launch("with_context.py")
    row = json.loads(one(agent, index=3, retries=2, first=40, context=keys).data)
    assert row == {
        "minibatch_index": 3,
        "retry_count": 2,
        "lower_bound": 40,
        "keys": keys,
        "dataset": "Subset(source='/in', first_item=40, items=1)",
        "absent": "default",
    }


def test_s4_keys_keep_their_order(launch):
    agent = score(launch, "def run(m, c): return list(c.partition_key_value.values())\n")
    assert one(agent, context={"z": "1", "a": "2"}).data == b"1\n2\n"


def test_s6_entry_script_members(launch):
    agent = launch("members.py", node=2, process="process017")
    folder = agent.code / "logs/user/entry_script_log/2"
    row = f"process017 {folder} {launch.folder / 'output'} True\n"
    assert one(agent).data.decode() == row
    log = (folder / "process017.log.txt").read_text()
    assert "from init" in log
    assert "not shown at INFO" not in log


def test_s6_root_logging_goes_to_stdout(launch):
    agent = launch("noisy.py")
    one(agent)
    assert "|INFO|" in agent.stdout_path.read_text()


@pytest.mark.parametrize("level", ["level=10", "level=10, format='%(message)s', filename='own'"])
def test_s6_basic_config_changes_nothing_unless_forced(launch, level):
    text = (
        "import logging, sys\n"
        f"logging.basicConfig({level})\n"
        "def run(mini_batch):\n"
        "    logging.info('seen')\n"
        "    logging.debug('not seen')\n"
        "    logging.getLogger().setLevel(logging.DEBUG)\n"
        "    logging.debug('asked for')\n"
        "    logging.basicConfig(level=20, format='own: %(message)s', force=True)\n"
        "    logging.info('forced')\n"
        "    return mini_batch\n"
    )
    agent = score(launch, text)
    one(agent)
    said = agent.stdout_path.read_text()
    assert [line.split("|")[-1] for line in said.splitlines()] == ["seen", "asked for"]
    assert said.startswith("2")  # with the time, as every line of a log
    assert agent.stderr_path.read_text() == "own: forced\n"
    assert not (agent.code / "own").exists()


def test_s7_environment_variables(launch):
    (launch.folder / "store" / "heart").mkdir(parents=True)
    agent = launch("batch_endpoint.py", modelFolder=f"{launch.folder}/store")
    assert one(agent).data == b"['/in/a', 'heart']\n"
    names = ["AZUREML_RUN_ID", "AZUREML_MODEL_DIR", "AZ_BATCHAI_GPU_COUNT_FOUND"]
    text = f"import os\ndef run(m): return [[os.environ.get(n) for n in {names}]]\n"
    environment = {"AZ_BATCHAI_GPU_COUNT_FOUND": "2", "AZUREML_MODEL_DIR": "/own"}
    agent = score(launch, text, runId="ns.job", environment=environment)
    assert one(agent).data == b"['ns.job', '/own', '2']\n"
