"""The part of azureml.core that scoring scripts use."""

from azureml.core.dataset import Dataset
from azureml.core.experiment import Experiment
from azureml.core.keyvault import Keyvault
from azureml.core.model import Model
from azureml.core.run import Run
from azureml.core.workspace import Workspace

__all__ = ["Dataset", "Experiment", "Keyvault", "Model", "Run", "Workspace"]

# The release whose names these are; scripts print it and compare with it.
VERSION = __version__ = "1.60.0"
