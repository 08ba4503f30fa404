"""MlflowClient: every run is the job, and models are those of the side input named model."""

import re as _re

from parallelrun.shims.placeholder import Partial as _Partial

import mlflow

_NAME = _re.compile(r"\bname\s*=\s*(['\"])(.*?)\1")


class ModelVersion(metaclass=_Partial):
    """A model of the store, as a registry describes it."""

    def __init__(self, model):
        self.name = model.name
        self.version = str(model.version)
        self.source = model.path
        self.tags = model.tags
        self.description = model.description
        self.current_stage = "None"
        self.status = "READY"
        self.run_id = None

    def __getattr__(self, attribute):
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        return getattr(type(self), attribute)

    def __repr__(self):
        return f"ModelVersion(name={self.name}, version={self.version}, source={self.source})"


class MlflowClient(metaclass=_Partial):
    """Logs to the job whatever run is named, and finds models in the store."""

    def __init__(self, tracking_uri=None, registry_uri=None):
        pass

    def __getattr__(self, attribute):
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        return getattr(type(self), attribute)

    def log_metric(self, run_id, key, value, timestamp=None, step=None, **_):
        """Logs one value."""
        mlflow.log_metric(key, value, step)

    def log_param(self, run_id, key, value, **_):
        """Logs a parameter, and returns it."""
        return mlflow.log_param(key, value)

    def set_tag(self, run_id, key, value, **_):
        """Logs a tag as a metric."""
        mlflow.set_tag(key, value)

    def log_artifact(self, run_id, local_path, artifact_path=None):
        """Puts a file into the output folder."""
        mlflow.log_artifact(local_path, artifact_path)

    def log_artifacts(self, run_id, local_dir, artifact_path=None):
        """Puts the content of a folder into the output folder."""
        mlflow.log_artifacts(local_dir, artifact_path)

    def log_text(self, run_id, text, artifact_file):
        """Writes a text into the output folder."""
        mlflow.log_text(text, artifact_file)

    def log_dict(self, run_id, dictionary, artifact_file):
        """Writes a dict as JSON into the output folder."""
        mlflow.log_dict(dictionary, artifact_file)

    def log_figure(self, run_id, figure, artifact_file, **_):
        """Puts a figure into the output folder."""
        mlflow.log_figure(figure, artifact_file)

    def download_artifacts(self, run_id, path, dst_path=None):
        """The path of what was logged before; of its copy if `dst_path` names a folder."""
        return mlflow.artifacts.download_artifacts(None, run_id, path, dst_path)

    def get_run(self, run_id):
        """The job's run."""
        return mlflow.ActiveRun()

    def create_run(self, experiment_id, *_, **__):
        """The job's run."""
        return mlflow.ActiveRun()

    def set_terminated(self, run_id, *_, **__):
        """Nothing: a run ends with its process."""

    def get_experiment(self, experiment_id):
        """The job's experiment."""
        return mlflow.Experiment(experiment_id)

    get_experiment_by_name = get_experiment

    def get_model_version(self, name, version):
        """A model of the store."""
        from azureml.core.model import Model

        return ModelVersion(Model(None, name, version=version))

    def get_latest_versions(self, name, stages=None):
        """The highest version of a model, in a list; there are no stages."""
        from azureml.core.model import Model

        return [ModelVersion(Model(None, name))]

    def search_model_versions(self, filter_string=None, *_, **__):
        """The versions of the model that the filter names, or of all; the highest first."""
        from azureml.core.model import Model

        name = _NAME.search(filter_string or "")
        found = Model.list(None, name=name and name[2])
        return [ModelVersion(m) for m in sorted(found, key=lambda m: (m.name, -m.version))]

    def get_model_version_download_uri(self, name, version):
        """The path of a model of the store."""
        return self.get_model_version(name, version).source
