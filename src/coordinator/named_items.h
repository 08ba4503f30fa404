// What the items are called that people hear of: of the mini-batches that errors were first in, of
// the slowest one, and, once a job has ended, of the first that were lost. Of the loop's thread.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "base/thread.h"
#include "job/job_state.h"
#include "job/losses.h"
#include "ledger/ledger.h"
#include "plan/plan_store.h"

namespace parallelrun::coordinator {

class NamedItems {
 public:
  // All outlive it.
  NamedItems(const job::JobState& state, plan::PlanStore& plan, const ledger::Ledger& ledger,
             EventLoop& loop)
      : state_(state), plan_(plan), ledger_(ledger), loop_(loop) {}
  // Waits for its thread, which reads the ledger.
  ~NamedItems();

  // Those that are told of now, as far as the plan is at hand. Each costs a look into it, once.
  void Name(std::optional<job::BatchId> slowest);

  // Once the state does not change any more: all of them, with the first lost ones. On a thread of
  // its own, since it reads the plan, some of it perhaps from a volume that hangs; then `done` is
  // called on the loop.
  void NameLast(const job::FailureRules& rules, std::function<void()> done);
  // False: its thread does not end.
  bool Finish(Duration limit);

  // Not escaped.
  const std::map<job::BatchId, std::string>& items() const { return items_; }
  const std::vector<std::string>& first_lost() const { return first_lost_; }
  // One of them for people to see; "" where it has no name yet.
  std::string Shown(job::BatchId id) const;

 private:
  const job::JobState& state_;
  plan::PlanStore& plan_;
  const ledger::Ledger& ledger_;
  EventLoop& loop_;
  std::map<job::BatchId, std::string> items_;
  std::optional<job::BatchId> slowest_;
  std::vector<std::string> first_lost_;
  Thread thread_;
};

}  // namespace parallelrun::coordinator
