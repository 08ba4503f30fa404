"""Fails where its first argument says, with the expression in its second."""

import sys

where, what = sys.argv[1:3]


def fail(here):
    if where == here:
        raise eval(what)


fail("import")


def init():
    fail("init")


def run(mini_batch):
    if mini_batch[0].endswith("good"):
        return mini_batch
    fail("run")
    return mini_batch


def shutdown():
    fail("shutdown")
