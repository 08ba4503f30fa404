// The API server as far as one job goes: every version of the job, every change of its pods, and
// what else it has.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "operator/observed.h"

namespace parallelrun::simulation {

// The job as it is stored; of its spec, what changes while it runs.
struct StoredJob {
  int64_t version = 0;  // resourceVersion
  int64_t generation = 1;
  int32_t node_count = 1;
  bool suspend = false, cancel = false, deleting = false;
  operators::JobStatus status;
};

struct PodChange {
  int64_t version = 0;
  std::string name;
  std::optional<operators::PodDigest> pod;  // none: it is gone
};

class ApiServer {
 public:
  // `changed` hears of every pod that was stored.
  explicit ApiServer(std::function<void()> changed) : changed_(std::move(changed)) {}

  const StoredJob& job() const { return jobs_.back(); }
  const std::vector<StoredJob>& jobs() const { return jobs_; }
  const std::vector<PodChange>& changes() const { return changes_; }
  const std::map<std::string, operators::PodDigest>& pods() const { return pods_; }
  // By name; nullptr: there is none.
  const operators::PodDigest* Find(const std::string& name) const;
  int64_t version() const { return version_; }

  void StoreJob(StoredJob job);
  void StorePod(operators::PodDigest pod);
  void RemovePod(const std::string& name);

  std::map<operators::FactKey, operators::Fact> objects;

 private:
  const std::function<void()> changed_;
  int64_t version_ = 1;
  std::vector<StoredJob> jobs_;
  std::vector<PodChange> changes_;
  std::map<std::string, operators::PodDigest> pods_;
};

}  // namespace parallelrun::simulation
