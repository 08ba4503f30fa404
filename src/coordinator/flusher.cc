#include "coordinator/flusher.h"

#include <utility>

namespace parallelrun::coordinator {

Flusher::~Flusher() {
  End();
  if (thread_.joinable()) thread_.join();
  ledger_.GiveBackReserve();
}

void Flusher::Start() {
  thread_ = Thread("ledger flush", [this] { Run(); });
}

void Flusher::Flush() {
  if (flushing_ || ledger_.appended() <= ledger_.durable()) return;
  flushing_ = true;
  {
    const std::lock_guard lock(mutex_);
    wanted_ = true;
  }
  wake_.notify_all();
}

void Flusher::Rest(Duration pause, std::function<void()> again) {
  flushing_ = true;
  loop_.After(pause, [this, again = std::move(again)] {
    flushing_ = false;
    again();
  });
}

void Flusher::End() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  wake_.notify_all();
}

bool Flusher::Finish(Duration limit) {
  End();
  return !thread_.joinable() || thread_.JoinFor(limit);
}

void Flusher::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return wanted_ || ends_; });
    if (!wanted_) return;
    wanted_ = false;
    lock.unlock();
    const Result<uint64_t> flushed = ledger_.Flush();
    loop_.Post([this, flushed] {
      flushing_ = false;
      flushed_(flushed);
    });
    lock.lock();
  }
}

}  // namespace parallelrun::coordinator
