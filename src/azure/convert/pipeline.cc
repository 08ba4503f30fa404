// A file with one parallel job or component, or with a pipeline that has a parallel step.
#include <algorithm>
#include <optional>

#include "api/text.h"
#include "azure/convert/common.h"
#include "azure/convert/component.h"
#include "azure/convert/parallel.h"

namespace parallelrun::azure {
namespace {

std::string NameOf(const api::Node& job, const std::string& otherwise) {
  const api::Node* const name = job.Find("name");
  return JobNameFrom(name != nullptr && name->kind == api::Node::Kind::kString ? name->text
                                                                               : otherwise);
}

// The steps that may be parallel ones.
void LoseAllRegistered(const api::Node& jobs, Draft& draft) {
  if (jobs.kind != api::Node::Kind::kMap) return;
  for (const api::Node::Field& job : jobs.fields) {
    LoseRegistered(job.value, api::JoinPath("jobs", job.key), draft);
  }
}

}  // namespace

Draft ReadParallelFile(const api::Node& root, const std::string& name,
                       const ConvertOptions& options) {
  const std::string& step = options.step;
  Draft draft{.source = "a v2 parallel job", .name = NameOf(root, name)};
  const api::Node* const jobs = root.Find("jobs");
  if (jobs == nullptr) {
    ReadParallelStep(root, "", {}, options, draft);
    return draft;
  }
  const std::vector<std::string> names = ParallelSteps(*jobs, options);
  const std::string chosen_name = step.empty() && names.size() == 1 ? names[0] : step;
  const bool there = std::find(names.begin(), names.end(), chosen_name) != names.end();
  if (!there && names.size() > 1 && step.empty()) {
    draft.Refuse("jobs", std::to_string(names.size()) + " steps are of type parallel",
                 "write --step " + api::OrList(names) + ", or --all-steps");
    return draft;
  }
  if (!there) LoseAllRegistered(*jobs, draft);
  if (!there) {
    draft.Refuse("jobs",
                 names.empty() ? "no step is of type parallel"
                               : "there is no parallel step " + api::Quoted(step),
                 names.empty() ? "give a file with one" : "write --step " + api::OrList(names));
    return draft;
  }
  const api::Node* const chosen = jobs->Find(chosen_name);
  for (const api::Node::Field& job : jobs->fields) {
    const std::string field = api::JoinPath("jobs", job.key);
    const bool parallel = std::find(names.begin(), names.end(), job.key) != names.end();
    // With all steps the other parallel ones are jobs of their own.
    if (job.key == chosen_name || (options.all_steps && parallel)) continue;
    if (LoseRegistered(job.value, field, draft)) continue;
    draft.Lose(field, "other steps of the pipeline are not converted",
               "run them in the order of the pipeline, with a workflow tool");
  }
  draft.source = "the parallel step " + chosen_name + " of a pipeline job";
  draft.name = JobNameFrom(chosen_name);
  Section pipeline(&root, "", draft);
  pipeline.Pass({"jobs", "inputs", "outputs", "name", "description"});
  if (Section settings = pipeline.Map("settings"); settings.there()) {
    for (const char* key : {"default_compute", "default_datastore"}) {
      settings.Lose(key, "has no counterpart",
                    "volumes and spec.podTemplate say where data lies and pods run");
    }
    settings.Pass({"continue_on_step_failure", "force_rerun"});
    settings.Finish();
  }
  LoseCloud(pipeline);
  pipeline.Finish();
  const std::string path = api::JoinPath("jobs", chosen_name);
  const std::optional<api::Node> merged = WithComponent(*chosen, path, options, draft);
  if (!merged) return draft;
  ReadParallelStep(*merged, path, {root.Find("inputs"), root.Find("outputs")}, options, draft);
  return draft;
}

}  // namespace parallelrun::azure
