"""Logs metrics in every way there is, on the main thread and on another."""

import threading

import mlflow
from azureml.core.run import Run

run_context = Run.get_context()


def run(mini_batch):
    run_context.log("files", len(mini_batch), step=1)
    run_context.log_list("sizes", [1, 2.5, float("inf")])
    run_context.log_row("row", a=1, b="x")
    run_context.log_table("table", {"y": [1, 2]})
    run_context.parent.tag("stage", "test")
    with run_context.child_run("child") as child:
        child.log("in child", True)
    mlflow.autolog()
    with mlflow.start_run():
        mlflow.log_metric("loss", 0.5, step=3)
        mlflow.log_metrics({"one": 1, "two": 2})
    mlflow.log_param("p", "v")
    mlflow.log_params({"q": 3})
    mlflow.set_tag("t", "u")
    mlflow.set_tags({"w": "\ud800"})
    thread = threading.Thread(target=run_context.log, args=("thread", 4))
    thread.start()
    thread.join()
    workspace = run_context.experiment.workspace
    return [f"{run_context.id} {run_context.experiment.name} {workspace!r}"] * len(mini_batch)
