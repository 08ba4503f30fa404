// Ctrl-C and its like while a run is prepared and no event loop works yet: the first one is kept
// for who asks, so that what was made is taken away; a second one of its kind acts as it would
// without this, for what is prepared may hang. A terminal that is closed sends SIGHUP twice, of the
// shell and of the kernel, which is one. One at a time; from the main thread.
//
// What whoever started this command has it ignore (nohup, a shell's `&` in a script) stays ignored.
#pragma once

#include <vector>

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
  // Of SIGINT, SIGTERM and SIGHUP those that are to be heard.
  const std::vector<int>& heard() const { return heard_; }
  // Readable when one came; not to be read.
  int fd() const { return wakes_.get(); }

 private:
  Fd wakes_;
  std::vector<int> heard_;
};

}  // namespace parallelrun::cli
