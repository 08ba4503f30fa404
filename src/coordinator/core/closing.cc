#include "coordinator/core/closing.h"

#include <algorithm>
#include <charconv>
#include <set>

namespace parallelrun::coordinator {
namespace {

// For an agent that was away for a moment, for what it kills, and for its report.
constexpr Duration kSlack = seconds(30);

}  // namespace

void Closing::Begin(WorkInstant worked, uint64_t position) {
  began_ = worked;
  position_ = position;
}

bool Closing::Durable(uint64_t durable) {
  if (tells_ || !began_ || durable < position_) return false;
  tells_ = true;
  return true;
}

bool Closing::Overdue(WorkInstant worked) const {
  return began_ && worked - *began_ > timeout_ + kSlack;
}

void Closing::Told(uint32_t node, const job::Incarnation& incarnation) {
  job::Incarnation& told = told_[node];
  told = std::max(told, incarnation);
}

bool Closing::WasTold(uint32_t node, const job::Incarnation& incarnation) const {
  const auto found = told_.find(node);
  return found != told_.end() && found->second >= incarnation;
}

job::ProcessEnd EndOf(job::ProcessEvent::Kind kind) {
  switch (kind) {
    case job::ProcessEvent::Kind::kClosed: return job::ProcessEnd::kClosed;
    case job::ProcessEvent::Kind::kCloseFailed: return job::ProcessEnd::kFailed;
    case job::ProcessEvent::Kind::kCutOff: return job::ProcessEnd::kCutOff;
    case job::ProcessEvent::Kind::kCloseLost: return job::ProcessEnd::kLost;
    default: return job::ProcessEnd::kOpen;
  }
}

std::vector<job::ProcessId> NotNamed(std::vector<job::ProcessId> processes,
                                     std::string_view numbers) {
  std::set<uint32_t> named;
  const char* at = numbers.data();
  const char* const end = at + numbers.size();
  while (at != end) {
    uint32_t number = 0;
    const auto read = std::from_chars(at, end, number);
    if (read.ec == std::errc()) named.insert(number);
    at = read.ptr == at ? at + 1 : read.ptr;
  }
  std::erase_if(processes,
                [&named](const job::ProcessId& process) { return named.contains(process.number); });
  return processes;
}

}  // namespace parallelrun::coordinator
