"""What this process is: the start frame, as the other modules and `EntryScript` read it."""

import json
import os
import sys
from collections import deque

from parallelrun import RELEASE
from parallelrun.worker.channel import ProtocolError

# For children of the script; the arguments, which may be long, these get in another way.
_START = "PARALLELRUN_START"
_NOT_THEIRS = ("arguments", "metrics", "headers", "profiling")

# The one process that this interpreter is; None until the start frame came.
current = None


class Process:
    """The start frame. Paths are absolute: the script may change the working directory.

    root: the folder of the code. work: the folder that gets logs, in a job the same one.
    """

    def __init__(self, start, root, work=None):
        self.start = start
        self.root = root
        self.entry_script = start["entryScript"]
        self.arguments = start["arguments"]
        self.name = start["process"]
        self.node = str(start["node"])
        self.output_folder = start["outputFolder"]
        self.staging = start.get("staging", "")  # the folder of its side files, if they are staged
        # Its side files are sent to a store by the agent.
        self.sends_side_files = start.get("sendsSideFiles", False)
        self.output_folders = start.get("outputFolders", [])  # that are there before the script
        self.reserved_names = start.get("reservedNames", [])  # that the job itself uses there
        self.summary_only = start["outputAction"] == "SummaryOnly"
        self.output_format = start.get("outputFormat", "text")
        self.provenance = start.get("provenance", False)
        self.output_columns = start.get("outputColumns", [])
        self.nan_as_null = start.get("nanAsNull", False)
        self.short_return_fails = start.get("shortReturn", "Keep") == "Fail"
        self.logging_level = start["loggingLevel"]
        self.run_id = start.get("runId", "")
        self.model_folder = start.get("modelFolder", "")
        self.side_inputs = start.get("sideInputs", {})
        self.async_mode = start.get("asyncMode", False)
        self.dataframe_header = start.get("appendRowDataframeHeader", False)
        self.script_folder_first = start.get("scriptFolderFirst", False)
        self.component_mode = start.get("componentMode", False)
        self.takes_header = start.get("headers", False)
        self.takes_metrics = start.get("metrics", False)
        self.profiling = start.get("profiling", "")
        self.image = start.get("image", "")
        self.stack_signal = start.get("stackSignal", 0)
        self.module = start.get("module")  # of a child: name and path of the script's module
        logs = os.path.join(work or root, "logs")
        user_logs = os.path.join(logs, "user")
        self.profile = os.path.join(logs, "sys", "node", self.node, self.name + ".profile")
        self.metrics_log = os.path.join(user_logs, f"metrics.{self.name}.jsonl")
        self.skipped_rows_log = os.path.join(logs, f"skipped_rows.{self.name}.txt")
        self.process_id = os.getpid()
        self.output_mark = None  # of output_range, before the script is imported
        # Metrics that threads of the script logged, for the main thread to send.
        self.metrics = deque()
        self.entry_script_log_folder = os.path.join(user_logs, "entry_script_log", self.node)
        self.error_log = os.path.join(user_logs, "error", self.node, self.name + ".txt")


def begin(body, work=None):
    """Reads the start frame and makes it `current`; `work` is as Process has it."""
    global current
    try:
        start = json.loads(bytes(body))
        if start["release"] != RELEASE:
            raise ProtocolError(
                f"the agent is release {start['release']} and this package is release {RELEASE}; "
                "both must come from the same worker image"
            )
        current = Process(start, os.getcwd(), work)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ProtocolError(f"the start frame cannot be read: {error!r}") from error
    return current


def set_environment(process):
    """The variables that scripts read, at import already, and that the agent does not know."""
    if process.run_id:
        os.environ["AZUREML_RUN_ID"] = process.run_id
        os.environ["AZUREML_ROOT_RUN_ID"] = process.run_id  # there is no pipeline around the job
    if process.model_folder:
        os.environ["AZUREML_MODEL_DIR"] = process.model_folder


def prepare_children(process):
    """Lets children that the script starts by spawn or forkserver begin with child.py.

    They run the file that the main module is said to be.
    """
    main = sys.modules["__main__"]
    main.__spec__ = None
    main.__file__ = os.path.join(os.path.dirname(os.path.abspath(__file__)), "child.py")
    _tell_children(process, None)


def tell_children_of_script(process, name, path):
    """Its module has this name, by which they get its functions."""
    _tell_children(process, [name, path])


def _tell_children(process, module):
    start = {key: value for key, value in process.start.items() if key not in _NOT_THEIRS}
    start.update(root=process.root, arguments=[], module=module)
    os.environ[_START] = json.dumps(start)


def begin_child():
    """Makes such a child part of its parent's process; it has no connection to the agent."""
    global current
    start = os.environ.get(_START)
    if start is not None:  # the script may have cleared its environment
        start = json.loads(start)
        current = Process(start, start["root"])
    return current
