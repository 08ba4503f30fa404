"""Saves and loads a model the way mlflow does; the arguments are a task and a folder."""

import sys

import mlflow.pyfunc
import mlflow.sklearn

task, folder = sys.argv[1:3]


class Doubler:
    def predict(self, data):
        return [2 * value for value in data]


def run(mini_batch):
    if task == "save":
        mlflow.sklearn.save_model(Doubler(), folder)
    loaded = {"sklearn": mlflow.sklearn.load_model, "pyfunc": mlflow.pyfunc.load_model}
    model = loaded.get(task, mlflow.sklearn.load_model)(folder)
    return [str(model.predict([1, 2, 3]))]
