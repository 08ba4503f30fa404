"""Who the script is: nobody asks here, so that any of these will do."""

from parallelrun.shims.placeholder import Partial


class AbstractAuthentication(metaclass=Partial):
    """Takes what the original takes, and keeps nothing of it."""

    def __init__(self, *_, **__):
        pass


class AzureCliAuthentication(AbstractAuthentication):
    """The user of the command line."""


class InteractiveLoginAuthentication(AbstractAuthentication):
    """A user who logs in."""


class MsiAuthentication(AbstractAuthentication):
    """A managed identity."""


class ServicePrincipalAuthentication(AbstractAuthentication):
    """A service principal."""
