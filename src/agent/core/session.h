// Session: the registration in force, and whether the node needs another one. What a coordinator
// said holds for the incarnation that asked it; after a later registration it is another node's
// answer, as far as leases go. Pure; not thread-safe.
#pragma once

#include "agent/core/agent_types.h"
#include "base/time.h"

namespace parallelrun::agent {

class Session {
 public:
  // Of the registration in force; its defaults before the first one. The reference stays valid.
  const Registration& terms() const { return terms_; }
  bool ever() const { return ever_; }  // there was a registration
  bool wanted() const { return wanted_; }

  // The coordinator knows this incarnation no more, or the node needs what only a registration
  // gives.
  void Want() { wanted_ = true; }

  // True when another configuration is in force than before: nothing begun under the old one
  // counts.
  bool Begin(const Registration& registration);

  // It is the latest one, though the coordinator may have said already that it is so no more.
  bool Latest(const job::Incarnation& asked) const { return asked == terms_.incarnation; }
  // What was answered to it holds for this node as it is now.
  bool InForce(const job::Incarnation& asked) const { return Latest(asked) && !wanted_; }

  // Leases that were confirmed last at this time or before may be over: by this node's clock the
  // coordinator may have given them to another node. The beginning of time where two nodes may
  // run the same (speculation).
  Instant OverBefore(Instant now) const;

 private:
  Registration terms_;
  bool ever_ = false;
  bool wanted_ = true;
};

}  // namespace parallelrun::agent
