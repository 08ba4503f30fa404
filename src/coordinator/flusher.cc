#include "coordinator/flusher.h"

#include <utility>

namespace parallelrun::coordinator {

Flusher::~Flusher() {
  thread_.Join();
  ledger_.GiveBackReserve();
}

void Flusher::Flush() {
  if (flushing_ || ledger_.appended() <= ledger_.durable()) return;
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
