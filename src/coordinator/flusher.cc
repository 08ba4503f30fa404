#include "coordinator/flusher.h"

#include <utility>

namespace parallelrun::coordinator {

Flusher::~Flusher() {
  loop_.Cancel(put_off_);
  thread_.Join();
  ledger_.GiveBackReserve();
}

void Flusher::Flush(Instant now) {
  if (flushing_ || ledger_.appended() <= ledger_.durable()) return;
  if (const Duration wait = ledger_.FlushIn(now); wait > Duration{0}) {
    if (put_off_ != EventLoop::TimerId::kNone) return;
    put_off_ = loop_.After(wait, [this, then = now + wait] {
      put_off_ = EventLoop::TimerId::kNone;
      Flush(then);
    });
    return;
  }
  flushing_ = true;
  thread_.Ask([this] {
    const Result<uint64_t> flushed = ledger_.Flush();
    loop_.Post([this, flushed] {
      flushing_ = false;
      flushed_(flushed);
    });
  });
}

}  // namespace parallelrun::coordinator
