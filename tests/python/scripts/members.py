"""Uses every member of EntryScript."""

import os

from azureml_user.parallel_run import EntryScript


def init():
    EntryScript().logger.info("from init")
    EntryScript().logger.debug("not shown at INFO")


def run(mini_batch):
    script = EntryScript()
    script.logger.warning("from run")
    os.makedirs(script.log_dir, exist_ok=True)
    with open(os.path.join(script.log_dir, "own.txt"), "w") as file:
        file.write("own log")
    return [f"{script.agent_name} {script.log_dir} {script.output_dir} {script is EntryScript()}"]
