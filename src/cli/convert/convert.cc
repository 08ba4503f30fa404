#include "cli/convert/convert.h"

#include <algorithm>
#include <filesystem>
#include <limits>

#include "api/document.h"
#include "api/parse.h"
#include "cli/convert/draft.h"

namespace parallelrun {
namespace {

namespace fs = std::filesystem;

Draft ReadAny(const Node& root, const ConvertOptions& options) {
  const std::string name = fs::path(options.file).stem().string();
  const auto has = [&](const char* key) { return root.Find(key) != nullptr; };
  Draft draft{.source = "", .name = name};
  if (root.kind != Node::Kind::kMap) {
    draft.Refuse("", "the file holds no map of fields", "give a YAML file of Azure ML");
    return draft;
  }
  if (has("parallel_run_config")) return ReadRunConfig(root, name);
  if (has("task") || has("jobs")) return ReadParallelJob(root, name, options.step);
  if (has("endpoint_name") || has("code_configuration")) return ReadBatchDeployment(root, name);
  if (has("pipeline")) {
    draft.Refuse("pipeline", "a v1 pipeline names its ParallelRunConfig in another file",
                 "convert the file that parallel_run_config names");
    return draft;
  }
  draft.Refuse("", "this is no file of Azure ML that can be converted",
               "give a v1 file with parallel_run_config, a v2 parallel job, component or pipeline "
               "job, or a batch deployment");
  return draft;
}

// Findings have the field that they are about; its line is looked up here.
void Place(const Node& root, Problems& problems) {
  for (Problem& problem : problems) problem.line = Locate(root, problem.field).line;
  const auto order = [](const Problem& problem) {
    return problem.line > 0 ? problem.line : std::numeric_limits<int>::max();
  };
  std::stable_sort(problems.begin(), problems.end(),
                   [&](const Problem& a, const Problem& b) { return order(a) < order(b); });
}

// Where Azure ML's file says nothing, any number of items may fail. Here that has to be written:
// losses that no threshold speaks of are an exit status of their own.
void AllowLosses(const std::string& yaml, Draft& draft) {
  const ParsedJob parsed = ReadJob(yaml, {}, Target::kLocal);
  if (parsed.job.spec.error_threshold) return;  // perhaps by an argument
  draft.Set("errorThreshold", "-1", "default of Azure ML: any number of items may fail");
}

}  // namespace

Conversion ConvertAzure(std::string_view text, const ConvertOptions& options) {
  Document document = ReadForeignDocument(text, PlainScalars::kTexts);
  Conversion conversion;
  conversion.problems = std::move(document.problems);
  if (HasErrors(conversion.problems)) return conversion;
  Draft draft = ReadAny(document.job, options);
  Place(document.job, draft.problems);
  if (!HasErrors(draft.problems)) {
    AllowLosses(WriteDraft(draft, options.file, options.code_prefix), draft);
    conversion.yaml = WriteDraft(draft, options.file, options.code_prefix);
  }
  conversion.problems = std::move(draft.problems);
  return conversion;
}

}  // namespace parallelrun
