#include "coordinator/core/newest.h"

#include <gtest/gtest.h>

namespace parallelrun::coordinator {
namespace {

const Instant kFirstLook{seconds(1000)};

TEST(Newest, ALookIsGoodFromItsBeginForAWhile) {
  Newest newest(seconds(1), kFirstLook);
  EXPECT_FALSE(newest.Fresh(kFirstLook));
  newest.OnLooked(kFirstLook, {}, kFirstLook);
  EXPECT_TRUE(newest.Fresh(kFirstLook + seconds(1) - Duration(1)));
  EXPECT_FALSE(newest.Fresh(kFirstLook + seconds(1)));
}

TEST(Newest, WhoWasThereWhenALookBeganIsAnsweredHoweverLongItTook) {
  Newest newest(seconds(1), kFirstLook);
  EXPECT_FALSE(newest.MayAnswer(kFirstLook, kFirstLook)) << "nobody has looked";
  const Instant late = kFirstLook + seconds(30);
  newest.OnLooked(kFirstLook, {}, late);
  EXPECT_FALSE(newest.Fresh(late));
  EXPECT_TRUE(newest.MayAnswer(kFirstLook, late));
  EXPECT_FALSE(newest.MayAnswer(kFirstLook + Duration(1), late));
}

TEST(Newest, ALookIsWantedInGoodTimeAndAgainAfterOneThatFailed) {
  Newest newest(seconds(1), kFirstLook);
  EXPECT_TRUE(newest.Wants(kFirstLook));
  newest.OnLooked(kFirstLook, {}, kFirstLook);
  EXPECT_FALSE(newest.Wants(kFirstLook + milliseconds(499)));
  EXPECT_TRUE(newest.Wants(kFirstLook + milliseconds(500)));
  newest.Ask();
  EXPECT_TRUE(newest.Wants(kFirstLook));
  newest.OnLooked(kFirstLook, Error{Code::kInternal, "stat: Stale file handle"}, kFirstLook);
  EXPECT_FALSE(newest.Wants(kFirstLook)) << "not at once";
  EXPECT_TRUE(newest.Wants(kFirstLook + milliseconds(200)));
  EXPECT_FALSE(newest.Hangs(kFirstLook + milliseconds(2999)));
  EXPECT_TRUE(newest.Hangs(kFirstLook + seconds(3)));
}

TEST(Newest, WhileALookIsOnItsWayNoOtherIsWanted) {
  Newest newest(seconds(1), kFirstLook);
  newest.LookBegins();
  EXPECT_FALSE(newest.Wants(kFirstLook));
  newest.Ask();
  EXPECT_FALSE(newest.Wants(kFirstLook + seconds(9)));
  newest.OnLooked(kFirstLook, {}, kFirstLook + seconds(9));
  EXPECT_TRUE(newest.Wants(kFirstLook + seconds(9)));
}

TEST(Newest, ANamedEpochIsLookedForOnceBeforeAnybodyElseIsAnswered) {
  Newest newest(seconds(60), kFirstLook);
  newest.OnLooked(kFirstLook, {}, kFirstLook);
  const Instant named = kFirstLook + seconds(1);
  newest.Named(9, named);
  EXPECT_TRUE(newest.Wants(named));
  EXPECT_FALSE(newest.Fresh(named));
  newest.OnLooked(named - Duration(1), {}, named);
  EXPECT_FALSE(newest.Fresh(named)) << "that look may have been before it";
  EXPECT_TRUE(newest.Wants(named));
  newest.OnLooked(named, {}, named);
  EXPECT_TRUE(newest.Fresh(named));
  newest.Named(9, named);
  EXPECT_TRUE(newest.Fresh(named)) << "it is made up";
  EXPECT_TRUE(newest.Wants(named)) << "but who knows";
  newest.Named(10, named);
  EXPECT_FALSE(newest.Fresh(named));
}

TEST(Newest, WhatCannotBeSeenSaysNothing) {
  Newest newest(seconds(1), kFirstLook);
  newest.OnLooked(kFirstLook, {}, kFirstLook);
  newest.OnLooked(kFirstLook + seconds(1), Error{Code::kInternal, "stat: Stale file handle"},
                  kFirstLook + seconds(1));
  EXPECT_FALSE(newest.Fresh(kFirstLook + seconds(1)));
  EXPECT_FALSE(newest.superseded());
  EXPECT_EQ(newest.unseen(), "stat: Stale file handle");
  newest.OnLooked(kFirstLook + seconds(2), {}, kFirstLook + seconds(2));
  EXPECT_TRUE(newest.Fresh(kFirstLook + seconds(2)));
  EXPECT_EQ(newest.unseen(), "");
}

TEST(Newest, ANewerEpochIsForEver) {
  Newest newest(seconds(1), kFirstLook);
  newest.OnLooked(kFirstLook, Error{Code::kStale, "epoch 2 is there"}, kFirstLook);
  newest.OnLooked(kFirstLook, {}, kFirstLook);
  EXPECT_TRUE(newest.superseded());
  EXPECT_FALSE(newest.Fresh(kFirstLook));
}

TEST(Newest, ALogThatIsGoneForLongIsLost) {
  Newest newest(seconds(1), kFirstLook);
  const Status gone = Error{Code::kNotFound, "000001.log is gone"};
  newest.OnLooked(kFirstLook, gone, kFirstLook);
  newest.OnLooked(kFirstLook + seconds(4), {}, kFirstLook + seconds(4));
  newest.OnLooked(kFirstLook + seconds(5), gone, kFirstLook + seconds(5));
  EXPECT_EQ(newest.lost(), "") << "it was there in between";
  newest.OnLooked(kFirstLook + seconds(10), gone, kFirstLook + seconds(10));
  EXPECT_EQ(newest.lost(), "000001.log is gone");
}

}  // namespace
}  // namespace parallelrun::coordinator
