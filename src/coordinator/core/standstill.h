// Standstill knows when something last moved, and says when nothing has for too long. Only time
// that could be used counts: none in which nobody could work, or in which the volume of the state
// took nothing. A while before that it has the nodes asked where their processes are, so that the
// verdict can tell. Times are working time. Pure; not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/time.h"
#include "job/ids.h"
#include "job/job_state.h"

namespace parallelrun::coordinator {

class Standstill {
 public:
  struct Limits {
    Duration progress;    // from one mini-batch to the next
    Duration first_task;  // to the first one that is planned
  };
  Standstill(const Limits& limits, WorkInstant worked)
      : limits_(limits), started_(worked), moved_(worked), ticked_(worked) {}

  // A mini-batch was planned or finished, or a node died of one: what is lost again and again comes
  // to an end by that.
  void Moved(WorkInstant worked);
  // The pod of a node with that number has ended; told at least once. Whoever took it away: where
  // one node ends more than five times before anything moves, the job tries in vain, and its time
  // counts.
  void Ended(uint32_t node, uint64_t pod, std::string_view reason);
  bool InVain() const { return in_vain_.has_value(); }
  // Which node, how often, and how the last time; "": none.
  std::string InVainText() const;
  // Each second or oftener; `usable`: somebody could work since the last one. True when the nodes
  // are to be asked from now on.
  bool Tick(WorkInstant worked, bool usable);

  // Whether this agent of the node is to be asked where its processes are; each is asked once.
  bool Asks(uint32_t node, const job::Incarnation& incarnation) const;
  void Asked(uint32_t node, const job::Incarnation& incarnation) { asked_[node] = incarnation; }
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
  std::string Places() const;
  bool NodesWait() const;

  const Limits limits_;
  const WorkInstant started_;
  WorkInstant moved_;
  WorkInstant ticked_;
  // Since something moved last:
  std::map<uint32_t, Ends> ends_;  // by node
  bool any_ended_ = false;
  std::optional<uint32_t> in_vain_;  // the first node that ended too often
  bool asking_ = false;
  std::map<uint32_t, job::Incarnation> asked_;                  // by node
  std::map<std::pair<uint32_t, uint32_t>, std::string> where_;  // by node and process
};

}  // namespace parallelrun::coordinator
