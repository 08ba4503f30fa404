"""As training scripts of many models do: uploads, registers and logs one model per file."""

import argparse
import os
import pickle

import mlflow
from azureml.core import Run, Workspace
from azureml.core.authentication import MsiAuthentication
from azureml.core.model import Model

parser = argparse.ArgumentParser()
parser.add_argument("--kind", required=True)
args, _ = parser.parse_known_args()
run_context = None


def init():
    global run_context
    run_context = Run.get_context()
    run_context.add_properties({"kind": args.kind})
    Workspace("subscription", "group", "name", auth=MsiAuthentication())
    mlflow.set_tracking_uri("azureml://nowhere")


def run(input_data):
    os.makedirs("./outputs", exist_ok=True)
    result = []
    for path in input_data:
        name = args.kind + "_" + os.path.splitext(os.path.basename(path))[0]
        child = run_context.child_run(name=name)
        with open(os.path.join("./outputs", name), "wb") as file:
            pickle.dump({"of": os.path.basename(path)}, file)
        child.upload_file(name, os.path.join("./outputs", name))
        tags = {"kind": args.kind, "rows": 3}
        model = child.register_model(model_path=name, model_name=name, tags=tags)
        Model.register(run_context.experiment.workspace, os.path.join("outputs", name), name)
        mlflow.log_text(name, "notes/" + name + ".txt")
        mlflow.sklearn.log_model(sk_model=[1], artifact_path="last", registered_model_name="m")
        child.complete()
        result.append([model.name, model.version, child.get_status(), run_context.parent.id])
    return result
