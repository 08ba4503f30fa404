"""What the script logs with Run.log() and mlflow.log_*: to the agent, or to a file."""

import json
import math
import os
import threading
import time

from parallelrun.worker import channel, logs, process
from parallelrun.worker.failure import text_of

# Longer metrics go to the file, and what is too long even there is left out.
_MAX_FRAME = 4 << 10
_MAX_BYTES = 1 << 20


def log(name, value, step=None):
    """Records a metric. Any thread; never fails the script."""
    current = process.current
    try:
        data = _encode(name, value, step)
    except Exception as error:  # what has no end, no digits or no text, or code of the script
        _leave_out(name, f"it cannot be written: {text_of(error)}")
        return
    if len(data) > _MAX_BYTES:
        _leave_out(name, f"it has more than {_MAX_BYTES} bytes")
    elif (
        not current.takes_metrics
        or len(data) > _MAX_FRAME
        or os.getpid() != current.process_id  # a child that the script forked
    ):
        _append(current.metrics_log, data)
    elif threading.current_thread() is threading.main_thread():
        current.channel.send(channel.METRIC, data)
    else:
        # The connection is the main thread's.
        current.metrics.append(data)


def _encode(name, value, step):
    record = {"name": _text(name), "value": _plain(value), "time": round(time.time(), 3)}
    if step is not None:
        record["step"] = _plain(step)
    return json.dumps(record).encode()


def _leave_out(name, reason):
    known = repr(name) if type(name) is str else f"whose name is of type {type(name).__name__}"
    logs.say(f"the metric {known} is left out: {reason}")


def _append(path, data):
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "ab", buffering=0) as file:
            file.write(data + b"\n")
    except OSError as error:
        logs.say(f"cannot write {path}: {error}")


def _plain(value):
    """The value as JSON knows it; numpy's and others' by what they say they are."""
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, dict):
        return {_text(key): _plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if hasattr(value, "tolist"):
        plain = value.tolist()
        if type(plain) is not type(value):  # as of numpy.longdouble, for which Python has no type
            return _plain(plain)
    return _text(value)


def _text(value):
    return str(value).encode("utf-8", "backslashreplace").decode()
