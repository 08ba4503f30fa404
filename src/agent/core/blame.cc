#include "agent/core/blame.h"

namespace parallelrun::agent {
namespace {

Fault Bounce(const Suspect& suspect, bool certain) {
  return certain && suspect.bounces + 1 >= kMaxBounces ? Fault::kItsOwn : Fault::kBounced;
}

}  // namespace

Fault ToBlame(const Death& death, const Suspect& suspect) {
  // A full disk kills what it likes (SIGBUS on a mapped file, an interpreter that cannot write).
  if (death.no_room) return Fault::kNone;
  const bool at_it = death.at_work && death.begun == suspect.sequence;
  if (death.timed_out == suspect.sequence && (death.async || at_it)) return Fault::kTimedOut;
  // Killed for another one, for its lease, or because the node ends.
  if (death.by_agent) return Fault::kNone;
  if (death.async) {
    // The page tells of the oldest in flight only. Of several nobody knows which one it was, so
    // they are tried one at a time after it; then only that one can have done it.
    const bool alone = death.held == 1;
    if (alone && death.begun >= suspect.sequence) return Fault::kItsOwn;
    return Bounce(suspect, alone);
  }
  if (at_it) return Fault::kItsOwn;
  // It was at another one, or at none: then the one in front is the only one it can have been.
  if (death.at_work || suspect.sequence != death.first) return Fault::kNone;
  return Bounce(suspect, true);
}

}  // namespace parallelrun::agent
