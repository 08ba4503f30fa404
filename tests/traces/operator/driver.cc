// The commands of the operator's traces. The operator is its pure plan; the world around it carries
// plans out at once. The text plays the people, the kubelet and the coordinator.
//
//   spec KEY=JSON…              before the first plan: of the job; later: somebody changes it. A
//   key
//                               with dots goes down: coordinator.restartLimit=2
//   plan [in=SECONDS]           the operator looks (so much later) and does what it decides. Said:
//                               what it does, events, what has changed in the status, and when it
//                               looks again
//   start [POD…]                the kubelet starts all pods, or these: node-0-1, coordinator-1
//   begin POD…                  likewise, and tells when; nodes are not ready yet
//   end POD exit=N [reason=WORD] [message=TEXT] [error=TEXT]
//   restarted POD exit=N [error=TEXT]     the kubelet has started its container again
//   pod POD [waiting=REASON] [why=TEXT] [unschedulable=TEXT] [host=NAME] [host-silent]
//          [reason=WORD] [message=TEXT] [disruption=REASON] [deleted]    what its status says
//   reap                        pods whose deletion was asked for are gone
//   told STATE succeeded=N [failed=N] [total=N] [verdict=WORD] [reason=WORD] [message=TEXT]
//          [come=POD,…] [silent=POD,…]
//                               what the coordinator says of its progress, and of nodes, as 0-1:
//                               those that are there, and those that it hears no more
//   no-answer WHY               the operator asks the coordinator, in vain
//   refuse PREFIX status=N reason=WORD message=TEXT | refuse-nothing     what creates are answered
//   rival NAME [begun] [waits]  another job publishes to the same output, created half an hour
//   later; no-rival                    it is over deaf                        the coordinator
//   answers no control run                         a job that runs: plan, start, plan, told Running
//   succeeded=1, plan pods
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "reasons/entries.h"
#include "tests/traces/trace.h"
#include "tests/unit/operator/plan/world.h"

namespace parallelrun::trace {
namespace {

using nlohmann::json;

const char* TruthName(operators::Truth truth) {
  return truth == operators::Truth::kTrue    ? "True"
         : truth == operators::Truth::kFalse ? "False"
                                             : "Unknown";
}

class Driver {
 public:
  std::string operator()(Command& command) {
    said_.clear();
    const auto found = Verbs().find(command.name());
    if (found == Verbs().end()) {
      command.Wrong("nobody knows this command");
    } else {
      (this->*found->second)(command);
    }
    for (const std::string& pod : world_.missing_pods) command.Wrong("there is no pod " + pod);
    world_.missing_pods.clear();
    return said_;
  }

 private:
  using Verb = void (Driver::*)(Command&);
  static const std::map<std::string, Verb>& Verbs() {
    static const std::map<std::string, Verb> verbs = {
        {"spec", &Driver::Spec},         {"plan", &Driver::Plan},
        {"start", &Driver::Start},       {"begin", &Driver::Begin},
        {"end", &Driver::End},           {"restarted", &Driver::Restarted},
        {"pod", &Driver::Pod},           {"reap", &Driver::Reap},
        {"told", &Driver::Told},         {"no-answer", &Driver::NoAnswer},
        {"refuse", &Driver::Refuse},     {"refuse-nothing", &Driver::RefuseNothing},
        {"rival", &Driver::AddRival},    {"no-rival", &Driver::NoRival},
        {"upgraded", &Driver::Upgraded}, {"deaf", &Driver::Deaf},
        {"run", &Driver::Run},           {"pods", &Driver::Pods},
    };
    return verbs;
  }

  void Line(const std::string& line) { said_ += line + "\n"; }
  // "node-0-1": what a text calls the pod digits-0a1b2-node-0-1.
  std::string Short(const std::string& name) const {
    const size_t at = std::min(name.find("node-"), name.find("coordinator-"));
    return at == std::string::npos ? name : name.substr(at);
  }

  // --- what others do
  void Spec(Command& c) {
    for (const auto& [key, text] : c.Named()) {
      json value = json::parse(text, nullptr, false);
      if (value.is_discarded()) value = text;
      std::string path = "/" + key;
      std::replace(path.begin(), path.end(), '.', '/');
      world_.spec()[json::json_pointer(path)] = std::move(value);
    }
    int64_t generation = world_.object["metadata"]["generation"];
    if (planned_) world_.object["metadata"]["generation"] = generation + 1;
  }
  void Start(Command& c) {
    const std::vector<std::string> names = c.Words();
    for (const std::string& name : names) world_.Start(world_.Pod(name));
    if (names.empty()) world_.StartAll();
  }
  void Begin(Command& c) {
    for (const std::string& name : c.Words()) {
      operators::PodDigest& pod = world_.Pod(name);
      world_.Start(pod);
      pod.main.started = world_.now;
      pod.ready = pod.role == operators::PodRole::kCoordinator;
      if (pod.ready) pod.ready_since = world_.now;
    }
  }
  void End(Command& c) {
    operators::PodDigest& pod = world_.Pod(c.Word("pod"));
    world_.End(pod, static_cast<int>(c.Number("exit")), c.Text("reason", ""), Message(c));
  }
  // A container's last words; those of a coordinator are JSON.
  static std::string Message(Command& c) {
    return c.Has("error") ? json{{"error", c.Text("error")}}.dump() : c.Text("message", "");
  }
  void Restarted(Command& c) {
    operators::PodDigest& pod = world_.Pod(c.Word("pod"));
    ++pod.main.restarts;
    pod.main.ended = operators::Ended{static_cast<int32_t>(c.Number("exit")), "Error", Message(c),
                                      pod.created, world_.now};
  }
  void Pod(Command& c) {
    operators::PodDigest& pod = world_.Pod(c.Word("pod"));
    if (c.Has("waiting")) {
      pod.main.waiting_reason = c.Text("waiting");
      pod.main.waiting_message = c.Text("why", "");
    }
    if (c.Has("unschedulable")) pod.unschedulable = c.Text("unschedulable");
    if (c.Has("host")) pod.node_name = c.Text("host");
    pod.reason = c.Text("reason", pod.reason);
    pod.message = c.Text("message", pod.message);
    if (c.Has("disruption")) pod.disruption = c.Text("disruption");
    if (c.Flag("host-silent")) {
      pod.host_silent = true;
      pod.ready = false;
    }
    if (c.Flag("deleted")) pod.deletion = world_.now + seconds(60);
  }
  void Reap(Command&) { world_.Reap(); }
  void Told(Command& c) {
    const auto count = [&c](const char* key, uint64_t otherwise) {
      return static_cast<int>(c.Number(key, otherwise));
    };
    const std::string state = c.Word("state");
    json progress = operators::PlanWorld::Progress(state, count("succeeded", 0), count("failed", 0),
                                                   count("total", 100));
    if (c.Has("verdict")) {
      progress["verdict"] = {{"outcome", c.Text("verdict")},
                             {"reason", c.Text("reason", "")},
                             {"message", c.Text("message", "")}};
      if (c.Text("verdict") == "Succeeded") {
        progress["output"] = {
            {"path", "/mnt/out/o.txt"}, {"bytes", 5}, {"rows", 1}, {"sha256", "ab"}};
      }
    }
    for (const char* list : {"come", "silent"}) {
      for (const std::string& pod : c.List(list)) {
        const size_t dash = pod.find('-');
        const bool silent = std::string(list) == "silent";
        progress["nodes"].push_back({{"index", c.NumberIn(pod.substr(0, dash))},
                                     {"registered", !silent},
                                     {"silent", silent},
                                     {"pod", c.NumberIn(pod.substr(dash + 1))}});
      }
    }
    world_.Say(progress);
  }
  void NoAnswer(Command& c) { world_.DoNotAnswer(c.Word("why")); }
  void Refuse(Command& c) {
    operators::ApplyFailure failure;
    const std::string prefix = c.Word("prefix");
    failure.status = static_cast<int>(c.Number("status"));
    failure.reason = c.Text("reason");
    failure.message = c.Text("message");
    world_.refuse[prefix] = failure;
  }
  void RefuseNothing(Command&) { world_.refuse.clear(); }
  void AddRival(Command& c) {
    const std::string name = c.Word("name");
    world_.rivals.push_back({"default", name, "0a1b2c3d-0000-4000-8000-000000000009",
                             operators::PlanWorld::At("2026-11-21T09:30:00Z"), c.Flag("begun"),
                             c.Flag("waits")});
  }
  void NoRival(Command&) { world_.rivals.clear(); }
  void Upgraded(Command& c) { world_.options.runtime_image = c.Word("image"); }
  void Deaf(Command&) { world_.coordinator_listens = false; }
  void Run(Command&) {
    world_.RunJob();
    Tell();  // once, so that later plans say what is new
    said_.clear();
  }

  // --- what the operator does
  void Plan(Command& c) {
    world_.now += seconds(c.Number("in", 0));
    const parallelrun::operators::Plan plan = world_.Turn();
    Tell();
    if (plan.wake) {
      const auto pause = std::chrono::ceil<seconds>(*plan.wake - world_.now);
      Line(fmt::format("looks again in {} s", std::max<int64_t>(pause.count(), 0)));
    } else {
      Line("looks again when something changes");
    }
  }
  void Tell() {
    planned_ = true;
    for (; done_ < world_.done.size(); ++done_) {
      const std::string line = Say(world_.done[done_]);
      if (!line.empty()) Line(line);
    }
    for (; told_ < world_.events.size(); ++told_) {
      const operators::EventToEmit& event = world_.events[told_];
      Line(
          fmt::format("{} {}: {}", event.warning ? "warns" : "tells", event.reason, event.message));
    }
    TellStatus();
  }
  std::string Say(const operators::Action& action) {
    const std::string name = Short(action.name);
    const std::string why = action.reason.empty() ? "" : ": " + action.reason;
    switch (action.kind) {
      case operators::Action::Kind::kCreate:
        return fmt::format("creates {}/{}{}", action.resource, name, Peculiar(action.object));
      case operators::Action::Kind::kApply:
        return fmt::format("applies {}/{}", action.resource, name);
      case operators::Action::Kind::kEnsureAccess:  // each plan that makes pods may need
        return std::exchange(access_, true) ? "" : "ensures that the access secret is there";
      case operators::Action::Kind::kSnapshotCode:
        return fmt::format("copies the code of {}", name);
      case operators::Action::Kind::kDelete:
        return fmt::format("deletes {}/{}{}", action.resource, name, why);
      case operators::Action::Kind::kControl:
        return "tells the coordinator: " + SayControl(action.object);
    }
    std::abort();
  }
  // What a pod has that the one made before it had not.
  std::string Peculiar(const json& object) {
    std::string text;
    if (object.value("kind", "") != "Pod") return text;
    const json& spec = object["spec"];
    const json::json_pointer avoided(
        "/affinity/nodeAffinity/preferredDuringSchedulingIgnoredDuringExecution/0/preference/"
        "matchFields");
    if (spec.contains(avoided)) {
      for (const json& field : spec[avoided])
        text += ", rather not on " + field["values"][0].get<std::string>();
    }
    for (const char* list : {"initContainers", "containers"}) {
      if (!spec.contains(list)) continue;
      for (const json& container : spec[list]) {
        const std::string image = container["image"];
        std::string& before = images_[container["name"]];
        if (image != before && !before.empty()) text += ", with image " + image;
        before = image;
      }
    }
    if (text.empty() && world_.options.runtime_image != images_["runtime"] &&
        !images_["runtime"].empty()) {
      text += ", with image " + images_["runtime"];
    }
    return text;
  }
  static std::string SayControl(const json& body) {
    std::string text =
        fmt::format("generation {}, {} nodes", body["generation"].dump(), body["nodeCount"].dump());
    for (const char* flag : {"drain", "cancel"}) {
      if (body.value(flag, false)) text += fmt::format(", {}", flag);
    }
    if (body.value("errorThreshold", -1) != -1) {
      text += ", error threshold " + body["errorThreshold"].dump();
    }
    for (const json& end : body.value("podEnds", json::array())) {
      text +=
          fmt::format(", node {}-{} has ended ({}, exit {})", end["node"].dump(),
                      end["incarnation"].dump(), end.value("reason", ""), end.value("exitCode", 0));
    }
    return text;
  }
  void TellStatus() {
    const operators::JobStatus status = world_.Status();
    std::map<std::string, std::string> lines;
    for (const operators::Condition& condition : status.conditions) {
      // What the reason itself means is no news.
      const bool own = condition.message != reasons::Meaning(condition.reason);
      const std::string message = own ? ": " + condition.message : "";
      lines[condition.type] = fmt::format("  {} is {}, {}{}", condition.type,
                                          TruthName(condition.status), condition.reason, message);
    }
    lines["0 phase"] = "  phase is " + status.phase;
    if (status.nodes.restarts + status.nodes.disruptions > 0) {
      lines["1 nodes"] =
          fmt::format("  nodes: {} restarts, {} against the limit, {} disruptions",
                      status.nodes.restarts, status.nodes.against_limit, status.nodes.disruptions);
    }
    for (const auto& [key, line] : lines) {
      std::string& before = status_[key];
      // Conditions that are not met and never were say nothing to a reader.
      const bool met = line.find(" is True, ") != std::string::npos || key == "NodesReady" ||
                       key.front() <= '9' || before.find(" is True, ") != std::string::npos;
      if (line != before && met) Line(line);
      before = line;
    }
  }
  void Pods(Command&) {
    for (const auto& [name, pod] : world_.pods) {
      Line(fmt::format("{}{}", Short(name),
                       pod.Terminal()     ? ", has ended"
                       : pod.deletion     ? ", is being deleted"
                       : pod.main.running ? ", runs"
                                          : ", is pending"));
    }
  }

  operators::PlanWorld world_;
  bool planned_ = false;
  bool access_ = false;                        // that was told
  std::map<std::string, std::string> images_;  // by container, of the pod made last
  size_t done_ = 0;                            // actions and events that were told
  size_t told_ = 0;
  std::map<std::string, std::string> status_;  // as it was last told
  std::string said_;
};

class OperatorTraces : public testing::TestWithParam<std::string> {};

TEST_P(OperatorTraces, SaysTheSame) {
  Driver driver;
  Check(GetParam(), [&driver](Command& command) { return driver(command); });
}

INSTANTIATE_TEST_SUITE_P(Traces, OperatorTraces, testing::ValuesIn(Texts("operator")), NameOf);

}  // namespace
}  // namespace parallelrun::trace
