// What the live page shows beyond the state: figures of this epoch, and the map of all
// mini-batches. Hears each record, in constant time. Pure; not thread-safe.
#pragma once

#include "coordinator/page/batch_map.h"
#include "coordinator/page/figures.h"
#include "job/job_state.h"
#include "job/records.h"

namespace parallelrun::coordinator {

class LiveFigures {
 public:
  explicit LiveFigures(const job::JobState& state) : state_(state), map_(MapOf(state)) {}

  // Of what was just applied to the state.
  void Observe(const job::Record& record);
  // Time has come to here, whether an attempt ended or not.
  void Reach(int64_t wall_us) { figures_.Reach(wall_us); }

  const Figures& figures() const { return figures_; }
  const BatchMap& map() const { return map_; }

 private:
  void Observe(const Figures::Attempt& attempt);

  const job::JobState& state_;
  BatchMap map_;
  Figures figures_;
};

}  // namespace parallelrun::coordinator
