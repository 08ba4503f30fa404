#include "coordinator/core/standstill.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

#include "base/count_of.h"
#include "base/escape.h"
#include "job/verdict.h"

namespace parallelrun::coordinator {
namespace {

constexpr char kRaise[] = "fix that, or raise spec.progressUpdateTimeoutSeconds";
constexpr char kRaiseInit[] = "fix that, or raise spec.initTimeoutSeconds";
constexpr char kLogs[] = "user/stderr/<node>/<process>.stderr.txt";
// An answer takes a second where nodes are busy, and a parked request is woken for it.
constexpr Duration kAskBefore = seconds(10);
constexpr size_t kMostPlaces = 3;   // that are told
constexpr size_t kMostBytes = 500;  // of a reason
constexpr uint32_t kEndsForFree = 5;

// Whether it is over soon, if nothing happens.
bool Nearly(Duration passed, Duration limit) {
  return passed >= limit - std::min(kAskBefore, limit / 2);
}

}  // namespace

void Standstill::Moved(WorkInstant worked) {
  moved_ = worked;
  // A listing that goes on says nothing of init().
  if (nodes_in_init_ == 0) {
    asking_ = false;
    asked_.clear();
    places_.Clear();
  }
  in_vain_.reset();
  if (!std::exchange(any_ended_, false)) return;
  for (auto& [node, ends] : ends_) ends.in_a_row = 0;
}

void Standstill::Ready(WorkInstant worked) {
  if (std::exchange(ready_, true)) return;
  nodes_in_init_ = 0;
  in_init_ = Duration::zero();
  Moved(worked);
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
bool Standstill::Tick(WorkInstant worked, bool usable, size_t in_init) {
  nodes_in_init_ = usable && !ready_ ? in_init : 0;
  if (nodes_in_init_ > 0) in_init_ += worked - ticked_;
  if (!usable || nodes_in_init_ > 0) moved_ = std::min(moved_ + (worked - ticked_), worked);
  ticked_ = worked;
  const bool late = nodes_in_init_ > 0 ? Nearly(in_init_, limits_.init)
                                       : Nearly(worked - moved_, limits_.progress);
  const bool asked = std::exchange(asking_, late);
  return asking_ && !asked;
}

bool Standstill::Asks(uint32_t node, const job::Incarnation& incarnation) const {
  if (!asking_) return false;
  const auto asked = asked_.find(node);
  return asked == asked_.end() || asked->second != incarnation;
}

void Standstill::Where(uint32_t node, uint32_t process, std::string_view where) {
  if (asking_) places_.Add(node, process, where);
}

// Agents have the processes write their whole stacks when they ask, and again when they hear of the
// verdict.
std::string Standstill::Hint(std::string_view raise) const {
  if (places_.empty()) {
    return fmt::format("where each process is in Python stands at the end of its log, {}; {}",
                       kLogs, raise);
  }
  const std::string places = places_.Text(kMostPlaces);
  if (places_.NodesWait()) return fmt::format("{}. See to it, and continue the run", places);
  return fmt::format("{}; {}. The whole stacks are at the end of {}", places, raise, kLogs);
}

job::Verdict Standstill::InitTooLong() const {
  return job::FailedFor(
      "InitTimeout",
      fmt::format("no process has come through init() within {}, on {}: {}",
                  HumanDuration(limits_.init), CountOf(nodes_in_init_, "node"), Hint(kRaiseInit)));
}

std::optional<job::Verdict> Standstill::Overdue(const job::JobState& state, WorkInstant worked,
                                                const std::function<std::string()>& why) const {
  // Whatever the listing is at.
  if (nodes_in_init_ > 0 && in_init_ > limits_.init) return InitTooLong();
  const job::JobCounts& counts = state.counts();
  const bool done = counts.succeeded + counts.failed == counts.planned;
  if (!done || state.plan_ended()) {
    if (worked - moved_ <= limits_.progress) return std::nullopt;
    std::string waits = why();
    if (waits.empty()) waits = Hint(kRaise);
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
