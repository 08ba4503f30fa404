// Internal to `parallelrun convert`: a step of a pipeline whose task is said in a component.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "azure/convert/draft.h"

namespace parallelrun::azure {

// The names of those steps of a pipeline that are parallel ones, as they say themselves or their
// components do.
std::vector<std::string> ParallelSteps(const api::Node& jobs, const ConvertOptions& options);
// Reports a step whose component is registered somewhere, so that nobody here knows whether it is a
// parallel one, with what the step says of it. False: it is none of these.
bool LoseRegistered(const api::Node& step, const std::string& field, Draft& draft);

// The component of `step`, which stands at `field`, with what the step says laid over it: the paths
// of a component's file are as seen from the file of the step. The step again where it names none.
// nullopt, refused, for a component that is not here: those of a workspace or a registry are named
// with the command that fetches them.
std::optional<api::Node> WithComponent(const api::Node& step, const std::string& field,
                                       const ConvertOptions& options, Draft& draft);

}  // namespace parallelrun::azure
