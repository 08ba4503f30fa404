"""Stops in init(), run(), __str__ of a row and shutdown() until the test lets it go on."""

import sys

here, go = sys.argv[1:3]


def gate(name):
    with open(here, "w") as file:
        file.write(name)
    with open(go) as file:
        file.read()


class Row:
    def __str__(self):
        gate("row")
        return "row"


def init():
    gate("init")


def run(mini_batch):
    gate("run")
    return [Row() for _ in mini_batch]


def shutdown():
    gate("shutdown")
