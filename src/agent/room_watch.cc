#include "agent/room_watch.h"

#include <spdlog/spdlog.h>

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <utility>

namespace parallelrun::agent {

// One thread does them; the watch asks it to end, and may be gone before it does.
class RoomWatch::Looks {
 public:
  explicit Looks(Options options) : options_(std::move(options)) {}

  void Run();
  // From other threads.
  std::string Last() const;
  std::string Now();
  void End();

 private:
  const Options options_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable found_;
  uint64_t asked_ = 0;   // how often somebody asked for a look
  uint64_t served_ = 0;  // up to which of them one has begun since, and has come back
  bool late_ = false;    // one was given up, and has not come back
  bool ends_ = false;
  std::string last_;
};

void RoomWatch::Looks::Run() {
  std::unique_lock lock(mutex_);
  while (!ends_) {
    const uint64_t serves = asked_;
    lock.unlock();
    std::string why = options_.look();
    lock.lock();
    served_ = serves;
    late_ = false;
    found_.notify_all();
    const bool news = why != last_;
    last_ = std::move(why);
    // With the mutex: whom it tells is there until the end is asked for.
    if (news && !ends_) options_.changed();
    wake_.wait_for(lock, options_.interval, [this] { return ends_ || asked_ > served_; });
  }
}

std::string RoomWatch::Looks::Last() const {
  const std::lock_guard lock(mutex_);
  return last_;
}

std::string RoomWatch::Looks::Now() {
  std::unique_lock lock(mutex_);
  const uint64_t mine = ++asked_;
  wake_.notify_all();
  if (late_) return last_;
  late_ = !found_.wait_for(lock, options_.most_wait, [&] { return served_ >= mine; });
  return last_;
}

void RoomWatch::Looks::End() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  wake_.notify_all();
}

RoomWatch::RoomWatch(Options options)
    : end_limit_(options.end_limit),
      looks_(std::make_shared<Looks>(std::move(options))),
      thread_("room", [looks = looks_] { looks->Run(); }) {}

RoomWatch::~RoomWatch() {
  looks_->End();
  if (!thread_.JoinOrLeave(end_limit_)) {
    spdlog::warn("whether there is room to write cannot be told: does the disk hang?");
  }
}

std::string RoomWatch::Last() const { return looks_->Last(); }

std::string RoomWatch::Now() { return looks_->Now(); }

}  // namespace parallelrun::agent
