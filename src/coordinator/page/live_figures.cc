#include "coordinator/page/live_figures.h"

namespace parallelrun::coordinator {

void LiveFigures::Observe(const job::Record& record) {
  if (const auto* r = std::get_if<job::ResultRecord>(&record)) {
    Observe({r->result(), r->id, r->node, r->process, state_.batch(r->id).items, true});
  } else if (const auto* f = std::get_if<job::FailedRecord>(&record)) {
    Observe({f->result(), f->id, f->node, f->process, state_.batch(f->id).items, false});
  } else if (std::holds_alternative<job::PlanChunkRecord>(record)) {
    map_.Plan(state_.batches().size() - 1);
  }
}

void LiveFigures::Observe(const Figures::Attempt& attempt) {
  figures_.Add(attempt);
  // A whole one is settled by one record, be it that of its last piece: nothing is recorded of it
  // afterwards.
  const job::BatchId whole = job::WholeOf(attempt.id);
  const job::MiniBatch::State became = state_.StateOf(whole);
  if (became == job::MiniBatch::State::kSucceeded) map_.Settle(whole, true);
  if (became == job::MiniBatch::State::kFailed) map_.Settle(whole, false);
}

}  // namespace parallelrun::coordinator
