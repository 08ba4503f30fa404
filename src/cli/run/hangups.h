// A terminal that is closed sends SIGHUP twice, of its shell and of the kernel: taken for two, the
// second one would stop at once what the first one lets finish.
#pragma once

#include <signal.h>

#include <optional>

#include "base/time.h"

namespace parallelrun::cli {

class Hangups {
 public:
  // Whether a signal that comes `now` is the same hang-up once more. Pure but for what it knows.
  bool IsRepeated(int signo, Instant now) {
    if (signo != SIGHUP) return false;
    const bool repeated = last_ && now - *last_ < seconds(1);
    if (!repeated) last_ = now;
    return repeated;
  }

 private:
  std::optional<Instant> last_;
};

}  // namespace parallelrun::cli
