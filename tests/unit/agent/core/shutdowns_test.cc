#include "agent/core/shutdowns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace parallelrun::agent {
namespace {

using ::testing::HasSubstr;
using Kind = job::ProcessEvent::Kind;

constexpr Duration kTimeout = seconds(300);

TEST(Shutdowns, OnlyWhatHasAShutdownIsTold) {
  Shutdowns shutdowns;
  EXPECT_FALSE(shutdowns.Exited(1, "exited with status 0", std::nullopt, kTimeout));
  shutdowns.Owes(2);
  shutdowns.Owes(10);
  EXPECT_EQ(shutdowns.OwingText(), "2 10");
  shutdowns.Stopped(2, "", "log");
  EXPECT_EQ(shutdowns.Exited(2, "exited with status 0", std::nullopt, kTimeout)->kind,
            Kind::kClosed);
  EXPECT_EQ(shutdowns.OwingText(), "10");
}

TEST(Shutdowns, WhatRaisedIsToldWithItsLog) {
  Shutdowns shutdowns;
  shutdowns.Owes(1);
  shutdowns.Stopped(1, "ValueError: late (s.py:4)", "user/error/0/process001.txt");
  shutdowns.Stopped(1, "", "");  // the first word counts
  const auto end = shutdowns.Exited(1, "was killed by signal 9", seconds(31), kTimeout);
  EXPECT_EQ(end->kind, Kind::kCloseFailed);
  EXPECT_EQ(end->message, "ValueError: late (s.py:4)");
  EXPECT_EQ(end->log, "user/error/0/process001.txt");
}

TEST(Shutdowns, CutOffSaysWhatWouldHelp) {
  Shutdowns shutdowns;
  shutdowns.Owes(1);
  shutdowns.Owes(2);
  const auto slow = shutdowns.Exited(1, "was killed by signal 9", kTimeout, kTimeout);
  EXPECT_EQ(slow->kind, Kind::kCutOff);
  EXPECT_THAT(slow->message, HasSubstr("raise spec.shutdownTimeoutSeconds"));
  const auto drained = shutdowns.Exited(2, "was killed by signal 9", seconds(40), kTimeout);
  EXPECT_THAT(drained->message, HasSubstr("a drain, a preemption, or the end of its pod"));
}

TEST(Shutdowns, WhoDiesBeforeTakesWhatItGatheredAlong) {
  Shutdowns shutdowns;
  shutdowns.Owes(1);
  const auto end = shutdowns.Exited(1, "was killed by signal 11", std::nullopt, kTimeout);
  EXPECT_EQ(end->kind, Kind::kCloseLost);
  EXPECT_EQ(end->message, "the process was killed by signal 11 before its shutdown() had ended");
}

}  // namespace
}  // namespace parallelrun::agent
