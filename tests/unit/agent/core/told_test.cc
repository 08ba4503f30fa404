#include "agent/core/told.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace parallelrun::agent {
namespace {

using ::testing::SizeIs;
using Kind = job::ProcessEvent::Kind;

TEST(Told, WhatIsAnsweredIsForgottenAndNothingElse) {
  Told told;
  told.Add({1, Kind::kReady});
  told.Add({2, Kind::kExited, "exited with status 3", "log"});
  job::ExchangeRequest request;
  EXPECT_TRUE(told.Report(request));
  ASSERT_THAT(request.events, SizeIs(2));
  EXPECT_EQ(request.events[1].message, "exited with status 3");
  told.Add({3, Kind::kReady});  // while the report is under way
  told.Heard();
  request.events.clear();
  EXPECT_TRUE(told.Report(request));
  ASSERT_THAT(request.events, SizeIs(1));
  EXPECT_EQ(request.events[0].process, 3U);
  told.NotHeard();
  told.Heard();  // of a report that had none
  EXPECT_TRUE(told.any());
}

TEST(Told, ClearingWhileAReportIsUnderWayIsTheEndOfIt) {
  Told told;
  told.Add({1, Kind::kReady});
  job::ExchangeRequest request;
  told.Report(request);
  told.Clear();
  told.Add({2, Kind::kReady});
  told.Heard();
  EXPECT_TRUE(told.any()) << "the answer was about the one that is gone";
}

TEST(Told, AReportHasABound) {
  Told told;
  const std::string half(job::kMaxRowsBytes / 2, 'x');
  for (int i = 0; i < 3; ++i) told.Add({0, Kind::kHeader, half});
  job::ExchangeRequest request;
  EXPECT_FALSE(told.Report(request));
  EXPECT_THAT(request.events, SizeIs(1));
  Told big;
  big.Add({0, Kind::kHeader, std::string(job::kMaxRowsBytes + 1, 'x')});
  request.events.clear();
  EXPECT_TRUE(big.Report(request)) << "one goes in any case";
}

TEST(Told, MetricsLeaveRoomForWhatMatters) {
  Told told;
  for (size_t i = 0; i < Told::kMaxMetrics; ++i) {
    ASSERT_TRUE(told.Takes(Kind::kMetric));
    told.Add({0, Kind::kMetric, "{}"});
  }
  EXPECT_FALSE(told.Takes(Kind::kMetric));
  EXPECT_EQ(told.dropped_metrics(), 1U);
  EXPECT_TRUE(told.Takes(Kind::kHeader));
  for (size_t i = 0; i < Told::kMaxEvents; ++i) told.Add({0, Kind::kExited});
  job::ExchangeRequest request;
  told.Report(request);
  EXPECT_THAT(request.events, SizeIs(Told::kMaxEvents));
}

TEST(Told, NotesHaveABound) {
  Told told;
  for (size_t i = 0; i < Told::kMaxNotes + 5; ++i) told.Note({});
  std::vector<MiniBatchNote> notes;
  told.TakeNotes(notes);
  EXPECT_THAT(notes, SizeIs(Told::kMaxNotes));
  told.TakeNotes(notes);
  EXPECT_THAT(notes, SizeIs(0));
}

}  // namespace
}  // namespace parallelrun::agent
