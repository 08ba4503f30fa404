"""Models in the store that is the side input named model."""

import glob
import json
import os
import re

from parallelrun.shims import artifacts
from parallelrun.shims.placeholder import Partial

_INDEX = "models.json"
_VERSION_FILE = re.compile(r"\d+\.json")  # beside the folder of the version, as register writes it


class ModelNotFoundError(Exception):
    """The store has no such model."""


class Model(metaclass=Partial):
    """A model of the store; `path` is where it lies."""

    def __init__(self, workspace, name=None, id=None, tags=None, version=None, **_):  # noqa: A002
        if name is None and id is not None:
            name, _, found = id.partition(":")
            version = version or found or None
        if _index_files():
            found = Model.list(workspace, name=name, tags=tags, latest=version is None)
            entries = [m for m in found if version is None or m.version == int(version)]
            if entries:
                self.__dict__.update(entries[0].__dict__)
                return
        if name is None:
            raise ModelNotFoundError(f"{_store()} has no model with the tags {tags}")
        path, found = _find(name, version)
        self._describe(name, found, path, {}, {})

    def _describe(self, name, version, path, tags, properties):
        self.name = name
        self.version = version
        self.id = f"{name}:{version}"
        self.path = path
        self.tags = tags
        self.properties = properties
        self.description = ""

    def __getattr__(self, attribute):
        return getattr(type(self), attribute)

    def __repr__(self):
        return f"Model(name={self.name}, version={self.version}, path={self.path})"

    @staticmethod
    def get_model_path(model_name, version=None, _workspace=None):
        """The file or folder of a model, of its highest version if none is given."""
        return _find(model_name, version)[0]

    @staticmethod
    def list(workspace=None, name=None, tags=None, properties=None, run_id=None, latest=False, **_):
        """The models of models.json that have all these tags and properties."""
        # Without an index a model is known by its name only.
        known = _index() if name is None or _index_files() else _versions(name)
        found = [
            model
            for model in known
            if (name is None or model.name == name)
            and _has_all(model.tags, tags)
            and _has_all(model.properties, properties)
        ]
        if latest:
            highest = {}
            for model in found:
                if model.name not in highest or model.version > highest[model.name].version:
                    highest[model.name] = model
            found = list(highest.values())
        return found

    @staticmethod
    def register(workspace=None, model_path=None, model_name=None, tags=None, properties=None, **_):
        """Puts a file or folder into models/ of the output folder, as the next version."""
        return registered(artifacts.register(model_name, model_path, tags, properties))

    def download(self, target_dir=".", exist_ok=False, exists_ok=None):
        """Copies the model into a folder and returns the copy's path.

        A copy that is there is replaced: all processes of a node download into one folder.
        """
        return artifacts.copy_into(self.path, target_dir)


def registered(entry):
    """The model of an entry that this job registered."""
    return _from_entry(entry, artifacts.store())


def _store():
    store = os.environ.get("AZUREML_MODEL_DIR")
    if not store:
        raise ModelNotFoundError(
            "There is no model store: AZUREML_MODEL_DIR is not set. Add a side input named model."
        )
    return store


def _find(name, version):
    """Path and version of a model in the store."""
    path = os.path.join(_store(), name)
    if os.path.isfile(path):
        return path, 1 if version is None else int(version)
    if not os.path.isdir(path):
        return _find_in_index(name, version)
    versions = sorted(int(entry) for entry in os.listdir(path) if entry.isdigit())
    if not versions:
        return path, 1 if version is None else int(version)
    wanted = versions[-1] if version is None else int(version)
    if wanted not in versions:
        raise ModelNotFoundError(f"{path} has no version {version}, only {versions}")
    path = next(
        os.path.join(path, entry)
        for entry in sorted(os.listdir(path))
        if entry.isdigit() and int(entry) == wanted
    )
    content = [entry for entry in os.listdir(path) if not entry.startswith(".")]
    if len(content) == 1 and os.path.isfile(os.path.join(path, content[0])):
        path = os.path.join(path, content[0])
    return path, wanted


def _versions(name):
    """The models of this name in a store without an index."""
    path = os.path.join(_store(), name)
    entries = os.listdir(path) if os.path.isdir(path) else []
    versions = sorted(int(entry) for entry in entries if entry.isdigit())
    return [Model(None, name, version=version) for version in versions or [None]]


def _find_in_index(name, version):
    found = []
    if _index_files():
        found = [m for m in _index() if m.name == name and version in (None, m.version)]
    if not found:
        have = ", ".join(sorted(os.listdir(_store()))[:10]) or "nothing"
        of = "" if version is None else f" of version {version}"
        raise ModelNotFoundError(f"{_store()} has no model {name}{of}; it holds {have}")
    best = max(found, key=lambda model: model.version)
    return best.path, best.version


def _index_files():
    path = os.path.join(_store(), _INDEX)
    registered_files = sorted(glob.glob(os.path.join(glob.escape(_store()), "*", "*.json")))
    return [path] * os.path.isfile(path) + [
        file for file in registered_files if _VERSION_FILE.fullmatch(os.path.basename(file))
    ]


def _index():
    """The models of models.json and of those that a job registered."""
    files = _index_files()
    if not files:
        raise ModelNotFoundError(
            f"{os.path.join(_store(), _INDEX)} is missing. It lists the models of the store: "
            '[{"name": "m", "version": 1, "path": "m/1", "tags": {}, "properties": {}}]'
        )
    models = []
    for path in files:
        try:
            with open(path, encoding="utf-8") as file:
                content = json.load(file)
            entries = content if isinstance(content, list) else [content]
            models += [_from_entry(entry, _store()) for entry in entries]
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ModelNotFoundError(f"{path} cannot be read: {error!r}") from error
    return models


def _from_entry(entry, store):
    model = Model.__new__(Model)
    path = os.path.join(store, entry["path"])
    tags = dict(_pairs(entry.get("tags")))
    properties = dict(_pairs(entry.get("properties")))
    model._describe(entry["name"], int(entry.get("version", 1)), path, tags, properties)
    return model


def _pairs(tags):
    """(key, value) of tags, which may be names, pairs or a dict; a name alone has None."""
    if isinstance(tags, dict):
        return list(tags.items())
    return [(tag, None) if isinstance(tag, str) else tuple(tag) for tag in tags or ()]


def _has_all(have, wanted):
    if isinstance(wanted, str):
        wanted = [wanted]
    return all(
        key in have and (value is None or str(have[key]) == str(value))
        for key, value in _pairs(wanted)
    )
