// The only way to start a thread (script/lint sees to it): with a name, and guarded. An exception
// that leaves its body ends the process, in words in the log, with kThreadFailed: the others would
// wait for ever for what it was to do. Who supervises the process starts it again, within limits.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <thread>

namespace parallelrun {

inline constexpr int kThreadFailed = 70;

class Thread {
 public:
  Thread() = default;  // none
  // The name is of the log and of /proc, where its first 15 bytes are shown.
  Thread(const char* name, std::function<void()> body);
  bool joinable() const { return thread_.joinable(); }
  void join() { thread_.join(); }
  // It goes on alone, and may use only what it holds itself. At exit it is not waited for.
  void detach() { thread_.detach(); }
  // Joins it, if its body ends within `limit`. False: it goes on, as what waits for a volume that
  // hangs does; who wants to end all the same leaves the process.
  bool JoinFor(std::chrono::nanoseconds limit);
  // The same, but false: it is detached.
  bool JoinOrLeave(std::chrono::nanoseconds limit);
  // Whether JoinOrLeave has left any in this program. One that comes back late would use what is
  // destroyed at exit, as the log: the program must leave by _Exit.
  static bool AnyLeft();

 private:
  struct Ended;
  std::shared_ptr<Ended> ended_;
  std::thread thread_;
};

}  // namespace parallelrun
