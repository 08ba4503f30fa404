// A job, its pods and the API server as far as a planner can tell: carries plans out at once, as
// the reconciler would, and lets a test play the kubelet and the coordinator. Not thread-safe.
#pragma once

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "operator/builders/objects.h"
#include "operator/plan/plan.h"

namespace parallelrun::operators {

class PlanWorld {
 public:
  using json = nlohmann::json;

  PlanWorld() {
    options.runtime_image = "registry.example/runtime@sha256:11";
    options.operator_namespace = "parallelrun-system";
    object = json::parse(R"({
      "apiVersion": "parallelrun.dev/v1alpha1", "kind": "ParallelRunJob",
      "metadata": {"name": "digits", "namespace": "default", "generation": 1,
        "uid": "0a1b2c3d-0000-4000-8000-000000000001", "resourceVersion": "1",
        "creationTimestamp": "2026-11-21T09:00:00Z"},
      "spec": {
        "entryScript": "score.py", "code": {"configMap": {"name": "digits-code"}},
        "environment": {"image": "registry.example/digits:1"},
        "volumes": [
          {"name": "data", "persistentVolumeClaim": {"claimName": "digits", "readOnly": true}},
          {"name": "out", "persistentVolumeClaim": {"claimName": "results"}}],
        "inputs": [{"name": "images", "files": {"volume": "data", "path": "images"}}],
        "output": {"volume": "out"}, "nodeCount": 2, "processCountPerNode": 2}})");
    there[{FactKind::kConfigMap, "digits-code"}] = {};
    AddClaim("digits", "ReadOnlyMany");
    AddClaim("results", "ReadWriteMany");
  }

  static WallTime At(const char* text) { return *ParseRfc3339(text); }
  json& spec() { return object["spec"]; }
  void Edit(const char* field, json value) {
    spec()[field] = std::move(value);
    object["metadata"]["generation"] = object["metadata"]["generation"].get<int64_t>() + 1;
  }
  void AddClaim(const std::string& name, const std::string& mode) {
    Fact fact;
    fact.access_modes = {mode};
    there[{FactKind::kClaim, name}] = fact;
  }
  std::string uid() const { return object["metadata"]["uid"]; }
  JobIdentity job() const { return {"default", object["metadata"]["name"], uid(), {}}; }

  // What the reconciler would hand to the planner now.
  Observed See() const {
    Observed seen;
    seen.job = ReadObservedJob(object);
    for (const auto& [name, pod] : pods) {
      (pod.job_uid == uid() ? seen.pods : seen.old_pods).push_back(pod);
    }
    seen.coordinator = view;
    seen.rivals = rivals;
    seen.facts = facts;
    for (const auto& [target, failure] : failures) seen.failures.push_back(failure);
    return seen;
  }

  // Plans, reads what the plan wants to know, and plans again; carries nothing out.
  Plan Look() {
    for (int round = 0;; ++round) {
      const Observed seen = See();
      Plan plan = MakePlan(seen, options, now);
      const std::vector<FactKey> missing = MissingFacts(plan, seen, now);
      if (missing.empty() || round == 5) return plan;
      for (const FactKey& key : missing) Read(key);
    }
  }

  // One whole turn; `again` follows plans that want to be made again at once.
  Plan Turn(bool again = true) {
    Plan plan = Look();
    for (int round = 0; round < 5; ++round) {
      for (const Action& action : plan.actions) Do(action);
      if (plan.write_status) object["status"] = ToJson(plan.status);
      if (plan.write_status) events.insert(events.end(), plan.events.begin(), plan.events.end());
      if (!again || !plan.wake || *plan.wake > now) return plan;
      plan = Look();
    }
    return plan;
  }
  Plan TurnIn(Duration pause) {
    now += pause;
    return Turn();
  }

  void Do(const Action& action) {
    done.push_back(action);
    const std::string target = action.Target();
    failures.erase(target);
    switch (action.kind) {
      case Action::Kind::kCreate:
        if (action.resource == "pods") return CreatePod(action);
        there[KeyOf(action)] = DigestFact(action.object, now);
        facts.erase(KeyOf(action));
        return;
      case Action::Kind::kApply:
        there[KeyOf(action)] = DigestFact(action.object, now);
        facts.erase(KeyOf(action));
        return;
      case Action::Kind::kSnapshotCode: {
        if (!there.contains({FactKind::kConfigMap, action.name})) {
          return Read({FactKind::kConfigMap, action.name});
        }
        const json copy = CodeSnapshot(job(), {{"data", {{"score.py", code}}}});
        const FactKey key{FactKind::kConfigMap, CodeSnapshotName(job())};
        there.try_emplace(key, DigestFact(copy, now));
        return Read(key);
      }
      case Action::Kind::kDelete: return Delete(action);
      case Action::Kind::kEnsureAccess:
        there[{FactKind::kSecret, action.name}] = DigestFact(AccessSecret(job(), {}), now);
        return;
      case Action::Kind::kControl:
        if (!coordinator_listens) return;
        view.pod_uid = action.uid;
        if (!view.acknowledged || *view.acknowledged != action.object) view.acknowledged_at = now;
        view.acknowledged = action.object;
    }
  }

  // The one whose name ends so: "node-0-1".
  PodDigest& Pod(const std::string& suffix) {
    for (auto& [name, pod] : pods) {
      if (name.ends_with("-" + suffix)) return pod;
    }
    missing_pods.push_back(suffix);
    return nobody;
  }
  bool Has(const std::string& suffix) const {
    return std::any_of(pods.begin(), pods.end(),
                       [&](const auto& one) { return one.first.ends_with("-" + suffix); });
  }
  // Objects of the job beside its pods.
  int Children() const {
    return static_cast<int>(std::count_if(there.begin(), there.end(), [&](const auto& one) {
      return one.second.owner_uid == uid();
    }));
  }
  int Live() const {
    return static_cast<int>(
        std::count_if(pods.begin(), pods.end(), [](const auto& one) { return one.second.Live(); }));
  }
  void Start(PodDigest& pod) {
    pod.phase = PodPhase::kRunning;
    pod.main = {};
    pod.main.running = pod.main.ready = pod.ready = true;
    pod.ip = "10.0.0.1";
    pod.node_name = "host";
  }
  void StartAll() {
    for (auto& [name, pod] : pods) {
      if (pod.Live() && pod.job_uid == uid()) Start(pod);
    }
  }
  void End(PodDigest& pod, int exit_code, const std::string& reason = "",
           const std::string& message = "") {
    pod.phase = exit_code == 0 ? PodPhase::kSucceeded : PodPhase::kFailed;
    pod.main.running = pod.ready = false;
    const std::string word = exit_code == 0 ? "Completed" : "Error";
    pod.main.ended = Ended{exit_code, reason.empty() ? word : reason, message, pod.created, now};
  }
  // The pods whose deletion was asked for are gone.
  void Reap() {
    std::erase_if(pods, [](const auto& one) { return one.second.deletion.has_value(); });
  }
  // The coordinator's progress, pulled now from its live pod.
  void Say(json progress) {
    if (!progress.contains("controlGeneration")) {
      progress["controlGeneration"] =
          view.acknowledged ? view.acknowledged->value("generation", 0) : 0;
    }
    for (const auto& [name, pod] : pods) {
      if (pod.role == PodRole::kCoordinator && pod.Live()) view.pod_uid = pod.uid;
    }
    view.report = ParseReport(progress);
    view.pulled = now;
    view.error.clear();
  }
  // The operator has asked its live pod, in vain.
  void DoNotAnswer(const std::string& why) {
    for (const auto& [name, pod] : pods) {
      if (pod.role != PodRole::kCoordinator || !pod.Live() || pod.uid == view.pod_uid) continue;
      view = {};
      view.pod_uid = pod.uid;
      view.asked_since = now;
    }
    view.error = why;
  }
  static json Progress(const std::string& state, int succeeded, int failed, int total) {
    return {{"state", state},
            {"miniBatches",
             {{"total", total},
              {"planned", total},
              {"succeeded", succeeded},
              {"failed", failed},
              {"running", std::min(1, total - succeeded - failed)},
              {"pending", std::max(0, total - succeeded - failed - 1)}}},
            {"items", {{"succeeded", 10 * succeeded}, {"failed", 10 * failed}}},
            {"listingDone", true},
            {"secondsRemaining", 60}};
  }

  JobStatus Status() const {
    return ParseStatus(object.contains("status") ? object["status"] : json());
  }
  std::string Reason(const char* type) const {
    const JobStatus status = Status();
    return status.Find(type) == nullptr ? "" : status.Find(type)->reason;
  }
  std::string Message(const char* type) const {
    const JobStatus status = Status();
    return status.Find(type) == nullptr ? "" : status.Find(type)->message;
  }
  int Told(const std::string& reason) const {
    return static_cast<int>(std::count_if(events.begin(), events.end(),
                                          [&](const auto& e) { return e.reason == reason; }));
  }
  int Did(Action::Kind kind, const std::string& resource = "") const {
    return static_cast<int>(std::count_if(done.begin(), done.end(), [&](const Action& a) {
      return a.kind == kind && (resource.empty() || a.resource == resource);
    }));
  }
  // A job that runs: everything created, started and told.
  void RunJob() {
    Turn();
    StartAll();
    TurnIn(seconds(1));
    Say(Progress("Running", 1, 0, 100));
    TurnIn(seconds(1));
  }

  json object;
  OperatorOptions options;
  WallTime now = At("2026-11-21T09:00:01Z");
  std::map<std::string, PodDigest> pods;
  std::map<FactKey, Fact> there;  // objects that exist
  std::map<FactKey, Fact> facts;  // those that were read
  std::map<std::string, ApplyFailure> failures;
  std::map<std::string, ApplyFailure> refuse;  // by prefix of the target: what creates answer
  CoordinatorView view;
  std::vector<Rival> rivals;
  bool coordinator_listens = true;
  std::string code = "def run(x): return x";
  std::vector<EventToEmit> events;
  std::vector<Action> done;
  std::vector<std::string> missing_pods;  // asked for by Pod() in vain
  PodDigest nobody;
  int next_uid = 1;

 private:
  static FactKey KeyOf(const Action& action) {
    const FactKind kind = action.resource == "services"                 ? FactKind::kService
                          : action.resource == "secrets"                ? FactKind::kSecret
                          : action.resource == "configmaps"             ? FactKind::kConfigMap
                          : action.resource == "persistentvolumeclaims" ? FactKind::kClaim
                          : action.resource == "poddisruptionbudgets" ? FactKind::kDisruptionBudget
                                                                      : FactKind::kNetworkPolicy;
    return {kind, action.name};
  }
  void Read(const FactKey& key) {
    const auto found = there.find(key);
    Fact fact = found == there.end() ? Fact{} : found->second;
    fact.state = found == there.end() ? Fact::State::kAbsent : fact.state;
    fact.read = now;
    facts[key] = fact;
  }
  void CreatePod(const Action& action) {
    for (const auto& [prefix, failure] : refuse) {
      if (!action.Target().starts_with(prefix)) continue;
      failures[action.Target()] = failure;
      failures[action.Target()].object = action.Target();
      failures[action.Target()].at = now;
      return;
    }
    if (pods.contains(action.name)) return;  // AlreadyExists
    PodDigest pod = DigestPod(action.object);
    pod.uid = "pod-" + std::to_string(next_uid++);
    pod.created = now;
    pods[action.name] = pod;
  }
  void Delete(const Action& action) {
    if (action.resource != "pods") {
      there.erase(KeyOf(action));
      facts.erase(KeyOf(action));
      return;
    }
    const auto found = pods.find(action.name);
    if (found == pods.end() || found->second.uid != action.uid) return;
    if (found->second.Terminal()) {
      pods.erase(found);
    } else if (!found->second.deletion) {
      found->second.deletion = now + seconds(60);
    }
  }
};

}  // namespace parallelrun::operators
