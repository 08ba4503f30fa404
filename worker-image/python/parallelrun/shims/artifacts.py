"""What scripts upload and register: files in the output folder of the job."""

import json
import os
import shutil
from contextlib import contextmanager, suppress

from parallelrun.worker import process

# Models that a job registers: a store, as the side input named model of a later job.
_MODELS = "models"


def local_path(name):
    """Where an artifact of this name lies. `./outputs` is the output folder itself."""
    name = os.path.normpath(os.fspath(name)).lstrip(os.sep)
    parts = [part for part in name.split(os.sep) if part not in (".", "..")]
    if parts[:1] == ["outputs"]:
        del parts[0]
    return os.path.join(process.current.output_folder, *parts)


def upload(source, name):
    """Copies a file or a folder to the artifact `name`; returns its path."""
    target = local_path(name)
    if os.path.exists(target) and os.path.samefile(source, target):
        return target
    if os.path.isdir(source):
        shutil.copytree(source, target, copy_function=replace, dirs_exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        replace(source, target)
    return target


def write(name, content):
    """Writes a text or bytes to the artifact `name`."""
    target = local_path(name)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    data = content if isinstance(content, bytes) else content.encode("utf-8", "backslashreplace")
    with _partial(target) as partial, open(partial, "wb") as file:
        file.write(data)


def replace(source, target):
    """Copies a file; who reads the one that is there is not disturbed."""
    with _partial(target) as partial:
        shutil.copyfile(source, partial)


@contextmanager
def _partial(target):
    """A path beside the target, which what was written there replaces."""
    # Process ids are no names: each pod counts its own, and they share the output folder.
    partial = f"{target}.{os.urandom(8).hex()}"
    try:
        yield partial
        os.replace(partial, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(partial)
        raise


def copy_into(source, folder):
    """Copies a file or folder into a folder, over what is there; returns the copy's path."""
    target = os.path.join(folder, os.path.basename(os.path.normpath(source)))
    os.makedirs(folder, exist_ok=True)
    if os.path.isdir(source):
        shutil.copytree(source, target, copy_function=replace, dirs_exist_ok=True)
    else:
        replace(source, target)
    return target


def register(name, source, tags=None, properties=None):
    """Puts a model into the store of this job as its next version; returns its entry."""
    relative = os.path.join(name, "")
    folder = local_path(os.path.join(_MODELS, name))
    version = _next_version(folder)
    if os.path.isdir(source):
        relative += str(version)
        upload(source, os.path.join(_MODELS, relative))
    else:
        relative += os.path.join(str(version), os.path.basename(os.path.normpath(source)))
        upload(source, os.path.join(_MODELS, relative))
    entry = {
        "name": name,
        "version": version,
        "path": relative,
        "tags": {key: str(value) for key, value in dict(tags or {}).items()},
        "properties": {key: str(value) for key, value in dict(properties or {}).items()},
    }
    write(os.path.join(_MODELS, name, f"{version}.json"), json.dumps(entry))
    return entry


def store():
    """The folder of the models that this job registered."""
    return local_path(_MODELS)


def _next_version(folder):
    """Makes the folder of the next version: mkdir() says who of several processes has it."""
    os.makedirs(folder, exist_ok=True)
    version = max((int(entry) for entry in os.listdir(folder) if entry.isdigit()), default=0)
    while True:
        version += 1
        try:
            os.mkdir(os.path.join(folder, str(version)))
        except FileExistsError:
            continue
        return version
