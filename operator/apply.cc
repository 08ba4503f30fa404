#include "operator/apply.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/thread.h"
#include "operator/builders/objects.h"
#include "operator/resources.h"

namespace parallelrun::operators {
namespace {

using kube::ApiError;
using nlohmann::json;

// An access Secret that somebody deletes or changes is mended within this time also when no pod is
// created.
constexpr Duration kAccessCheck = std::chrono::minutes(10);
constexpr size_t kLargestBatch = 8;

bool CreatesPod(const Action& action) {
  return action.kind == Action::Kind::kCreate && action.resource == kPods.plural;
}

ApiError Taken(const std::string& target) {
  ApiError error;
  error.status = 409;
  error.reason = reasons::Reason("NameTaken");
  error.message =
      target + " exists and does not belong to this job: delete it, or give the job another name";
  error.code = Code::kExists;
  return error;
}

// Under which kind of fact a plan asks for such an object.
std::optional<FactKind> FactKindOf(const std::string& plural) {
  if (plural == kConfigMaps.plural) return FactKind::kConfigMap;
  if (plural == kSecrets.plural) return FactKind::kSecret;
  if (plural == kServices.plural) return FactKind::kService;
  if (plural == kClaims.plural) return FactKind::kClaim;
  if (plural == kNetworkPolicies.plural) return FactKind::kNetworkPolicy;
  if (plural == kDisruptionBudgets.plural) return FactKind::kDisruptionBudget;
  return std::nullopt;
}

// All that can change in the access Secret of one job: the spec follows from its generation. It is
// made again only when this is another text, for a job of many nodes has many tokens.
std::string MadeOf(const JobCredentials& credentials, const AccessContent& access) {
  const api::JobMetadata& metadata = access.job.metadata;
  return json{metadata.generation,
              metadata.labels,
              metadata.annotations,
              access.code_digest,
              access.nodes,
              access.highest_nodes,
              access.processes,
              access.coordinator_port,
              Rfc3339(credentials.renew_at)}
      .dump(-1, ' ', false, json::error_handler_t::replace);
}

ApiError Internal(const std::string& message) {
  ApiError error;
  error.status = 500;
  error.message = message;
  return error;
}

}  // namespace

struct Applier::Done {
  std::optional<ApiError> error;
  std::optional<std::pair<PodDigest, uint64_t>> pod;
  std::optional<std::pair<FactKey, std::optional<Fact>>> fact;
};

Applier::Done Applier::Failed(kube::ApiError error) {
  Done done;
  done.error = std::move(error);
  return done;
}

JobIdentity IdentityOf(const ObservedJob& job) {
  return {job.name_space, job.name, job.uid, job.created};
}

Applier::Applier(kube::Client& client, OperatorKey key,
                 std::map<std::string, std::string> job_labels, std::shared_ptr<const Clock> clock)
    : client_(client),
      key_(std::move(key)),
      job_labels_(std::move(job_labels)),
      clock_(std::move(clock)) {}

Result<JobCredentials> Applier::Credentials(const JobIdentity& job, ApplyState& state) const {
  const WallTime now = clock_->WallNow();
  if (!state.credentials || now >= state.credentials->renew_at) {
    Result<JobCredentials> made = DeriveCredentials(key_, job, now);
    if (!made.ok()) return made;
    state.credentials = std::move(*made);
  }
  return *state.credentials;
}

// Success, with `object` as the API server holds it now.
Applier::Done Applier::Stored(const std::string& plural, const json& object) const {
  Done done;
  if (plural == kPods.plural) {
    done.pod = {DigestPod(object), kube::ResourceVersionOf(object).value_or(0)};
  } else if (const auto kind = FactKindOf(plural)) {
    done.fact = {FactKey{*kind, kube::NameOf(object).name}, DigestFact(object, clock_->WallNow())};
  }
  return done;
}

Applied Applier::Apply(const ObservedJob& job, const std::vector<Action>& actions,
                       ApplyState& state) {
  Applied applied;
  const bool creates_pods = std::any_of(actions.begin(), actions.end(), CreatesPod);
  bool may_create_pods = true;
  if (!creates_pods) state.batch = 1;
  for (size_t i = 0; i < actions.size();) {
    const Action& action = actions[i];
    if (!CreatesPod(action)) {
      ++i;
      if (action.kind == Action::Kind::kControl) continue;
      Done done = One(job, action, state, creates_pods);
      // Pods need what these two make.
      const bool vital =
          action.kind == Action::Kind::kEnsureAccess || action.kind == Action::Kind::kSnapshotCode;
      if (done.error && vital) may_create_pods = false;
      Note(action, std::move(done), applied);
      continue;
    }
    size_t end = i;
    while (end < actions.size() && CreatesPod(actions[end])) ++end;
    while (i < end && may_create_pods) {
      const size_t count = std::min(state.batch, end - i);
      std::vector<Done> all = CreateTogether(job.uid, actions, i, count);
      for (size_t k = 0; k < count; ++k) {
        if (all[k].error) may_create_pods = false;
        Note(actions[i + k], std::move(all[k]), applied);
      }
      state.batch = may_create_pods ? std::min(2 * state.batch, kLargestBatch) : 1;
      i += count;
    }
    if (i < end) {
      spdlog::info("{} pods are not created this time, after what failed before", end - i);
      i = end;
    }
  }
  return applied;
}

Applier::Done Applier::One(const ObservedJob& job, const Action& action, ApplyState& state,
                           bool creates_pods) {
  switch (action.kind) {
    case Action::Kind::kCreate: return Create(job.uid, action);
    case Action::Kind::kApply: {
      const kube::Resource* resource = FindResource(action.resource);
      if (resource == nullptr) return Failed(Internal("unknown resource " + action.resource));
      const auto applied = client_.Apply(*resource, action.object);
      if (!applied.ok()) return Failed(applied.error());
      return Stored(action.resource, *applied);
    }
    case Action::Kind::kEnsureAccess: return EnsureAccess(job, action, state, creates_pods);
    case Action::Kind::kSnapshotCode: return SnapshotCode(job, action);
    case Action::Kind::kDelete: return Delete(job, action);
    case Action::Kind::kControl: return {};
  }
  return {};
}

Applier::Done Applier::Create(const std::string& job_uid, const Action& action) {
  const kube::Resource* resource = FindResource(action.resource);
  if (resource == nullptr) return Failed(Internal("unknown resource " + action.resource));
  kube::ApiResult<json> made = client_.Create(*resource, action.object);
  if (!made.ok() && made.error().AlreadyExists() && !made.error().BeingDeleted()) {
    const ApiError exists = made.error();
    made = client_.Get(*resource, kube::NameOf(action.object), {}, action.resource == "secrets");
    if (!made.ok() && made.error().NotFound()) return Failed(exists);
    if (made.ok()) {
      const json* owner = kube::ControllerOf(*made);
      if (owner == nullptr || kube::TextAt(*owner, "/uid") != job_uid) {
        return Failed(Taken(action.Target()));
      }
    }
  }
  if (!made.ok()) return Failed(made.error());
  return Stored(action.resource, *made);
}

Applier::Done Applier::EnsureAccess(const ObservedJob& job, const Action& action, ApplyState& state,
                                    bool read) {
  const JobIdentity identity = IdentityOf(job);
  const Result<JobCredentials> credentials = Credentials(identity, state);
  if (!credentials.ok()) return Failed(Internal(credentials.error().message));
  std::string made_of = MadeOf(*credentials, action.access);
  const Instant now = clock_->Now();
  if (!read && state.made_of == made_of && now - state.checked < kAccessCheck) return {};
  state.made_of.clear();
  const json wanted =
      AccessSecret(identity, AccessSecretData(*credentials, identity, action.access), job_labels_);
  // A job that has no status yet has no Secret either, most likely.
  Done done = job.status.phase.empty() ? CreateAccess(wanted) : ReviseAccess(wanted, job.uid);
  if (done.error && done.error->AlreadyExists()) done = ReviseAccess(wanted, job.uid);
  if (done.error) return done;
  state.made_of = std::move(made_of);
  state.checked = now;
  return done;
}

Applier::Done Applier::CreateAccess(const json& wanted) {
  const auto made = client_.Create(kSecrets, wanted);
  return made.ok() ? Stored(kSecrets.plural, *made) : Failed(made.error());
}

// Looks before it writes.
Applier::Done Applier::ReviseAccess(const json& wanted, const std::string& job_uid) {
  const kube::ObjectName name = kube::NameOf(wanted);
  const auto held = client_.Get(kSecrets, name, {}, /*metadata_only=*/true);
  if (!held.ok()) return held.error().NotFound() ? CreateAccess(wanted) : Failed(held.error());
  const Fact fact = DigestFact(*held, {});
  if (fact.owner_uid != job_uid) return Failed(Taken("secrets/" + name.name));
  if (fact.content == DigestFact(wanted, {}).content) return {};
  spdlog::info("secret {} is brought up to date", name.name);
  const auto applied = client_.Apply(kSecrets, wanted);
  return applied.ok() ? Stored(kSecrets.plural, *applied) : Failed(applied.error());
}

Applier::Done Applier::SnapshotCode(const ObservedJob& job, const Action& action) {
  const auto source = client_.Get(kConfigMaps, {job.name_space, action.name});
  if (!source.ok()) {
    if (!source.error().NotFound()) return Failed(source.error());
    Fact absent;
    absent.state = Fact::State::kAbsent;
    absent.read = clock_->WallNow();
    Done done;
    done.fact = {FactKey{FactKind::kConfigMap, action.name}, absent};
    return done;
  }
  auto copy = client_.Create(kConfigMaps, CodeSnapshot(IdentityOf(job), *source, job_labels_));
  // Whose it is, is the plan's to judge.
  if (!copy.ok() && copy.error().AlreadyExists() && !copy.error().BeingDeleted()) {
    copy = client_.Get(kConfigMaps, {job.name_space, CodeSnapshotName(IdentityOf(job))}, {},
                       /*metadata_only=*/true);
  }
  return copy.ok() ? Stored(kConfigMaps.plural, *copy) : Failed(copy.error());
}

Applier::Done Applier::Delete(const ObservedJob& job, const Action& action) {
  const kube::Resource* resource = FindResource(action.resource);
  if (resource == nullptr) return Failed(Internal("unknown resource " + action.resource));
  kube::DeleteOptions options;
  options.uid = action.uid;
  const auto gone = client_.Delete(*resource, {job.name_space, action.name}, options);
  // A conflict: that object is gone, and another one has its name.
  if (!gone.ok() && !gone.error().NotFound() && !gone.error().Conflict()) {
    return Failed(gone.error());
  }
  Done done;
  if (const auto kind = FactKindOf(action.resource)) {
    done.fact = {FactKey{*kind, action.name}, std::nullopt};
  }
  return done;
}

std::vector<Applier::Done> Applier::CreateTogether(const std::string& job_uid,
                                                   const std::vector<Action>& actions, size_t first,
                                                   size_t count) {
  std::vector<Done> all(count);
  std::vector<Thread> threads;
  threads.reserve(count - 1);
  for (size_t k = 1; k < count; ++k) {
    threads.emplace_back("apply", [&, k] { all[k] = Create(job_uid, actions[first + k]); });
  }
  all[0] = Create(job_uid, actions[first]);
  for (Thread& thread : threads) thread.join();
  return all;
}

void Applier::Note(const Action& action, Done done, Applied& applied) const {
  const std::string target = action.Target();
  if (!done.error) {
    applied.done.insert(target);
    // An access Secret that is as it should be is the one thing that is done without a write.
    if (action.kind != Action::Kind::kEnsureAccess || done.fact) {
      applied.wrote = true;
      spdlog::debug("{}: done ({})", target, action.reason);
    }
    if (done.pod) applied.pods.push_back(std::move(*done.pod));
    if (done.fact) applied.facts.push_back(std::move(*done.fact));
    return;
  }
  const ApiError& error = *done.error;
  spdlog::warn("{} ({}): {}", target, action.reason, error.message);
  const bool passing = error.Transient() || error.AlreadyExists();
  if (passing) applied.again = true;
  const std::string reason =
      error.NamespaceTerminating() ? std::string(kNamespaceTerminating) : error.reason;
  (passing ? applied.passing : applied.refused)
      .push_back({target, error.status, reason, error.message, clock_->WallNow()});
}

}  // namespace parallelrun::operators
