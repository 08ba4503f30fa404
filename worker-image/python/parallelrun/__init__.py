"""ParallelRun's Python side: what runs inside a worker process, and `parallelrun.run`, `submit`.

These two and what belongs to them are imported when they are asked for: worker processes never do.
"""

# The release of the agent that this package came with; docs/worker-protocol.md.
RELEASE = "0.1.0"

TYPE_CHECKING = False  # as type checkers know it, without the time that typing takes
if TYPE_CHECKING:
    from parallelrun.cluster_job import submit
    from parallelrun.job import CannotStart, Counts, Failure, Job, JobError, Result, run

__all__ = [
    "RELEASE",
    "CannotStart",
    "Counts",
    "Failure",
    "Job",
    "JobError",
    "Result",
    "run",
    "submit",
]


def __getattr__(name):
    if name == "RELEASE" or name not in __all__:
        raise AttributeError(f"module 'parallelrun' has no attribute {name!r}")
    from parallelrun import cluster_job, job

    return getattr(cluster_job if name == "submit" else job, name)
