"""JSON schemas for kubeconform: Kubernetes' own from its Go module, ParallelRunJob's from the CRD.

Both are made strict: a field that the schema does not know is an error.
"""

import json
import re
from pathlib import Path

import yaml

from support.render import ROOT, run

KINDS = {
    "apps/v1": ["Deployment"],
    "batch/v1": ["Job"],
    "apiextensions.k8s.io/v1": ["CustomResourceDefinition"],
    "networking.k8s.io/v1": ["NetworkPolicy"],
    "policy/v1": ["PodDisruptionBudget"],
    "rbac.authorization.k8s.io/v1": ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"],
    "v1": [
        "ConfigMap",
        "Namespace",
        "PersistentVolumeClaim",
        "Pod",
        "Secret",
        "Service",
        "ServiceAccount",
    ],
}
LOCATION = "{{.ResourceKind}}-{{.ResourceAPIVersion}}.json"


def _strict(schema):
    """The same schema, refusing unknown fields, and with Kubernetes' number-or-text as such."""
    if isinstance(schema, list):
        return [_strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("format") == "int-or-string" or schema.get("x-kubernetes-int-or-string"):
        return {"type": ["integer", "string"]}
    # `format` is a keyword if it is a word, and the name of a field if it is an object.
    strict = {k: _strict(v) for k, v in schema.items() if k != "format" or isinstance(v, dict)}
    fields = strict.get("properties")
    free = strict.get("x-kubernetes-preserve-unknown-fields")
    if isinstance(fields, dict) and "additionalProperties" not in strict and not free:
        strict["additionalProperties"] = False
    return strict


def kubernetes_version():
    components = (ROOT / "tests/controlplane/components/go.mod").read_text()
    return re.search(r"k8s\.io/kubernetes (v[\d.]+)", components)[1]


def write(folder):
    """Writes a schema for each kind into a folder."""
    module = json.loads(
        run(["go", "mod", "download", "-json", f"k8s.io/kubernetes@{kubernetes_version()}"], 600)
    )
    swagger = json.loads(Path(module["Dir"], "api/openapi-spec/swagger.json").read_text())
    # Free-form JSON, as in a CRD's schema; the real API server looks at those.
    definitions = {
        name: {} if "apiextensions" in name and "JSON" in name else _strict(schema)
        for name, schema in swagger["definitions"].items()
    }
    definitions["io.k8s.apimachinery.pkg.api.resource.Quantity"] = {"type": ["string", "number"]}
    (folder / "definitions.json").write_text(json.dumps({"definitions": definitions}))
    names = {
        (kind["group"], kind["version"], kind["kind"]): name
        for name, schema in swagger["definitions"].items()
        for kind in schema.get("x-kubernetes-group-version-kind", [])
    }
    for api_version, kinds in KINDS.items():
        group, _, version = api_version.rpartition("/")
        for kind in kinds:
            name = names[group, version, kind]
            reference = {"$ref": f"definitions.json#/definitions/{name}"}
            (folder / f"{kind.lower()}-{version}.json").write_text(json.dumps(reference))
    (folder / "parallelrunjob-v1alpha1.json").write_text(json.dumps(job_schema()))


def job_schema():
    """What the CRD says of a ParallelRunJob, with the metadata that every object has."""
    crd = yaml.safe_load((ROOT / "crds/parallelrunjobs.parallelrun.dev.yaml").read_text())
    schema = _strict(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
    schema["properties"]["metadata"] = {"type": "object"}
    return schema
