"""Dotted module with relative imports."""

from .common import NAME


def run(mini_batch):
    return [f"{__name__} {NAME}"]
