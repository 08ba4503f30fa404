#include "cli/cluster/interruption.h"

#include <poll.h>
#include <sys/signalfd.h>

namespace parallelrun::cli {

Interruption::Interruption() {
  sigset_t held;
  sigemptyset(&held);
  for (const int signo : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction now {};
    // One that is ignored, as SIGHUP under nohup, stays so.
    if (sigaction(signo, nullptr, &now) == 0 && now.sa_handler == SIG_IGN) continue;
    sigaddset(&held, signo);
  }
  pthread_sigmask(SIG_BLOCK, &held, &before_);
  came_ = Fd(signalfd(-1, &held, SFD_CLOEXEC | SFD_NONBLOCK));
}

Interruption::~Interruption() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

bool Interruption::came() const { return Wait(Duration(0)); }

bool Interruption::Wait(Duration duration) const {
  pollfd ready{came_.get(), POLLIN, 0};
  const auto limit = std::chrono::duration_cast<milliseconds>(duration);
  return poll(&ready, 1, static_cast<int>(limit.count())) > 0;
}

}  // namespace parallelrun::cli
