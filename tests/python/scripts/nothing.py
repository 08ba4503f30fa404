"""The empty run(), to measure what a mini-batch costs."""


def run(mini_batch):
    return mini_batch
