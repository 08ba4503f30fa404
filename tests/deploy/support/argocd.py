"""Makes deploy/gitops/argocd/argocd-cm.yaml from the Lua scripts beside it."""

from support.render import ROOT

FOLDER = ROOT / "deploy/gitops/argocd"
RESOURCE = FOLDER / "parallelrun.dev/ParallelRunJob"
KEY = "parallelrun.dev_ParallelRunJob"


def _block(text, depth):
    """A YAML literal block."""
    lines = [" " * depth + line if line else "" for line in text.rstrip("\n").split("\n")]
    return "|\n" + "\n".join(lines) + "\n"


def config_map():
    actions = "mergeBuiltinActions: true\ndiscovery.lua: "
    actions += _block((RESOURCE / "actions/discovery.lua").read_text(), 2)
    actions += "definitions:\n"
    for name in ("suspend", "resume", "cancel"):
        script = (RESOURCE / f"actions/{name}/action.lua").read_text()
        actions += f"  - name: {name}\n    action.lua: {_block(script, 6)}"
    health = (RESOURCE / "health.lua").read_text()
    return (
        "# What Argo CD is told about ParallelRunJobs; merge it into its ConfigMap:\n"
        "#   kubectl patch configmap argocd-cm --namespace argocd --patch-file argocd-cm.yaml\n"
        "# Made from the scripts in parallelrun.dev/ParallelRunJob; a test compares.\n"
        "apiVersion: v1\n"
        "kind: ConfigMap\n"
        "metadata:\n"
        "  name: argocd-cm\n"
        "  namespace: argocd\n"
        "  labels: {app.kubernetes.io/part-of: argocd}\n"
        "data:\n"
        f"  resource.customizations.health.{KEY}: {_block(health, 4)}"
        f"  resource.customizations.actions.{KEY}: {_block(actions, 4)}"
    )


if __name__ == "__main__":
    (FOLDER / "argocd-cm.yaml").write_text(config_map())
