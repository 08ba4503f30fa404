// A single-threaded event loop: timers, readiness of file descriptors, signals, work posted from
// other threads. Everything that a room does with sockets and processes runs on one of these, so
// that its state needs no locks.
//
// Thread-safety: Post and Stop from any thread; everything else on the loop's thread (or before
// Run). Callbacks run on the thread that called Run; they must not throw and must not block.
// The loop must outlive everything that was made on it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/time.h"

namespace parallelrun {

class EventLoop {
 public:
  using Callback = std::function<void()>;
  enum class TimerId : uint64_t { kNone = 0 };
  enum class WatchId : uint64_t { kNone = 0 };

  EventLoop();
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // Runs callbacks until Stop. A Stop before Run makes the next Run return at once.
  void Run();
  void Stop();

  // Runs `callback` soon, after the callbacks posted earlier.
  void Post(Callback callback);

  // Runs `callback` once, `delay` from now (at the next turn if that is not positive).
  TimerId After(Duration delay, Callback callback);
  // The timer does not fire any more, not even when it was due. Unknown ids are ignored.
  void Cancel(TimerId id);

  // Runs `callback` whenever `fd` is readable (data, end of file, error) or writable, until
  // Unwatch. The fd stays the caller's, is made non-blocking, and must be unwatched before it is
  // closed. Regular files cannot be watched (their callback never runs).
  WatchId WatchReadable(int fd, Callback callback);
  WatchId WatchWritable(int fd, Callback callback);
  // No callback of this watch starts after this; allowed inside callbacks, also its own.
  void Unwatch(WatchId id);

  // Runs `callback` each time the process gets `signo`; the signal's default action is off from
  // now on. A later call for the same signal replaces the callback.
  void OnSignal(int signo, Callback callback);

  struct Impl;
  // For the other sources of src/base (event_loop_asio.h).
  Impl& impl() { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace parallelrun
