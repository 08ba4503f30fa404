"""scikit-learn models, as files that mlflow itself can read too."""

import os
import pickle
import sys
import tempfile

from parallelrun.shims import artifacts
from parallelrun.shims.mlmodel import local_path, read_flavors, write_flavors


def autolog(*_, **__):
    """Nothing: it is about training."""


def load_model(model_uri, dst_path=None, **_):
    """The model in a folder of mlflow's; models:/name/version is looked up in the store."""
    path = local_path(model_uri)
    flavors = read_flavors(path)
    flavor = flavors.get("sklearn")
    if flavor is None:
        raise ValueError(f"{path} has no flavor sklearn, only {', '.join(flavors)}")
    return load_file(os.path.join(path, flavor["pickled_model"]))


def load_file(path):
    """What a pickle of joblib, cloudpickle or Python's own holds."""
    try:
        import joblib
    except ImportError:
        with open(path, "rb") as file:
            return pickle.load(file)  # noqa: S301 - the user's own model
    return joblib.load(path)


def _load_pyfunc(path):
    return load_file(path)


def save_model(sk_model, path, **_):
    """Writes the model into a new folder."""
    if os.path.isdir(path) and os.listdir(path):
        raise FileExistsError(f"{path} is there already, and is not empty")
    os.makedirs(path, exist_ok=True)
    try:
        import cloudpickle as pickler
    except ImportError:
        pickler = pickle
    with open(os.path.join(path, "model.pkl"), "wb") as file:
        pickler.dump(sk_model, file)
    common = {"pickled_model": "model.pkl", "serialization_format": pickler.__name__}
    write_flavors(
        path,
        {
            "python_function": {
                "loader_module": "mlflow.sklearn",
                "model_path": "model.pkl",
                "predict_fn": "predict",
                "python_version": ".".join(map(str, sys.version_info[:3])),
            },
            "sklearn": common,
        },
    )


def log_model(sk_model, artifact_path=None, registered_model_name=None, name=None, **_):
    """Puts the model into the output folder, and into models/ there if it is registered."""
    with tempfile.TemporaryDirectory() as folder:
        save_model(sk_model, folder)
        artifacts.upload(folder, artifact_path or name or "model")
        if registered_model_name is not None:
            artifacts.register(registered_model_name, folder)
