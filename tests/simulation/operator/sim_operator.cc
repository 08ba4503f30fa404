#include "tests/simulation/operator/sim_operator.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "coordinator/control.h"
#include "coordinator/progress.h"
#include "operator/builders/objects.h"
#include "operator/coordinator_client.h"
#include "tests/simulation/operator/cluster.h"
#include "tests/simulation/sim_coordinator.h"

namespace parallelrun::simulation {
namespace {

using nlohmann::json;

constexpr char kUid[] = "0a1b2c3d-0000-4000-8000-000000000001";
constexpr int kFactRounds = 5;
constexpr Duration kShortestSleep = milliseconds(100);
constexpr Duration kRefusedRetry = seconds(30);
constexpr Duration kCallTimeout = seconds(5);
constexpr Duration kLongestBackOff = seconds(15);

}  // namespace

void SimOperator::Restart() {
  ++life_;
  memory_ = Memory();
  memory_.jobs_seen = cluster_.api().jobs().size();
  memory_.pods_seen = cluster_.api().changes().size();
  memory_.cache = cluster_.api().pods();
}

void SimOperator::Step() {
  CatchUp();
  const WallTime now = cluster_.Wall();
  if (memory_.due || (memory_.wake && *memory_.wake <= now)) {
    memory_.due = false;
    memory_.wake.reset();
    if (!Reconcile()) return Restart();
  }
  const bool calls =
      memory_.watch && !memory_.in_flight && (memory_.call_at <= now || !memory_.control.empty());
  if (calls) CallCoordinator();
}

// Two watches, each in order, each with its own delay.
void SimOperator::CatchUp() {
  const ApiServer& api = cluster_.api();
  if (memory_.jobs_seen < api.jobs().size() && cluster_.Chance(800)) {
    ++memory_.jobs_seen;
    memory_.due = true;
  }
  size_t events = cluster_.Chance(800) ? 1 + cluster_.world().rng().Below(6) : 0;
  for (; events > 0 && memory_.pods_seen < api.changes().size(); --events) {
    const PodChange& change = api.changes()[memory_.pods_seen++];
    memory_.due = true;
    if (change.pod) {
      memory_.cache[change.name] = *change.pod;
    } else {
      memory_.cache.erase(change.name);
    }
    const auto made = memory_.made.find(change.name);
    if (made != memory_.made.end() && made->second.first <= change.version) {
      memory_.made.erase(made);
    }
  }
}

operators::Observed SimOperator::See() const {
  const StoredJob& stored = cluster_.api().jobs()[memory_.jobs_seen - 1];
  operators::Observed seen;
  seen.job.parsed = cluster_.job();
  api::JobSpec& spec = seen.job.parsed.job.spec;
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
  for (const auto& [name, pod] : memory_.cache) seen.pods.push_back(pod);
  for (const auto& [name, made] : memory_.made) {
    if (!memory_.cache.contains(name)) seen.pods.push_back(made.second);
  }
  seen.coordinator = memory_.view;
  seen.facts = memory_.facts;
  for (const auto& [target, failure] : memory_.failures) seen.failures.push_back(failure);
  return seen;
}

std::optional<operators::Plan> SimOperator::PlanWithFacts() {
  for (int round = 0; round < kFactRounds; ++round) {
    const operators::Observed seen = See();
    const WallTime now = cluster_.Wall();
    operators::Plan plan = operators::MakePlan(seen, cluster_.options(), now);
    ++plans_;
    const std::vector<operators::FactKey> missing = operators::MissingFacts(plan, seen, now);
    if (missing.empty()) return plan;
    for (const operators::FactKey& key : missing) {
      const auto& objects = cluster_.api().objects;
      const auto found = objects.find(key);
      operators::Fact fact = found == objects.end() ? operators::Fact{} : found->second;
      if (found == objects.end()) fact.state = operators::Fact::State::kAbsent;
      if (key == operators::FactKey{operators::FactKind::kConfigMap, "code"} &&
          cluster_.code_there()) {
        fact.state = operators::Fact::State::kPresent;
      }
      fact.read = now;
      memory_.facts[key] = fact;
    }
  }
  return std::nullopt;
}

bool SimOperator::Reconcile() {
  const StoredJob& based_on = cluster_.api().jobs()[memory_.jobs_seen - 1];
  if (based_on.version < memory_.wrote) return memory_.due = true;  // its own write is not there
  const std::optional<operators::Plan> plan = PlanWithFacts();
  if (!plan) {
    cluster_.Violated("the facts that a plan needs lead to ever more questions");
    return true;
  }
  CheckPlan(*plan);
  Watch(*plan);
  const size_t made = memory_.made.size();
  for (const operators::Action& action : plan->actions) {
    if (cluster_.GoesWrong(3)) {
      cluster_.world().Trace("the operator dies before " + action.Target());
      return false;
    }
    Do(action);
  }
  if (plan->goes_on || memory_.made.size() > made) memory_.due = true;
  if (cluster_.GoesWrong(3)) return false;
  if (plan->write_status && !WriteStatus(*plan)) {
    memory_.due = true;
  } else {
    for (const auto& [name, pod] : memory_.cache) {
      if (pod.main.running) cluster_.NoteRunning(name);
    }
  }
  memory_.wake = plan->wake;
  if (!memory_.failures.empty() && !memory_.wake) memory_.wake = cluster_.Wall() + kRefusedRetry;
  if (memory_.wake) memory_.wake = std::max(*memory_.wake, cluster_.Wall() + kShortestSleep);
  return true;
}

void SimOperator::CheckPlan(const operators::Plan& plan) const {
  const StoredJob& seen = cluster_.api().jobs()[memory_.jobs_seen - 1];
  const bool over = seen.status.Over() || seen.deleting;
  for (const operators::Action& action : plan.actions) {
    const bool makes = action.kind == operators::Action::Kind::kCreate && action.resource == "pods";
    if (makes && over) cluster_.Violated("a pod for a job that is over: " + action.name);
    if (makes && !cluster_.two_operators() && cluster_.api().job().status.Over()) {
      cluster_.Violated("a pod after the end");
    }
  }
  const auto taken_back = [&](const char* type) {
    if (seen.status.Is(type) && !plan.status.Is(type)) {
      cluster_.Violated(fmt::format("{} was taken back", type));
    }
  };
  taken_back("Complete");
  taken_back("Failed");
  if (plan.status.Is("Complete") && plan.status.Is("Failed")) {
    cluster_.Violated("Complete and Failed");
  }
}

void SimOperator::Do(const operators::Action& action) {
  memory_.failures.erase(action.Target());
  auto& objects = cluster_.api().objects;
  switch (action.kind) {
    case operators::Action::Kind::kCreate:
    case operators::Action::Kind::kApply: {
      if (action.resource == "pods") return CreatePod(action);
      const operators::FactKey key{action.resource == "services"
                                       ? operators::FactKind::kService
                                       : operators::FactKind::kNetworkPolicy,
                                   action.name};
      if (action.kind == operators::Action::Kind::kApply || !objects.contains(key)) {
        objects[key] = operators::DigestFact(action.object, cluster_.Wall());
      }
      memory_.facts.erase(key);
      return;
    }
    case operators::Action::Kind::kSnapshotCode: return SnapshotCode();
    case operators::Action::Kind::kDelete: return Delete(action);
    case operators::Action::Kind::kEnsureAccess:
    case operators::Action::Kind::kControl: return;  // Watch sends it
  }
}

void SimOperator::CreatePod(const operators::Action& action) {
  ApiServer& api = cluster_.api();
  if (const operators::PodDigest* const there = api.Find(action.name)) {  // by the same controller
    memory_.made[action.name] = {api.version(), *there};
    return;
  }
  if (cluster_.GoesWrong(10)) {
    memory_.failures[action.Target()] = {action.Target(), 403, "Forbidden", "exceeded quota: q",
                                         cluster_.Wall()};
    return;
  }
  if (cluster_.SeenRunning(action.name) && !cluster_.two_operators()) {
    cluster_.Violated("a name is used again: " + action.name);
  }
  cluster_.world().Trace("create " + action.name + ": " + action.reason);
  operators::PodDigest pod = operators::DigestPod(action.object);
  if (!cluster_.two_operators()) cluster_.kubelet().CheckMade(pod);
  pod.uid = fmt::format("pod-{}", api.version() + 1);
  pod.created = std::chrono::floor<seconds>(cluster_.Wall());
  memory_.made[pod.name] = {api.version() + 1, pod};
  api.StorePod(std::move(pod));
}

void SimOperator::SnapshotCode() {
  const WallTime now = cluster_.Wall();
  if (!cluster_.code_there()) {
    operators::Fact absent;
    absent.state = operators::Fact::State::kAbsent;
    absent.read = now;
    memory_.facts[{operators::FactKind::kConfigMap, "code"}] = absent;
    return;
  }
  const operators::JobIdentity identity{"default", "sim", kUid, {}};
  const json copy = operators::CodeSnapshot(identity, {{"data", {{"score.py", "x"}}}});
  const operators::FactKey key{operators::FactKind::kConfigMap,
                               operators::CodeSnapshotName(identity)};
  memory_.facts[key] =
      cluster_.api().objects.try_emplace(key, operators::DigestFact(copy, now)).first->second;
}

void SimOperator::Delete(const operators::Action& action) {
  ApiServer& api = cluster_.api();
  const operators::PodDigest* const found = api.Find(action.name);
  if (found == nullptr || found->uid != action.uid) return;
  cluster_.world().Trace("delete " + action.name + ": " + action.reason);
  operators::PodDigest pod = *found;
  if (pod.deletion) return;
  if (pod.Terminal()) return api.RemovePod(action.name);
  pod.deletion = std::chrono::floor<seconds>(cluster_.Wall()) + seconds(60);
  api.StorePod(std::move(pod));
}

// False: somebody else has written; planned again with what is new.
bool SimOperator::WriteStatus(const operators::Plan& plan) {
  ApiServer& api = cluster_.api();
  if (api.job().version != api.jobs()[memory_.jobs_seen - 1].version) return false;
  StoredJob changed = api.job();
  const json written = operators::ToJson(plan.status);  // with times in whole seconds
  changed.status = operators::ParseStatus(written);
  if (operators::ToJson(changed.status) != written) {
    cluster_.Violated("a status is not read back as it was written");
  }
  const int64_t restarts = changed.status.nodes.restarts;
  if (restarts > cluster_.kubelet().own_failures() && !cluster_.two_operators()) {
    cluster_.Violated(
        fmt::format("{} restarts counted of {}", restarts, cluster_.kubelet().own_failures()));
  }
  if (changed.status.phase != api.job().status.phase) {
    cluster_.world().Trace("phase " + changed.status.phase);
  }
  api.StoreJob(std::move(changed));
  memory_.wrote = api.job().version;
  return true;
}

// --- the coordinator's calls

void SimOperator::Watch(const operators::Plan& plan) {
  const std::string pod = plan.pull ? plan.pull->pod_uid : "";
  if (memory_.view.pod_uid != pod) {
    ++calls_;  // what comes of a call in flight is not stored
    memory_.in_flight = false;
    memory_.view = operators::CoordinatorView();
    memory_.view.pod_uid = pod;
    memory_.significant.clear();
    memory_.control.clear();
    memory_.call_at = cluster_.Wall();
  }
  memory_.watch = plan.pull;
  if (!plan.pull) return;
  for (const operators::Action& action : plan.actions) {
    if (action.kind != operators::Action::Kind::kControl) continue;
    const operators::CoordinatorView& view = memory_.view;
    // One that was restarted in its pod has forgotten it.
    const bool lost = view.report && view.acknowledged &&
                      view.report->control_generation < view.acknowledged->at("generation");
    const bool taken = memory_.control.empty() && view.acknowledged == action.object && !lost;
    if (!taken) memory_.control = action.object.dump();
  }
}

void SimOperator::CallCoordinator() {
  World& world = cluster_.world();
  memory_.in_flight = true;
  const std::string control = memory_.control;
  const auto open = std::make_shared<bool>(true);
  const auto answer = [this, open, control, life = life_,
                       call = ++calls_](const std::optional<std::string>& progress) {
    if (std::exchange(*open, false) && life == life_ && call == calls_) {
      OnAnswer(control, progress);
    }
  };
  world.After(kCallTimeout, [answer] { answer(std::nullopt); });
  const std::optional<size_t> process = cluster_.kubelet().CoordinatorOf(memory_.view.pod_uid);
  if (!process || cluster_.GoesWrong(30)) return;
  world.OnCoordinator(*process, world.Delay(), [&world, control, answer](SimCoordinator& running) {
    if (!running.running()) return;
    if (!control.empty()) {
      const Result<coordinator::ControlRequest> request = coordinator::ParseControl(control);
      if (!request.ok()) return world.oracle().Violated("messages", request.error().message);
      running.Control(*request);
    }
    const std::string progress =
        coordinator::ProgressJson(*running.core(), {running.epoch()}, running.Now());
    world.After(world.Delay(), [answer, progress] { answer(progress); });
  });
}

// As CoordinatorPool does.
void SimOperator::OnAnswer(const std::string& control, const std::optional<std::string>& progress) {
  operators::CoordinatorView& view = memory_.view;
  const WallTime now = cluster_.Wall();
  memory_.in_flight = false;
  if (!progress) {
    if (view.error.empty()) memory_.due = true;
    view.error = "no answer";
    memory_.call_at = now + kLongestBackOff;
    return;
  }
  const json said = json::parse(*progress);
  const std::string significant = operators::Significant(said);
  // The first word after an acknowledgement shows what came of it.
  const bool first = view.acknowledged && view.pulled == view.acknowledged_at;
  if (significant != memory_.significant || first || !view.error.empty()) memory_.due = true;
  if (!control.empty()) {
    if (memory_.control == control) memory_.control.clear();
    json object = json::parse(control);
    if (view.acknowledged != object) {
      view.acknowledged = std::move(object);
      view.acknowledged_at = now;
      memory_.due = true;
    }
  }
  memory_.significant = significant;
  view.report = operators::ParseReport(said);
  view.pulled = now;
  view.error.clear();
  memory_.call_at = now + (memory_.watch ? memory_.watch->max_age : Duration(seconds(1)));
}

}  // namespace parallelrun::simulation
