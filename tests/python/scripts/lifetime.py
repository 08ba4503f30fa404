"""Keeps state over its life: init() once, run() often, shutdown() once."""

calls = []


def init():
    calls.append("init")


def run(mini_batch):
    calls.append("run")
    return [" ".join(calls)]


def shutdown():
    calls.append("shutdown")
    print(" ".join(calls))
