// Ctrl-C and its like, kept from ending this command while it has something to take away. Main
// thread only, and before any other thread is started.
#pragma once

#include <signal.h>

#include "base/fd.h"
#include "base/time.h"

namespace parallelrun::cli {

class Interruption {
 public:
  // From now on SIGINT, SIGTERM and SIGHUP wait.
  Interruption();
  // They act, as they would have.
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  bool came() const;
  // Returns early, with true, when one came.
  bool Wait(Duration duration) const;
  // Readable when one came; not to be read.
  int fd() const { return came_.get(); }

 private:
  sigset_t before_{};
  Fd came_;
};

}  // namespace parallelrun::cli
