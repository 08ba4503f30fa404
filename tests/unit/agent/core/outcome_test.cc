#include "agent/core/outcome.h"

#include <gtest/gtest.h>

namespace parallelrun::agent {
namespace {

TEST(Outcome, ByDefaultItIsHandedBack) { EXPECT_EQ(Outcome().kind, Finished::Kind::kReturned); }

TEST(Outcome, NothingTakesLessTimeThanItsRun) {
  ResultAnswer answer;
  answer.run_ns = 5'000'000;
  EXPECT_EQ(Succeeded(answer, milliseconds(7)).elapsed_ns, 7'000'000U);
  EXPECT_EQ(Succeeded(answer, milliseconds(3)).elapsed_ns, 5'000'000U);
  EXPECT_EQ(Succeeded(answer, milliseconds(-3)).elapsed_ns, 5'000'000U) << "another clock";
}

TEST(Outcome, ADeathAndATimeOutSayWhatTheyWere) {
  const FailedAnswer died = EndedProcess(7, "exited with status 3", milliseconds(2));
  EXPECT_EQ(died.cause, Cause::kProcessEnded);
  EXPECT_EQ(died.message, "process007 exited with status 3");
  EXPECT_EQ(died.run_ns, 2'000'000U);
  EXPECT_EQ(EndedProcess(7, "", milliseconds(-2)).run_ns, 0U);
  EXPECT_EQ(TimedOut({1, 9, Cause::kRunTimeout, "late"}).kind, "RunTimeout");
  EXPECT_EQ(TimedOut({1, 0, Cause::kOverheadTimeout, "late"}).kind, "OverheadTimeout");
  EXPECT_EQ(Failed(TimedOut({1, 9, Cause::kRunTimeout, "late"}), seconds(1)).message, "late");
}

TEST(Outcome, RowsAreLinesThatEndAndAsManyAsSaid) {
  ResultAnswer answer;
  answer.rows = "b\n";
  answer.row_count = 2;
  EXPECT_TRUE(WholeRows("a\n", answer, true));
  EXPECT_FALSE(WholeRows("", answer, true)) << "one is missing";
  EXPECT_FALSE(WholeRows("a\n", answer, false)) << "there are to be none";
  answer.rows = "b";
  EXPECT_FALSE(WholeRows("a\n", answer, true)) << "it does not end";
  answer.rows = "";
  answer.row_count = 1;
  EXPECT_TRUE(WholeRows("a\n", answer, true));
  EXPECT_FALSE(WholeRows("a", answer, true));
}

}  // namespace
}  // namespace parallelrun::agent
