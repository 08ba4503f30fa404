#include "cli/run/early_signals.h"

#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>

namespace parallelrun::cli {
namespace {

constexpr std::array kKept = {SIGINT, SIGTERM, SIGHUP};
constexpr char kWords[] = "stopping; Ctrl-C again stops at once\n";

volatile sig_atomic_t came_first = 0;
volatile sig_atomic_t wakes = -1;

// It may interrupt anything: nothing but what signal-safety(7) allows.
void Keep(int signo) {
  const int before = errno;
  if (came_first == 0) {
    came_first = signo;
    // What is prepared may take a while to come to its end.
    [[maybe_unused]] const ssize_t said = write(STDERR_FILENO, kWords, sizeof(kWords) - 1);
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t woken = write(wakes, &one, sizeof(one));
  }
  errno = before;
}

}  // namespace

EarlySignals::EarlySignals() : wakes_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  came_first = 0;
  wakes = wakes_.get();
  struct sigaction keep {};
  keep.sa_handler = Keep;
  keep.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
  for (const int signo : kKept) sigaction(signo, &keep, nullptr);
}

EarlySignals::~EarlySignals() {
  for (const int signo : kKept) {
    struct sigaction now {};
    if (sigaction(signo, nullptr, &now) == 0 && now.sa_handler == Keep) signal(signo, SIG_DFL);
  }
}

int EarlySignals::came() const { return came_first; }

}  // namespace parallelrun::cli
