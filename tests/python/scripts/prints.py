"""Prints before it fails, so that the log can be found."""

import sys


def run(mini_batch):
    print("out of", mini_batch[0])
    if mini_batch[0].endswith("bad"):
        print("no line end", end="")
    sys.stderr.write("err of " + mini_batch[0] + "\n")
    if mini_batch[0].endswith("bad"):
        raise ValueError("bad file")
    return mini_batch
