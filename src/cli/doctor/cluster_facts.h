// What can be seen of a cluster by kubectl, for `parallelrun doctor`. Nothing of the cluster is
// changed. Blocking; kubectl's own words go to stderr.
#pragma once

#include "cli/cluster/kubectl.h"
#include "cli/doctor/cluster_findings.h"

namespace parallelrun::cli {

ClusterFacts GatherClusterFacts(const KubectlWhere& where);

}  // namespace parallelrun::cli
