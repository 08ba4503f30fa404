"""What Argo CD, Flux and kstatus make of a job, by the libraries they use (tests/deploy/gitops)."""

import functools
import json
import subprocess
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
HEALTH = ROOT / "deploy/gitops/argocd/parallelrun.dev/ParallelRunJob/health.lua"
FLUX = ROOT / "deploy/gitops/flux/kustomization.yaml"


@functools.lru_cache(maxsize=None)
def _judge():
    tools = ROOT / "tests/deploy/tools"
    folder = subprocess.check_output([tools, "gitops"], text=True, timeout=1800)
    return f"{folder.strip()}/gitops"


def ask(questions):
    """For each question of tests/deploy/gitops its value, or the text of its error."""
    done = subprocess.run(
        [_judge()], input=json.dumps(questions), capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return [answer.get("value", answer.get("error")) for answer in json.loads(done.stdout)]


def argo(jobs):
    """The health of each job: its status and message."""
    script = HEALTH.read_text()
    return ask([{"lua": script, "object": job} for job in jobs])


def kstatus(jobs):
    return [answer["status"] for answer in ask([{"kstatus": True, "object": job} for job in jobs])]


def flux(jobs):
    """Error: Flux cannot tell, and goes on waiting."""
    (expressions,) = yaml.safe_load(FLUX.read_text())["spec"]["healthCheckExprs"]
    names = {"inProgress": "InProgress", "failed": "Failed", "current": "Current"}
    questions = [{"cel": expressions[name], "object": job} for job in jobs for name in names]
    answers = ask(questions)
    verdicts = []
    for number, job in enumerate(jobs):
        generation = job["metadata"]["generation"]
        if job.get("status", {}).get("observedGeneration", generation) != generation:
            verdicts.append("InProgress")
            continue
        three = answers[3 * number : 3 * number + 3]
        verdicts.append(_first(names.values(), three))
    return verdicts


def _first(verdicts, answers):
    for verdict, answer in zip(verdicts, answers):
        if answer is True:
            return verdict
        if answer is not False:
            return "Error"
    return "InProgress"
