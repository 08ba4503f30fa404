"""Models that are Python objects of the user's."""

import os

from parallelrun.shims.mlmodel import read_flavors


class PythonModel:
    """The base class of a user's model."""

    def load_context(self, context):
        """Reads the artifacts; for the user to define."""

    def predict(self, context, model_input):
        """The predictions; for the user to define."""
        raise NotImplementedError


class PythonModelContext:
    """What a model may ask for while it is loaded."""

    def __init__(self, artifacts, model_config=None):
        self.artifacts = artifacts
        self.model_config = model_config or {}


class _Loaded:
    def __init__(self, python_model, context):
        self.python_model = python_model
        self._context = context

    def predict(self, data, params=None):
        """The predictions of the user's model."""
        if params is None:
            return self.python_model.predict(self._context, data)
        return self.python_model.predict(self._context, data, params)


def _load_pyfunc(path):
    from mlflow.sklearn import load_file

    flavor = read_flavors(path)["python_function"]
    artifacts = {
        name: os.path.join(path, entry["path"])
        for name, entry in (flavor.get("artifacts") or {}).items()
    }
    context = PythonModelContext(artifacts)
    model = load_file(os.path.join(path, flavor["python_model"]))
    model.load_context(context)
    return _Loaded(model, context)
