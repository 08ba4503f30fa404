"""Stand-ins for packages that are missing, contract sections 7 and 23."""

import json
import pickle
from collections import Counter

import pytest

SCORE = "{imports}\ndef run(mini_batch):\n  value = {value}\n  return [value]\n"


def value_of(launch, imports, value, **options):
    files = {"score.py": SCORE.format(imports=imports, value=value), **options.pop("files", {})}
    agent = launch("score.py", files=files, **options)
    agent.ready()
    agent.run_files()
    return agent.result().data.decode()[:-1]


def failure_of(launch, imports, value, **options):
    files = {"score.py": SCORE.format(imports=imports, value=value)}
    agent = launch("score.py", files=files, **options)
    agent.ready()
    agent.run_files()
    return agent.failed().failure


def test_s23_any_name_can_be_imported_and_says_so_when_called(launch):
    agent = launch("imports_everything.py", modelFolder="/nowhere")
    agent.ready()
    agent.run_files()
    rows = dict(line.split(": ", 1) for line in agent.result().data.decode().splitlines())
    for name, called in {
        "dataset": "azureml.core.dataset.Dataset.Tabular.from_delimited_files",
        "workspace": "azureml.core.workspace.Workspace.get_default_datastore",
        "setup": "azureml.core.workspace.Workspace.setup",
        "package": "azureml.core.model.Model.package",
        "run": "azureml.core.run.Run.get_metrics",
        "experiment": "azureml.core.experiment.Experiment.submit",
        "offline": "azureml.core.run._OfflineRun",
        "automl": "azureml.train.automl.AutoMLConfig",
        "rest": "azureml._restclient.models.RunDto",
        "mltable": "mltable.load",
        "client": "mlflow.client.MlflowClient.search_runs",
        "server": "mlflow.pyfunc.scoring_server._get_jsonable_obj",
        "handler": "opencensus.ext.azure.log_exporter.AzureLogHandler",
        "azureml": "azureml.core.ScriptRunConfig",
    }.items():
        assert rows[name].startswith(f"{called}() is not available here: ")
        assert "install the package in the image" in rows[name]
    assert "OTEL_EXPORTER_OTLP_ENDPOINT" in rows["handler"]
    assert "the image has no azureml-train-automl." in rows["automl"]


@pytest.mark.parametrize("package", ["azureml", "mlflow", "mltable", "opencensus"])
def test_s23_an_installed_package_wins(launch, package):
    files = {f"{package}/__init__.py": "WHO = 'real'\n"}
    assert value_of(launch, f"import {package}", f"{package}.WHO", files=files) == "real"
    missing = f"try:\n  import {package}.missing\nexcept ImportError as error:\n  got = str(error)"
    said = value_of(launch, missing, "got", files=files)
    assert said == f"No module named '{package}.missing'"


def test_s23_parts_of_azureml_may_be_installed(launch):
    files = {"azureml/part.py": "WHO = 'real'\n"}
    imports = "import azureml.part, azureml.core"
    assert value_of(launch, imports, "azureml.part.WHO, azureml.core.Model", files=files) == (
        "('real', <class 'azureml.core.model.Model'>)"
    )


def test_s23_who_asks_whether_it_is_installed_hears_no(launch):
    imports = "from importlib.util import find_spec"
    names = ["mlflow", "azureml", "azureml.core", "mltable", "opencensus"]
    assert value_of(launch, imports, f"[find_spec(n) for n in {names}]") == str([None] * 5)


def test_s23_other_names_are_still_missing(launch):
    imports = "try:\n  import no_such_module\nexcept ImportError:\n  got = 1"
    assert value_of(launch, imports, "got") == "1"


def test_s23_the_stand_ins_are_not_imported_for_nothing(launch):
    value = "any(name.startswith('parallelrun.shims.') for name in sys.modules)"
    assert value_of(launch, "import sys", value) == "False"


# Children import the script anew; those that cannot make a Pool wait for ever.
IN_CHILDREN = """
import logging, multiprocessing, os, sys
from concurrent.futures import ProcessPoolExecutor
from azureml.core import Model, Run
from azureml_user.parallel_run import EntryScript
def in_child(method, depth):
    with ProcessPoolExecutor(1, multiprocessing.get_context(method)) as pool:
        return pool.submit(work, method, depth).result()
def work(method, depth):
    if depth:
        return in_child(method, depth - 1)
    entry = EntryScript()
    logging.info("said by a child")
    entry.logger.info("logged by a child")
    Run.get_context().log("depth", depth)
    model = os.path.basename(Model.get_model_path("m"))
    return entry.agent_name, os.path.basename(entry.output_dir), model, sys.argv[1:]
def init():
    os.chdir("..")
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.parametrize(
    "script",
    ["score.py", "src/deep/score.py", "score.v2.py", "src/score.v2.py", "a-b/score.py", "json.py"],
)
def test_s23_children_have_the_stand_ins(launch, method, script):
    text = SCORE.format(imports=IN_CHILDREN, value=f"in_child({method!r}, 0)")
    # Neither a module of our name nor another script of that name may take the place of ours.
    others = {"parallelrun.py": "", **({"score.py": "1 / 0"} if "a-b" in script else {})}
    files = {script: text, **others}
    agent = launch(script, "--x", "1", files=files, **store(launch, **{"m/1/a": "x"}))
    agent.ready()
    agent.run_files()
    row = "('process000', 'output', 'a', ['--x', '1'])"
    assert agent.result().data.decode() == f"{row}\n"
    assert "|said by a child\n" in agent.stdout_path.read_text()
    assert "|logged by a child\n" in agent.log("user/entry_script_log/0/process000.log.txt")
    assert json.loads(agent.log("user/metrics.process000.jsonl"))["name"] == "depth"


def test_s23_children_of_children_have_the_stand_ins(launch):
    start = store(launch, **{"m/1/a": "x"})
    row = value_of(launch, IN_CHILDREN, "in_child('spawn', 1)", **start)
    assert row == "('process000', 'output', 'a', [])"


def test_s23_children_without_the_environment_have_the_stand_ins(launch):
    value = "[os.environ.pop('PARALLELRUN_START'), in_child('spawn', 0)]"
    failure = failure_of(launch, IN_CHILDREN, value)
    assert "EntryScript() works only inside a worker process" in failure["message"]


# Model


def store(launch, **models):
    for name, content in models.items():
        launch.write("store/" + name, content)
    return {"modelFolder": str(launch.folder / "store")}


MODEL = "from azureml.core.model import Model"


@pytest.mark.parametrize(
    ("files", "call", "path"),
    [
        (["m"], "'m'", "m"),
        (["m/a", "m/b"], "'m'", "m"),
        (["m/a"], "'m'", "m"),
        (["m/9/x.pkl", "m/10/y.pkl"], "'m'", "m/10/y.pkl"),
        (["m/9/x.pkl", "m/10/y.pkl"], "'m', version=9", "m/9/x.pkl"),
        (["m/9/x.pkl", "m/10/y.pkl"], "model_name='m', version='9'", "m/9/x.pkl"),
        (["m/1/a", "m/1/b"], "'m', 1", "m/1"),
        (["m/1/folder/a"], "'m'", "m/1"),
        (["m/1/a", "m/1/.hidden"], "'m'", "m/1/a"),
    ],
)
def test_s23_get_model_path(launch, files, call, path):
    start = store(launch, **dict.fromkeys(files, "x"))
    found = value_of(launch, MODEL, f"Model.get_model_path({call})", **start)
    assert found == f"{launch.folder}/store/{path}"


@pytest.mark.parametrize(
    ("call", "message"),
    [("'gone'", "has no model gone; it holds m"), ("'m', 3", "has no version 3, only [1]")],
)
def test_s23_get_model_path_of_no_model(launch, call, message):
    failure = failure_of(
        launch, MODEL, f"Model.get_model_path({call})", **store(launch, **{"m/1/a": "x"})
    )
    assert message in failure["message"]


def test_s23_no_model_store(launch):
    failure = failure_of(launch, MODEL, "Model.get_model_path('m')")
    assert "Add a side input named model" in failure["message"]


INDEX = json.dumps(
    [
        {"name": "a", "version": 2, "path": "a2.pkl", "tags": {"kind": "x"}},
        {"name": "a", "version": 10, "path": "a10.pkl", "tags": [["kind", "x"], "best"]},
        {
            "name": "b",
            "version": 1,
            "path": "folder",
            "tags": {"kind": "y"},
            "properties": {"p": 1},
        },
    ]
)


def names(launch, query):
    start = store(launch, **{"models.json": INDEX, "a10.pkl": "ten", "folder/f": "in folder"})
    return value_of(
        launch, MODEL, f"[f'{{m.name}}:{{m.version}}' for m in Model.list({query})]", **start
    )


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("None", ["a:2", "a:10", "b:1"]),
        ("None, latest=True", ["a:10", "b:1"]),
        ("None, tags=['kind']", ["a:2", "a:10", "b:1"]),
        ("None, tags=[['kind', 'x']], latest=True", ["a:10"]),
        ("None, tags=[('kind', 'x'), 'best']", ["a:10"]),
        ("None, tags={'kind': 'y'}", ["b:1"]),
        ("None, name='b', properties=[['p', '1']]", ["b:1"]),
        ("None, tags=[['kind', 'z']]", []),
    ],
)
def test_s23_model_list(launch, query, found):
    assert names(launch, query) == str(found)


def test_s23_model_download(launch):
    imports = (
        MODEL + "\nimport os\nfile, folder = Model.list(None, latest=True)\n"
        "paths = [m.download(target_dir='copies') for m in (file, folder, folder)]\n"
        "paths.append(file.download('copies', exist_ok=True))\n"
        "paths.append(sorted(os.listdir('copies')))\n"
    )
    start = store(launch, **{"models.json": INDEX, "a10.pkl": "ten", "folder/f": "in folder"})
    got = value_of(launch, imports, "[paths, open('copies/folder/f').read()]", **start)
    file, folder = "copies/a10.pkl", "copies/folder"
    paths = [file, folder, folder, file, ["a10.pkl", "folder"]]
    assert got == str([paths, "in folder"])


def test_s23_model_by_constructor_and_by_index(launch):
    start = store(launch, **{"models.json": INDEX, "a10.pkl": "ten", "c/3/x": "three"})
    found = "(Model(None, 'a'), Model(None, id='a:2'), Model(None, 'c'))"
    value = f"[(m.name, m.version, os.path.relpath(m.path, '../store')) for m in {found}]"
    got = value_of(launch, MODEL + "\nimport os", value, **start)
    assert got == "[('a', 10, 'a10.pkl'), ('a', 2, 'a2.pkl'), ('c', 3, 'c/3/x')]"


@pytest.mark.parametrize(
    ("index", "message"), [(None, "models.json is missing"), ("{", "models.json cannot be read")]
)
def test_s23_model_list_without_its_index(launch, index, message):
    files = {"x": "x"} if index is None else {"models.json": index}
    failure = failure_of(launch, MODEL, "Model.list(None)", **store(launch, **files))
    assert message in failure["message"]


# Run and metrics

LOGGED = [
    ("files", 1),
    ("sizes", [1, 2.5, "inf"]),
    ("row", {"a": 1, "b": "x"}),
    ("table", {"y": [1, 2]}),
    ("stage", "test"),
    ("in child", True),
    ("loss", 0.5),
    ("one", 1),
    ("two", 2),
    ("p", "v"),
    ("q", 3),
    ("t", "u"),
    ("w", "\\ud800"),
]


def test_s23_run_context_and_metrics_to_the_agent(launch):
    agent = launch("logs_metrics.py", runId="team.digits", metrics=True)
    agent.ready()
    agent.run_files()
    metrics = [agent.metric() for _ in LOGGED]
    assert [(metric["name"], metric["value"]) for metric in metrics] == LOGGED
    assert [metric.get("step") for metric in metrics[:2]] == [1, None]
    assert metrics[6]["step"] == 3
    row = "team.digits digits Workspace(name=local)\n"
    assert agent.result().data.decode() == row
    # A thread's is sent by the main thread, when that waits for work.
    from_thread = agent.metric()
    assert (from_thread["name"], from_thread["value"]) == ("thread", 4)


def test_s23_metrics_to_a_file(launch):
    agent = launch("logs_metrics.py")
    agent.ready()
    agent.run_files()
    agent.result()
    lines = agent.log("user/metrics.process000.jsonl").splitlines()
    metrics = [json.loads(line) for line in lines]
    assert [(metric["name"], metric["value"]) for metric in metrics] == [*LOGGED, ("thread", 4)]
    assert all(metric["time"] > 1e9 for metric in metrics)


def test_s23_metrics_of_a_forked_child_go_to_the_file(launch):
    text = (
        "import os\nfrom azureml.core import Run\ndef run(m):\n  child = os.fork()\n"
        "  if child == 0:\n    Run.get_context().log('child', 1)\n    os._exit(0)\n"
        "  os.waitpid(child, 0)\n  return m\n"
    )
    agent = launch("score.py", files={"score.py": text}, metrics=True)
    agent.ready()
    agent.run_files()
    agent.result()
    assert '"child"' in agent.log("user/metrics.process000.jsonl")


ODD = """
import numpy
from azureml.core import Run
class Textless:
    def __str__(self):
        raise ValueError("no text")
def run(mini_batch):
    log = Run.get_context().log
    log("scalar", numpy.float32(0.5))
    log("array", numpy.arange(2))
    log("other", {1: {2}})
    log("long", numpy.longdouble(0.5))
    log("longs", numpy.arange(2, dtype=numpy.longdouble))
    endless = {}
    endless["in"] = endless
    log("endless", endless)
    log("huge", 10**5000)
    log("textless", Textless())
    log(Textless(), 1)
    log("step", 1, step=Textless())
    log("big", "x" * 5000)
    log("too big", "x" * 2000000)
    return mini_batch
"""


def test_s23_odd_metrics(launch):
    agent = launch("score.py", files={"score.py": ODD}, metrics=True)
    agent.ready()
    agent.run_files()
    values = [agent.metric()["value"] for _ in range(5)]
    assert values == [0.5, [0, 1], {"1": "{2}"}, "0.5", ["0.0", "1.0"]]
    agent.result()
    agent.stop()
    said = agent.stderr_path.read_text().splitlines()
    names = ["'endless'", "'huge'", "'textless'", "whose name is of type Textless", "'step'"]
    for name, line in zip([*names, "'too big'"], said):
        assert line.startswith(f"parallelrun: the metric {name} is left out: ")
    assert len(said) == 6
    assert json.loads(agent.log("user/metrics.process000.jsonl"))["name"] == "big"


# mlflow models


def run_model(launch, task, folder):
    agent = launch("mlflow_model.py", task, str(folder))
    agent.ready()
    agent.run_files()
    return agent


@pytest.mark.parametrize("hidden", [(), ("cloudpickle", "joblib", "yaml")])
def test_s23_mlflow_models_are_saved_and_loaded(launch, hidden):
    folder = launch.folder / "model"
    files = {f"{name}.py": "raise ImportError\n" for name in hidden}
    for name, content in files.items():
        launch.write("code/" + name, content)
    for task in ("save", "sklearn", "pyfunc"):
        assert run_model(launch, task, folder).result().data == b"[2, 4, 6]\n"
    assert run_model(launch, "save", folder).failed().failure["type"] == "FileExistsError"


# As mlflow 2 writes it.
MLMODEL = """
artifact_path: model
flavors:
  python_function:
    artifacts:
      words:
        path: artifacts/words.txt
        uri: /tmp/words.txt
    cloudpickle_version: 3.0.0
    code: {code}
    env:
      conda: conda.yaml
      virtualenv: python_env.yaml
    loader_module: {loader}
    python_model: python_model.pkl
    python_version: 3.11.7
    streamable: false
mlflow_version: 2.14.1
signature:
  inputs: '[{{"type": "string", "name": "text", "required": true}}]'
"""


def test_s23_mlflow_python_model(launch):
    folder = launch.folder / "model"
    launch.write("model/MLmodel", MLMODEL.format(code="code", loader="mlflow.pyfunc.model"))
    launch.write("model/artifacts/words.txt", "word")
    launch.write(
        "model/code/custom.py",
        "import mlflow.pyfunc\nclass Custom(mlflow.pyfunc.PythonModel):\n"
        "  def load_context(self, context):\n    self.w = open(context.artifacts['words']).read()\n"
        "  def predict(self, context, model_input):\n    return [self.w] * len(model_input)\n",
    )
    (folder / "python_model.pkl").write_bytes(b"ccustom\nCustom\n)R.")
    imports = "import mlflow.pyfunc\nmodel = mlflow.pyfunc.load_model('file://{}')"
    value = "model.predict([1, 2]), type(model.unwrap_python_model()).__name__"
    got = value_of(launch, imports.format(folder), value)
    assert got == "(['word', 'word'], 'Custom')"


def test_s23_mlflow_models_by_name_come_from_the_store(launch):
    folder = launch.folder / "store/doubler/2"
    folder.mkdir(parents=True)
    assert run_model(launch, "save", folder).result().rows == 1
    agent = launch(
        "mlflow_model.py", "pyfunc", "models:/doubler/2", modelFolder=f"{launch.folder}/store"
    )
    agent.ready()
    agent.run_files()
    assert agent.result().data == b"[2, 4, 6]\n"


@pytest.mark.parametrize(
    ("loader", "uri", "message"),
    [
        ("mlflow.xgboost", None, "needs mlflow.xgboost to be loaded, which is not available here"),
        ("x", "runs:/1/model", "the model runs:/1/model is not available here"),
        ("x", "s3://b/model", "the model s3://b/model is not available here"),
    ],
)
def test_s23_mlflow_models_that_cannot_be_loaded(launch, loader, uri, message):
    launch.write("model/MLmodel", MLMODEL.format(code="null", loader=loader))
    uri = uri or str(launch.folder / "model")
    failure = failure_of(launch, "import mlflow.pyfunc", f"mlflow.pyfunc.load_model({uri!r})")
    assert message in failure["message"]


# MlflowClient

CLIENT = "from mlflow import MlflowClient\nclient = MlflowClient('http://mlflow')"


@pytest.mark.parametrize("module", ["mlflow", "mlflow.client", "mlflow.tracking"])
def test_s23_mlflow_client_logs_to_the_job(launch, module):
    imports = (
        f"from {module} import MlflowClient\n"
        "def log(client):\n"
        "  client.log_metric('r', 'loss', 0.5, step=3)\n  client.log_param('r', 'p', 1)\n"
        "  client.set_tag('r', 't', 'v')\n  client.log_text('r', 'words', 'notes/a.txt')\n"
        "  client.set_terminated('r')\n  return client.get_run('r').info.run_id"
    )
    out = launch.folder / "out"
    out.mkdir()
    options = {"runId": "team.digits", "outputFolder": str(out)}
    assert value_of(launch, imports, "log(MlflowClient())", **options) == "team.digits"
    metrics = (launch.folder / "code/logs/user/metrics.process000.jsonl").read_text()
    logged = [json.loads(line) for line in metrics.splitlines()]
    assert [(m["name"], m["value"]) for m in logged] == [("loss", 0.5), ("p", 1), ("t", "v")]
    assert logged[0]["step"] == 3
    assert (out / "notes/a.txt").read_text() == "words"


@pytest.mark.parametrize(
    ("call", "found"),
    [
        ("client.search_model_versions(\"name='m'\")", ["m 10 m/10/x", "m 9 m/9/x"]),
        ("client.get_latest_versions('m', stages=['Production'])", ["m 10 m/10/x"]),
        ("[client.get_model_version('m', '9')]", ["m 9 m/9/x"]),
        ("client.search_model_versions('name = \"single\"')", ["single 1 single"]),
    ],
)
def test_s23_mlflow_client_finds_models_in_the_store(launch, call, found):
    start = store(launch, **{"m/9/x": "nine", "m/10/x": "ten", "single": "one"})
    value = (
        f"[f'{{v.name}} {{v.version}} {{os.path.relpath(v.source, \"../store\")}}' for v in {call}]"
    )
    assert value_of(launch, CLIENT + "\nimport os", value, **start) == str(found)


def test_s23_mlflow_artifacts_are_found_again(launch):
    launch.write("out/notes/a.txt", "words")
    options = {
        **store(launch, **{"m/1/x": "model"}),
        "outputFolder": str(launch.folder / "out"),
    }
    imports = "import mlflow\ndownload = mlflow.artifacts.download_artifacts"
    for call, content in {
        "'models:/m/1'": "model",
        "'models:/m/1', dst_path='copy'": "model",
        "'runs:/r/notes/a.txt'": "words",
        "run_id='r', artifact_path='notes/a.txt'": "words",
    }.items():
        assert value_of(launch, imports, f"open(download({call})).read()", **options) == content


def test_s23_mlflow_names_of_training_do_nothing(launch):
    imports = (
        "import mlflow, mlflow.xgboost\nfrom mlflow.models import infer_signature\n"
        "from mlflow.models.signature import infer_signature as again"
    )
    value = (
        "mlflow.xgboost.autolog(), mlflow.pytorch.autolog(log_models=False), infer_signature([1]),"
        " again is infer_signature, mlflow.set_experiment('x').name"
    )
    assert value_of(launch, imports, value) == "(None, None, None, True, 'x')"


# What a job leaves, and what it finds under a name


def trainer(launch, out):
    (launch.folder / "code").mkdir()
    out.mkdir()
    (launch.folder / "code" / "outputs").symlink_to(out)  # as the agent does
    agent = launch("trains.py", "--kind", "lr", runId="team.train", outputFolder=str(out))
    agent.ready()
    return agent


def test_s23_models_and_files_that_a_script_leaves(launch):
    out = launch.folder / "out"
    agent = trainer(launch, out)
    agent.run_files(["a.csv", "b.csv"])
    rows = agent.result().data.decode().splitlines()
    assert rows == [f"['lr_{name}', 1, 'Completed', 'team.train']" for name in "ab"]
    names = {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}
    assert {"lr_a", "lr_b", "notes/lr_a.txt", "models/lr_a/1/lr_a", "models/lr_a/2/lr_a"} < names
    assert {"last/MLmodel", "models/m/1/MLmodel", "models/m/2/model.pkl"} < names
    assert len(names) == 20  # nothing half-written is left


# What another pod does meanwhile, whose processes have the same ids.
AT_ONCE = """
import shutil
from azureml.core import Run
def upload(source, between):
    copy = shutil.copyfile
    def copyfile(*paths):
        shutil.copyfile = copy
        copy(*paths)
        between()
    shutil.copyfile = copyfile
    Run.get_context().upload_file("shared.txt", source)
def fail():
    raise OSError("no space")
"""


def test_s23_uploads_of_one_name_at_once(launch):
    files = {"one.txt": "one", "two.txt": "two"}
    out = launch.folder / "out"
    value = "upload('one.txt', lambda: upload('two.txt', lambda: None))"
    value_of(launch, AT_ONCE, value, files=files, outputFolder=str(out))
    assert {path.name: path.read_text() for path in out.iterdir()} == {"shared.txt": "one"}


def test_s23_an_upload_that_fails_leaves_nothing(launch):
    out = launch.folder / "out"
    launch.write("code/one.txt", "one")
    upload = "upload('one.txt', fail)"
    failure = failure_of(launch, AT_ONCE, upload, outputFolder=str(out))
    assert failure["message"] == "no space"
    assert list(out.iterdir()) == []


def test_s23_models_that_a_job_registered_are_a_store(launch):
    out = launch.folder / "out"
    agent = trainer(launch, out)
    agent.run_files(["a.csv", "b.csv"])
    agent.result()
    agent.stop()
    start = {"modelFolder": str(out / "models")}
    listed = "[(m.name, m.version) for m in Model.list(None, tags=[['kind', 'lr']], latest=True)]"
    assert value_of(launch, MODEL, listed, **start) == "[('lr_a', 1), ('lr_b', 1)]"
    found = value_of(launch, MODEL, "Model.get_model_path('lr_b')", **start)
    assert found == f"{out}/models/lr_b/2/lr_b"
    imports = "import mlflow"
    loaded = "mlflow.sklearn.load_model('models:/m/latest')"
    assert value_of(launch, imports, loaded, **start) == "[1]"


def test_s23_side_inputs_by_name_and_secrets(launch, monkeypatch):
    monkeypatch.setenv("DB_PASSWORD", "hush")
    monkeypatch.setenv("TOKEN", "t")
    launch.write("labels/names.txt", "cat dog")
    launch.write("prices/a.csv", "price\n1\n2\n")
    launch.write("prices/b.tsv", "price\tof\n4\tx\n")
    sides = {name: str(launch.folder / name) for name in ("labels", "prices")}
    agent = launch("reads_side_inputs.py", sideInputs=sides)
    agent.ready()
    agent.run_files("abcdefgh")
    assert agent.result().data.decode().splitlines() == [
        "['cat', 'dog']",
        "price",
        "['/a.csv', '/b.tsv']",
        "['a.csv', 'b.tsv']",
        "7",
        "['labels', 'prices']",
        "hush",
        "t",
    ]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("Dataset.get_by_name(None, 'x')", "make it a side input of that name. Side inputs are: s"),
        ("Run.get_context().get_secret('a-b')", "Set the variable A_B from a Secret"),
    ],
)
def test_s23_what_is_not_given_is_named(launch, call, message):
    imports = "from azureml.core import Dataset, Run"
    failure = failure_of(launch, imports, call, sideInputs={"s": "/s"})
    assert message in failure["message"]


def test_s23_versions_are_texts(launch):
    imports = "import azureml.core, mlflow"
    value = "azureml.core.VERSION.split('.')[0], mlflow.__version__.split('.')[0]"
    assert value_of(launch, imports, value) == "('1', '2')"


SIGNED = """flavors:
  python_function:
    loader_module: mlflow.sklearn
    model_path: model.pkl
    predict_fn: most_common
metadata:
  owner: team
signature:
  inputs: '[{"name": "age", "type": "long"}, {"name": "a long name of a column, as some have",
    "type": "string"}]'
  outputs: '[{"type": "long"}]'
"""


@pytest.mark.parametrize("hidden", ["", "import sys; sys.modules['yaml'] = None; "])
def test_s23_the_signature_of_a_model(launch, hidden):
    launch.write("m/MLmodel", SIGNED)
    (launch.folder / "m" / "model.pkl").write_bytes(pickle.dumps(Counter("aab")))
    value = (
        f"(lambda m: (m.metadata.signature.inputs.input_names(), m.metadata.metadata['owner'],"
        f" m.metadata.get_input_schema().to_dict()[0]['type'],"
        f" [str(t) for t in m.metadata.signature.inputs.pandas_types()]))"
        f"(mlflow.pyfunc.load_model('{launch.folder}/m'))"
    )
    found = value_of(launch, hidden + "import mlflow", value)
    names = "['age', 'a long name of a column, as some have']"
    assert found == f"({names}, 'team', 'long', ['int64', 'object'])"


def test_s23_pyfunc_load_is_load_model(launch):
    assert (
        value_of(launch, "import mlflow", "mlflow.pyfunc.load is mlflow.pyfunc.load_model")
        == "True"
    )
