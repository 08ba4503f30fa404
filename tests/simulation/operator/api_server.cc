#include "tests/simulation/operator/api_server.h"

#include <utility>

namespace parallelrun::simulation {

const operators::PodDigest* ApiServer::Find(const std::string& name) const {
  const auto found = pods_.find(name);
  return found == pods_.end() ? nullptr : &found->second;
}

void ApiServer::StoreJob(StoredJob job) {
  job.version = ++version_;
  jobs_.push_back(std::move(job));
}

void ApiServer::StorePod(operators::PodDigest pod) {
  changes_.push_back({++version_, pod.name, pod});
  pods_[pod.name] = std::move(pod);
  changed_();
}

void ApiServer::RemovePod(const std::string& name) {
  changes_.push_back({++version_, name, std::nullopt});
  pods_.erase(name);
}

}  // namespace parallelrun::simulation
