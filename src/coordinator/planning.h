// Planning has a job's inputs listed and cut, in a thread of its own, and gives what that finds to
// the Coordinator, in order. It goes on where the ledger's plan ends, and keeps the planner from
// running far ahead of the disk. What people are told of the inputs is here too. All but the
// planner's thread belongs to the loop.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "base/thread.h"
#include "base/time.h"
#include "coordinator/coordinator.h"
#include "ledger/ledger.h"
#include "plan/planner.h"

namespace parallelrun::coordinator {

class Planning {
 public:
  struct Of {
    ledger::Ledger& ledger;
    const job::JobState& state;
    Coordinator& coordinator;
    EventLoop& loop;
    const Clock& clock;
  };
  // `open` opens what the inputs lie in, on the thread. `after_event` follows each call of the
  // Coordinator that comes from the loop.
  Planning(const Of& of, std::vector<plan::PlanInput> inputs, plan::OpenStore open,
           std::function<void()> after_event);
  // Waits for the thread. Where a volume hangs that may be for ever: ask Finish first.
  ~Planning();
  Planning(const Planning&) = delete;
  Planning& operator=(const Planning&) = delete;

  // Unless all is planned, or the job does not run any more.
  void Start();
  // The ledger is durable further than before.
  void Durable();
  // Nothing more is planned.
  void Stop();
  // False: the thread goes on for longer than `limit`.
  bool Finish(Duration limit);

  // What was told: of an input's types, and of names that are no data.
  const std::map<uint32_t, std::string>& columns() const { return columns_; }
  const std::vector<std::string>& left_out() const { return left_out_; }

 private:
  // Behind `last`, the last chunk that is planned.
  void Run(std::vector<plan::PlanInput> inputs, std::optional<job::Place> last);
  void Add(const std::string& chunk);
  void Fail(const Error& error);
  void TellTypes();
  void TellNotes(const std::vector<std::string>& notes);

  const Of of_;
  const std::vector<plan::PlanInput> inputs_;
  const plan::OpenStore open_;
  const std::function<void()> after_event_;
  std::map<uint32_t, std::string> columns_;
  std::vector<std::string> left_out_;
  std::deque<uint64_t> undurable_;  // positions in the ledger that make chunks durable

  std::mutex mutex_;  // guards the two below
  std::condition_variable wake_;
  size_t on_the_way_ = 0;  // chunks that are planned and not durable
  bool ends_ = false;
  std::stop_source stop_;  // ends what the thread reads
  Thread thread_;
};

}  // namespace parallelrun::coordinator
