"""Files that were logged, and models, by their addresses."""

from parallelrun.shims import artifacts as _artifacts
from parallelrun.shims import mlmodel as _mlmodel


def download_artifacts(artifact_uri=None, run_id=None, artifact_path=None, dst_path=None, **_):
    """Where a file or folder lies; its copy in the folder `dst_path` if that is given."""
    if artifact_uri is None:
        path = _artifacts.local_path(artifact_path or "")
    else:
        path = _mlmodel.local_path(artifact_uri)
    return path if dst_path is None else _artifacts.copy_into(path, dst_path)
