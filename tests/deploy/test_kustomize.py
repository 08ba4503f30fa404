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


def test_the_base_is_the_chart(chart, base):
    objects = dict(base)
    namespace = objects.pop(NAMESPACE_OBJECT)
    enforced = namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"]
    assert enforced == "restricted"
    ours = without_helm(objects)
    theirs = without_helm(chart)
    assert sorted(ours, key=str) == sorted(theirs, key=str)
    for key, one in theirs.items():
        assert ours[key] == one, key


def test_the_namespaced_overlay_is_the_chart():
    ours = render.kustomize("deploy/overlays/namespaced")
    assert not [key for key in ours if key[0].startswith("ClusterRole")]
    del ours[NAMESPACE_OBJECT]
    theirs = render.chart({"watchNamespaces": ["parallelrun-jobs"]})
    for found in (ours, theirs):
        pod = render.operator_pod(found)
        pod["containers"][0]["args"].sort()
        for one in found.values():
            one["metadata"].pop("labels", None)
            one["metadata"].pop("annotations", None)
    assert ours == theirs
