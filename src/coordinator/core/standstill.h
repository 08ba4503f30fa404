// Standstill knows when something last moved, and says when nothing has for too long. Only time
// that could be used counts: none in which nobody could work, or in which the volume of the state
// took nothing. Until a process is ready for the first time, nodes are in init(), which has a limit
// of its own: its time does not count for the other. A while before the end it has the nodes asked
// where their processes are, so that the verdict can tell. Times are working time. Pure; not
// thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"
#include "coordinator/core/places.h"
#include "job/ids.h"
#include "job/job_state.h"

namespace parallelrun::coordinator {

class Standstill {
 public:
  struct Limits {
    Duration progress;    // from one mini-batch to the next
    Duration first_task;  // to the first one that is planned
    Duration init;        // to the first process that is ready
  };
  Standstill(const Limits& limits, WorkInstant worked)
      : limits_(limits), started_(worked), moved_(worked), ticked_(worked) {}

  // A mini-batch was planned or finished, or a node died of one: what is lost again and again comes
  // to an end by that.
  void Moved(WorkInstant worked);
  // A process has come through init(): it may have taken long, and now mini-batches have their
  // time. Told again and again.
  void Ready(WorkInstant worked);
  // init() has failed in a process, and is tried anew: it does not hang. How often that may be is
  // counted elsewhere.
  void InitFailed() { in_init_ = Duration::zero(); }
  // The pod of a node with that number has ended; told at least once. Whoever took it away: where
  // one node ends more than five times before anything moves, the job tries in vain, and its time
  // counts.
  void Ended(uint32_t node, uint64_t pod, std::string_view reason);
  bool InVain() const { return in_vain_.has_value(); }
  // Which node, how often, and how the last time; "": none.
  std::string InVainText() const;
  // Each second or oftener; `usable`: somebody could work since the last one. `in_init`: so many
  // nodes are in init(), and no process was ever ready. True when the nodes are to be asked from
  // now on.
  bool Tick(WorkInstant worked, bool usable, size_t in_init = 0);

  // Whether this agent of the node is to be asked where its processes are; each is asked once.
  bool Asks(uint32_t node, const job::Incarnation& incarnation) const;
  void Asked(uint32_t node, const job::Incarnation& incarnation) {
    if (asking_) asked_[node] = incarnation;
  }
  // An answer to the node was lost, which may have asked it.
  void NotHeard(uint32_t node) { asked_.erase(node); }
  // What it says, of each process, or of the whole node (ProcessEvent::kWholeNode); told at least
  // once.
  void Where(uint32_t node, uint32_t process, std::string_view where);

  // The verdict when nothing has moved for too long. `why` says what is waited for, "": for the
  // script, as far as is known.
  std::optional<job::Verdict> Overdue(const job::JobState& state, WorkInstant worked,
                                      const std::function<std::string()>& why) const;

 private:
  struct Ends {
    uint64_t pod = 0;  // the newest whose end was told
    uint32_t in_a_row = 0;
    std::string reason;  // of the last one
  };
  job::Verdict InitTooLong() const;
  // For the script alone, as far as is known; `raise`: what to do then.
  std::string Hint(std::string_view raise) const;

  const Limits limits_;
  const WorkInstant started_;
  WorkInstant moved_;
  WorkInstant ticked_;
  bool ready_ = false;        // a process was, of whatever node
  Duration in_init_{};        // before that
  size_t nodes_in_init_ = 0;  // at the last tick
  // Since something moved last:
  std::map<uint32_t, Ends> ends_;  // by node
  bool any_ended_ = false;
  std::optional<uint32_t> in_vain_;  // the first node that ended too often
  bool asking_ = false;
  std::map<uint32_t, job::Incarnation> asked_;  // by node
  Places places_;
};

}  // namespace parallelrun::coordinator
