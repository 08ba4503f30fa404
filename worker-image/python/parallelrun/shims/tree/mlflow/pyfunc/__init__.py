"""Models behind one predict(), as mlflow.pyfunc.load_model() gives them."""

import importlib
import os
import sys

from parallelrun.shims.mlmodel import local_path, read_flavors
from parallelrun.shims.placeholder import NotAvailableError, Partial

from mlflow.pyfunc.model import PythonModel, PythonModelContext

__all__ = ["PyFuncModel", "PythonModel", "PythonModelContext", "load_model"]


class PyFuncModel(metaclass=Partial):
    """A loaded model."""

    def __init__(self, model, predict):
        self._model_impl = model
        self._predict = predict

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
    return PyFuncModel(model, getattr(model, flavor.get("predict_fn") or "predict"))
