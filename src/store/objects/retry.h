// Whether a request is sent again, and when. Pure: what happened and a random number go in.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"

namespace parallelrun::store {

// What came of a request, as far as it matters here.
enum class Outcome {
  kDone,
  kThrottled,    // 429, 503: the server wants less
  kServerFault,  // 408, 500, 502, 504, and errors of theirs in an answer 200
  kBroken,       // no whole answer: refused, reset, cut, silent
  kClockSkew,    // our clock differs from the server's by more than it allows
  kExpired,      // the credentials ended before we thought they would
  kWrongRegion,  // and the answer tells the right one
  kFinal,        // anything else: the same request would fail again
};

// What its status alone says of an answer.
Outcome OutcomeOfStatus(int status);

struct RetryLimits {
  int most = 10;  // requests in place of the first
  Duration shortest =
      milliseconds(100);           // the bound of the first wait, doubled by each further one
  Duration longest = seconds(15);  // the bound of a wait
  Duration in_all = seconds(180);  // since the first request; then none is sent any more
};

// Of one request, kept by whoever repeats it.
struct Attempts {
  int repeated = 0;
  Duration since_first{0};
  // Each of these mends something, and is worth one more request at once; a second one is not.
  bool mended_clock = false;
  bool mended_credentials = false;
  bool mended_region = false;
};

// How long to wait before the request is sent again; nothing: it is not. Counts in `attempts`.
// `retry_after`: what the answer asks for, if it does. The wait is a random part of its bound, so
// that many who were refused together do not come back together.
std::optional<Duration> NextWait(Outcome outcome, Attempts& attempts, const RetryLimits& limits,
                                 std::optional<Duration> retry_after, uint64_t random);

// The header Retry-After, when it is a number of seconds.
std::optional<Duration> ParseRetryAfter(std::string_view value);

}  // namespace parallelrun::store
