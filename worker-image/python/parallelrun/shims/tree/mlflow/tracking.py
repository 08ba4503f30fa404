"""`from mlflow.tracking import MlflowClient`, as most scripts write it."""

from mlflow.client import MlflowClient

__all__ = ["MlflowClient"]
