"""The run of a script: its id, and metrics."""

import os

from parallelrun.shims.placeholder import Partial, placeholder
from parallelrun.worker import metrics


class Experiment(metaclass=Partial):
    """Where the run belongs: only its name is known."""

    # Given to Model.list() and the like, which need none.
    workspace = placeholder("azureml.core.Workspace")

    def __init__(self, name):
        self.name = name

    def __getattr__(self, attribute):
        return getattr(type(self), attribute)


class Run(metaclass=Partial):
    """Run.get_context() and its children: all are this job."""

    def __init__(self, run_id, name):
        self.id = run_id
        self.name = name
        self.experiment = Experiment(run_id.rpartition(".")[2])

    @classmethod
    def get_context(cls, allow_offline=True, **_):
        """The run of this process."""
        run_id = os.environ.get("AZUREML_RUN_ID", "")
        return cls(run_id, run_id)

    def __getattr__(self, attribute):
        return getattr(type(self), attribute)

    @property
    def parent(self):
        """The job is its own parent: there is no pipeline around it."""
        return self

    def child_run(self, name=None, run_id=None, outputs=None):
        """A run whose metrics are this job's."""
        return Run(self.id, name or self.name)

    def log(self, name, value, description="", step=None):
        """Logs one value."""
        metrics.log(name, value, step)

    def log_list(self, name, value, description=""):
        """Logs a list of values under one name."""
        metrics.log(name, list(value))

    def log_row(self, name, description=None, **kwargs):
        """Logs one row of named values."""
        metrics.log(name, kwargs)

    def log_table(self, name, value, description=""):
        """Logs columns, or named values, under one name."""
        metrics.log(name, dict(value))

    def tag(self, key, value=None):
        """Logs a tag as a metric."""
        metrics.log(key, value)

    def complete(self, **_):
        """Nothing: a run ends with its process."""

    def flush(self, timeout_seconds=300):
        """Nothing: metrics are sent as they are logged."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False
