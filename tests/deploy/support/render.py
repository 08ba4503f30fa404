"""Runs helm and kubectl, and reads the objects that they print."""

import functools
import shutil
import subprocess
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[3]
CHART = ROOT / "helm/parallelrun"
NAMESPACE = "parallelrun-system"


def run(command, seconds=120, **options):
    """Runs a command in the root; what it printed is part of the failure."""
    command = [str(word) for word in command]
    result = subprocess.run(
        command, capture_output=True, cwd=ROOT, text=True, timeout=seconds, **options
    )
    assert result.returncode == 0, f"{' '.join(command)}\n{result.stdout}{result.stderr}"
    return result.stdout


@functools.lru_cache(maxsize=None)
def tool(name):
    """The path of one of the programs that tests/deploy/tools builds."""
    folder = run([ROOT / "tests/deploy/tools", name], seconds=1800).strip()
    return f"{folder}/{name}"


@functools.lru_cache(maxsize=None)
def kubectl():
    """kubectl from the path, or else the one of the test control plane."""
    found = shutil.which("kubectl")
    if found:
        return found
    return run([ROOT / "tests/controlplane/build"], seconds=1800).strip() + "/kubectl"


def objects(text):
    """The objects of a stream of YAML documents, by (kind, namespace or None, name)."""
    found = {}
    for document in yaml.safe_load_all(text):
        if document is None:
            continue
        metadata = document["metadata"]
        key = (document["kind"], metadata.get("namespace"), metadata["name"])
        assert key not in found, f"{key} is there twice"
        found[key] = document
    return found


def template(*arguments, release="parallelrun", namespace=NAMESPACE, values=None):
    """The text that `helm template` prints; values is a dict, arguments are further ones."""
    command = [tool("helm"), "template", release, CHART, "--namespace", namespace]
    return run(
        [*command, "--values", "-", *arguments], input=yaml.safe_dump(values or {}, width=1000)
    )


def chart(values=None, **options):
    """The objects of the chart, without those of `helm test`."""
    return objects(template("--skip-tests", values=values, **options))


def refusal(values):
    """What helm says when it refuses values."""
    command = [tool("helm"), "template", "parallelrun", CHART, "--values", "-"]
    result = subprocess.run(
        command, input=yaml.safe_dump(values), capture_output=True, text=True, timeout=60
    )
    assert result.returncode != 0, f"helm accepts {values}"
    return result.stderr


def kustomize(folder):
    """The objects of a kustomize folder."""
    return objects(run([kubectl(), "kustomize", folder]))


def operator_pod(found):
    """The pod template's spec of the operator's Deployment."""
    deployments = [o for (kind, _, _), o in found.items() if kind == "Deployment"]
    assert len(deployments) == 1
    return deployments[0]["spec"]["template"]["spec"]


def arguments(found):
    """The operator's arguments, by flag."""
    args = operator_pod(found)["containers"][0]["args"]
    return dict(argument.removeprefix("--").split("=", 1) for argument in args)
