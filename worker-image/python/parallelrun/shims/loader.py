"""Makes the modules of the stand-ins."""

import importlib
import os
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location

from parallelrun.shims.placeholder import placeholder


def spec_of(name, tree):
    """The spec of a stand-in, from its file in the tree if there is one."""
    base = os.path.join(tree, *name.split("."))
    for file in (os.path.join(base, "__init__.py"), base + ".py"):
        if os.path.isfile(file):
            spec = spec_from_file_location(name, file)
            # A package without a folder to search: Python's own finder would load what lies
            # there, and no placeholder would stand for the rest.
            spec.submodule_search_locations = []
            spec.loader = _TreeLoader(spec.loader)
            return spec
    return ModuleSpec(name, _EmptyLoader(), is_package=True)


class _EmptyLoader:
    """A module in which every name is a placeholder."""

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        _complete(module)


class _TreeLoader(_EmptyLoader):
    """A module from the tree; the names that it lacks are placeholders."""

    def __init__(self, loader):
        self._loader = loader

    def exec_module(self, module):
        _complete(module)
        self._loader.exec_module(module)


def _complete(module):
    def missing(attribute):
        if attribute.startswith("__"):
            raise AttributeError(f"module {module.__name__!r} has no attribute {attribute!r}")
        name = f"{module.__name__}.{attribute}"
        spec = spec_of(name, os.path.join(os.path.dirname(__file__), "tree"))
        if isinstance(spec.loader, _TreeLoader):
            return importlib.import_module(name)
        value = placeholder(name)
        setattr(module, attribute, value)
        return value

    module.__stands_in__ = True
    module.__getattr__ = missing
