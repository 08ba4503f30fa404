"""Where a run belongs: only its name is known."""

from parallelrun.shims.placeholder import Partial


class Experiment(metaclass=Partial):
    """The job's experiment."""

    def __init__(self, workspace, name, **_):
        self.workspace = workspace
        self.name = name
        self.id = name

    def __getattr__(self, attribute):
        return getattr(type(self), attribute)
