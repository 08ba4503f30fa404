// How many requests a node has under way at a store at once. What small objects cost is a round
// trip each, so more requests are more objects a second, until a store has no more to give and
// throttles: then half as many are less than it gives, and one more each second finds out how much
// that is by now. Pure: time is passed in; not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/time.h"
#include "store/store.h"

namespace parallelrun::agent {

class Connections {
 public:
  static constexpr size_t kFirst = 16;
  static constexpr size_t kMost = 64;

  // What the store has answered until now; `busy`: all that are allowed are in use.
  void Saw(const store::AnswerCounts& until_now, bool busy, Instant now);
  size_t allowed() const { return allowed_; }

 private:
  size_t allowed_ = kFirst;
  store::AnswerCounts seen_;         // when it was looked at last
  uint64_t since_ = 0;               // answers, when `allowed_` changed
  std::optional<Instant> halved_{};  // last
  Instant grown_{};                  // last
};

}  // namespace parallelrun::agent
