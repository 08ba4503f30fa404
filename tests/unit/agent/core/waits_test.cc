#include "agent/core/waits.h"

#include <gtest/gtest.h>

namespace parallelrun::agent {
namespace {

TEST(Waits, WhatIsNoNewsIsNotTold) {
  Waits waits;
  EXPECT_FALSE(waits.SideInputs("", 0));
  EXPECT_FALSE(waits.Store(""));
  EXPECT_TRUE(waits.side_inputs_there());
  const std::optional<Event> fetching = waits.SideInputs("side input model", 7);
  ASSERT_TRUE(fetching);
  EXPECT_EQ(fetching->kind, job::ProcessEvent::Kind::kFetching);
  EXPECT_EQ(fetching->process, 0U);
  EXPECT_EQ(fetching->message, "side input model");
  EXPECT_EQ(fetching->log, "7");
  EXPECT_FALSE(waits.side_inputs_there());
  EXPECT_FALSE(waits.SideInputs("side input model", 9));
  const std::optional<Event> there = waits.SideInputs("", 9);
  ASSERT_TRUE(there);
  EXPECT_EQ(there->message, "");
  EXPECT_EQ(there->log, "9");
  EXPECT_TRUE(waits.side_inputs_there());
}

TEST(Waits, ACoordinatorThatHasNotHeardItIsToldAllOfIt) {
  Waits waits;
  EXPECT_TRUE(waits.All().empty());
  waits.Store("throttled");
  waits.SideInputs("side input model", 7);
  const std::vector<Event> all = waits.All();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].kind, job::ProcessEvent::Kind::kFetching);
  EXPECT_EQ(all[1].kind, job::ProcessEvent::Kind::kStoreWait);
  EXPECT_EQ(all[1].message, "throttled");
  waits.Store("");
  EXPECT_EQ(waits.All().size(), 1U);
}

}  // namespace
}  // namespace parallelrun::agent
