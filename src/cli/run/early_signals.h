// Ctrl-C and its like while a run is prepared and no event loop works yet: the first one is kept
// for who asks, so that what was made is taken away; a second one of its kind acts as it would
// without this, for what is prepared may hang. One at a time; from the main thread.
#pragma once

#include "base/fd.h"

namespace parallelrun::cli {

class EarlySignals {
 public:
  // From now on SIGINT, SIGTERM and SIGHUP are kept.
  EarlySignals();
  // Those that nobody else has taken since act as they would.
  ~EarlySignals();
  EarlySignals(const EarlySignals&) = delete;
  EarlySignals& operator=(const EarlySignals&) = delete;

  // The one that came first; 0: none.
  int came() const;
  // Readable when one came; not to be read.
  int fd() const { return wakes_.get(); }

 private:
  Fd wakes_;
};

}  // namespace parallelrun::cli
