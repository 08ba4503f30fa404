// Makes durable what was appended to the ledger, when it is asked to, in a thread of its own: a
// sync takes its time. One at a time: what is appended meanwhile shares the next, which is put off
// where the ledger is the better for it. Where it ends,
// nothing is flushed any more, and the ledger's reserve goes back to the disk. Belongs to the loop.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "base/errands.h"
#include "base/error.h"
#include "base/event_loop.h"
#include "base/time.h"
#include "ledger/ledger.h"

namespace parallelrun::coordinator {

class Flusher {
 public:
  // `flushed` gets what Ledger::Flush gave, on the loop.
  Flusher(ledger::Ledger& ledger, EventLoop& loop,
          std::function<void(const Result<uint64_t>&)> flushed)
      : ledger_(ledger), loop_(loop), flushed_(std::move(flushed)) {}
  // Waits for a sync that goes on. Where a volume hangs that may be for ever: ask Finish first.
  ~Flusher();
  Flusher(const Flusher&) = delete;
  Flusher& operator=(const Flusher&) = delete;

  // If there is something to make durable and no sync goes on.
  void Flush(Instant now);
  // What was asked for is still done, then nothing more. False: it takes longer than `limit`.
  bool Finish(Duration limit) { return thread_.Finish(limit); }

 private:
  ledger::Ledger& ledger_;
  EventLoop& loop_;
  const std::function<void(const Result<uint64_t>&)> flushed_;
  bool flushing_ = false;  // asked for, and what came of it was not heard
  EventLoop::TimerId put_off_ = EventLoop::TimerId::kNone;
  Errands thread_{"ledger flush", 1, Errands::AtEnd::kDoes};
};

}  // namespace parallelrun::coordinator
