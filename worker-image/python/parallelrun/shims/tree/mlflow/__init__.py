"""The part of mlflow that scoring scripts use: metrics, and loading models."""

import os

from parallelrun.shims.placeholder import Partial, placeholder
from parallelrun.worker import metrics


def autolog(*_, **__):
    """Nothing: it is about training."""


def log_metric(key, value, step=None, **_):
    """Logs one value."""
    metrics.log(key, value, step)


def log_metrics(metrics_by_name, step=None, **_):
    """Logs several values."""
    for key, value in metrics_by_name.items():
        metrics.log(key, value, step)


def log_param(key, value, **_):
    """Logs a parameter, and returns it."""
    metrics.log(key, value)
    return value


def log_params(params, **_):
    """Logs several parameters."""
    for key, value in params.items():
        metrics.log(key, value)


def set_tag(key, value, **_):
    """Logs a tag as a metric."""
    metrics.log(key, value)


def set_tags(tags, **_):
    """Logs several tags as metrics."""
    for key, value in tags.items():
        metrics.log(key, value)


class ActiveRun(metaclass=Partial):
    """The run is the job; starting and ending it does nothing."""

    def __init__(self):
        self.info = self
        self.run_id = self.run_name = os.environ.get("AZUREML_RUN_ID", "")

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
