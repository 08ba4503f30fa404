#include "base/thread.h"

#include <pthread.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <string>
#include <utility>

#include "base/escape.h"

namespace parallelrun {
namespace {

constexpr size_t kMostNameBytes = 15;

std::atomic<bool> any_left{false};

[[noreturn]] void EndProcess(const char* name, const std::string& why) {
  spdlog::critical("this program ends, as its thread \"{}\" cannot go on: {}", name,
                   Printable(why, kShownLongest));
  spdlog::default_logger()->flush();
  std::_Exit(kThreadFailed);
}

void RunGuarded(const char* name, const std::function<void()>& body) {
  pthread_setname_np(pthread_self(), std::string(name).substr(0, kMostNameBytes).c_str());
  try {
    body();
  } catch (const std::exception& error) {
    EndProcess(name, error.what());
  } catch (...) {
    EndProcess(name, "an exception of an unknown kind");
  }
}

}  // namespace

struct Thread::Ended {
  std::mutex mutex;
  std::condition_variable changed;
  bool yes = false;
};

Thread::Thread(const char* name, std::function<void()> body)
    : ended_(std::make_shared<Ended>()), thread_([name, ended = ended_, run = std::move(body)] {
        RunGuarded(name, run);
        const std::lock_guard lock(ended->mutex);
        ended->yes = true;
        ended->changed.notify_all();
      }) {}

bool Thread::JoinFor(std::chrono::nanoseconds limit) {
  {
    std::unique_lock lock(ended_->mutex);
    if (!ended_->changed.wait_for(lock, limit, [this] { return ended_->yes; })) return false;
  }
  thread_.join();
  return true;
}

bool Thread::JoinOrLeave(std::chrono::nanoseconds limit) {
  if (JoinFor(limit)) return true;
  any_left = true;
  thread_.detach();
  return false;
}

bool Thread::AnyLeft() { return any_left; }

}  // namespace parallelrun
