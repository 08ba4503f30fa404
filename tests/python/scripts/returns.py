"""Returns the value of the expression in its second argument."""

import sys


class Loud:
    def __str__(self):
        raise ValueError("no text for you")


class Named(str):
    def __str__(self):
        return "by its __str__"


async def promise():
    return []


def run(mini_batch):
    names = {"mini_batch": mini_batch, "Loud": Loud, "Named": Named, "promise": promise}
    for name in ("pandas", "numpy", "pyarrow"):
        if name in sys.argv[1]:
            names[name] = __import__(name)
    return eval(sys.argv[1], names)
