// Internal to the builders: what the coordinator's and the workers' pods have in common. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "operator/builders/objects.h"

namespace parallelrun::operators {

// metadata of an object of the job: name, namespace, labels, the owner.
nlohmann::json ObjectMetadata(const JobIdentity& job, const std::string& name,
                              const Labels& more_labels);

// securityContext of a pod and of each of our containers; null where the platform decides.
nlohmann::json PodSecurity(const OperatorOptions& options);
nlohmann::json ContainerSecurity(const OperatorOptions& options);

// The job's own volumes, each mounted at /mnt/<name>: read-only unless something is written there.
void AddUserVolumes(const api::JobSpec& spec, bool on_nodes, nlohmann::json& volumes,
                    nlohmann::json& mounts);

}  // namespace parallelrun::operators
