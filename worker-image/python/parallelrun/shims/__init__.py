"""Stand-ins for the cloud's packages that entry scripts import, used only where those are missing.

What is provided lies in `tree/`, each module at the path of its name. Every other name below these
packages can be imported, and is a placeholder that says so when it is called.
"""

import os
import sys

_TREE = os.path.join(os.path.dirname(__file__), "tree")
_PACKAGES = ("azureml", "mlflow", "mltable", "opencensus")


def install():
    """Puts the stand-ins in place, behind all that is installed."""
    sys.meta_path.append(_Finder)


class _Finder:
    """Asked last, so whatever the image or the user's code has comes first."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        package, _, rest = name.partition(".")
        if package not in _PACKAGES:
            return None
        parent = sys.modules.get(name.rpartition(".")[0])
        # A real package that lacks a submodule must say so itself; but `azureml` is shared by
        # many distributions, and some of them may be there without azureml-core.
        if rest and not hasattr(parent, "__stands_in__") and getattr(parent, "__file__", None):
            return None
        # importlib.util.find_spec() asks whether the package is installed. It is not.
        if sys._getframe(2).f_code.co_name == "find_spec":
            return None
        from parallelrun.shims.loader import spec_of

        return spec_of(name, _TREE)
