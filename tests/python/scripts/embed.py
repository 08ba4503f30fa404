"""Writes one file per mini-batch, named by its id; the first one writes what all share."""

import os

from azureml_user.parallel_run import EntryScript


def run(mini_batch):
    folder = EntryScript().output_dir
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, f"part_{mini_batch.task_id}"), "w", encoding="utf-8") as file:
        file.write("\n".join(filter(None, mini_batch)))
    if str(mini_batch.task_id) == "0":
        with open(os.path.join(folder, "metadata"), "w", encoding="utf-8") as file:
            file.write("/".join(mini_batch[0].split("/")[0:-1]))
    return mini_batch
