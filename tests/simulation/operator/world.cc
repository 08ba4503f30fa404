#include "tests/simulation/operator/world.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "operator/builders/objects.h"
#include "operator/plan_pods.h"

namespace parallelrun {
namespace {

using nlohmann::json;

const char kUid[] = "0a1b2c3d-0000-4000-8000-000000000001";

const ParsedJob& BaseJob() {
  static const ParsedJob kJob = ReadJob(json::parse(R"({
      "apiVersion": "parallelrun.dev/v1alpha1", "kind": "ParallelRunJob",
      "metadata": {"name": "sim", "namespace": "default"},
      "spec": {"entryScript": "score.py", "code": {"configMap": {"name": "code"}},
        "environment": {"image": "i"},
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}],
        "inputs": [{"name": "in", "files": {"volume": "v", "path": "in"}}],
        "output": {"volume": "v"}}})"),
                                        Target::kCluster);
  return kJob;
}

}  // namespace

OperatorWorld::OperatorWorld(uint64_t seed, bool trace)
    : random_(seed), trace_(trace), two_operators_(seed % 4 == 3), now_(seconds(1'000'000)) {
  parsed_ = BaseJob();
  options_.runtime_image = "runtime";
  options_.network_policies = Chance(0.3);
  StoredJob first;
  first.node_count = 1 + Below(4);
  first.suspend = Chance(0.1);
  parsed_.job.spec.node_restart_limit = Chance(0.2) ? Below(3) : 1000;
  parsed_.job.spec.coordinator.restart_limit = 1000;
  ledger_.total = 5 + Below(40);
  ledger_.will_fail = Chance(0.2);
  code_there_ = !Chance(0.2);
  Fact claim;
  claim.access_modes = {Chance(0.5) ? "ReadWriteMany" : "ReadWriteOnce"};
  objects_[{FactKind::kClaim, "c"}] = claim;
  StoreJob(first);
}

void OperatorWorld::Trace(const std::string& text) const {
  if (trace_) {
    fmt::print("{:8} {}\n",
               std::chrono::duration_cast<seconds>(now_.time_since_epoch()).count() - 1'000'000,
               text);
  }
}

void OperatorWorld::Violated(const std::string& what) {
  Trace("VIOLATED " + what);
  if (violation_.empty()) violation_ = what;
}

void OperatorWorld::StoreJob(StoredJob changed) {
  changed.version = ++version_;
  jobs_.push_back(std::move(changed));
}

void OperatorWorld::StorePod(PodDigest pod) {
  changes_.push_back({++version_, pod.name, pod});
  pods_[pod.name] = std::move(pod);
  CheckPods();
}

void OperatorWorld::RemovePod(const std::string& name) {
  Trace("gone " + name);
  changes_.push_back({++version_, name, std::nullopt});
  pods_.erase(name);
}

// Never more live pods of an index than one, whatever is terminating.
void OperatorWorld::CheckPods() {
  if (two_operators_) return;
  std::map<std::pair<PodRole, int32_t>, int> live;
  for (const auto& [name, pod] : pods_) {
    if (pod.Live() && ++live[{pod.role, pod.index}] > 1) Violated("two live pods: " + name);
  }
}

void OperatorWorld::Restart(SimOperator& one) {
  one = SimOperator();
  one.jobs_seen = jobs_.size();
  one.pods_seen = changes_.size();
  one.cache = pods_;
}

void OperatorWorld::CatchUp(SimOperator& one) {
  // Two watches, each in order, each with its own delay.
  if (Chance(0.8)) one.jobs_seen = std::min(jobs_.size(), one.jobs_seen + 1 + Below(3));
  size_t events = Chance(0.8) ? static_cast<size_t>(1 + Below(6)) : 0;
  while (events-- > 0 && one.pods_seen < changes_.size()) {
    const PodChange& change = changes_[one.pods_seen++];
    if (change.pod) {
      one.cache[change.name] = *change.pod;
    } else {
      one.cache.erase(change.name);
    }
    const auto made = one.made.find(change.name);
    if (made != one.made.end() && made->second.first <= change.version) one.made.erase(made);
  }
}

Observed OperatorWorld::See(const SimOperator& one) const {
  const StoredJob& stored = jobs_[one.jobs_seen - 1];
  Observed seen;
  seen.job.parsed = parsed_;
  JobSpec& spec = seen.job.parsed.job.spec;
  spec.node_count = stored.node_count;
  spec.suspend = stored.suspend;
  spec.cancel = stored.cancel;
  seen.job.name_space = "default";
  seen.job.name = "sim";
  seen.job.uid = kUid;
  seen.job.generation = stored.generation;
  seen.job.deleting = stored.deleting;
  seen.job.created = WallTime(seconds(1'000'000));
  seen.job.status = stored.status;
  for (const auto& [name, pod] : one.cache) seen.pods.push_back(pod);
  for (const auto& [name, made] : one.made) {
    if (!one.cache.contains(name)) seen.pods.push_back(made.second);
  }
  seen.coordinator = one.view;
  seen.facts = one.facts;
  for (const auto& [target, failure] : one.failures) seen.failures.push_back(failure);
  return seen;
}

void OperatorWorld::CheckPlan(const Plan& plan, const StoredJob& seen) {
  const bool over = seen.status.Over() || seen.deleting;
  for (const Action& action : plan.actions) {
    const bool makes = action.kind == Action::Kind::kCreate && action.resource == "pods";
    if (makes && over) Violated("a pod for a job that is over: " + action.name);
    if (makes && !two_operators_ && job().status.Over()) Violated("a pod after the end");
  }
  if (seen.status.Is("Complete") && !plan.status.Is("Complete"))
    Violated("Complete was taken back");
  if (seen.status.Is("Failed") && !plan.status.Is("Failed")) Violated("Failed was taken back");
  if (plan.status.Is("Complete") && plan.status.Is("Failed")) Violated("Complete and Failed");
}

void OperatorWorld::Turn(SimOperator& one, bool faults) {
  CatchUp(one);
  if (jobs_[one.jobs_seen - 1].version < one.wrote) return;  // its own write is not there yet
  const StoredJob based_on = jobs_[one.jobs_seen - 1];
  Plan plan;
  for (int round = 0; round < 5; ++round) {
    const Observed seen = See(one);
    plan = MakePlan(seen, options_, now_);
    ++plans_;
    const std::vector<FactKey> missing = MissingFacts(plan, seen, now_);
    if (missing.empty()) break;
    for (const FactKey& key : missing) {
      const auto found = objects_.find(key);
      Fact fact = found == objects_.end() ? Fact{} : found->second;
      if (found == objects_.end()) fact.state = Fact::State::kAbsent;
      if (key == FactKey{FactKind::kConfigMap, "code"} && code_there_) {
        fact.state = Fact::State::kPresent;
      }
      fact.read = now_;
      one.facts[key] = fact;
    }
  }
  CheckPlan(plan, based_on);
  for (const Action& action : plan.actions) {
    if (!Do(one, action, faults)) return;  // it crashed
  }
  if (faults && Chance(0.02)) return Restart(one);
  if (plan.write_status) WriteStatus(one, plan, based_on);
  if (!plan.write_status || one.wrote == job().version) {
    for (const auto& [name, pod] : one.cache) {
      if (pod.main.running) ran_.insert(name);
    }
  }
  if (plan.pull) Pull(one);
  one.wake = plan.wake;
}

bool OperatorWorld::Do(SimOperator& one, const Action& action, bool faults) {
  if (faults && Chance(0.01)) {
    Trace("the operator crashes before " + action.Target());
    Restart(one);
    return false;
  }
  one.failures.erase(action.Target());
  switch (action.kind) {
    case Action::Kind::kCreate:
      if (action.resource == "pods") {
        CreatePod(one, action, faults);
        break;
      }
      [[fallthrough]];
    case Action::Kind::kApply: {
      const FactKey key{
          action.resource == "services" ? FactKind::kService : FactKind::kNetworkPolicy,
          action.name};
      if (action.kind == Action::Kind::kApply || !objects_.contains(key)) {
        objects_[key] = DigestFact(action.object, now_);
      }
      one.facts.erase(key);
      break;
    }
    case Action::Kind::kSnapshotCode: {
      if (!code_there_) {
        Fact absent;
        absent.state = Fact::State::kAbsent;
        absent.read = now_;
        one.facts[{FactKind::kConfigMap, "code"}] = absent;
        break;
      }
      const JobIdentity identity{"default", "sim", kUid, {}};
      const json copy = CodeSnapshot(identity, {{"data", {{"score.py", "x"}}}});
      const FactKey key{FactKind::kConfigMap, CodeSnapshotName(identity)};
      objects_.try_emplace(key, DigestFact(copy, now_));
      one.facts[key] = objects_.at(key);
      break;
    }
    case Action::Kind::kEnsureAccess: break;
    case Action::Kind::kDelete: {
      const auto found = pods_.find(action.name);
      if (found == pods_.end() || found->second.uid != action.uid) break;
      Trace("delete " + action.name + ": " + action.reason);
      PodDigest pod = found->second;
      if (pod.Terminal() && !pod.deletion) {
        RemovePod(action.name);
      } else if (!pod.deletion) {
        pod.deletion = now_ + seconds(60);
        StorePod(std::move(pod));
      }
      break;
    }
    case Action::Kind::kControl: Control(one, action); break;
  }
  return true;
}

void OperatorWorld::CreatePod(SimOperator& one, const Action& action, bool faults) {
  if (pods_.contains(action.name)) return;  // AlreadyExists, by the same controller
  if (faults && Chance(0.03)) {
    one.failures[action.Target()] = {action.Target(), 403, "Forbidden", "exceeded quota: q", now_};
    return;
  }
  if (ran_.contains(action.name) && !two_operators_)
    Violated("a name is used again: " + action.name);
  Trace("create " + action.name + ": " + action.reason);
  PodDigest pod = DigestPod(action.object);
  pod.uid = fmt::format("pod-{}", next_uid_++);
  pod.created = now_;
  one.made[pod.name] = {version_ + 1, pod};
  StorePod(std::move(pod));
}

void OperatorWorld::WriteStatus(SimOperator& one, const Plan& plan, const StoredJob& based_on) {
  if (job().version != based_on.version) return;  // Conflict: planned again with what is new
  StoredJob changed = job();
  changed.status = ParseStatus(ToJson(plan.status));
  if (changed.status != plan.status) Violated("a status is not read back as it was written");
  if (changed.status.nodes.restarts > own_failures_ && !two_operators_) {
    Violated(
        fmt::format("{} restarts counted of {}", changed.status.nodes.restarts, own_failures_));
  }
  if (changed.status.phase != job().status.phase) Trace("phase " + changed.status.phase);
  StoreJob(std::move(changed));
  one.wrote = job().version;
}

void OperatorWorld::Pull(SimOperator& one) {
  const auto found = std::find_if(pods_.begin(), pods_.end(), [&](const auto& pod) {
    return pod.second.uid == ledger_.owner && pod.second.main.running;
  });
  if (found == pods_.end() || Chance(0.1)) {
    one.view.error = "no answer";
    return;
  }
  Report report;
  report.control_generation = ledger_.control_generation;
  report.total = ledger_.total;
  report.planned = ledger_.total;
  report.succeeded = ledger_.settled;
  report.listing_done = true;
  report.pending = ledger_.total - ledger_.settled;
  report.state = report.pending > 0 ? "Running" : "Finalizing";
  for (const auto& [name, pod] : pods_) {
    if (pod.role == PodRole::kNode && pod.main.running) report.registered.push_back(pod.index);
  }
  if (ledger_.verdict) {
    report.state = *ledger_.verdict ? "Succeeded" : "Failed";
    report.verdict = ReportVerdict{*ledger_.verdict, ledger_.canceled ? "Canceled" : "", ""};
  }
  if (one.view.pod_uid != ledger_.owner) one.view.acknowledged.reset();
  one.view.pod_uid = ledger_.owner;
  one.view.report = report;
  one.view.pulled = now_;
  one.view.error.clear();
}

void OperatorWorld::Control(SimOperator& one, const Action& action) {
  if (action.uid != ledger_.owner || Chance(0.1)) return;
  if (one.view.pod_uid != action.uid) one.view.report.reset();
  one.view.pod_uid = action.uid;
  one.view.acknowledged = action.object;
  one.view.acknowledged_at = now_;
  ledger_.control_generation =
      std::max(ledger_.control_generation, action.object["generation"].get<int64_t>());
  ledger_.node_count = action.object["nodeCount"].get<int32_t>();
  if (action.object["cancel"] == true && !ledger_.verdict && ledger_.settled < ledger_.total) {
    ledger_.verdict = false;
    ledger_.canceled = true;
  }
}

std::string OperatorWorld::Run() {
  for (SimOperator& one : operators_) Restart(one);
  const int faulty = 100 + Below(400);
  int leader = 0;
  for (int step = 0; step < faulty + 3000 && violation_.empty(); ++step) {
    const bool faults = step < faulty;
    if (step == faulty) {  // the user leaves the job alone, everything works
      StoredJob healed = job();
      if (healed.suspend || healed.node_count == 0) ++healed.generation;
      healed.suspend = false;
      healed.node_count = std::max(1, healed.node_count);
      StoreJob(healed);
      code_there_ = true;
      Trace("no faults from here on");
    }
    now_ += seconds(Chance(0.7) ? Below(3) : Below(30));
    if (faults && Chance(0.01)) leader = 1 - leader, Restart(operators_[leader]);
    if (faults && Chance(0.03)) User();
    Turn(operators_[leader], faults);
    if (two_operators_ && faults) Turn(operators_[1 - leader], faults);
    Kubelet(faults);
    if (!faults && Settled()) return AfterTheEnd();
  }
  return violation_.empty() ? "the job does not end: phase " + job().status.phase : violation_;
}

// Whatever is forgotten by then, nothing happens any more.
std::string OperatorWorld::AfterTheEnd() {
  while (!pods_.empty()) RemovePod(pods_.begin()->first);
  Restart(operators_[0]);
  for (int i = 0; i < 3; ++i) {
    now_ += seconds(100);
    Turn(operators_[0], false);
  }
  if (!pods_.empty()) Violated("pods after the end");
  return violation_.empty() ? CheckEnd() : violation_;
}

// Over, and as still as it will ever be.
bool OperatorWorld::Settled() const {
  const StoredJob& stored = jobs_.back();
  if (stored.deleting) return true;
  const bool live =
      std::any_of(pods_.begin(), pods_.end(), [](const auto& pod) { return pod.second.Live(); });
  return stored.status.Over() && !live;
}

std::string OperatorWorld::CheckEnd() const {
  const JobStatus& status = jobs_.back().status;
  if (jobs_.back().deleting) return "";
  if (status.Is("Complete")) {
    if (!ledger_.verdict || !*ledger_.verdict) return "Complete without a verdict of success";
    return status.progress && status.progress->percent == 100 ? "" : "Complete at less than 100 %";
  }
  const std::string reason = status.Find("Failed")->reason;
  if (ledger_.verdict && *ledger_.verdict) return "Failed (" + reason + ") though it succeeded";
  if (reason == "Canceled") return jobs_.back().cancel || ledger_.canceled ? "" : "nobody canceled";
  if (reason == "NodeRestartLimitExceeded") {
    return two_operators_ || own_failures_ > *parsed_.job.spec.node_restart_limit
               ? ""
               : "the restart limit was not exceeded";
  }
  if (reason == "JobFailed") return ledger_.will_fail ? "" : "Failed without a reason";
  return "unexpected reason " + reason;
}

}  // namespace parallelrun
