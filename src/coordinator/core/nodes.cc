#include "coordinator/core/nodes.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

#include "base/count_of.h"

namespace parallelrun::coordinator {
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

WorkInstant Nodes::FirstAsked(uint32_t index, uint64_t pod, WorkInstant worked) {
  Node& node = nodes_[index];
  if (node.next_pod != pod) {
    node.next_pod = pod;
    node.next_asked = worked;
  }
  return node.next_asked;
}

Nodes::Node& Nodes::Register(uint32_t index, const std::string& agent, uint64_t pod,
                             uint32_t processes, uint32_t epoch, WorkInstant worked) {
  Node& node = nodes_[index];
  node.index = index;
  Uncount(node);
  // One that registers again may have come through init() long ago.
  if (node.agent != agent || node.registrations == 0) {
    node.starts = true;
    node.starts_since = worked;
  }
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
  node.offers_open = false;  // whoever has registered offers all that it holds
  node.no_room.clear();      // it tells anew
  node.ran_out.clear();
  node.fetching.clear();
  node.fetched = 0;
  node.store_wait.clear();
  node.incarnation = {epoch, ++last_incarnation_};
  ++node.registrations;
  Count(node);
  if (!node.watched) Watch(node);
  return node;
}

bool Nodes::Superseded(uint32_t index, const std::string& agent, uint64_t pod) const {
  const Node* const node = Find(index);
  if (node == nullptr || node->agent == agent) return false;
  if (pod != 0 && node->pod != 0) return pod < node->pod;
  const std::deque<std::string>& before = node->superseded;
  return std::find(before.begin(), before.end(), agent) != before.end();
}

bool Nodes::InForce(uint32_t index, const job::Incarnation& incarnation) const {
  const Node* const node = Find(index);
  return node != nullptr && node->registered && node->incarnation == incarnation;
}

void Nodes::Depart(Node& node) {
  Uncount(node);
  node.registered = false;
  node.silent = false;
  Count(node);
}

// --- what a node says of itself

void Nodes::Ready(Node& node) {
  Uncount(node);
  node.ever_ready = true;
  node.starts = false;
  Count(node);
}

void Nodes::InitFailed(Node& node) {
  Uncount(node);
  node.starts_since = node.seen;
  Count(node);
}

void Nodes::GiveUp(Node& node) {
  Uncount(node);
  node.gave_up = true;
  Count(node);
}

void Nodes::NoRoom(Node& node, std::string why) {
  Uncount(node);
  node.no_room = std::move(why);
  Count(node);
}

void Nodes::RanOut(Node& node, std::string what) {
  Uncount(node);
  node.ran_out = std::move(what);
  Count(node);
}

bool Nodes::Fetches(Node& node, std::string what, std::string_view bytes) {
  Uncount(node);
  if (what.empty() && !node.fetching.empty()) node.starts_since = node.seen;
  node.fetching = std::move(what);
  Count(node);
  uint64_t now = 0;
  const auto read = std::from_chars(bytes.data(), bytes.data() + bytes.size(), now);
  if (read.ec != std::errc() || now <= node.fetched) return false;
  node.fetched = now;
  return true;
}

void Nodes::Hear(Node& node) {
  if (node.offers_open) return;
  Uncount(node);
  node.heard = true;
  Count(node);
}

// --- silence

void Nodes::Watch(Node& node) {
  node.watched = true;
  watched_.insert({node.seen, node.index});
}

// It was there as long as its call was open: at the last tick, or since, when it began later.
void Nodes::CallEnded(uint32_t index) {
  Node* const node = Find(index);
  if (node != nullptr) node->seen = std::max(node->seen, ticked_);
}

void Nodes::ForgetSilent(WorkInstant worked, Duration limit,
                         const std::function<bool(uint32_t)>& calls) {
  ticked_ = worked;
  while (!watched_.empty() && worked - watched_.begin()->first > limit) {
    Node& node = nodes_.at(watched_.begin()->second);
    watched_.erase(watched_.begin());
    node.watched = false;
    if (!node.registered) continue;
    if (calls(node.index)) node.seen = worked;
    if (worked - node.seen <= limit) {
      Watch(node);
      continue;
    }
    Uncount(node);
    node.registered = false;
    node.silent = true;
    Count(node);
  }
}

// --- how many are to be there

void Nodes::Expect(uint32_t count) {
  for (const auto& [index, node] : nodes_) Uncount(node);
  expected_ = count;
  limited_ = true;
  for (const auto& [index, node] : nodes_) Count(node);
}

std::vector<job::ProcessId> Nodes::OfNobody(std::vector<job::ProcessId> processes) const {
  std::erase_if(processes, [this](const job::ProcessId& process) {
    const Node* const node = Find(process.node);
    return process.node < expected_ || (node != nullptr && (node->registered || node->silent));
  });
  return processes;
}

// --- counts

void Nodes::Count(const Node& node, int by) {
  const auto count = [by](size_t& of, bool counts) {
    if (counts) of += static_cast<size_t>(by);
  };
  count(counts_.registered, node.registered);
  if (node.registered) counts_.processes += static_cast<size_t>(by) * node.processes;
  count(counts_.without_room, node.registered && !node.no_room.empty());
  count(counts_.ready, node.ever_ready);
  count(counts_.gave_up, node.gave_up && Expected(node.index));
  count(counts_.heard, node.heard && node.index < expected_);
  if (by < 0) {
    silent_.erase(node.index);
    in_init_.erase({node.starts_since, node.index});
    return;
  }
  if (node.silent) silent_.insert(node.index);
  if (IsInInit(node)) in_init_.insert({node.starts_since, node.index});
}

// One that lacks space, or fetches what init() reads, waits for something else.
bool Nodes::IsInInit(const Node& node) const {
  return node.registered && node.starts && !node.gave_up && Expected(node.index) &&
         node.no_room.empty() && node.ran_out.empty() && node.fetching.empty();
}

Nodes::InInit Nodes::in_init() const {
  if (in_init_.empty()) return {};
  const auto& [since, first] = *in_init_.begin();
  return {in_init_.size(), first, since};
}

bool Nodes::AnyAtWork() const {
  if (counts_.registered > counts_.without_room) return true;
  return !silent_.empty() && Expected(*silent_.begin());
}

// --- for messages

std::string Nodes::Silent() const {
  if (registered() > 0) return "";
  std::string names;
  for (const uint32_t index : silent_) {
    if (Expected(index)) names += fmt::format("{}{}", names.empty() ? "" : ", ", index);
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

std::string Nodes::FirstThatSays(std::string Node::*what) const {
  const Node* first = nullptr;
  size_t others = 0;
  for (const auto& [index, node] : nodes_) {
    if (!node.registered || (node.*what).empty()) continue;
    if (first == nullptr) {
      first = &node;
    } else {
      ++others;
    }
  }
  if (first == nullptr) return "";
  std::string text = fmt::format("node {}: {}", first->index, first->*what);
  if (others > 0) text += fmt::format(", and {}", CountOf(others, "other node"));
  return text;
}

std::string Nodes::Fetching() const { return FirstThatSays(&Node::fetching); }

std::string Nodes::StoreWaits() const { return FirstThatSays(&Node::store_wait); }

}  // namespace parallelrun::coordinator
