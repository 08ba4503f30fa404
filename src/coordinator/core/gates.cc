#include "coordinator/core/gates.h"

namespace parallelrun::coordinator {

Gate Gates::MayGet(uint32_t node, const job::Incarnation& incarnation, Instant arrived,
                   Instant now) const {
  switch (ending_.phase()) {
    case Ending::Phase::kRunning: break;
    case Ending::Phase::kDraining: return Gate::kDrains;
    case Ending::Phase::kClosing: return Gate::kJobCloses;
    case Ending::Phase::kDeciding:
    case Ending::Phase::kFinalizing:
    case Ending::Phase::kEnded: return Gate::kJobOver;
  }
  if (!journal_.paused().empty()) return Gate::kDiskFull;
  if (newest_.superseded()) return Gate::kSuperseded;
  if (!newest_.MayAnswer(arrived, now)) return Gate::kEpochUnsure;
  if (availability_.awaits_nodes()) return Gate::kNotAllHeard;
  if (!nodes_.Expected(node)) return Gate::kNotExpected;
  if (!nodes_.InForce(node, incarnation)) return Gate::kNotInForce;
  return nodes_.Find(node)->offers_open ? Gate::kOffersOpen : Gate::kOpen;
}

}  // namespace parallelrun::coordinator
