"""Imports what cloud scripts import, needed or not."""

import azureml.core
import mlflow.pyfunc
import mltable
from azureml._restclient.models import RunDto
from azureml.core import Dataset, Model, Run, Workspace, model
from azureml.core import run as run_module
from azureml.core.model import Model as AgainModel
from azureml.core.run import _OfflineRun
from azureml.exceptions import UserErrorException
from azureml.telemetry import set_diagnostics_collection  # noqa: F401
from azureml.train.automl import AutoMLConfig
from mlflow.pyfunc.scoring_server import _get_jsonable_obj
from opencensus.ext.azure.log_exporter import AzureLogHandler

CALLS = {
    "dataset": lambda: Dataset.Tabular.from_delimited_files("x"),
    "workspace": lambda: Run.get_context().experiment.workspace.get_default_datastore(),
    "setup": lambda: Workspace.setup(),
    "package": lambda: Model.package("x"),
    "run": lambda: Run.get_context().get_metrics(),
    "experiment": lambda: Run.get_context().experiment.submit(None),
    "offline": _OfflineRun,
    "automl": AutoMLConfig,
    "rest": RunDto,
    "mltable": lambda: mltable.load("x"),
    "client": lambda: mlflow.MlflowClient().search_runs(["1"]),
    "server": lambda: _get_jsonable_obj([1]),
    "handler": AzureLogHandler,
    "azureml": lambda: azureml.core.ScriptRunConfig(),
}


class Annotated(mlflow.pyfunc.PythonModel):
    def predict(self, context, model_input: Dataset):
        return model_input


class Handler(AzureLogHandler):
    pass


def run_one(name):
    try:
        return CALLS[name]()
    except UserErrorException:
        return None
    except ImportError as error:
        return f"{name}: {error}"


_ = Annotated()
assert AgainModel is Model is model.Model
assert run_module.Run is Run


def run(mini_batch):
    return [run_one(name) for name in CALLS]
