// How fast a chain grows: each link is a request that is paid for, and an object that every later
// epoch reads. A job may make many as fast as its store takes them, and from then on few, with what
// gathers meanwhile. Pure; not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/time.h"

namespace parallelrun::ledger {

class LinkPace {
 public:
  struct Limits {
    double allowance = 20'000;       // links, less those that the chain has already
    double per_second = 1;           // links by which it grows again
    size_t large = size_t{1} << 20;  // bytes that are worth a link whatever is left of it
  };

  // `made`: links of the chain so far.
  LinkPace(const Limits& limits, uint64_t made);

  // How long a link of so many bytes is to wait for more. `urgent`: somebody waits for it.
  Duration WaitFor(Instant now, size_t bytes, bool urgent);
  // One is put now.
  void Count(Instant now);

 private:
  void Grow(Instant now);

  const Limits limits_;
  double left_;
  std::optional<Instant> grown_at_;
};

}  // namespace parallelrun::ledger
