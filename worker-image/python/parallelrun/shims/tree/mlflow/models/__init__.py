"""What describes a model that is logged."""

from mlflow.models.signature import infer_signature

__all__ = ["infer_signature"]
