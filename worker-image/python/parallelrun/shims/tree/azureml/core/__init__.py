"""The part of azureml.core that scoring scripts use."""

from azureml.core.model import Model
from azureml.core.run import Experiment, Run

__all__ = ["Experiment", "Model", "Run"]
