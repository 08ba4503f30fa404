"""Models behind one predict(), as mlflow.pyfunc.load_model() gives them."""

import importlib
import json
import os
import sys

from parallelrun.shims.mlmodel import local_path, read, read_flavors
from parallelrun.shims.placeholder import NotAvailableError, Partial

from mlflow.pyfunc.model import PythonModel, PythonModelContext

__all__ = ["PyFuncModel", "PythonModel", "PythonModelContext", "load_model"]


_NUMPY_TYPES = {
    "boolean": "bool",
    "integer": "int32",
    "long": "int64",
    "float": "float32",
    "double": "float64",
    "datetime": "datetime64[ns]",
}


class Schema(metaclass=Partial):
    """The columns that a model takes or gives."""

    def __init__(self, columns):
        self._columns = columns

    def __getattr__(self, attribute):
        return getattr(type(self), attribute)

    def __len__(self):
        return len(self._columns)

    def input_names(self):
        """The names of the columns; of those without one their numbers."""
        return [column.get("name", number) for number, column in enumerate(self._columns)]

    def pandas_types(self):
        """The types of the columns, as numpy and pandas have them."""
        import numpy

        return [numpy.dtype(_NUMPY_TYPES.get(c.get("type"), "object")) for c in self._columns]

    numpy_types = pandas_types

    def to_dict(self):
        """The columns as MLmodel describes them."""
        return self._columns


class ModelSignature(metaclass=Partial):
    """What a model takes and gives; None where MLmodel does not say."""

    def __init__(self, signature):
        self.inputs, self.outputs = (
            Schema(json.loads(signature[side])) if signature.get(side) else None
            for side in ("inputs", "outputs")
        )


class ModelMetadata(metaclass=Partial):
    """What MLmodel says of a model."""

    def __init__(self, content):
        self.flavors = content.get("flavors")
        self.metadata = content.get("metadata")
        self.run_id = content.get("run_id")
        signature = content.get("signature")
        self.signature = ModelSignature(signature) if signature else None

    def __getattr__(self, attribute):
        return getattr(type(self), attribute)

    def get_input_schema(self):
        """The columns that the model takes."""
        return self.signature and self.signature.inputs


class PyFuncModel(metaclass=Partial):
    """A loaded model."""

    def __init__(self, model, predict, metadata):
        self._model_impl = model
        self._predict = predict
        self.metadata = metadata

    def __getattr__(self, attribute):
        return getattr(type(self), attribute)

    def predict(self, data, params=None):
        """The predictions for the data."""
        return self._predict(data) if params is None else self._predict(data, params)

    def unwrap_python_model(self):
        """The object that was saved."""
        return getattr(self._model_impl, "python_model", self._model_impl)


def load_model(model_uri, suppress_warnings=False, **_):
    """The model in a folder of mlflow's; models:/name/version is looked up in the store."""
    path = local_path(model_uri)
    flavors = read_flavors(path)
    flavor = flavors.get("python_function")
    if flavor is None:
        raise ValueError(f"{path} has no flavor python_function, only {', '.join(flavors)}")
    if isinstance(flavor.get("code"), str):
        sys.path.insert(0, os.path.join(path, flavor["code"]))
    loader = flavor["loader_module"]
    module = importlib.import_module(loader)
    load = getattr(module, "_load_pyfunc", None)
    if load is None or (hasattr(module, "__stands_in__") and not hasattr(load, "__code__")):
        raise NotAvailableError(
            f"{path} needs {loader} to be loaded, which is not available here. Install mlflow in "
            "the image.",
            name="mlflow",
        )
    data = flavor.get("data") or flavor.get("model_path")
    model = load(os.path.join(path, data) if data else path)
    predict = getattr(model, flavor.get("predict_fn") or "predict")
    return PyFuncModel(model, predict, ModelMetadata(read(path)))


load = load_model  # as published samples call it
