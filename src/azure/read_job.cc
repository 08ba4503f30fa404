#include "azure/read_job.h"

#include <utility>

#include "azure/old_names.h"
#include "azure/predefined.h"
#include "azure/script_arguments.h"

namespace parallelrun::azure {

const api::Dialect& JobDialect() {
  static const api::Dialect dialect{
      .translate = ApplyPredefined, .mend = OldNameMend, .placeholders = Placeholders()};
  return dialect;
}

api::ParsedJob ReadJob(std::string_view text, const std::vector<std::string>& overrides,
                       api::Target target) {
  return parallelrun::api::ReadJob(text, overrides, target, JobDialect());
}

api::ParsedJob ReadJob(const nlohmann::json& object, api::Target target) {
  return parallelrun::api::ReadJob(object, target, JobDialect());
}

api::ParsedJob ParseJob(api::Node root, api::Target target) {
  return parallelrun::api::ParseJob(std::move(root), target, JobDialect());
}

}  // namespace parallelrun::azure
