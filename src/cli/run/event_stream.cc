#include "cli/run/event_stream.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace parallelrun::cli {
namespace {

constexpr int kLookMs = 100;
// What a pipe that has room takes without a wait (POSIX says at least 512 bytes; Linux, 4,096).
constexpr size_t kAtOnce = 4096;

}  // namespace

EventStream::EventStream(int fd) : fd_(fd), thread_("events", [this] { Run(); }) {}

EventStream::~EventStream() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    end_by_ = SystemClock().Now() + kEndLimit;
  }
  wake_.notify_all();
  thread_.join();
}

void EventStream::Add(std::string line, Keep keep) {
  {
    const std::lock_guard lock(mutex_);
    if (gone_) return;
    if (keep == Keep::kNewest) {
      std::erase_if(lines_, [](const Line& one) { return one.keep == Keep::kNewest; });
    }
    if (keep != Keep::kAlways && lines_.size() >= kMostWaiting) return;
    lines_.push_back({std::move(line) + "\n", keep});
  }
  wake_.notify_all();
}

void EventStream::Run() {
  std::unique_lock lock(mutex_);
  while (!gone_) {
    wake_.wait(lock, [this] { return ending_ || !lines_.empty(); });
    if (lines_.empty()) return;
    const std::string text = std::move(lines_.front().text);
    lines_.pop_front();
    lock.unlock();
    const bool written = Write(text);
    lock.lock();
    gone_ = !written;
  }
  lines_.clear();
}

bool EventStream::TimeIsOver() {
  const std::lock_guard lock(mutex_);
  return ending_ && SystemClock().Now() >= end_by_;
}

bool EventStream::Write(const std::string& text) {
  size_t done = 0;
  while (done < text.size()) {
    pollfd ready{fd_, POLLOUT, 0};
    const int found = poll(&ready, 1, kLookMs);
    if (found == 0 || (found < 0 && errno == EINTR)) {
      if (TimeIsOver()) return false;
      continue;
    }
    const ssize_t put = write(fd_, text.data() + done, std::min(kAtOnce, text.size() - done));
    if (put < 0 && errno != EINTR && errno != EAGAIN) return false;
    if (put > 0) done += static_cast<size_t>(put);
  }
  return true;
}

}  // namespace parallelrun::cli
