// Internal to `parallelrun convert`: a v2 parallel job or component, alone or as a step.
#pragma once

#include <string>

#include "azure/convert/draft.h"

namespace parallelrun::azure {

// What the bindings of a step may name; null for what there is not.
struct ParentPipeline {
  const api::Node* inputs = nullptr;
  const api::Node* outputs = nullptr;
};

// `step`, which stands at `path`, into the draft.
void ReadParallelStep(const api::Node& step, const std::string& path, const ParentPipeline& parent,
                      const ConvertOptions& options, Draft& draft);

}  // namespace parallelrun::azure
