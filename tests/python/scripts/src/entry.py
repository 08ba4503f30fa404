"""Nested: siblings at the root import by name, neighbours do not."""

import helper

try:
    import neighbour
except ImportError:
    neighbour = None


def run(mini_batch):
    return [f"{__name__} {helper.NAME} {neighbour}"]
