"""deploy/: the same objects as the chart's."""

import copy

from support import render
from support.render import NAMESPACE

# What only Helm can say, and what only kustomize has.
HELM_LABELS = {"app.kubernetes.io/managed-by", "helm.sh/chart"}
NAMESPACE_OBJECT = ("Namespace", None, NAMESPACE)
# The namespace of an object of the cluster, which kustomize sets all the same, means nothing.


def without_helm(found):
    stripped = copy.deepcopy(found)
    for one in stripped.values():
        metadata = one["metadata"]
        metadata["labels"] = {k: v for k, v in metadata["labels"].items() if k not in HELM_LABELS}
        metadata.pop("annotations", None)
    return stripped


CRD = ("CustomResourceDefinition", None, "parallelrunjobs.parallelrun.dev")


def test_who_deletes_the_operator_keeps_the_jobs(base):
    assert CRD not in base
    assert CRD not in render.kustomize("deploy/overlays/namespaced")
    ((key, crd),) = render.kustomize("crds").items()
    assert key == CRD
    annotations = crd["metadata"]["annotations"]
    assert annotations["argocd.argoproj.io/sync-options"] == "Delete=false,Prune=false"
    assert annotations["kustomize.toolkit.fluxcd.io/prune"] == "disabled"


def test_the_bases_are_the_chart(chart, base):
    objects = dict(base)
    namespace = objects.pop(NAMESPACE_OBJECT)
    enforced = namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"]
    assert enforced == "restricted"
    ours = without_helm(objects)
    theirs = without_helm(chart)
    assert theirs.pop(CRD)["spec"] == render.kustomize("crds")[CRD]["spec"]
    assert sorted(ours, key=str) == sorted(theirs, key=str)
    for key, one in theirs.items():
        assert ours[key] == one, key


def test_the_namespaced_overlay_is_the_chart():
    ours = render.kustomize("deploy/overlays/namespaced")
    assert not [key for key in ours if key[0].startswith("ClusterRole")]
    del ours[NAMESPACE_OBJECT]
    theirs = render.chart({"watchNamespaces": ["parallelrun-jobs"], "crds": {"install": False}})
    for found in (ours, theirs):
        pod = render.operator_pod(found)
        pod["containers"][0]["args"].sort()
        for one in found.values():
            one["metadata"].pop("labels", None)
            one["metadata"].pop("annotations", None)
    assert ours == theirs
