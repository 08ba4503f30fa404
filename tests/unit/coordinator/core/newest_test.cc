#include "coordinator/core/newest.h"

#include <gtest/gtest.h>

namespace parallelrun {
namespace {

const Instant kFirstLook{seconds(1000)};

TEST(Newest, ALookIsGoodFromItsBeginForAWhile) {
  Newest newest(seconds(1));
  EXPECT_FALSE(newest.Fresh(kFirstLook));
  newest.OnLooked(kFirstLook, {});
  EXPECT_TRUE(newest.Fresh(kFirstLook + seconds(1) - Duration(1)));
  EXPECT_FALSE(newest.Fresh(kFirstLook + seconds(1)));
}

TEST(Newest, WhatCannotBeSeenSaysNothing) {
  Newest newest(seconds(1));
  newest.OnLooked(kFirstLook, {});
  newest.OnLooked(kFirstLook + seconds(1), Error{Code::kInternal, "stat: Stale file handle"});
  EXPECT_FALSE(newest.Fresh(kFirstLook + seconds(1)));
  EXPECT_FALSE(newest.superseded());
  EXPECT_EQ(newest.unseen(), "stat: Stale file handle");
  newest.OnLooked(kFirstLook + seconds(2), {});
  EXPECT_TRUE(newest.Fresh(kFirstLook + seconds(2)));
  EXPECT_EQ(newest.unseen(), "");
}

TEST(Newest, ANewerEpochIsForEver) {
  Newest newest(seconds(1));
  newest.OnLooked(kFirstLook, Error{Code::kStale, "epoch 2 is there"});
  newest.OnLooked(kFirstLook, {});
  EXPECT_TRUE(newest.superseded());
  EXPECT_FALSE(newest.Fresh(kFirstLook));
}

TEST(Newest, ALogThatIsGoneForLongIsLost) {
  Newest newest(seconds(1));
  const Status gone = Error{Code::kNotFound, "000001.log is gone"};
  newest.OnLooked(kFirstLook, gone);
  newest.OnLooked(kFirstLook + seconds(4), {});
  newest.OnLooked(kFirstLook + seconds(5), gone);
  EXPECT_EQ(newest.lost(), "") << "it was there in between";
  newest.OnLooked(kFirstLook + seconds(10), gone);
  EXPECT_EQ(newest.lost(), "000001.log is gone");
}

}  // namespace
}  // namespace parallelrun
