// Journal is the one way from decisions to the ledger: what is recorded is appended and applied to
// the state in one step, so that memory and ledger cannot disagree. It also keeps whether the
// ledger can be written for now. Does no I/O: others flush. Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/escape.h"
#include "job/job_state.h"
#include "ledger/ledger.h"

namespace parallelrun::coordinator {

// Text that a node sends goes to the ledger and into memory; agents cut it too.
inline std::string_view Bounded(std::string_view text) { return Front(text, size_t{4} << 10); }

class Journal {
 public:
  // `state` holds what the ledger's history says, after Begin. Both must outlive this.
  Journal(ledger::Ledger& ledger, job::JobState& state) : ledger_(ledger), state_(state) {}

  // Decisions check before they record, so that the state takes every record. Gives its position:
  // it is durable once durable() is not below.
  uint64_t Add(const job::Record& record);
  // What the planner gives, as it is encoded. An error: these bytes cannot follow what came before.
  Result<uint64_t> AddChunk(const std::string& encoded);

  // Who hears of each record, once it is in the state.
  void Watch(std::function<void(const job::Record&)> watcher) { watcher_ = std::move(watcher); }

  const job::JobState& state() const { return state_; }
  // There is a verdict, durable or not: nothing of mini-batches is recorded any more.
  bool decided() const { return state_.verdict().has_value(); }
  uint32_t epoch() const { return ledger_.epoch(); }
  uint64_t appended() const { return ledger_.appended(); }
  uint64_t durable() const { return ledger_.durable(); }

  // --- the ledger cannot be written for now (disk full): `why`
  void Pause(std::string why) { paused_ = std::move(why); }
  void Unpause() { paused_.clear(); }
  // "": it can.
  const std::string& paused() const { return paused_; }

 private:
  ledger::Ledger& ledger_;
  job::JobState& state_;
  std::string paused_;
  std::function<void(const job::Record&)> watcher_;
};

}  // namespace parallelrun::coordinator
