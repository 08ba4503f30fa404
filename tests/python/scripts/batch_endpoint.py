"""As batch deployments do: the model is what lies below AZUREML_MODEL_DIR."""

import glob
import os


def init():
    global model
    model = os.path.basename(glob.glob(os.environ["AZUREML_MODEL_DIR"] + "/*/")[0].rstrip("/"))


def run(mini_batch):
    return [[path, model] for path in mini_batch]
