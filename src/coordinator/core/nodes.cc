#include "coordinator/core/nodes.h"

#include <algorithm>

#include <spdlog/fmt/fmt.h>

namespace parallelrun {
namespace {

constexpr size_t kAgentsRemembered = 100;

}  // namespace

Nodes::Node* Nodes::Find(uint32_t index) {
  const auto found = nodes_.find(index);
  return found == nodes_.end() ? nullptr : &found->second;
}

const Nodes::Node* Nodes::Find(uint32_t index) const {
  const auto found = nodes_.find(index);
  return found == nodes_.end() ? nullptr : &found->second;
}

Nodes::Before Nodes::BeforeIt(uint32_t index, const std::string& agent, uint64_t pod) const {
  const Node* const node = Find(index);
  if (node == nullptr || node->agent.empty() || node->agent == agent) return Before::kNone;
  // The end of a pod is told. One of which it was not may be at its work still, on its way out.
  return pod > node->pod && node->pod > node->ended_pod ? Before::kMayLive : Before::kDied;
}

Nodes::Node& Nodes::Register(uint32_t index, const std::string& agent, uint64_t pod,
                             uint32_t processes, uint32_t epoch, Instant worked) {
  Node& node = nodes_[index];
  if (!node.agent.empty() && node.agent != agent) {
    node.superseded.push_back(node.agent);
    if (node.superseded.size() > kAgentsRemembered) node.superseded.pop_front();
  }
  node.expired.clear();
  node.registered = true;
  node.seen = worked;
  node.agent = agent;
  node.pod = pod;
  node.processes = std::max(1U, processes);
  node.gave_up = false;
  node.silent = false;
  node.no_room.clear();  // it tells anew
  node.ran_out.clear();
  node.incarnation = {epoch, ++last_incarnation_};
  ++node.registrations;
  return node;
}

bool Nodes::Superseded(uint32_t index, const std::string& agent, uint64_t pod) const {
  const Node* const node = Find(index);
  if (node == nullptr || node->agent == agent) return false;
  if (pod != 0 && node->pod != 0) return pod < node->pod;
  const std::deque<std::string>& before = node->superseded;
  return std::find(before.begin(), before.end(), agent) != before.end();
}

bool Nodes::InForce(uint32_t index, const Incarnation& incarnation) const {
  const Node* const node = Find(index);
  return node != nullptr && node->registered && node->incarnation == incarnation;
}

void Nodes::Depart(Node& node) {
  node.registered = false;
  node.silent = false;
}

void Nodes::GiveUp(Node& node) {
  node.gave_up = true;
  any_gave_up_ = true;
}

void Nodes::ForgetSilent(Instant worked, Duration limit,
                         const std::function<bool(uint32_t)>& calls) {
  for (auto& [index, node] : nodes_) {
    if (calls(index)) node.seen = worked;
    if (!node.registered || worked - node.seen <= limit) continue;
    node.registered = false;
    node.silent = true;
  }
}

void Nodes::Expect(uint32_t count) {
  expected_ = count;
  limited_ = true;
}

std::vector<ProcessId> Nodes::OfNobody(std::vector<ProcessId> processes) const {
  std::erase_if(processes, [this](const ProcessId& process) {
    const Node* const node = Find(process.node);
    return process.node < expected_ || (node != nullptr && (node->registered || node->silent));
  });
  return processes;
}

bool Nodes::AllHeard() const {
  for (uint32_t index = 0; index < expected_; ++index) {
    const Node* const node = Find(index);
    if (node == nullptr || !node->heard) return false;
  }
  return true;
}

size_t Nodes::registered() const {
  return static_cast<size_t>(std::count_if(nodes_.begin(), nodes_.end(),
                                           [](const auto& one) { return one.second.registered; }));
}

size_t Nodes::gave_up() const {
  if (!any_gave_up_) return 0;
  return static_cast<size_t>(std::count_if(nodes_.begin(), nodes_.end(), [this](const auto& one) {
    return one.second.gave_up && Expected(one.first);
  }));
}

bool Nodes::any_ready() const {
  return std::any_of(nodes_.begin(), nodes_.end(),
                     [](const auto& one) { return one.second.ever_ready; });
}

bool Nodes::AnyAtWork() const {
  return std::any_of(nodes_.begin(), nodes_.end(), [this](const auto& one) {
    const Node& node = one.second;
    return (node.registered && node.no_room.empty()) || (node.silent && Expected(one.first));
  });
}

std::string Nodes::Silent() const {
  std::string names;
  for (const auto& [index, node] : nodes_) {
    if (node.registered) return "";
    if (node.silent && Expected(index)) {
      names += fmt::format("{}{}", names.empty() ? "" : ", ", index);
    }
  }
  if (names.empty()) return "";
  return fmt::format(
      "node {} has said nothing: its agent was stopped, or its host is cut off or "
      "frozen. See to it, and continue the run",
      names);
}

std::string Nodes::WaitsFor() const {
  for (const auto& [index, node] : nodes_) {
    if (!node.registered) continue;
    if (!node.no_room.empty()) return fmt::format("node {}: {}", index, node.no_room);
    if (!node.ran_out.empty()) {
      return fmt::format("node {}: the script ran out of space: {}", index, node.ran_out);
    }
  }
  return "";
}

}  // namespace parallelrun
