#include "base/in_order.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cassert>
#include <condition_variable>
#include <mutex>
#include <system_error>

#include "base/thread.h"

namespace parallelrun::in_order {
namespace {

class Making {
 public:
  Making(size_t count, size_t most_held, const std::function<void(size_t)>& make)
      : count_(count), make_(make), made_(most_held) {}
  ~Making() {
    End();
    for (Thread& thread : threads_) thread.join();
  }
  Making(const Making&) = delete;
  Making& operator=(const Making&) = delete;

  void Start(const Makers& makers) {
    const size_t others = std::min(makers.threads, count_);
    for (size_t i = 1; i < others; ++i) {
      try {
        threads_.emplace_back(makers.name, [this] { Help(); });
      } catch (const std::system_error& error) {
        // A pod may have no more processes: it takes longer then.
        spdlog::warn("{} is done by {} threads, not {}: {}", makers.name, i, others, error.what());
        return;
      }
    }
  }

  void TakeAll(const std::function<bool(size_t)>& take) {
    std::unique_lock lock(mutex_);
    while (taken_ < count_) {
      if (!made_[taken_ % made_.size()]) {
        if (MayBegin()) {
          MakeNext(lock);
        } else {
          changed_.wait(lock);
        }
        continue;
      }
      lock.unlock();
      const bool goes_on = take(taken_);
      lock.lock();
      if (!goes_on) return;
      made_[taken_ % made_.size()] = false;
      ++taken_;
      changed_.notify_all();
    }
  }

 private:
  bool MayBegin() const { return next_ < std::min(count_, taken_ + made_.size()); }

  void MakeNext(std::unique_lock<std::mutex>& lock) {
    const size_t at = next_++;
    lock.unlock();
    make_(at);
    lock.lock();
    made_[at % made_.size()] = true;
    changed_.notify_all();
  }

  void Help() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return ends_ || next_ == count_ || MayBegin(); });
      if (ends_ || next_ == count_) return;
      MakeNext(lock);
    }
  }

  void End() {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    changed_.notify_all();
  }

  const size_t count_;
  const std::function<void(size_t)>& make_;
  std::mutex mutex_;  // guards the four below; taken_ is changed by the caller's thread alone
  size_t next_ = 0;   // to be made
  size_t taken_ = 0;
  std::vector<bool> made_;  // and not taken
  bool ends_ = false;
  std::condition_variable changed_;
  std::vector<Thread> threads_;
};

}  // namespace

void Run(const Makers& makers, size_t count, const std::function<void(size_t)>& make,
         const std::function<bool(size_t)>& take) {
  assert(makers.threads > 0);
  Making making(count, makers.most_held(), make);
  making.Start(makers);
  making.TakeAll(take);
}

}  // namespace parallelrun::in_order
