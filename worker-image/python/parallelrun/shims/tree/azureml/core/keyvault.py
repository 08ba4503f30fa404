"""Secrets: variables of the environment, as Kubernetes gives Secrets to a container."""

import os

from parallelrun.shims.placeholder import NotAvailableError, Partial


class Keyvault(metaclass=Partial):
    """Reads secrets by their name, or by the name as variables are written."""

    def get_secret(self, name, **_):
        """The secret `name`; `db-password` may be the variable DB_PASSWORD."""
        written = "".join(letter if letter.isalnum() else "_" for letter in name).upper()
        for variable in (name, written):
            if variable in os.environ:
                return os.environ[variable]
        raise NotAvailableError(
            f"the secret {name} is not available here: there is no key vault. Set the variable "
            f"{written} from a Secret, in spec.environment.",
            name="azureml",
        )

    def get_secrets(self, secrets, **_):
        """Several secrets by name."""
        return {name: self.get_secret(name) for name in secrets}
