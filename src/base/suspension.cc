#include "base/suspension.h"

#include <signal.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

namespace parallelrun {
namespace {

struct Stop {
  Instant begin;  // of CLOCK_MONOTONIC
  Duration length;
};

std::mutex mutex;  // guards the two below
std::vector<Stop> stops;
bool standing = false;
// Odd while time stands still; raised with every change of the two below.
std::atomic<uint64_t> changes{0};
std::atomic<Duration::rep> stopped{0};    // microseconds, of all stops that are over
std::atomic<Duration::rep> stands_at{0};  // while it does

Instant Raw() {
  timespec ts{};
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return Instant(seconds(ts.tv_sec) + microseconds(ts.tv_nsec / 1000));
}

sigset_t Only(int signo) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signo);
  return set;
}

}  // namespace

// One that is interrupted here by a stop takes the time again.
Instant SystemClock::Now() const {
  while (true) {
    const uint64_t before = changes.load();
    if (before % 2 == 1) return Instant(Duration(stands_at.load()));
    const Instant now = Raw() - Duration(stopped.load());
    if (changes.load() == before) return now;
  }
}

namespace suspension {

void HoldContinue() {
  const sigset_t set = Only(SIGCONT);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

void StopTime() {
  const std::lock_guard lock(mutex);
  if (standing) return;
  standing = true;
  stops.push_back({Raw(), Duration(0)});
  stands_at = (stops.back().begin - Duration(stopped.load())).time_since_epoch().count();
  ++changes;
}

void ResumeTime() {
  const std::lock_guard lock(mutex);
  if (!standing) return;
  standing = false;
  stops.back().length = Raw() - stops.back().begin;
  stopped += stops.back().length.count();
  ++changes;
}

void AwaitContinue() {
  const sigset_t set = Only(SIGCONT);
  while (sigwaitinfo(&set, nullptr) != SIGCONT) {
  }
}

void StopThisProcess() {
  const sigset_t cont = Only(SIGCONT);
  const sigset_t stop = Only(SIGTSTP);
  const timespec none{};
  if (sigtimedwait(&cont, nullptr, &none) == SIGCONT) return;  // already
  struct sigaction plain {};
  struct sigaction ours {};
  sigset_t mask;
  plain.sa_handler = SIG_DFL;
  sigaction(SIGTSTP, &plain, &ours);
  pthread_sigmask(SIG_UNBLOCK, &stop, &mask);
  raise(SIGTSTP);
  pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  sigaction(SIGTSTP, &ours, nullptr);
  sigtimedwait(&cont, nullptr, &none);
}

Instant OwnTime(Instant told) {
  const std::lock_guard lock(mutex);
  Duration before{0};
  for (const Stop& stop : stops) {
    if (told <= stop.begin) break;
    const bool over = &stop != &stops.back() || !standing;
    before += over ? std::min(told - stop.begin, stop.length) : told - stop.begin;
  }
  return told - before;
}

}  // namespace suspension
}  // namespace parallelrun
