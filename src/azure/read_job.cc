#include "azure/read_job.h"

#include <utility>

#include "azure/old_names.h"
#include "azure/predefined.h"

namespace parallelrun::azure {

const Dialect& JobDialect() {
  static const Dialect dialect{.translate = ApplyPredefined, .mend = OldNameMend};
  return dialect;
}

ParsedJob ReadJob(std::string_view text, const std::vector<std::string>& overrides, Target target) {
  return parallelrun::ReadJob(text, overrides, target, JobDialect());
}

ParsedJob ReadJob(const nlohmann::json& object, Target target) {
  return parallelrun::ReadJob(object, target, JobDialect());
}

ParsedJob ParseJob(Node root, Target target) {
  return parallelrun::ParseJob(std::move(root), target, JobDialect());
}

}  // namespace parallelrun::azure
