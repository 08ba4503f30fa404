"""The file MLmodel of a model folder, and where model URIs point."""

import os

_FILE = "MLmodel"


def local_path(uri):
    """The folder that a model URI names."""
    uri = os.fspath(uri)
    if uri.startswith("models:/"):
        from azureml.core.model import Model

        name, _, version = uri[len("models:/") :].strip("/").partition("/")
        return Model.get_model_path(name, int(version) if version.isdigit() else None)
    if uri.startswith("file:"):
        from urllib.parse import unquote, urlsplit

        return unquote(urlsplit(uri).path)
    if uri.startswith("runs:/"):
        from parallelrun.shims import artifacts

        logged = artifacts.local_path(uri[len("runs:/") :].partition("/")[2])
        if os.path.exists(logged):
            return logged
    if "://" in uri or uri.startswith("runs:/"):
        from parallelrun.shims.placeholder import NotAvailableError

        raise NotAvailableError(
            f"the model {uri} is not available here: give a folder, or models:/name/version of the "
            "side input named model; or install mlflow in the image.",
            name="mlflow",
        )
    return uri


def read_flavors(folder):
    """The flavors of MLmodel: for each its settings."""
    content = read(folder)
    flavors = content.get("flavors") if isinstance(content, dict) else None
    if not isinstance(flavors, dict):
        raise ValueError(f"{os.path.join(folder, _FILE)} names no flavors")
    return flavors


def read(folder):
    """All that MLmodel says."""
    path = os.path.join(folder, _FILE)
    with open(path, encoding="utf-8") as file:
        try:
            import yaml
        except ImportError:
            return _parse(file)
        return yaml.safe_load(file)


def write_flavors(folder, flavors):
    """Writes MLmodel; the values are plain texts."""
    lines = ["flavors:"]
    for flavor, settings in flavors.items():
        lines.append(f"  {flavor}:")
        lines += [f"    {key}: {value}" for key, value in settings.items()]
    with open(os.path.join(folder, _FILE), "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


def _parse(lines):
    """Maps of texts and maps, which is all of YAML that flavors are written in."""
    root = {}
    open_maps = [(-1, root)]
    for line in lines:
        key, colon, value = line.strip().partition(":")
        depth = len(line) - len(line.lstrip())
        if not colon or key.startswith(("#", "-")):
            continue  # lists stand only in parts that nobody asks for
        while open_maps[-1][0] >= depth:
            open_maps.pop()
        value = value.strip()
        while value.startswith("'") and (len(value) == 1 or not value.endswith("'")):
            value += " " + next(lines).strip()  # a long text goes on in the next lines
        if value in ("", "null", "~", "{}"):
            inner = {} if value == "" else None
            open_maps[-1][1][_unquoted(key)] = inner
            if inner is not None:
                open_maps.append((depth, inner))
        else:
            open_maps[-1][1][_unquoted(key)] = _unquoted(value)
    return root


def _unquoted(text):
    quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
    return text[1:-1] if quoted else text
