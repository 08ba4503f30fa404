// The Kubernetes objects of one job, as JSON: what is made is a function of the job and the figures
// here. Names, labels and paths are the ones that docs/operator.md lists. Pure; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "api/job.h"
#include "operator/credentials.h"
#include "operator/options.h"

namespace parallelrun::operators {

struct BuildContext {
  const api::JobSpec& spec;
  JobIdentity identity;
  const OperatorOptions& options;
  std::string runtime_image;  // the job's own, pinned
  uint16_t coordinator_port;  // likewise
  bool one_host = false;      // all pods next to each other: a claim cannot be shared otherwise
};

using Labels = std::map<std::string, std::string>;

struct PodNumber {
  int64_t incarnation = 1;
  int32_t failures = 0;                           // consecutive ones of this index before
  std::map<std::string, int32_t> failed_hosts{};  // where these were
  int32_t setbacks = 0;  // ends in a row that were nobody's fault, and slow it down
};

std::string CoordinatorPodName(const JobIdentity& job, int64_t incarnation);
std::string NodePodName(const JobIdentity& job, int32_t index, int64_t incarnation);
std::string AccessSecretName(const JobIdentity& job);
std::string CodeSnapshotName(const JobIdentity& job);
std::string ServiceName(const JobIdentity& job);

// On every object of the job.
nlohmann::json CommonLabels(const JobIdentity& job);
// The pods of the job's nodes, as `kubectl -l` and the scale subresource take it.
std::string NodeSelector(const JobIdentity& job);

nlohmann::json CoordinatorPod(const BuildContext& context, int64_t incarnation);
nlohmann::json WorkerPod(const BuildContext& context, int32_t index, const PodNumber& number);
// Of spec.state.volumeClaimTemplate, which must be there.
nlohmann::json StateClaim(const BuildContext& context);
nlohmann::json CoordinatorService(const BuildContext& context, int64_t incarnation);
nlohmann::json CoordinatorNetworkPolicy(const BuildContext& context);
// For disruption: Budget.
nlohmann::json CoordinatorBudget(const BuildContext& context);

// `data` is AccessSecretData's: file name to content. `more_labels`: OperatorOptions::job_labels.
nlohmann::json AccessSecret(const JobIdentity& job, const std::map<std::string, std::string>& data,
                            const Labels& more_labels = {});

// An immutable copy of the user's code ConfigMap `source`, with its digest in kContentAnnotation.
nlohmann::json CodeSnapshot(const JobIdentity& job, const nlohmann::json& source,
                            const Labels& more_labels = {});
// XXH3-64 over names and contents, 16 hexadecimal digits.
std::string CodeDigest(const nlohmann::json& config_map);

// A hash of the object, for kContentAnnotation.
std::string ContentHash(const nlohmann::json& object);

// Where a pod has the keys of a store that spec.stores[].credentials names, and the pod's volume of
// them: `index` is that of the store in the list.
std::string StoreKeysFolder(const api::ObjectStore& store);
std::string StoreKeysVolume(size_t index);

// Whether a node's pod mounts `volume`: all but those that only the coordinator touches.
bool MountedOnNodes(const api::JobSpec& spec, const std::string& volume);

}  // namespace parallelrun::operators
