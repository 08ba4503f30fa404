// Time for which a program of a run is stopped by Ctrl-Z: it does not count. While it lasts
// SystemClock and the timers of EventLoop stand still, and go on from there behind it, so that no
// limit expires for it; only deadlines of connections go on, and those that break are made anew.
// WallNow() is not touched. Thread-safe, but for HoldContinue.
#pragma once

#include "base/time.h"

namespace parallelrun::suspension {

// SIGCONT stays pending from now on until AwaitContinue or StopThisProcess takes it: one that comes
// between the signal to stop and the stop itself is not lost. Before the first thread is started.
void HoldContinue();

void StopTime();
void ResumeTime();

// Blocks this thread until SIGCONT; the others go on.
void AwaitContinue();
// What SIGTSTP does to a program that does not look after it: stops all threads, so that a shell
// sees it, until SIGCONT. Returns at once where nobody could continue it: in a process group that
// no shell looks after.
void StopThisProcess();

// A time of CLOCK_MONOTONIC that another process has told, as SystemClock has it.
Instant OwnTime(Instant told);

}  // namespace parallelrun::suspension
