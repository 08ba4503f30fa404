// Attempts says what the end of an attempt means for its mini-batch: whether it is tried again, has
// failed, is split, or is to be kept from company; and records it. A try is lost only by what
// somebody reported, or by the death of a node that was in run() of it. How long the attempts of
// this epoch took says what is slow. Pure but for the journal; not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "coordinator/control.h"
#include "coordinator/core/failed_attempts.h"
#include "coordinator/core/journal.h"
#include "coordinator/limits.h"
#include "job/availability.h"
#include "job/node_messages.h"
#include "plan/plan_store.h"

namespace parallelrun::coordinator {

class Attempts {
 public:
  // What is passed by reference must outlive it.
  Attempts(CoordinatorLimits limits, Journal& journal, job::Availability& availability,
           plan::PlanStore& plan)
      : limits_(std::move(limits)), journal_(journal), availability_(availability), plan_(plan) {}

  // --- what its agent says, of a lease that is live and its own; `wall_us`: now, since 1970. Those
  // that record give the position.
  // run() has begun, or has not yet.
  void Began(const job::HeldLease& held);
  // All of its rows are there.
  uint64_t Succeeded(uint32_t node, const job::Finished& done, int64_t wall_us);
  uint64_t Failed(uint32_t node, const job::Finished& done, int64_t wall_us);
  // It was not run, or its answer was never heard: nobody's loss.
  void HandBack(const job::LeaseName& name);

  // It is leased, and its chunk is at hand. Where one more loss is one too many, the words for that
  // name its items: they are kept, since the disk is not asked then.
  void NoteLastChance(job::BatchId id);

  // --- its node is gone, and what it held
  // The node has left, or its pod was taken away.
  void HandBackAll(uint32_t node);
  // Its agent was replaced and may be at work still: nobody's loss, and nobody else's for as long
  // as it may believe that it has them.
  void SetAside(uint32_t node);
  // The node died with `held`; `end`: of its pod, where that was told.
  void NodeDied(uint32_t node, const std::vector<job::Held>& held, const PodEnd* end,
                int64_t wall_us);
  // run() had begun under that lease when its node died, or nothing else was held.
  void Lost(uint32_t node, const job::LeaseName& name);

  // What runs longer than this may be tried a second time; nullopt while nothing may be.
  std::optional<Duration> Slow() const;

  // Those of this epoch.
  const FailedAttempts& failed() const { return failed_; }

 private:
  // What one more failed attempt means.
  // `hopeless`: the next try would fail as this one did.
  job::AttemptEnd EndOf(const job::LeaseName& name, bool hopeless) const;
  // Records it and ends its lease.
  uint64_t Fail(const job::FailedRecord& failed, const job::LeaseName& lease);
  void FailForMemory(const job::LeaseName& name, const PodEnd& end, int64_t wall_us);
  void NarrowDown(const std::vector<job::Held>& held);
  // As they were noted, or as they are at hand; "": nobody waits for the disk to tell.
  std::string ItemsOfLost(job::BatchId id);

  const CoordinatorLimits limits_;
  Journal& journal_;
  job::Availability& availability_;
  plan::PlanStore& plan_;
  std::map<job::BatchId, std::string> last_chances_;  // their items; none of what is settled
  double elapsed_seconds_ = 0;                        // of the results of this epoch
  uint64_t elapsed_results_ = 0;                      // and their number
  FailedAttempts failed_;
};

}  // namespace parallelrun::coordinator
