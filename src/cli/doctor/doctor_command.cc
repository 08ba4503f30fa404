#include "cli/doctor/doctor_command.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdio>

#include "cli/doctor/cluster_facts.h"
#include "cli/doctor/facts.h"
#include "cli/run/local_run.h"

namespace parallelrun::cli {

int Doctor(const DoctorRequest& request) {
  const bool cluster = !request.where.name_space.empty() || !request.where.context.empty();
  const std::vector<Finding> findings =
      cluster ? ClusterFindingsOf(GatherClusterFacts(request.where))
              : FindingsOf(GatherFacts(request.python, request.folder));
  fmt::print("{}", request.json ? FindingsJson(findings) : FindingsText(findings));
  const bool fails = std::any_of(findings.begin(), findings.end(),
                                 [](const Finding& f) { return f.level == Level::kFail; });
  return fails ? kExitFailed : kExitOk;
}

}  // namespace parallelrun::cli
