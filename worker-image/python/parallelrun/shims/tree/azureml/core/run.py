"""The run of a script: its id, metrics, and what it uploads and registers."""

import os

from azureml.core.experiment import Experiment
from azureml.core.keyvault import Keyvault
from azureml.core.model import registered
from azureml.core.workspace import Workspace
from parallelrun.shims import artifacts
from parallelrun.shims.placeholder import Partial
from parallelrun.worker import metrics, process


class Run(metaclass=Partial):
    """Run.get_context() and its children: all are this job."""

    def __init__(self, experiment, run_id, name=None, **_):
        self.experiment = experiment
        self.id = run_id
        self.name = self.display_name = name or run_id
        self.number = 1
        self.status = "Running"
        self.tags = {}
        self.properties = {}

    @classmethod
    def get_context(cls, allow_offline=True, **_):
        """The run of this process."""
        run_id = os.environ.get("AZUREML_RUN_ID", "")
        return cls(Experiment(Workspace(), run_id.rpartition(".")[2]), run_id)

    @classmethod
    def get(cls, workspace, run_id, **_):
        """A run by its id."""
        return cls(Experiment(workspace, run_id.rpartition(".")[2]), run_id)

    def __getattr__(self, attribute):
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        return getattr(type(self), attribute)

    def __repr__(self):
        return f"Run(experiment={self.experiment.name}, id={self.id})"

    @property
    def parent(self):
        """The job is its own parent: there is no pipeline around it."""
        return self

    @property
    def input_datasets(self):
        """The folders of the side inputs by name."""
        return process.current.side_inputs

    def child_run(self, name=None, run_id=None, outputs=None):
        """A run whose metrics are this job's."""
        return Run(self.experiment, self.id, name or self.name)

    def get_status(self):
        """The job runs, or nobody would ask."""
        return self.status

    def get_details(self):
        """What is known of the run."""
        return {"runId": self.id, "status": self.status, "properties": {}, "inputDatasets": []}

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

    log_accuracy_table = log_confusion_matrix = log_table
    log_predictions = log_residuals = log_table

    def log_image(self, name, path=None, plot=None, description=""):
        """Puts an image into the output folder."""
        if path is not None:
            artifacts.upload(path, os.path.join(name, os.path.basename(path)))
        else:
            target = artifacts.local_path(f"{name}.png")
            os.makedirs(os.path.dirname(target), exist_ok=True)
            plot.savefig(target)

    def tag(self, key, value=None):
        """Logs a tag as a metric."""
        self.tags[key] = value
        metrics.log(key, value)

    def set_tags(self, tags):
        """Logs several tags as metrics."""
        for key, value in tags.items():
            self.tag(key, value)

    def get_tags(self):
        """The tags that were set here."""
        return self.tags

    def add_properties(self, properties):
        """Logs properties as metrics."""
        for key, value in properties.items():
            self.properties[key] = value
            metrics.log(key, value)

    def get_properties(self):
        """The properties that were set here."""
        return self.properties

    def upload_file(self, name, path_or_stream, **_):
        """Puts a file, or what a stream holds, into the output folder."""
        if hasattr(path_or_stream, "read"):
            artifacts.write(name, path_or_stream.read())
        else:
            artifacts.upload(path_or_stream, name)

    def upload_files(self, names, paths, **_):
        """Puts several files into the output folder."""
        for name, path in zip(names, paths):
            artifacts.upload(path, name)

    def upload_folder(self, name, path, **_):
        """Puts a folder into the output folder."""
        artifacts.upload(path, name)

    def download_file(self, name, output_file_path=None, **_):
        """Copies what was uploaded before."""
        target = output_file_path or os.path.basename(name)
        artifacts.replace(artifacts.local_path(name), target)

    def register_model(
        self, model_name, model_path=None, tags=None, properties=None, description=None, **_
    ):
        """Puts a model that was uploaded into models/ of the output folder."""
        path = artifacts.local_path(model_path or model_name)
        return registered(artifacts.register(model_name, path, tags, properties))

    def get_secret(self, name, **_):
        """A secret, which is a variable of the environment."""
        return Keyvault().get_secret(name)

    def get_secrets(self, secrets, **_):
        """Several secrets by name."""
        return Keyvault().get_secrets(secrets)

    def fail(self, error_details=None, **_):
        """Logs that a part of the job failed: only run() fails a mini-batch."""
        self.status = "Failed"
        metrics.log("failed", str(error_details) if error_details is not None else self.name)

    def complete(self, **_):
        """The child is done; a run ends with its process."""
        self.status = "Completed"

    cancel = complete

    def wait_for_completion(self, *_, **__):
        """What is known of the run: nothing is left to wait for."""
        return self.get_details()

    def flush(self, timeout_seconds=300):
        """Nothing: metrics are sent as they are logged."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False
