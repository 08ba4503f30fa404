#include "operator/reconciler.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/escape.h"
#include "base/json.h"
#include "base/log.h"
#include "operator/facts.h"
#include "operator/resources.h"

namespace parallelrun::operators {
namespace {

using nlohmann::json;
using Outcome = Metrics::Outcome;

// A plan whose facts lead to more questions: so many rounds of reading, then it waits.
constexpr int kFactRounds = 5;
// Plans before a status is written: the code is copied, pods are made, nothing is left to do.
constexpr int kSteps = 3;
constexpr Duration kCacheWait = seconds(1);
constexpr Duration kAgainSoon = milliseconds(200);
constexpr Duration kShortestSleep = milliseconds(100);
constexpr Duration kNextStep = milliseconds(10);  // after something was done
constexpr Duration kLongestSleep = std::chrono::hours(1);
// When something was refused and the plan has no time of its own.
constexpr Duration kRefusedRetry = seconds(30);
constexpr Duration kOldFailure = std::chrono::minutes(10);
// When something failed that may succeed soon: the back-off grows to a quarter of an hour, and what
// the plan waits for (a deadline, the TTL) is not to be late by that.
constexpr Duration kShortestRetry = seconds(5);
constexpr Duration kLongestRetry = seconds(30);
// What nodes of a deleted job have, from its deletion on: as long as those of a canceled job take.
constexpr Duration kGraceOfDeleted = seconds(5);
// The status tells of what has failed so often in a row, which takes some 5 s: most of it passes
// before.
constexpr int kToldFailures = 10;

std::string Url(const std::string& ip, uint16_t port) {
  return ip.find(':') == std::string::npos ? fmt::format("https://{}:{}", ip, port)
                                           : fmt::format("https://[{}]:{}", ip, port);
}

}  // namespace

struct Reconciler::Memory {
  std::string uid;
  LogSubject subject;
  std::map<FactKey, Fact> facts;
  std::map<std::string, ApplyFailure> failures;  // by target
  std::vector<ApplyFailure> passing;             // of the last turn, if it is to be told
  // Created, and maybe not in the cache yet: by name, with the resourceVersion that shows it.
  std::map<std::string, std::pair<PodDigest, uint64_t>> created;
  uint64_t status_version = 0;  // of our last status write
  ApplyState apply;
};

std::optional<HeldPod> DigestHeldPod(const json& pod) {
  const json* owner = kube::ControllerOf(pod);
  if (owner == nullptr || kube::TextAt(*owner, "/kind") != api::kJobKind) return std::nullopt;
  const kube::ObjectName job{kube::TextAt(pod, "/metadata/namespace"),
                             kube::TextAt(*owner, "/name")};
  return HeldPod{job.Key(), DigestPod(pod)};
}

Reconciler::Reconciler(Parts parts, OperatorOptions options, OperatorKey key,
                       std::shared_ptr<const Clock> clock)
    : parts_(parts),
      options_(std::move(options)),
      clock_(clock),
      applier_(parts.client, std::move(key), options_.job_labels, std::move(clock)) {}

void Reconciler::Reconcile(const std::string& key) {
  Metrics::Reconcile measured(parts_.metrics, *clock_);
  try {
    measured.outcome = Work(key);
  } catch (const std::exception& e) {
    spdlog::error("job {}: {}", Printable(key, 300), Printable(e.what(), 500));
    TryAgain(key, kLongestRetry);
    measured.outcome = Outcome::kError;
  }
}

Outcome Reconciler::Work(const std::string& key) {
  const JobInformer::Pointer job = parts_.jobs.Get(key);
  HurryNodesOfDeleted(key, job);
  if (!job) {
    Drop(key);
    return Outcome::kSuccess;
  }
  const std::shared_ptr<Memory> memory = MemoryOf(key, *job);
  const LogScope scope(memory->subject);
  if (!parts_.jobs.HasSeen(job->name_space, memory->status_version)) {
    parts_.queue.AddAfter(key, kCacheWait);  // the cache's news of our own write comes before
    return Outcome::kRequeueAfter;
  }

  std::optional<Plan> plan;
  Applied applied;
  bool news = false;
  for (int step = 0; step < kSteps; ++step) {
    plan = PlanWithFacts(key, *job, *memory);
    if (!plan) {
      parts_.queue.AddAfter(key, kCacheWait);
      return Outcome::kRequeueAfter;
    }
    Pull(key, *job, *plan, *memory);
    applied = applier_.Apply(*job, plan->actions, memory->apply);
    if (parts_.queue.Failures(key) + 1 < kToldFailures) applied.passing.clear();
    news = Remember(applied, *memory);
    // A status that shows the new pods already saves the one that would follow it.
    const bool goes_on = plan->goes_on || !applied.pods.empty();
    if (!goes_on || applied.again || news) break;
  }
  const Written written = WriteStatus(*job, *plan, *memory);
  if (applied.again || written == Written::kFailed) {
    const Duration wake = plan->wake ? *plan->wake - clock_->WallNow() : kLongestRetry;
    TryAgain(key, std::clamp(wake, kShortestRetry, kLongestRetry));
    return Outcome::kError;
  }
  parts_.queue.Forget(key);
  std::optional<Duration> sleep;
  const auto within = [&sleep](Duration d) { sleep = sleep ? std::min(*sleep, d) : d; };
  if (plan->wake) {
    within(std::clamp(*plan->wake - clock_->WallNow(), applied.wrote ? kNextStep : kShortestSleep,
                      kLongestSleep));
  }
  if (!applied.refused.empty() && !plan->wake) within(kRefusedRetry);
  if (news) within(kAgainSoon);
  if (written == Written::kStale) within(kAgainSoon);
  if (!sleep) return Outcome::kSuccess;
  parts_.queue.AddAfter(key, *sleep);
  return Outcome::kRequeueAfter;
}

void Reconciler::TryAgain(const std::string& key, Duration at_most) {
  parts_.queue.AddRateLimited(key);
  parts_.queue.AddAfter(key, at_most);  // the earlier of the two
}

std::shared_ptr<Reconciler::Memory> Reconciler::MemoryOf(const std::string& key,
                                                         const ObservedJob& job) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Memory>& memory = memories_[key];
  if (!memory || memory->uid != job.uid) {
    // The news of the old job's end and of this one may have come as one: nobody dropped what the
    // old one's coordinator said.
    if (memory) parts_.coordinators.Forget(key);
    memory = std::make_shared<Memory>();
    memory->uid = job.uid;
    memory->subject = {"job",
                       {{"namespace", job.name_space}, {"name", job.name}, {"uid", job.uid}},
                       job.name_space + "/" + job.name};
  }
  return memory;
}

void Reconciler::Drop(const std::string& key) {
  parts_.coordinators.Forget(key);
  parts_.queue.Forget(key);
  const std::lock_guard lock(mutex_);
  memories_.erase(key);
}

// Their coordinator is gone, and they would look for it for most of the grace that their pods have,
// hold their hosts, and keep a job of the same name waiting.
void Reconciler::HurryNodesOfDeleted(const std::string& key,
                                     const JobInformer::Pointer& job) const {
  const std::string living = job && !job->deleting ? job->uid : "";
  const WallTime soon = clock_->WallNow() + kGraceOfDeleted;
  int hurried = 0;
  for (const PodInformer::Pointer& held : parts_.pods.Indexed(key)) {
    const PodDigest& pod = held->pod;
    if (pod.role != PodRole::kNode || pod.job_uid == living) continue;
    if (!pod.deletion || *pod.deletion <= soon) continue;
    kube::DeleteOptions options;
    options.uid = pod.uid;
    options.grace_seconds = static_cast<int>(kGraceOfDeleted / seconds(1));
    const auto gone =
        parts_.client.Delete(kPods, {kube::ParseKey(key).name_space, pod.name}, options);
    if (gone.ok()) ++hurried;
    // A conflict: that pod is gone, and another one has its name.
    if (gone.ok() || gone.error().NotFound() || gone.error().Conflict()) continue;
    spdlog::warn("pods/{} of a deleted job: {}", pod.name, gone.error().message);
    parts_.queue.AddAfter(key, kShortestRetry);
  }
  if (hurried > 0) {
    spdlog::info("{} nodes of a deleted job {} have {} to end", hurried, Printable(key, 300),
                 HumanDuration(kGraceOfDeleted));
  }
}

Observed Reconciler::Observe(const std::string& key, const ObservedJob& job, Memory& memory) const {
  Observed observed;
  observed.job = job;
  // Asked before the pods are read: what the cache has seen by then is in what is read.
  std::erase_if(memory.created, [&](const auto& entry) {
    return parts_.pods.HasSeen(job.name_space, entry.second.second);
  });
  auto unseen = memory.created;
  for (const PodInformer::Pointer& held : parts_.pods.Indexed(key)) {
    unseen.erase(held->pod.name);
    (held->pod.job_uid == job.uid ? observed.pods : observed.old_pods).push_back(held->pod);
  }
  for (const auto& [name, created] : unseen) observed.pods.push_back(created.first);
  if (!job.status.start_time && !job.output_address.empty()) {
    for (const JobInformer::Pointer& other : parts_.jobs.Indexed(job.output_address)) {
      if (other->uid == job.uid) continue;
      if (const std::optional<Rival> rival = RivalOf(*other)) observed.rivals.push_back(*rival);
    }
  }
  observed.facts = memory.facts;
  for (const auto& [target, failure] : memory.failures) observed.failures.push_back(failure);
  observed.passing = memory.passing;
  if (const auto answer = parts_.coordinators.Latest(key)) {
    CoordinatorView& view = observed.coordinator;
    view.pod_uid = answer->pod_uid;
    view.error = answer->error;
    view.asked_since = answer->asked_since;
    view.pulled = answer->at;
    if (answer->progress) view.report = ParseReport(*answer->progress);
    if (!answer->acknowledged.empty()) {
      view.acknowledged = ParseJson(answer->acknowledged).value_or(nullptr);
      view.acknowledged_at = answer->acknowledged_at;
    }
  }
  return observed;
}

std::optional<Plan> Reconciler::PlanWithFacts(const std::string& key, const ObservedJob& job,
                                              Memory& memory) const {
  for (int round = 0; round < kFactRounds; ++round) {
    const Observed observed = Observe(key, job, memory);
    const WallTime now = clock_->WallNow();
    Plan plan = MakePlan(observed, options_, now);
    const std::vector<FactKey> missing = MissingFacts(plan, observed, now);
    if (missing.empty()) {
      std::erase_if(memory.facts, [&plan](const auto& fact) {
        return std::none_of(plan.needs.begin(), plan.needs.end(),
                            [&fact](const Need& need) { return need.key == fact.first; });
      });
      return plan;
    }
    for (const FactKey& fact : missing) {
      memory.facts[fact] = ReadFact(parts_.client, job.name_space, fact, *clock_);
    }
  }
  spdlog::warn("the facts that the plan needs are still not there after {} rounds of reading",
               kFactRounds);
  return std::nullopt;
}

void Reconciler::Pull(const std::string& key, const ObservedJob& job, const Plan& plan,
                      Memory& memory) {
  if (!plan.pull) {
    parts_.coordinators.Forget(key);
    return;
  }
  const Result<JobCredentials> credentials = applier_.Credentials(IdentityOf(job), memory.apply);
  if (!credentials.ok()) {
    spdlog::error("{}", credentials.error().message);
    return;
  }
  CoordinatorAddress address;
  address.pod_uid = plan.pull->pod_uid;
  address.url = Url(plan.pull->address, plan.pull->port);
  address.server_name = credentials->server_name;
  address.ca_pem = credentials->ca_pem;
  address.token = credentials->operator_token;
  parts_.coordinators.Watch(key, address, plan.pull->max_age);
  for (const Action& action : plan.actions) {
    if (action.kind != Action::Kind::kControl) continue;
    const std::string control = action.object.dump();
    if (parts_.coordinators.Control(key, control)) {
      spdlog::debug("the coordinator is told {} ({})", control, action.reason);
    }
  }
}

// Whether something was refused that was not refused before, or for another reason, or what failed
// for a while has passed. Words alone are no news: some name a time or a count, new each time.
bool Reconciler::Remember(Applied& applied, Memory& memory) const {
  bool news = applied.passing.empty() && !memory.passing.empty();
  memory.passing = std::move(applied.passing);
  const WallTime now = clock_->WallNow();
  std::erase_if(memory.failures,
                [now](const auto& failure) { return now - failure.second.at > kOldFailure; });
  for (const std::string& target : applied.done) memory.failures.erase(target);
  for (ApplyFailure& failure : applied.refused) {
    ApplyFailure& held = memory.failures[failure.object];
    news |= held.status != failure.status || held.reason != failure.reason;
    held = failure;
  }
  for (auto& [key, fact] : applied.facts) {
    if (fact) {
      memory.facts[key] = std::move(*fact);
    } else {
      memory.facts.erase(key);
    }
  }
  for (auto& [pod, version] : applied.pods) {
    if (version != 0) memory.created[pod.name] = {pod, version};
  }
  return news;
}

Reconciler::Written Reconciler::WriteStatus(const ObservedJob& job, const Plan& plan,
                                            Memory& memory) {
  if (plan.write_status) {
    const auto stored =
        parts_.client.ApplyStatus(kJobs, StatusObject(job, plan.status), job.resource_version);
    if (!stored.ok()) {
      const kube::ApiError& error = stored.error();
      if (error.Conflict() || error.NotFound()) return Written::kStale;
      spdlog::error("the status cannot be written: {}", error.message);
      return Written::kFailed;
    }
    memory.status_version = kube::ResourceVersionOf(*stored).value_or(0);
    parts_.metrics.StatusWritten(job.name_space, job.status, plan);
    if (job.status.phase != plan.status.phase) {
      spdlog::info("phase {} -> {}", job.status.phase.empty() ? "none" : job.status.phase,
                   plan.status.phase);
    }
  }
  Emit(job, plan);
  return Written::kYes;
}

void Reconciler::Emit(const ObservedJob& job, const Plan& plan) {
  for (const EventToEmit& one : plan.events) {
    kube::Event event;
    event.api_version = api::kApiVersion;
    event.kind = api::kJobKind;
    event.object = {job.name_space, job.name};
    event.uid = job.uid;
    event.resource_version = job.resource_version;
    event.type = one.warning ? kube::EventType::kWarning : kube::EventType::kNormal;
    event.reason = one.reason;
    event.message = one.message;
    spdlog::info("event {}: {}", one.reason, Printable(one.message, kMaxMessage));
    parts_.events.Record(std::move(event));
  }
}

}  // namespace parallelrun::operators
