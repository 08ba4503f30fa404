// Carries out the actions of a plan at the API server: in order, but for creates of pods next to
// each other, which go at the same time in batches of 1, 2, 4, 8, 8, so that a create that is
// refused is refused once and not five hundred times. Every action may be repeated.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "kube/client.h"
#include "operator/credentials.h"
#include "operator/observed.h"
#include "operator/plan/plan.h"

namespace parallelrun::operators {

// What is remembered of a job from one plan to the next. One reconcile at a time.
struct ApplyState {
  std::optional<JobCredentials> credentials;  // until their renew_at
  std::string made_of;                        // what the Secret that was last seen in place
                                              // follows from; "": none was
  Instant checked{};
  size_t batch = 1;  // how many pods the next plan may begin with, if it goes on making them
};

struct Applied {
  std::vector<ApplyFailure> refused;  // what repeating alone will not mend
  std::set<std::string> done;         // targets of what succeeded
  bool wrote = false;                 // something was written
  bool again = false;                 // something failed that may succeed soon
  std::vector<ApplyFailure> passing;  // that something
  // What is known now of objects that were written; nothing: read it again.
  std::vector<std::pair<FactKey, std::optional<Fact>>> facts;
  // What was created, with the resourceVersion from which on the cache must show it.
  std::vector<std::pair<PodDigest, uint64_t>> pods;
};

class Applier {
 public:
  // `client` must outlive it. `job_labels` are OperatorOptions'.
  Applier(kube::Client& client, OperatorKey key, std::map<std::string, std::string> job_labels,
          std::shared_ptr<const Clock> clock);

  // The credentials of a job now, from `state` while they are in force.
  Result<JobCredentials> Credentials(const JobIdentity& job, ApplyState& state) const;

  // All but kControl. Thread-safe for different jobs.
  Applied Apply(const ObservedJob& job, const std::vector<Action>& actions, ApplyState& state);

 private:
  struct Done;
  static Done Failed(kube::ApiError error);
  Done Stored(const std::string& plural, const nlohmann::json& object) const;
  Done One(const ObservedJob& job, const Action& action, ApplyState& state, bool creates_pods);
  Done Create(const std::string& job_uid, const Action& action);
  Done EnsureAccess(const ObservedJob& job, const Action& action, ApplyState& state, bool read);
  Done CreateAccess(const nlohmann::json& wanted);
  Done ReviseAccess(const nlohmann::json& wanted, const std::string& job_uid);
  Done SnapshotCode(const ObservedJob& job, const Action& action);
  Done Delete(const ObservedJob& job, const Action& action);
  std::vector<Done> CreateTogether(const std::string& job_uid, const std::vector<Action>& actions,
                                   size_t first, size_t count);
  void Note(const Action& action, Done done, Applied& applied) const;

  kube::Client& client_;
  const OperatorKey key_;
  const std::map<std::string, std::string> job_labels_;
  const std::shared_ptr<const Clock> clock_;
};

JobIdentity IdentityOf(const ObservedJob& job);

}  // namespace parallelrun::operators
