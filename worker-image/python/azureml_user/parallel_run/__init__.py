"""`from azureml_user.parallel_run import EntryScript`, as entry scripts write it."""

import os

from parallelrun.worker import process


class EntryScript:
    """What a script can ask about the process that it runs in. There is one instance."""

    _instance = None
    _logger = None

    def __new__(cls):
        if cls._instance is None:
            if process.current is None:
                raise RuntimeError("EntryScript() works only inside a worker process of a job")
            cls._instance = super().__new__(cls)
        return cls._instance

    @property
    def agent_name(self):
        """The name of this process, processNNN."""
        return process.current.name

    @property
    def output_dir(self):
        """The output folder of the job."""
        return process.current.output_folder

    @property
    def log_dir(self):
        """The folder for logs of the script's own, absolute; create it before use."""
        return process.current.entry_script_log_folder

    @property
    def logger(self):
        """A logger that writes to <log_dir>/<agent_name>.log.txt."""
        if self._logger is None:
            self._logger = _make_logger(self.log_dir, self.agent_name)
        return self._logger


def _make_logger(folder, name):
    import logging

    from parallelrun.worker import logs

    os.makedirs(folder, exist_ok=True)
    handler = logging.FileHandler(
        os.path.join(folder, name + ".log.txt"), encoding="utf-8", delay=True
    )
    handler.setFormatter(logs.formatter())
    logger = logging.getLogger("azureml_user.parallel_run.entry_script")
    logger.addHandler(handler)
    logger.setLevel(process.current.logging_level)
    logger.propagate = False
    return logger
