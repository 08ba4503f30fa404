"""Data sets by name: the side inputs of the job."""

import os
import shutil

from parallelrun.shims import artifacts
from parallelrun.shims.placeholder import NotAvailableError, Partial
from parallelrun.worker import process


class Dataset(metaclass=Partial):
    """The files of a side input, in place."""

    def __init__(self, name, path):
        self.name = name
        self._path = path

    def __getattr__(self, attribute):
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        return getattr(type(self), attribute)

    def __repr__(self):
        return f"Dataset(name={self.name}, path={self._path})"

    def __fspath__(self):
        return self._path

    @staticmethod
    def get_by_name(workspace, name, version="latest", **_):
        """The side input of that name."""
        found = process.current.side_inputs.get(name)
        if found is None:
            have = ", ".join(sorted(process.current.side_inputs)) or "none"
            raise NotAvailableError(
                f"the data set {name} is not available here: make it a side input of that name. "
                f"Side inputs are: {have}.",
                name="azureml",
            )
        return Dataset(name, found)

    def as_named_input(self, name):
        """The same data set."""
        return self

    def as_mount(self, path_on_compute=None):
        """The same data set: its files are read in place."""
        return self

    as_download = as_mount

    def mount(self, mount_point=None, **_):
        """A context whose mount_point is the folder of the files."""
        return _Mounted(self._path)

    def to_path(self):
        """The files, relative to the folder as the original writes them."""
        return ["/" + os.path.relpath(file, self._path) for file in self._files()]

    def download(self, target_path=None, overwrite=False, ignore_not_found=False):
        """Copies the files into a folder; returns their paths."""
        target = os.fspath(target_path or ".")
        if not os.path.isdir(self._path):
            os.makedirs(target, exist_ok=True)
            artifacts.replace(self._path, os.path.join(target, os.path.basename(self._path)))
            return [os.path.join(target, os.path.basename(self._path))]
        shutil.copytree(self._path, target, copy_function=artifacts.replace, dirs_exist_ok=True)
        return [os.path.join(target, os.path.relpath(file, self._path)) for file in self._files()]

    def to_pandas_dataframe(self, **_):
        """The rows of all files, in the order of their names."""
        import pandas

        return pandas.concat([_read(pandas, file) for file in self._files()], ignore_index=True)

    def _files(self):
        if not os.path.isdir(self._path):
            return [self._path]
        return sorted(
            os.path.join(folder, name)
            for folder, _, names in os.walk(self._path)
            for name in names
            if not name.startswith(".")
        )


class _Mounted:
    def __init__(self, path):
        self.mount_point = path

    def start(self):
        """Nothing: the folder is there."""

    stop = start

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False


def _read(pandas, file):
    if file.endswith(".parquet"):
        return pandas.read_parquet(file)
    if file.endswith((".jsonl", ".ndjson")):
        return pandas.read_json(file, lines=True)
    return pandas.read_csv(file, sep="\t" if file.endswith(".tsv") else ",")
