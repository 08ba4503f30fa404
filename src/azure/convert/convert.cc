#include "azure/convert/convert.h"

#include <algorithm>
#include <filesystem>
#include <limits>

#include "api/document.h"
#include "api/text.h"
#include "azure/convert/component.h"
#include "azure/convert/draft.h"
#include "azure/fill_in.h"
#include "azure/flags.h"
#include "azure/read_job.h"

namespace parallelrun::azure {
namespace {

namespace fs = std::filesystem;

// What kind of file it is; kNone for one that is not Azure ML's, or of no use here.
enum class Kind { kNone, kRunConfig, kParallel, kDeployment, kPipelineV1 };

Kind KindOf(const api::Node& root) {
  if (root.kind != api::Node::Kind::kMap) return Kind::kNone;
  const auto has = [&](const char* key) { return root.Find(key) != nullptr; };
  // Where the name of the endpoint is said on the command line, a deployment of an MLflow model has
  // nothing of its own but the schema.
  const api::Node* const schema = root.Find("$schema");
  const std::string squashed = schema != nullptr ? api::Squashed(schema->text) : "";
  if (squashed.find("batchdeployment") != std::string::npos) return Kind::kDeployment;
  if (has("parallel_run_config")) return Kind::kRunConfig;
  if (has("task") || has("jobs")) return Kind::kParallel;
  if (has("endpoint_name") || has("code_configuration")) return Kind::kDeployment;
  return has("pipeline") ? Kind::kPipelineV1 : Kind::kNone;
}

Draft ReadAny(const api::Node& root, const ConvertOptions& options) {
  const std::string name = fs::path(options.file).stem().string();
  Draft draft{.source = "", .name = name};
  if (root.kind != api::Node::Kind::kMap) {
    draft.Refuse("", "the file holds no map of fields", "give a YAML file of Azure ML");
    return draft;
  }
  switch (KindOf(root)) {
    case Kind::kRunConfig: return ReadRunConfig(root, name);
    case Kind::kParallel: return ReadParallelFile(root, name, options);
    case Kind::kDeployment: return ReadBatchDeployment(root, name);
    case Kind::kPipelineV1:
      draft.Refuse("pipeline", "a v1 pipeline names its ParallelRunConfig in another file",
                   "convert the file that parallel_run_config names");
      return draft;
    case Kind::kNone: break;
  }
  draft.Refuse("", "this is not a file of Azure ML that can be converted",
               "give a v1 file with parallel_run_config, a v2 parallel job, component or pipeline "
               "job, or a batch deployment");
  return draft;
}

// Findings have the field that they are about; its line is looked up here.
void Place(const api::Node& root, api::Problems& problems) {
  for (api::Problem& problem : problems) problem.line = api::Locate(root, problem.field).line;
  const auto order = [](const api::Problem& problem) {
    return problem.line > 0 ? problem.line : std::numeric_limits<int>::max();
  };
  std::stable_sort(
      problems.begin(), problems.end(),
      [&](const api::Problem& a, const api::Problem& b) { return order(a) < order(b); });
}

// Where Azure ML's file says nothing, any number of items may fail. Here that has to be written:
// losses that no threshold speaks of are an exit status of their own.
void AllowLosses(const std::string& yaml, Draft& draft) {
  const api::ParsedJob parsed = azure::ReadJob(yaml, {}, api::Target::kLocal);
  if (parsed.job.spec.error_threshold) return;  // perhaps by an argument, whose value may be open
  for (const Found& found : FindFlags(draft.arguments)) {
    const bool open = found.value && IsOpen(*found.value);
    if (found.flag != nullptr && found.flag->name == "error_threshold" && open) return;
  }
  draft.Set("errorThreshold", "-1", "default of Azure ML: any number of items may fail");
}

}  // namespace

Conversion ConvertAzure(std::string_view text, const ConvertOptions& options) {
  api::Document document = api::ReadForeignDocument(text, api::PlainScalars::kTexts);
  Conversion conversion;
  conversion.problems = std::move(document.problems);
  if (api::HasErrors(conversion.problems)) return conversion;
  Draft draft = ReadAny(document.job, options);
  Place(document.job, draft.problems);
  if (!api::HasErrors(draft.problems)) {
    AllowLosses(WriteDraft(draft, options.file, options.code_prefix).yaml, draft);
    Written written = WriteDraft(draft, options.file, options.code_prefix);
    conversion.yaml = std::move(written.yaml);
    conversion.volumes = std::move(written.volumes);
  }
  conversion.problems = std::move(draft.problems);
  return conversion;
}

std::vector<StepConversion> ConvertAllSteps(std::string_view text, const ConvertOptions& options) {
  const api::Document document = api::ReadForeignDocument(text, api::PlainScalars::kTexts);
  const api::Node& root = document.job;
  const api::Node* const jobs = root.kind == api::Node::Kind::kMap ? root.Find("jobs") : nullptr;
  std::vector<StepConversion> all;
  if (!api::HasErrors(document.problems) && jobs != nullptr) {
    ConvertOptions one = options;
    one.all_steps = true;
    for (const std::string& step : ParallelSteps(*jobs, options)) {
      one.step = step;
      all.push_back({step, ConvertAzure(text, one)});
    }
  }
  // Not a pipeline, or one without a parallel step: that is said as for one step.
  if (all.empty()) all.push_back({"", ConvertAzure(text, options)});
  return all;
}

std::string SayConvert(std::string_view text, const std::string& file) {
  const api::Document document = api::ReadForeignDocument(text, api::PlainScalars::kTexts);
  const api::Node& root = document.job;
  if (root.kind != api::Node::Kind::kMap || root.Find("apiVersion") != nullptr ||
      root.Find("spec") != nullptr || KindOf(root) == Kind::kNone) {
    return "";
  }
  return file + " is a file of Azure ML, and no job file yet: parallelrun convert " + file +
         " -o job.yaml makes one of it";
}

}  // namespace parallelrun::azure
