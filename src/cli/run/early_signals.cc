#include "cli/run/early_signals.h"

#include <signal.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>

namespace parallelrun::cli {
namespace {

constexpr std::array kKept = {SIGINT, SIGTERM, SIGHUP};
constexpr char kWords[] = "stopping; Ctrl-C again stops at once\n";

volatile sig_atomic_t came_first = 0;
timespec hung_up{};  // when the first SIGHUP came
volatile sig_atomic_t wakes = -1;

// Whether this SIGHUP is that of a terminal which has sent one already.
bool IsTheSameHangup() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const bool first = hung_up.tv_sec == 0 && hung_up.tv_nsec == 0;
  if (first) hung_up = now;
  return first || now.tv_sec - hung_up.tv_sec < 2;
}

// It may interrupt anything: nothing but what signal-safety(7) allows.
void Keep(int signo) {
  const int before = errno;
  if (signo == SIGHUP && !IsTheSameHangup()) {
    signal(SIGHUP, SIG_DFL);
    raise(SIGHUP);
  }
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
  hung_up = {};
  wakes = wakes_.get();
  for (const int signo : kKept) {
    struct sigaction was {};
    if (sigaction(signo, nullptr, &was) == 0 && was.sa_handler == SIG_IGN) continue;
    struct sigaction keep {};
    keep.sa_handler = Keep;
    keep.sa_flags = SA_RESTART | (signo == SIGHUP ? 0 : static_cast<int>(SA_RESETHAND));
    sigaction(signo, &keep, nullptr);
    heard_.push_back(signo);
  }
}

EarlySignals::~EarlySignals() {
  for (const int signo : kKept) {
    struct sigaction now {};
    if (sigaction(signo, nullptr, &now) == 0 && now.sa_handler == Keep) signal(signo, SIG_DFL);
  }
}

int EarlySignals::came() const { return came_first; }

}  // namespace parallelrun::cli
