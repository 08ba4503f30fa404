#include "base/thread.h"

#include <pthread.h>
#include <spdlog/spdlog.h>

#include <cstdlib>
#include <exception>
#include <string>
#include <utility>

#include "base/escape.h"

namespace parallelrun {
namespace {

constexpr size_t kMostNameBytes = 15;
constexpr size_t kMaxShown = 1000;

[[noreturn]] void EndProcess(const char* name, const std::string& why) {
  spdlog::critical("this program ends, as its thread \"{}\" cannot go on: {}", name,
                   Printable(why, kMaxShown));
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

Thread::Thread(const char* name, std::function<void()> body)
    : thread_([name, run = std::move(body)] { RunGuarded(name, run); }) {}

}  // namespace parallelrun
