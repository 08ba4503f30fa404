// RoomWatch looks whether there is room where a node writes (room.h), four times a second and when
// it is asked to, on a thread of its own: a file system that does not answer holds up that thread,
// and not the loop, which has leases to renew.
//
// Thread-safety: made and destroyed on one thread; Now and Last on any.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/thread.h"
#include "base/time.h"

namespace parallelrun::agent {

class RoomWatch {
 public:
  // Why there is none; "": there is. It may hang.
  using Look = std::function<std::string()>;
  struct Options {
    Look look;
    // On the watch's thread, when a look has found something else than the one before; not once the
    // watch is destroyed. It may not ask the watch.
    std::function<void()> changed;
    Duration interval = milliseconds(250);
    Duration most_wait = milliseconds(250);
    Duration end_limit = seconds(1);
  };
  explicit RoomWatch(Options options);
  // Where a look hangs, the thread is left after `end_limit` (Thread::JoinOrLeave).
  ~RoomWatch();
  RoomWatch(const RoomWatch&) = delete;
  RoomWatch& operator=(const RoomWatch&) = delete;

  // What the last look found.
  std::string Last() const;
  // What a look finds that begins now. One that takes longer than `most_wait` is not waited for,
  // nor is another before it has come back: then as Last().
  std::string Now();

 private:
  class Looks;  // what the thread does and has
  const Duration end_limit_;
  const std::shared_ptr<Looks> looks_;
  Thread thread_;
};

}  // namespace parallelrun::agent
