// Shutdowns: the processes of a job whose script has a shutdown(), how many results in the ledger
// are theirs, and how each of them ended. A script may write in shutdown() what it gathered in
// run(): so a result is whole only once its process has closed. Pure; not thread-safe.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "job/records.h"

namespace parallelrun::job {

// A process of a node; its number is never given twice there.
struct ProcessId {
  uint32_t node = 0;
  uint32_t number = 0;
  auto operator<=>(const ProcessId&) const = default;  // NOLINT(modernize-use-nullptr)
};

class Shutdowns {
 public:
  struct Process {
    ProcessEnd end = ProcessEnd::kOpen;
    uint64_t results = 0;
    std::string message;  // how it ended; "" for kOpen and kClosed
    std::string log;
  };
  // Processes that have results and ended without their shutdown().
  struct Unclosed {
    uint64_t processes = 0;
    uint64_t results = 0;
    ProcessId first;  // that raised, if any did, else the first of all
    Process how;      // of that one
  };

  void Apply(const ShutdownRecord& record);
  // Of processes that have no shutdown() nothing is kept.
  void AddResult(ProcessId process);
  // So many of its results are void, and run again. Without any it is forgotten.
  void Void(ProcessId process, uint64_t results);

  const std::map<ProcessId, Process>& all() const { return processes_; }
  // To say that again would change nothing.
  bool Knows(ProcessId process, ProcessEnd end) const;
  bool AnyOpen() const { return open_ > 0; }
  // Those that are not known to have ended, of a node.
  std::vector<ProcessId> OpenOf(uint32_t node) const;
  std::vector<ProcessId> Open() const;
  // Those that have results and did not close, open ones too: for whoever knows that none lives.
  std::vector<ProcessId> NotClosed() const;
  // Open ones do not count: whoever decides has waited for them, or has had them recorded as lost.
  Unclosed unclosed() const;

 private:
  std::map<ProcessId, Process> processes_;  // few: those that live, and those that died
  uint64_t open_ = 0;
};

}  // namespace parallelrun::job
