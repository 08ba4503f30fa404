#include "agent/objects/store_slots.h"

#include <gtest/gtest.h>

#include <string>

namespace parallelrun::agent {
namespace {

using StepKind = Cache::Step::Kind;

constexpr Instant kSlotsBegin{seconds(1000)};

Cache::Step StepOf(Cache::Number number, const std::string& store,
                   StepKind kind = StepKind::kFetch) {
  Cache::Step step;
  step.kind = kind;
  step.number = number;
  step.object.store = store;
  return step;
}

size_t TakeAll(StoreSlots& slots, const std::string& store) {
  size_t taken = 0;
  while (slots.Take(store)) ++taken;
  return taken;
}

TEST(StoreSlotsTest, OneThatThrottlesLeavesTheOthersTheirs) {
  StoreSlots slots;
  EXPECT_EQ(slots.allowed(), Connections::kFirst);
  EXPECT_EQ(TakeAll(slots, "photos"), Connections::kFirst);
  slots.Saw("photos", {16, 1}, kSlotsBegin);
  EXPECT_FALSE(slots.AnyFree("photos"));
  EXPECT_TRUE(slots.AnyFree("rows"));
  EXPECT_EQ(TakeAll(slots, "rows"), Connections::kFirst);
  EXPECT_EQ(slots.allowed(), Connections::kFirst / 2 + Connections::kFirst);
  for (size_t i = 0; i < Connections::kFirst / 2; ++i) slots.GiveBack("photos");
  EXPECT_FALSE(slots.AnyFree("photos")) << "as many are under way as it allows now";
  slots.GiveBack("photos");
  EXPECT_EQ(TakeAll(slots, "photos"), 1U);
}

TEST(StoreSlotsTest, AStoreOfWhichAllIsInUseGrowsAlone) {
  StoreSlots slots;
  EXPECT_EQ(TakeAll(slots, "photos"), Connections::kFirst);
  EXPECT_TRUE(slots.Take("rows"));
  slots.Saw("photos", {16, 0}, kSlotsBegin);
  slots.Saw("rows", {16, 0}, kSlotsBegin);
  EXPECT_EQ(TakeAll(slots, "photos"), 1U);
  EXPECT_EQ(TakeAll(slots, "rows"), Connections::kFirst - 1);
}

TEST(StoreSlotsTest, AllTogetherHaveNoMoreThanOneMayHave) {
  StoreSlots slots;
  for (const char* store : {"a", "b", "c", "d", "e"}) EXPECT_TRUE(slots.Take(store));
  EXPECT_EQ(slots.allowed(), Connections::kMost);
}

TEST(StoreSlotsTest, WhatWaitsComesInItsOrderOnceItsStoreAllowsIt) {
  StoreSlots slots;
  EXPECT_EQ(TakeAll(slots, "photos"), Connections::kFirst);
  EXPECT_TRUE(slots.Park(StepOf(1, "photos")));
  EXPECT_TRUE(slots.Park(StepOf(2, "photos", StepKind::kLook)));
  EXPECT_FALSE(slots.TakeParked());
  slots.GiveBack("photos");
  EXPECT_EQ(slots.TakeParked()->number, 1U);
  EXPECT_FALSE(slots.TakeParked()) << "it has the slot";
  slots.GiveBack("photos");
  EXPECT_EQ(slots.TakeParked()->number, 2U);
  slots.GiveBack("photos");
  EXPECT_FALSE(slots.TakeParked());
}

TEST(StoreSlotsTest, LooksThatWaitAreBounded) {
  StoreSlots slots;
  EXPECT_EQ(TakeAll(slots, "photos"), Connections::kFirst);
  for (size_t i = 0; i < StoreSlots::kMostLooks; ++i) {
    EXPECT_TRUE(slots.Park(StepOf(i + 1, "photos", StepKind::kLook)));
  }
  EXPECT_FALSE(slots.Park(StepOf(1000, "photos", StepKind::kLook)));
  EXPECT_TRUE(slots.Park(StepOf(1001, "photos"))) << "their room is promised: that bounds them";
  EXPECT_TRUE(slots.Park(StepOf(1, "rows", StepKind::kLook)));
  slots.GiveBack("photos");
  EXPECT_TRUE(slots.TakeParked());
  EXPECT_TRUE(slots.Park(StepOf(1000, "photos", StepKind::kLook)));
}

}  // namespace
}  // namespace parallelrun::agent
