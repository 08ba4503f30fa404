#include "coordinator/looker.h"

#include <utility>

namespace parallelrun::coordinator {

Looker::Looker(const Clock& clock, std::function<Status()> look,
               std::function<void(Instant begun, const Status&)> looked)
    : clock_(clock),
      look_(std::move(look)),
      looked_(std::move(looked)),
      thread_("look for newer", [this] { Run(); }) {}

Looker::~Looker() {
  End();
  if (thread_.joinable()) thread_.join();
}

void Looker::Ask() {
  {
    const std::lock_guard lock(mutex_);
    asked_ = true;
  }
  wake_.notify_all();
}

void Looker::End() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  wake_.notify_all();
}

bool Looker::Finish(Duration limit) {
  End();
  return !thread_.joinable() || thread_.JoinFor(limit);
}

void Looker::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return asked_ || ends_; });
    if (ends_) return;
    asked_ = false;
    lock.unlock();
    const Instant begun = clock_.Now();
    looked_(begun, look_());
    lock.lock();
  }
}

}  // namespace parallelrun::coordinator
