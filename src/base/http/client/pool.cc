#include "base/http/client/pool.h"

#include <spdlog/fmt/fmt.h>

#include <utility>

namespace parallelrun {

Result<std::unique_ptr<Wire>> Pool::Enter(SteadyTime now, SteadyTime limit) {
  std::unique_lock lock(mutex_);
  const bool in_time =
      changed_.wait_until(lock, limit, [this] { return cancelled_ || taken_ < most_; });
  if (cancelled_) return CancelledError();
  if (!in_time) {
    return Error{Code::kTimeout, fmt::format("all {} connections are in use", most_)};
  }
  ++taken_;
  CloseAged(now);
  while (!idle_.empty()) {
    std::unique_ptr<Wire> wire = std::move(idle_.back().wire);
    idle_.pop_back();
    if (wire->IsQuiet()) return wire;
  }
  return std::unique_ptr<Wire>();
}

void Pool::Leave(std::unique_ptr<Wire> wire, SteadyTime now) {
  const std::lock_guard lock(mutex_);
  --taken_;
  CloseAged(now);
  if (wire && !cancelled_) idle_.push_back({std::move(wire), now});
  // An idle connection and the places taken never exceed the bound: who takes a place while idle
  // ones are there takes one of them, or has closed them all.
  changed_.notify_all();
}

void Pool::Clear() {
  const std::lock_guard lock(mutex_);
  idle_.clear();
}

void Pool::Cancel() {
  const std::lock_guard lock(mutex_);
  cancelled_ = true;
  idle_.clear();
  changed_.notify_all();
}

void Pool::WaitUntilLeft() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return taken_ == 0; });
}

void Pool::CloseAged(SteadyTime now) {
  while (!idle_.empty() && now - idle_.front().since >= idle_limit_) idle_.pop_front();
}

}  // namespace parallelrun
