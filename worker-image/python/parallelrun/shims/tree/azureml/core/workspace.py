"""The workspace: there is none, and what scripts do with it leads to the job."""

import os

from azureml.core.dataset import Dataset
from azureml.core.keyvault import Keyvault
from parallelrun.shims.placeholder import Partial
from parallelrun.worker import process


class Workspace(metaclass=Partial):
    """Given to Model.list() and the like, which need none."""

    def __init__(self, subscription_id="", resource_group="", workspace_name="", *_, **__):
        self.subscription_id = subscription_id or os.environ.get("AZUREML_ARM_SUBSCRIPTION", "")
        self.resource_group = resource_group or os.environ.get("AZUREML_ARM_RESOURCEGROUP", "")
        self.name = workspace_name or os.environ.get("AZUREML_ARM_WORKSPACE_NAME", "local")
        self.location = ""

    def __getattr__(self, attribute):
        return getattr(type(self), attribute)

    def __repr__(self):
        return f"Workspace(name={self.name})"

    @classmethod
    def from_config(cls, *_, **__):
        """The workspace."""
        return cls()

    @classmethod
    def get(cls, name="", *_, subscription_id="", resource_group="", **__):
        """The workspace, under that name."""
        return cls(subscription_id, resource_group, name)

    @property
    def datasets(self):
        """The side inputs by name."""
        return {name: Dataset.get_by_name(self, name) for name in process.current.side_inputs}

    def get_default_keyvault(self):
        """Secrets, which are variables of the environment."""
        return Keyvault()
