// Throttling knows which store wants fewer requests of this process, and since when. A large store
// says so now and then, for seconds, while it grows: that is no news. One that keeps saying so is
// why a job is slow, which its progress must tell. Pure; not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/time.h"
#include "store/store.h"

namespace parallelrun::store {

class Throttling {
 public:
  // What the store at `url` has answered until now. Asked for each second or so.
  void Saw(const std::string& url, const AnswerCounts& until_now, WallTime now);
  // For people; empty while no store throttles, or none for long.
  std::string Text(WallTime now) const;

 private:
  struct Seen {
    uint64_t throttled = 0;  // answers, until it was looked at last
    WallTime first{};        // when some came, without a long time in between
    WallTime last{};
  };
  std::map<std::string, Seen> stores_;  // by URL
};

}  // namespace parallelrun::store
