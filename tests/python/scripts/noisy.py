"""Prints, logs, and replaces what it does not own."""

import io
import logging
import sys

logging.info("at import")


def init():
    print("print in init, no ASCII: \u00e9 \ud800")
    logging.debug("not shown at INFO")
    sys.stderr.write("to stderr\n")


def run(mini_batch):
    logging.warning("in run")
    sys.stdout = io.StringIO()
    sys.stderr = None
    print("swallowed")
    return mini_batch
