#include "coordinator/core/failed_attempts.h"

#include <gtest/gtest.h>

namespace parallelrun::coordinator {
namespace {

FailedAttempt Of(job::BatchId id) {
  FailedAttempt failed;
  failed.id = id;
  return failed;
}

TEST(FailedAttemptsTest, AreNumberedFromOneOnAndTheNewestAreKept) {
  FailedAttempts failed;
  EXPECT_EQ(failed.last(), 0U);
  EXPECT_EQ(failed.first(), 1U);
  for (job::BatchId id = 0; id < FailedAttempts::kKept + 5; ++id) failed.Add(Of(id));
  EXPECT_EQ(failed.last(), FailedAttempts::kKept + 5);
  EXPECT_EQ(failed.first(), 6U);
  EXPECT_EQ(failed.Of(failed.first()).id, 5U);
  EXPECT_EQ(failed.Of(failed.last()).id, FailedAttempts::kKept + 4);
}

}  // namespace
}  // namespace parallelrun::coordinator
