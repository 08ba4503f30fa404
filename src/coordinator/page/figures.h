// Figures of a run, gathered attempt by attempt: sums, processes, points of time and the slowest
// attempts. Bounded, and constant time for each attempt, however many there are. Fed with what the
// ledger records, so that it says the same whether it hears it live or reads it back. Pure; not
// thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/time.h"
#include "coordinator/page/time_series.h"
#include "job/records.h"

namespace parallelrun::coordinator {

class Figures {
 public:
  static constexpr size_t kMostProcesses = 20'000;
  static constexpr size_t kMostSlow = 20;
  static constexpr size_t kMostCuts = 50;

  // Times are on the axis of this run: from the beginning of its first attempt, without the time in
  // which no coordinator ran.
  struct Attempt : job::AttemptResult {
    job::BatchId id = 0;
    uint32_t node = 0;
    uint32_t process = 0;
    uint32_t items = 0;
    bool succeeded = false;
  };
  struct Sums {
    uint64_t attempts = 0;
    uint64_t failed = 0;  // of these
    uint64_t items = 0;   // of those that succeeded
    uint64_t run_ns = 0;
    uint64_t failed_run_ns = 0;  // of these
    uint64_t elapsed_ns = 0;     // with reading and rows
    uint64_t cpu_ns = 0;         // in run()
    Duration begun{};            // first attempt
    Duration ended{};            // last attempt

    uint64_t span_ns() const;
  };
  struct ProcessName {
    uint32_t node = 0;
    uint32_t process = 0;
  };
  struct Cut {
    Duration at{};      // on the axis
    Duration length{};  // of what was left out there
  };

  void Add(const Attempt& attempt);
  // Another coordinator goes on: nobody was there until its first attempt began.
  void NewEpoch() { epoch_begins_ = total_.attempts > 0; }

  // Time has come to here, whether an attempt ended or not; microseconds since 1970.
  void Reach(int64_t wall_us);

  const Sums& total() const { return total_; }
  // From the first to the last moment of the processes, added up.
  uint64_t process_ns() const;
  std::vector<std::pair<ProcessName, Sums>> processes() const;
  const TimeSeries& series() const { return series_; }
  // The longest run() first.
  std::vector<Attempt> slowest() const;
  const std::vector<Cut>& cuts() const { return cuts_; }
  // Of the first attempt; microseconds since 1970. 0: there is none.
  int64_t begun_us() const { return begun_us_; }
  Duration length() const { return length_; }

 private:
  void NoteSlow(const Attempt& attempt);

  Sums total_;
  std::unordered_map<uint64_t, Sums> processes_;  // node and process in one
  TimeSeries series_;
  std::vector<Attempt> slow_;  // a heap, the shortest in front
  std::vector<Cut> cuts_;
  Duration length_{};
  int64_t begun_us_ = 0;
  int64_t last_us_ = 0;
  int64_t cut_us_ = 0;
  bool epoch_begins_ = false;
};

}  // namespace parallelrun::coordinator
