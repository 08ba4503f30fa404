"""Names that can be imported, passed around and subclassed, but not called."""

_NOT_HERE = (
    "{name}() is not available here: this is not Azure ML, and the image has no {package}. {mend}"
)
_MENDS = {
    "azureml": (
        "Give data as an input, models as the side input named model, and settings as arguments; "
        "or install the package in the image."
    ),
    "mlflow": (
        "Logging metrics and loading scikit-learn and Python models work; for more, install the "
        "package in the image."
    ),
    "mltable": (
        "Name the files in spec.inputs, where tabular files become DataFrames; or install the "
        "package in the image."
    ),
    "opencensus": (
        "For traces and logs set OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_SERVICE_NAME and "
        "OTEL_RESOURCE_ATTRIBUTES, and use opentelemetry in the script; or install the package in "
        "the image."
    ),
}


class NotAvailableError(ImportError):
    """Something of a package that is not installed was called."""


# Parts of `azureml` with a distribution of their own; the rest is azureml-core's.
_AZUREML_PARTS = {
    "ai": "azureml-ai-monitoring",
    "automl": "azureml-train-automl",
    "dataprep": "azureml-dataprep",
    "fsspec": "azureml-fsspec",
    "interpret": "azureml-interpret",
    "metrics": "azureml-metrics",
    "opendatasets": "azureml-opendatasets",
    "rag": "azureml-rag",
    "train": "azureml-train-automl",
}


def _distribution(name):
    return _AZUREML_PARTS.get(name.split(".")[1] if "." in name else "", "azureml-core")


def not_available(name):
    """The error for calling `name`."""
    package = name.partition(".")[0]
    installed = _distribution(name) if package == "azureml" else package
    return NotAvailableError(
        _NOT_HERE.format(name=name, package=installed, mend=_MENDS[package]), name=package
    )


def placeholder(name):
    """A class that stands for `name`, whatever that is in the real package."""
    short = name.rpartition(".")[2]
    if short.endswith(("Error", "Exception")):
        # It must be fit for an except clause, which then never matches.
        return type(short, (Exception,), {"__module__": name.rpartition(".")[0]})
    if short == "autolog":
        return _nothing
    return _Placeholder(short, (), {"_stands_for": name})


def _nothing(*_, **__):
    """mlflow.<library>.autolog() is about training."""


class Partial(type):
    """The metaclass of classes of which a part is provided."""

    def __getattr__(cls, attribute):
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        return placeholder(f"{cls.__module__}.{cls.__qualname__}.{attribute}")


class _Placeholder(type):
    """The script's own subclasses inherit the name that they stand for."""

    def __call__(cls, *arguments, **named):
        raise not_available(cls._stands_for)

    def __getattr__(cls, attribute):
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        return placeholder(f"{cls._stands_for}.{attribute}")

    def __repr__(cls):
        return f"<{cls._stands_for}, which is not available here>"
