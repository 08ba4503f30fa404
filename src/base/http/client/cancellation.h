// Internal to http/client: what ends the calls of a client, all that wait and all that come.
#pragma once

#include <sys/eventfd.h>

#include <atomic>

#include "base/error.h"
#include "base/fd.h"

namespace parallelrun {

// Thread-safe. Cancelled once, it stays so.
class Cancellation {
 public:
  Cancellation() : event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  // False: the process has no descriptor left.
  bool ok() const { return event_.ok(); }
  // Readable once cancelled: every wait on a socket waits for it too. Nobody reads it, so that it
  // wakes all of them, and later ones at once.
  int fd() const { return event_.get(); }
  bool cancelled() const { return cancelled_; }
  void Cancel() {
    cancelled_ = true;
    eventfd_write(event_.get(), 1);
  }

 private:
  const Fd event_;
  std::atomic<bool> cancelled_ = false;
};

inline Error CancelledError() { return {Code::kUnavailable, "the call was cancelled"}; }

}  // namespace parallelrun
