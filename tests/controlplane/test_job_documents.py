"""Random jobs: what src/api takes, the API server takes, and both read the same.

JOB_DOCUMENTS=100000 JOB_DOCUMENTS_SEED=7 makes more, and others.
"""

import json
import os
import random
import subprocess

import pytest
from support.client import ApiError
from support.coordinator import BIN
from support.job_documents import as_sent, random_job

AT_ONCE = 1000
TRIES = 5


def read(documents):
    """What src/api makes of each: the canonical text of the job, or "refused: " and why."""
    lines = "".join(json.dumps(document) + "\n" for document in documents)
    done = subprocess.run(
        [BIN / "read_jobs"], input=lines, stdout=subprocess.PIPE, text=True, check=True, timeout=60
    )
    answers = done.stdout.split("\n")[:-1]
    assert len(answers) == len(documents)
    return answers


@pytest.fixture(scope="module")
def send(admin):
    """Sends a job that is not stored; returns the object without what the server has put into its
    metadata, or the server's refusal."""
    name = f"job-documents-{os.getpid()}"
    admin.create("Namespace", None, {"metadata": {"name": name}})
    path = admin.path("ParallelRunJob", name)

    def ask(job):
        query = {"dryRun": "All", "fieldValidation": "Strict"}
        for attempt in range(TRIES):
            try:
                made = admin.request("POST", path, as_sent(job), query=query)
                break
            except ApiError as refused:
                if refused.status in (400, 422):
                    return refused
                # It had no time, which says nothing of the job.
                if (refused.status < 500 and refused.status != 429) or attempt + 1 == TRIES:
                    raise
        kept = ("name", "labels", "annotations")
        made["metadata"] = {key: value for key, value in made["metadata"].items() if key in kept}
        return made

    yield ask
    admin.delete("Namespace", None, name)


def test_what_the_parser_takes_the_server_takes(send):
    seed = int(os.environ.get("JOB_DOCUMENTS_SEED", "1"))
    count = int(os.environ.get("JOB_DOCUMENTS", "500"))
    draw = random.Random(seed)
    taken = refused = both = 0
    for begin in range(0, count, AT_ONCE):
        jobs = [random_job(draw) for _ in range(min(AT_ONCE, count - begin))]
        answers = read(jobs)
        served = [send(job) for job in jobs]
        objects = [one if isinstance(one, dict) else {} for one in served]
        for job, ours, theirs, again in zip(jobs, answers, served, read(objects)):
            where = f"seed {seed}: {json.dumps(job)}"
            if ours.startswith("refused: "):
                refused += 1
                both += isinstance(theirs, ApiError)
                # What the server fills in does not make it good.
                assert again.startswith("refused: "), f"{where}\n{ours}"
                continue
            taken += 1
            assert not isinstance(theirs, ApiError), f"{where}\n{theirs}"
            assert again == ours, where
    print(
        f"{count} jobs, seed {seed}: {taken} taken by both, {both} refused by both, "
        f"{refused - both} by src/api alone"
    )
    assert taken > count / 20 and both > count / 20, (taken, refused, both)
