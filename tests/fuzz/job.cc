// The job parser: any text, with what --set changes behind a NUL each, is a job or a list of
// problems; what is a job is read back as the same, and its arguments can be made.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "api/arguments.h"
#include "api/processes.h"
#include "api/settings.h"
#include "api/to_json.h"
#include "azure/read_job.h"
#include "azure/script_arguments.h"
#include "azure/worker_flags.h"
#include "tests/fuzz/expect.h"

using namespace parallelrun;  // NOLINT(google-build-using-namespace)

namespace {

void CheckUse(const api::Job& job, const std::string& canonical) {
  std::map<std::string, std::string> paths;
  for (const std::string& name : api::PlaceholderNames(job.spec)) paths[name] = "/x";
  Expect(azure::ScriptArguments(job, paths).ok(), "a placeholder that was checked is not known");
  for (const std::string& folder :
       api::FoldersOfOutput(job.spec.arguments, azure::Placeholders())) {
    Expect(!folder.starts_with('/') && ("/" + folder + "/").find("/../") == std::string::npos,
           "a folder leads away from the output");
  }
  Expect(api::EffectiveProcessCount(job.spec).count > 0, "a node has no process");
  Expect(azure::WorkerFlagsOf(job.spec.arguments) == azure::WorkerFlagsOf(job.spec.arguments),
         "the same arguments mean something else");
  const auto same =
      api::Differences(api::ScriptSettings(canonical), api::ScriptSettings(canonical));
  Expect(same.ok() && same->empty(), "a job differs from itself");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  const std::string_view text = rest.substr(0, rest.find('\0'));
  std::vector<std::string> changes;
  while (rest.find('\0') != std::string_view::npos) {
    rest.remove_prefix(rest.find('\0') + 1);
    changes.emplace_back(rest.substr(0, rest.find('\0')));
  }
  for (const api::Target target : {api::Target::kLocal, api::Target::kCluster}) {
    const api::ParsedJob job = azure::ReadJob(text, changes, target);
    for (const api::Problem& problem : job.problems) {
      Expect(!api::FormatProblem(problem, "job.yaml").empty(), "a problem says nothing");
    }
    if (!job.ok()) continue;
    const std::string canonical = api::CanonicalText(api::ToJson(job.job));
    for (const api::ParsedJob& again : {azure::ReadJob(canonical, {}, target),
                                        azure::ReadJob(nlohmann::json::parse(canonical), target)}) {
      Expect(again.ok(), "a canonical job is refused");
      Expect(api::CanonicalText(api::ToJson(again.job)) == canonical,
             "a canonical job changes when read back");
    }
    CheckUse(job.job, canonical);
  }
  return 0;
}
