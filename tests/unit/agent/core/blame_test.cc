#include "agent/core/blame.h"

#include <gtest/gtest.h>

namespace parallelrun::agent {
namespace {

// It held 5, 6 and 7; what is asked is whether the death was the fault of one of them.
struct BlameCase {
  const char* what;
  Death death;
  Suspect suspect;
  Fault fault;
};

Death DiedAtWork(uint64_t begun) {
  return {.at_work = true, .begun = begun, .first = 5, .held = 3};
}

Death AtNone(uint64_t begun) { return {.begun = begun, .first = 5, .held = 3}; }

Death Async(uint64_t begun, size_t held) {
  return {.async = true, .at_work = true, .begun = begun, .first = 5, .held = held};
}

Death Killed(Death death, uint64_t timed_out) {
  death.by_agent = true;
  death.timed_out = timed_out;
  return death;
}

Death WithoutRoom(Death death) {
  death.no_room = true;
  return death;
}

TEST(Blame, TableOfCases) {
  const BlameCase cases[] = {
      {"it was at work", DiedAtWork(5), {5, 0}, Fault::kItsOwn},
      {"the second was at work", DiedAtWork(6), {6, 0}, Fault::kItsOwn},
      {"it was behind the one at work", DiedAtWork(5), {6, 0}, Fault::kNone},
      {"it was in front of the one at work", DiedAtWork(6), {5, 2}, Fault::kNone},

      {"in front, at none: the first time", AtNone(4), {5, 0}, Fault::kBounced},
      {"the second time", AtNone(4), {5, 1}, Fault::kBounced},
      {"the third time", AtNone(4), {5, 2}, Fault::kItsOwn},
      {"at none, and not in front", AtNone(4), {6, 2}, Fault::kNone},
      {"the page is that of another process", AtNone(99), {6, 2}, Fault::kNone},

      {"killed, and at work", Killed(DiedAtWork(5), 0), {5, 2}, Fault::kNone},
      {"killed, and at none", Killed(AtNone(4), 0), {5, 2}, Fault::kNone},
      {"killed for it", Killed(DiedAtWork(5), 5), {5, 0}, Fault::kTimedOut},
      {"killed for another one", Killed(DiedAtWork(5), 5), {6, 2}, Fault::kNone},
      {"killed for it, which ended meanwhile", Killed(DiedAtWork(6), 5), {6, 2}, Fault::kNone},
      {"killed for it, which was not begun", Killed(AtNone(4), 5), {5, 2}, Fault::kNone},

      {"no room, and at work", WithoutRoom(DiedAtWork(5)), {5, 2}, Fault::kNone},
      {"no room, and killed for it", WithoutRoom(Killed(DiedAtWork(5), 5)), {5, 2}, Fault::kNone},

      {"alone in flight", Async(5, 1), {5, 0}, Fault::kItsOwn},
      {"alone, and not begun", Async(4, 1), {5, 0}, Fault::kBounced},
      {"alone, not begun, the third time", Async(4, 1), {5, 2}, Fault::kItsOwn},
      {"one of several in flight", Async(5, 3), {5, 0}, Fault::kBounced},
      {"one of several, the third time", Async(5, 3), {5, 2}, Fault::kBounced},
      {"several in flight, killed for it", Killed(Async(5, 3), 6), {6, 0}, Fault::kTimedOut},
      {"several, killed for another one", Killed(Async(5, 3), 6), {5, 2}, Fault::kNone},
  };
  for (const BlameCase& one : cases) {
    EXPECT_EQ(ToBlame(one.death, one.suspect), one.fault) << one.what;
  }
}

}  // namespace
}  // namespace parallelrun::agent
