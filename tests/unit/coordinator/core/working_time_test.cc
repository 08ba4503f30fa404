#include "coordinator/core/working_time.h"

#include <gtest/gtest.h>

namespace parallelrun::coordinator {
namespace {

const Instant kStart{seconds(1000)};

TEST(WorkingTime, WhatWasLostIsTakenOffOnce) {
  WorkingTime time(kStart);
  EXPECT_EQ(time.At(kStart + seconds(1)), kStart + seconds(1));
  time.Pass(kStart + seconds(2));
  EXPECT_EQ(time.At(kStart + seconds(2)), kStart + seconds(2)) << "a late tick is no loss";
  time.Pass(kStart + seconds(62));
  EXPECT_EQ(time.At(kStart + seconds(62)), kStart + seconds(2));
  time.Pass(kStart + seconds(63));
  EXPECT_EQ(time.At(kStart + seconds(63)), kStart + seconds(3));
}

}  // namespace
}  // namespace parallelrun::coordinator
