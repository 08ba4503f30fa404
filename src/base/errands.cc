#include "base/errands.h"

#include <utility>

namespace parallelrun {

Errands::Errands(const char* name, size_t most, AtEnd at_end)
    : most_(most), at_end_(at_end), thread_(name, [this] { Run(); }) {}

bool Errands::Ask(std::function<void()> errand) {
  {
    const std::lock_guard lock(mutex_);
    if (ends_ || waiting_.size() >= most_) return false;
    waiting_.push_back(std::move(errand));
  }
  wake_.notify_one();
  return true;
}

bool Errands::Finish(Duration limit) {
  End();
  return !thread_.joinable() || thread_.JoinFor(limit);
}

void Errands::Join() {
  End();
  if (thread_.joinable()) thread_.join();
}

void Errands::End() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    if (at_end_ == AtEnd::kForgets) waiting_.clear();
  }
  wake_.notify_one();
}

void Errands::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return ends_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const std::function<void()> errand = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    errand();
    lock.lock();
  }
}

}  // namespace parallelrun
