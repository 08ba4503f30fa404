// What idle processes wait for, as the coordinator sees it when it looks: how much of the
// processes' time has gone into that. Of this epoch. Pure; not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/time.h"

namespace parallelrun::coordinator {

class Waits {
 public:
  // What is so when it looks.
  struct Look {
    uint64_t processes = 0;       // of the nodes that are there
    uint64_t leased = 0;          // mini-batches; a process may have more than one
    uint64_t ready = 0;           // that could be leased
    bool listed = false;          // all inputs, to their end
    bool any_ready = false;       // a process has come through init()
    bool works = true;            // mini-batches are being given out: not paused, closing or over
    uint64_t kept_by_stores = 0;  // processes of nodes that a store keeps waiting
    std::string store{};          // which one, and how; "": none does
    std::string init{};           // for how long it has been running, and where; "": it is no news
  };
  // Seconds of processes.
  struct Times {
    double all = 0;
    double listing = 0;   // nothing was listed that they could do
    double last = 0;      // for others to end the last mini-batches
    double stores = 0;    // of nodes that a store kept waiting, whatever they did meanwhile
    std::string store{};  // the last one that did, and how
    std::string init{};   // as it was said when it looked last
  };

  // What was so at the look before counts until `now`.
  void Observe(const Look& look, Instant now);
  const Times& times() const { return times_; }

 private:
  Look look_;
  std::optional<Instant> looked_at_;
  Times times_;
};

}  // namespace parallelrun::coordinator
