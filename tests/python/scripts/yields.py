"""Yields instead of returning a list."""


def run(mini_batch):
    for _ in mini_batch:
        yield True
