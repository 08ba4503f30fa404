// Merges a user's podTemplate into a pod as `kubectl patch` would (strategic merge): maps by key,
// lists of named things by name, other lists replaced. The user's values win, except for what
// makes a pod this job's. Pure; any thread.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace parallelrun::operators {

// What of a template applies to a pod.
struct TemplateUse {
  std::string container;           // of the template and the pod: "worker", "coordinator"
  bool placement_and_size = true;  // nodeSelector, affinity and the container's resources too
};

// `pod` is ours; `pod_template` {metadata, spec}, or null.
void MergePodTemplate(const nlohmann::json& pod_template, const TemplateUse& use,
                      nlohmann::json& pod);

}  // namespace parallelrun::operators
