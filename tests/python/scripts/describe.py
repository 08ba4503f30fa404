"""Says what it was called with; one line of JSON per call."""

import argparse
import json
import sys
import threading

parser = argparse.ArgumentParser(allow_abbrev=False)
parser.add_argument("--model", default="")
parser.add_argument("--names", nargs="*", default=[])
known, unknown = parser.parse_known_args()

imports = 0
imports += 1

if __name__ == "__main__":
    raise AssertionError("an entry script is imported, not run")


def run(mini_batch):
    return [
        json.dumps(
            {
                "paths": list(mini_batch),
                "repr": repr(mini_batch),
                "task_id": mini_batch.task_id,
                "argv": sys.argv,
                "model": known.model,
                "names": known.names,
                "unknown": unknown,
                "file": __file__,
                "path0": sys.path[0],
                "main_thread": threading.current_thread() is threading.main_thread(),
                "imports": imports,
            }
        )
    ] * len(mini_batch)
