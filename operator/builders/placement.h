// Where the scheduler is to put the pods of a job, beside what the user's podTemplate says. Pure;
// any thread.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "operator/builders/objects.h"

namespace parallelrun::operators {

// Where this node has failed twice it goes only if no other host has room: a wish, so that a job
// whose own fault it is loses no host by it.
void AvoidHosts(const std::map<std::string, int32_t>& failed_hosts, nlohmann::json& pod);

// Tells autoscalers whether they may end the pod to give up its host; annotations of the user's own
// win. Without a word Cluster Autoscaler leaves the host of a pod with an emptyDir alone for ever.
void SayDisruption(const api::JobSpec& spec, nlohmann::json& pod);

// Last, for a pod that has all else that it wishes for. Nodes go to the hosts that have the fewest
// nodes of the job, and so does a coordinator that is made again: one host that is taken away stops
// as little of the job as can be. A wish too; but where a claim can be mounted on one host only,
// all pods of the job stay on one.
void Place(const BuildContext& context, nlohmann::json& pod);

}  // namespace parallelrun::operators
