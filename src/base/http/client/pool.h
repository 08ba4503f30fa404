// Internal to http/client: the connections of a client, so many and no more. Idle ones are used
// again, the newest first; those that were idle for too long, or have something to say that nobody
// asked for (their server closed them), are closed instead.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>

#include "base/error.h"
#include "base/http/client/wire.h"
#include "base/time.h"

namespace parallelrun {

// Thread-safe. The time is an argument; only Enter's wait for a place uses the clock.
class Pool {
 public:
  Pool(size_t most, Duration idle_limit) : most_(most), idle_limit_(idle_limit) {}

  // Takes a place, once one is free: an idle connection, or null for a new one to be made. Each
  // place that was taken is given back by one Leave.
  // Errors: kTimeout (all are in use until `limit`), kUnavailable (cancelled).
  Result<std::unique_ptr<Wire>> Enter(SteadyTime now, SteadyTime limit);
  // Keeps `wire` for the next; null: it is closed.
  void Leave(std::unique_ptr<Wire> wire, SteadyTime now);
  // Closes the idle ones. What broke one connection, a server that was replaced or a path that
  // leads nowhere any more, has most likely broken the others too.
  void Clear();
  // Makes Enter, now and later, return at once.
  void Cancel();
  // Waits until every place has been given back.
  void WaitUntilLeft();

 private:
  struct Idle {
    std::unique_ptr<Wire> wire;
    SteadyTime since;
  };
  void CloseAged(SteadyTime now);

  const size_t most_;
  const Duration idle_limit_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  bool cancelled_ = false;
  size_t taken_ = 0;
  std::deque<Idle> idle_;  // oldest first; taken_ and these are most_ at most
};

}  // namespace parallelrun
