#include "job/shutdowns.h"

#include <algorithm>
#include <utility>

namespace parallelrun::job {

void Shutdowns::Apply(const ShutdownRecord& record) {
  const ProcessId id{record.node, record.process};
  const auto [at, added] = processes_.try_emplace(id);
  Process& process = at->second;
  const bool was_open = !added && process.end == ProcessEnd::kOpen;
  if (record.end == ProcessEnd::kOpen) {
    // Told again, as each new coordinator hears it. What ended badly stays so.
    if (process.end == ProcessEnd::kClosed) process = {};
  } else if (was_open || added || process.end == ProcessEnd::kLost) {
    // One that was thought lost may say after all how it ended.
    process.end = record.end;
    process.message = record.message;
    process.log = record.log;
  }
  const bool is_open = process.end == ProcessEnd::kOpen;
  if (is_open && !was_open) ++open_;
  if (!is_open && was_open) --open_;
}

void Shutdowns::AddResult(ProcessId process) {
  const auto found = processes_.find(process);
  if (found != processes_.end()) ++found->second.results;
}

void Shutdowns::Void(ProcessId process, uint64_t results) {
  const auto found = processes_.find(process);
  if (found == processes_.end()) return;
  found->second.results -= std::min(found->second.results, results);
  if (found->second.results > 0) return;
  if (found->second.end == ProcessEnd::kOpen) --open_;
  processes_.erase(found);
}

bool Shutdowns::Knows(ProcessId process, ProcessEnd end) const {
  const auto found = processes_.find(process);
  return found != processes_.end() && found->second.end == end;
}

std::vector<ProcessId> Shutdowns::OpenOf(uint32_t node) const {
  std::vector<ProcessId> open;
  if (open_ == 0) return open;
  for (auto at = processes_.lower_bound({node, 0}); at != processes_.end(); ++at) {
    if (at->first.node != node) break;
    if (at->second.end == ProcessEnd::kOpen) open.push_back(at->first);
  }
  return open;
}

std::vector<ProcessId> Shutdowns::Open() const {
  std::vector<ProcessId> open;
  if (open_ == 0) return open;
  for (const auto& [id, process] : processes_) {
    if (process.end == ProcessEnd::kOpen) open.push_back(id);
  }
  return open;
}

std::vector<ProcessId> Shutdowns::NotClosed() const {
  std::vector<ProcessId> all;
  for (const auto& [id, process] : processes_) {
    if (process.end != ProcessEnd::kClosed && process.results > 0) all.push_back(id);
  }
  return all;
}

Shutdowns::Unclosed Shutdowns::unclosed() const {
  Unclosed all;
  for (const auto& [id, process] : processes_) {
    const bool badly = process.end != ProcessEnd::kOpen && process.end != ProcessEnd::kClosed;
    if (!badly || process.results == 0) continue;
    // What a script raised says most.
    const bool tells_more =
        process.end == ProcessEnd::kFailed && all.how.end != ProcessEnd::kFailed;
    if (all.processes == 0 || tells_more) {
      all.first = id;
      all.how = process;
    }
    ++all.processes;
    all.results += process.results;
  }
  return all;
}

}  // namespace parallelrun::job
