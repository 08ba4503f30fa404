"""As image scripts do: a model found at init(), one line per file, its siblings beside it."""

import os

from azureml.core import Model

model = None


def init():
    global model
    with open(Model.get_model_path("digits"), encoding="utf-8") as file:
        model = file.read().strip()


def run(mini_batch):
    print(f"run method start: {__file__}, run({mini_batch})")
    folder = os.path.realpath(os.path.join(__file__, ".."))
    assert os.path.isfile(os.path.join(folder, "digits.py"))
    return [f"{os.path.basename(image)}: {model}" for image in mini_batch]
