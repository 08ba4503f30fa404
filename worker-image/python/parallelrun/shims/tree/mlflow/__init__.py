"""The part of mlflow that scoring scripts use: metrics, files, and loading models."""

import json
import os

from parallelrun.shims import artifacts as _artifacts  # mlflow has an `artifacts` of its own
from parallelrun.shims.placeholder import Partial, placeholder
from parallelrun.worker import metrics as _metrics  # and `metrics`

from mlflow.client import MlflowClient  # noqa: F401 - scripts find it here too

# The release whose names these are; scripts print it and compare with it.
__version__ = "2.22.0"

_NO_SERVER = "parallelrun"


def set_tracking_uri(*_, **__):
    """Nothing: metrics are the job's."""


set_registry_uri = enable_system_metrics_logging = set_tracking_uri


def get_tracking_uri():
    """A name, for there is no server."""
    return _NO_SERVER


get_registry_uri = get_tracking_uri


def autolog(*_, **__):
    """Nothing: it is about training."""


def log_metric(key, value, step=None, **_):
    """Logs one value."""
    _metrics.log(key, value, step)


def log_metrics(metrics_by_name, step=None, **_):
    """Logs several values."""
    for key, value in metrics_by_name.items():
        _metrics.log(key, value, step)


def log_param(key, value, **_):
    """Logs a parameter, and returns it."""
    _metrics.log(key, value)
    return value


def log_params(params, **_):
    """Logs several parameters."""
    for key, value in params.items():
        _metrics.log(key, value)


def set_tag(key, value, **_):
    """Logs a tag as a metric."""
    _metrics.log(key, value)


def set_tags(tags, **_):
    """Logs several tags as metrics."""
    for key, value in tags.items():
        _metrics.log(key, value)


def log_artifact(local_path, artifact_path=None, **_):
    """Puts a file into the output folder."""
    name = os.path.basename(os.path.normpath(local_path))
    _artifacts.upload(local_path, os.path.join(artifact_path or "", name))


def log_artifacts(local_dir, artifact_path=None, **_):
    """Puts the content of a folder into the output folder."""
    _artifacts.upload(local_dir, artifact_path or "")


def log_text(text, artifact_file, **_):
    """Writes a text into the output folder."""
    _artifacts.write(artifact_file, text)


def log_dict(dictionary, artifact_file, **_):
    """Writes a dict as JSON into the output folder."""
    _artifacts.write(artifact_file, json.dumps(dictionary, indent=2, default=str))


def log_figure(figure, artifact_file, **_):
    """Puts a figure into the output folder."""
    target = _artifacts.local_path(artifact_file)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    figure.savefig(target)


def register_model(model_uri, name, tags=None, **_):
    """Puts a model that was logged into models/ of the output folder, as the next version."""
    from azureml.core.model import registered

    if model_uri.startswith("runs:/"):
        model_uri = _artifacts.local_path(model_uri[len("runs:/") :].partition("/")[2])
    return registered(_artifacts.register(name, model_uri, tags))


class ActiveRun(metaclass=Partial):
    """The run is the job; starting and ending it does nothing."""

    def __init__(self):
        self.info = self
        self.run_id = self.run_name = os.environ.get("AZUREML_RUN_ID", "")
        self.experiment_id = self.run_id
        self.artifact_uri = _artifacts.local_path("")

    def __getattr__(self, attribute):
        return placeholder(f"mlflow.ActiveRun.{attribute}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False


def start_run(*_, **__):
    """The job's run."""
    return ActiveRun()


def active_run():
    """The job's run."""
    return ActiveRun()


def end_run(*_, **__):
    """Nothing: a run ends with its process."""


def get_run(run_id):
    """The job's run."""
    return ActiveRun()


class Experiment(metaclass=Partial):
    """The experiment is the job."""

    def __init__(self, name):
        self.name = name
        self.experiment_id = os.environ.get("AZUREML_RUN_ID", "")
        self.artifact_location = _artifacts.local_path("")
        self.lifecycle_stage = "active"
        self.tags = {}

    def __getattr__(self, attribute):
        return placeholder(f"mlflow.Experiment.{attribute}")


def set_experiment(experiment_name=None, experiment_id=None, **_):
    """The job's experiment, whatever it is called."""
    return Experiment(experiment_name or experiment_id)


get_experiment = get_experiment_by_name = set_experiment


def create_experiment(name, *_, **__):
    """The id of the job's experiment."""
    return Experiment(name).experiment_id
