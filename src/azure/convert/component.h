// Internal to `parallelrun convert`: a step of a pipeline whose task is said in a component.
#pragma once

#include <optional>
#include <string>

#include "azure/convert/draft.h"

namespace parallelrun::azure {

// Whether the step says itself, or its component does, that it is a parallel one.
bool IsParallelStep(const api::Node& step, const ConvertOptions& options);

// The component of `step`, which stands at `field`, with what the step says laid over it: the paths
// of a component's file are as seen from the file of the step. The step again where it names none.
// nullopt, refused, for a component that is not here: those of a workspace or a registry are named
// with the command that fetches them.
std::optional<api::Node> WithComponent(const api::Node& step, const std::string& field,
                                       const ConvertOptions& options, Draft& draft);

}  // namespace parallelrun::azure
