"""A person of a namespace who may do no more than a test says."""

import json
import os

FORWARD = {"apiGroups": [""], "resources": ["pods/portforward"], "verbs": ["create"]}


def role(space, rules):
    """What the viewer may do from now on."""
    metadata = {"name": "viewer", "namespace": space.name}
    kind = "rbac.authorization.k8s.io"
    space.kube.apply(
        {"apiVersion": f"{kind}/v1", "kind": "Role", "metadata": metadata, "rules": rules},
        {
            "apiVersion": f"{kind}/v1",
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": kind, "kind": "Role", "name": "viewer"},
            "subjects": [{"kind": "ServiceAccount", "name": "viewer", "namespace": space.name}],
        },
    )


def kubeconfig_of_viewer(space, folder):
    """Of a service account that starts without a right."""
    metadata = {"name": "viewer", "namespace": space.name}
    space.kube.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
    token = space.kube.kubectl("create", "token", "viewer", "-n", space.name).strip()
    config = json.loads(
        space.kube.kubectl("config", "view", "--minify", "--raw", "--flatten", "-o", "json")
    )
    config["users"] = [{"name": "viewer", "user": {"token": token}}]
    config["contexts"] = [
        {"name": "lab", "context": {"cluster": config["clusters"][0]["name"], "user": "viewer"}}
    ]
    config["current-context"] = "lab"
    path = folder / "viewer.json"
    path.write_text(json.dumps(config))
    path.chmod(0o600)
    return path


def environment_of_viewer(space, cluster, folder):
    """For the command: this cluster's kubectl, as the viewer."""
    config = kubeconfig_of_viewer(space, folder)
    path = f"{cluster.programs}:{os.environ['PATH']}"
    return {**os.environ, "KUBECONFIG": str(config), "PATH": path}
