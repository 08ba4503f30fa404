#include "coordinator/core/standstill.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <vector>

#include "base/escape.h"
#include "job/node_messages.h"
#include "job/verdict.h"

namespace parallelrun::coordinator {
namespace {

constexpr char kRaise[] = "fix that, or raise spec.progressUpdateTimeoutSeconds";
constexpr char kLogs[] = "user/stderr/<node>/<process>.stderr.txt";
// An answer takes a second where nodes are busy, and a parked request is woken for it.
constexpr Duration kAskBefore = seconds(10);
constexpr size_t kMostProcesses = 1'000;  // that are kept
constexpr size_t kMostPlaces = 3;         // that are told
constexpr size_t kMostBytes = 500;        // of a place
constexpr uint32_t kEndsForFree = 5;

// Its end: there the innermost calls are.
std::string Shortened(std::string_view where) {
  if (where.size() <= kMostBytes) return Printable(where, 2 * kMostBytes);
  where.remove_prefix(where.size() - kMostBytes);
  where.remove_prefix(std::min(where.find(", "), where.size()));
  return "..." + Printable(where, 2 * kMostBytes);
}

}  // namespace

void Standstill::Moved(WorkInstant worked) {
  moved_ = worked;
  asking_ = false;
  asked_.clear();
  where_.clear();
  in_vain_.reset();
  if (!std::exchange(any_ended_, false)) return;
  for (auto& [node, ends] : ends_) ends.in_a_row = 0;
}

void Standstill::Ended(uint32_t node, uint64_t pod, std::string_view reason) {
  Ends& ends = ends_[node];
  if (pod <= ends.pod) return;
  any_ended_ = true;
  ends.pod = pod;
  ends.reason = Printable(reason, kMostBytes);
  if (++ends.in_a_row > kEndsForFree && !in_vain_) in_vain_ = node;
}

std::string Standstill::InVainText() const {
  if (!in_vain_) return "";
  const Ends& ends = ends_.at(*in_vain_);
  return fmt::format(
      "the pod of node {} ended {} times in a row, the last time with {}: the events of the job "
      "say why",
      *in_vain_, ends.in_a_row, ends.reason);
}

// What came right before this is progress of now: it is not moved beyond that.
bool Standstill::Tick(WorkInstant worked, bool usable) {
  if (!usable) moved_ = std::min(moved_ + (worked - ticked_), worked);
  ticked_ = worked;
  const Duration before = std::min(kAskBefore, limits_.progress / 2);
  const bool asked = std::exchange(asking_, worked - moved_ >= limits_.progress - before);
  return asking_ && !asked;
}

bool Standstill::Asks(uint32_t node, const job::Incarnation& incarnation) const {
  if (!asking_) return false;
  const auto asked = asked_.find(node);
  return asked == asked_.end() || asked->second != incarnation;
}

void Standstill::Where(uint32_t node, uint32_t process, std::string_view where) {
  if (!asking_ || where_.size() >= kMostProcesses) return;
  where_.insert_or_assign({node, process}, Shortened(where));
}

// Where most of them are first. Agents have the processes write their whole stacks when they ask,
// and again when they hear of the verdict.
std::string Standstill::Places() const {
  struct Spot {
    std::string where;
    std::string first;
    size_t processes = 0;
    bool whole_node = false;
  };
  std::map<std::string_view, Spot> by_where;
  for (const auto& [process, where] : where_) {
    Spot& place = by_where[where];
    if (place.processes++ > 0) continue;
    place.where = where;
    place.whole_node = process.second == job::ProcessEvent::kWholeNode;
    place.first = place.whole_node
                      ? fmt::format("node {}", process.first)
                      : fmt::format("node {}, process{:03}", process.first, process.second);
  }
  std::vector<Spot> places;
  for (auto& [where, place] : by_where) places.push_back(std::move(place));
  // What nodes wait for is why their processes have nothing to do.
  std::stable_sort(places.begin(), places.end(), [](const Spot& a, const Spot& b) {
    return std::pair(a.whole_node, a.processes) > std::pair(b.whole_node, b.processes);
  });
  std::string text;
  size_t others = where_.size();
  for (size_t i = 0; i < std::min(kMostPlaces, places.size()); ++i) {
    const Spot& place = places[i];
    others -= place.processes;
    const std::string more =
        place.processes == 1 ? "" : fmt::format(" and {} more", place.processes - 1);
    text += fmt::format("{}{}{}: {}", text.empty() ? "" : "; ", place.first, more, place.where);
  }
  if (others > 0) text += fmt::format("; {} more elsewhere", others);
  return text;
}

// Not for the script alone.
bool Standstill::NodesWait() const {
  return std::any_of(where_.begin(), where_.end(), [](const auto& one) {
    return one.first.second == job::ProcessEvent::kWholeNode;
  });
}

std::optional<job::Verdict> Standstill::Overdue(const job::JobState& state, WorkInstant worked,
                                                const std::function<std::string()>& why) const {
  const job::JobCounts& counts = state.counts();
  const bool done = counts.succeeded + counts.failed == counts.planned;
  if (!done || state.plan_ended()) {
    if (worked - moved_ <= limits_.progress) return std::nullopt;
    std::string waits = why();
    if (waits.empty() && where_.empty()) {
      waits = fmt::format("where each process is in Python stands at the end of its log, {}; {}",
                          kLogs, kRaise);
    } else if (waits.empty() && NodesWait()) {
      waits = fmt::format("{}. See to it, and continue the run", Places());
    } else if (waits.empty()) {
      waits = fmt::format("{}; {}. The whole stacks are at the end of {}", Places(), kRaise, kLogs);
    }
    return job::FailedFor("NoProgress", fmt::format("no mini-batch was finished for {}: {}",
                                                    HumanDuration(limits_.progress), waits));
  }
  // The processes have nothing to do: what is waited for is the listing.
  if (counts.planned == 0) {
    if (worked - started_ <= limits_.first_task) return std::nullopt;
    return job::FailedFor(
        "FirstTaskTimeout",
        fmt::format("no mini-batch was planned within {}: the listing of the input is "
                    "too slow; raise spec.firstTaskCreationTimeoutSeconds",
                    HumanDuration(limits_.first_task)));
  }
  const Duration most = std::max(limits_.first_task, limits_.progress);
  if (worked - moved_ <= most) return std::nullopt;
  return job::FailedFor(
      "FirstTaskTimeout",
      fmt::format("all {} mini-batches that are planned are finished, and no other was "
                  "planned for {}: the listing of the input is too slow; raise "
                  "spec.firstTaskCreationTimeoutSeconds",
                  counts.planned, HumanDuration(most)));
}

}  // namespace parallelrun::coordinator
