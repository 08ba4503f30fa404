// Answers says which of the exchanges that wait is answered, and what with: what it is told, what
// is leased to it, and the bytes of that. Whoever is woken is looked at in the order in which they
// came, since what one gets is not there for the next. Pure but for the plan's bytes; not
// thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/time.h"
#include "coordinator/core/attempts.h"
#include "coordinator/core/ending.h"
#include "coordinator/core/gates.h"
#include "coordinator/core/init_watch.h"
#include "coordinator/core/newest.h"
#include "coordinator/core/nodes.h"
#include "coordinator/core/standstill.h"
#include "coordinator/core/waiters.h"
#include "job/availability.h"
#include "plan/plan_store.h"

namespace parallelrun::coordinator {

class Answers {
 public:
  struct Parts {
    Journal& journal;
    job::Availability& availability;
    Nodes& nodes;
    Newest& newest;
    Ending& ending;
    Attempts& attempts;
    plan::PlanStore& plan;
    Standstill& standstill;
    InitWatch& init_watch;
  };
  // `processes`: of each node that is expected.
  Answers(uint32_t processes, const Parts& parts)
      : processes_(processes),
        of_(parts),
        gates_(of_.ending, of_.journal, of_.newest, of_.availability, of_.nodes) {}

  Waiters& waiters() { return waiters_; }
  const Gates& gates() const { return gates_; }

  // Whoever was woken and can be answered: the end of each event.
  void AnswerWoken(Instant now, WorkInstant worked);
  // A part of the plan that was not at hand is there.
  void PlanRead();
  // Time alone makes something slow: whoever is idle may try it a second time.
  void WakeForSlow(WorkInstant worked);
  // Answers everybody; before the process ends.
  void Close(const Error& why);

  // Whether anybody waits who could be answered, by a look at all; "": nobody. For tests. A second
  // lease may come with the next tick.
  std::string Check(Instant now) const;

 private:
  bool MayTell() const;
  // There is something to say to it besides leases.
  bool Concerns(const Waiter& waiting, Instant now) const;
  bool TryAnswer(Waiter& waiting, Instant now, WorkInstant worked);
  bool MayLease(const Waiter& waiting, Instant now) const;
  uint64_t Grants(const Waiter& waiting, Instant now) const;
  // For a process that would be idle, what takes much longer than the others did.
  std::optional<job::LeaseName> GrantSecond(const Waiter& waiting, Instant now, WorkInstant worked);
  job::Directive DirectiveFor(const Waiter& waiting) const;

  const uint32_t processes_;
  const Parts of_;
  const Gates gates_;
  Waiters waiters_;
  // What is to be leased next is being read. Nobody is leased anything before: the others would
  // ask for the same chunk.
  bool plan_unread_ = false;
};

}  // namespace parallelrun::coordinator
