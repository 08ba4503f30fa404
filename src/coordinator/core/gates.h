// Gates answers in one place whether a node may get mini-batches now, and if not, why: what shuts
// them for a whole node or the whole job, whatever there is to be had. What keeps a single
// mini-batch back is Availability's business (docs/architecture.md, "Availability"). Reads the
// parts and changes none. Pure; not thread-safe.
#pragma once

#include <cstdint>

#include "base/time.h"
#include "coordinator/core/ending.h"
#include "coordinator/core/journal.h"
#include "coordinator/core/newest.h"
#include "coordinator/core/nodes.h"
#include "job/availability.h"

namespace parallelrun::coordinator {

// In the order in which they are asked: the first that is shut is the answer.
enum class Gate : uint8_t {
  kOpen,
  kJobOver,      // there is a verdict, durable or not
  kJobCloses,    // all is settled, and processes run shutdown()
  kDrains,       // somebody asked for it
  kDiskFull,     // the ledger cannot be written: no result would be durable
  kSuperseded,   // a newer epoch was seen, which gives out the same mini-batches
  kEpochUnsure,  // no look was good lately: there may be a newer one
  kNotAllHeard,  // a node that was not heard of may be in run() since an earlier epoch
  kNotExpected,  // the job has fewer nodes now
  kNotInForce,   // the node has left, was replaced, or has registered again
  kOffersOpen,   // it is at work on what it offers: it could be given that a second time
};

class Gates {
 public:
  Gates(const Ending& ending, const Journal& journal, const Newest& newest,
        const job::Availability& availability, const Nodes& nodes)
      : ending_(ending),
        journal_(journal),
        newest_(newest),
        availability_(availability),
        nodes_(nodes) {}

  // For an agent of that incarnation whose request came at `arrived`.
  Gate MayGet(uint32_t node, const job::Incarnation& incarnation, Instant arrived,
              Instant now) const;

 private:
  const Ending& ending_;
  const Journal& journal_;
  const Newest& newest_;
  const job::Availability& availability_;
  const Nodes& nodes_;
};

}  // namespace parallelrun::coordinator
