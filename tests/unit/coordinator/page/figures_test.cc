#include "coordinator/page/figures.h"

#include <gtest/gtest.h>

#include "coordinator/page/batch_map.h"
#include "coordinator/page/time_series.h"
#include "coordinator/page/waits.h"

namespace parallelrun::coordinator {
namespace {

constexpr int64_t kRunBegan = 1'795'219'200'000'000;
constexpr uint64_t kNsOfMs = 1'000'000;  // ns

// One that ended `at` after the beginning, and took `ms`, half of it in run().
Figures::Attempt EndedAfter(Duration at, uint64_t ms, job::BatchId id = 0, uint32_t process = 0) {
  Figures::Attempt a;
  a.id = id;
  a.process = process;
  a.items = 10;
  a.succeeded = true;
  a.run_ns = ms * kNsOfMs / 2;
  a.elapsed_ns = ms * kNsOfMs;
  a.finished_us = kRunBegan + at.count();
  return a;
}

TEST(TimeSeries, KeepsEachPointWhileThereIsRoom) {
  TimeSeries series;
  series.Add(milliseconds(50), {1, 0, 10, 5, 5});
  series.Add(milliseconds(99), {0, 1, 0, 7, 7});
  series.Add(milliseconds(250), {1, 0, 10, 1, 1});
  ASSERT_EQ(series.points().size(), 3U);
  EXPECT_EQ(series.points()[0], (TimeSeries::Point{1, 1, 10, 12, 7}));
  EXPECT_EQ(series.points()[1], TimeSeries::Point());
  EXPECT_EQ(series.step(), milliseconds(100));
}

TEST(TimeSeries, MergesTwoPointsIntoOneWhenItIsFull) {
  TimeSeries series;
  for (int i = 0; i < 100'000; ++i) series.Add(milliseconds(100) * i, {1, 0, 2, 3, 4});
  EXPECT_LE(series.points().size(), TimeSeries::kMost);
  EXPECT_GT(series.points().size(), TimeSeries::kMost / 2);
  TimeSeries::Point sum;
  for (const TimeSeries::Point& point : series.points()) sum.Add(point);
  EXPECT_EQ(sum, (TimeSeries::Point{100'000, 0, 200'000, 300'000, 4}));
  // All but the last one, which is under way, stand for the same time.
  EXPECT_EQ(series.points()[0], series.points()[100]);
}

TEST(TimeSeries, AJumpOfAYearIsNotAYearOfPoints) {
  TimeSeries series;
  series.Add(Duration(), {1, 0, 0, 0, 0});
  series.Add(std::chrono::hours(24 * 365), {1, 0, 0, 0, 0});
  EXPECT_LE(series.points().size(), TimeSeries::kMost);
  EXPECT_EQ(series.points().front().succeeded + series.points().back().succeeded, 2U);
}

TEST(TimeSeries, WhatIsBeforeTheBeginningIsItsFirstMoment) {
  TimeSeries series;
  series.Add(-seconds(5), {1, 0, 0, 0, 0});
  EXPECT_EQ(series.points().size(), 1U);
}

TEST(BatchMap, MergesCellsAndLosesNothing) {
  BatchMap map;
  constexpr job::BatchId kAll = 10'000'000;
  for (job::BatchId id = 0; id < kAll; id += 7) map.Settle(id, id % 2 == 0);
  map.Plan(kAll - 1);
  EXPECT_LE(map.cells().size(), BatchMap::kMost);
  EXPECT_GE(map.cells().size() * map.per_cell(), kAll);
  uint64_t settled = 0;
  for (const BatchMap::Cell& cell : map.cells()) settled += cell.succeeded + cell.failed;
  EXPECT_EQ(settled, (kAll + 6) / 7);
}

TEST(BatchMap, OneCellForEachWhileThereIsRoom) {
  BatchMap map;
  map.Plan(1023);
  map.Settle(1023, false);
  EXPECT_EQ(map.per_cell(), 1U);
  EXPECT_EQ(map.cells().at(1023), (BatchMap::Cell{0, 1}));
  map.Settle(1024, true);
  EXPECT_EQ(map.per_cell(), 2U);
  EXPECT_EQ(map.cells().at(511), (BatchMap::Cell{0, 1}));
  EXPECT_EQ(map.cells().at(512), (BatchMap::Cell{1, 0}));
}

TEST(Figures, TheAxisBeginsWithTheFirstAttempt) {
  Figures figures;
  figures.Add(EndedAfter(seconds(100), 2000));
  figures.Add(EndedAfter(seconds(103), 1000));
  EXPECT_EQ(figures.begun_us(), kRunBegan + 98'000'000);
  EXPECT_EQ(figures.length(), seconds(5));
  EXPECT_EQ(figures.total().items, 20U);
  EXPECT_EQ(figures.process_ns(), 5'000 * kNsOfMs);
}

TEST(Figures, TimeWithoutACoordinatorIsCutOutAndNamed) {
  Figures figures;
  figures.NewEpoch();  // the first one
  figures.Add(EndedAfter(seconds(1), 1000));
  figures.NewEpoch();
  figures.Add(EndedAfter(std::chrono::hours(24), 1000));
  EXPECT_EQ(figures.length(), seconds(2));
  ASSERT_EQ(figures.cuts().size(), 1U);
  EXPECT_EQ(figures.cuts()[0].at, seconds(1));
  EXPECT_EQ(figures.cuts()[0].length, std::chrono::hours(24) - seconds(2));
}

TEST(Figures, AnEpochThatFollowsAtOnceCutsNothing) {
  Figures figures;
  figures.Add(EndedAfter(seconds(10), 1000));
  figures.NewEpoch();
  figures.Add(EndedAfter(seconds(12), 3000));  // was under way when it was replaced
  EXPECT_TRUE(figures.cuts().empty());
  EXPECT_EQ(figures.length(), seconds(3));
}

TEST(Figures, TheSlowestAreKeptInOrder) {
  Figures figures;
  for (uint64_t i = 1; i <= 1000; ++i)
    figures.Add(EndedAfter(seconds(i), 1 + (i * 7919) % 1000, i));
  const std::vector<Figures::Attempt> slow = figures.slowest();
  ASSERT_EQ(slow.size(), Figures::kMostSlow);
  for (size_t i = 0; i < slow.size(); ++i) EXPECT_EQ(slow[i].run_ns, (1000 - i) * kNsOfMs / 2);
}

TEST(Figures, ProcessesAreBounded) {
  Figures figures;
  for (uint32_t i = 0; i < Figures::kMostProcesses + 5; ++i) {
    figures.Add(EndedAfter(seconds(1), 10, i, i));
  }
  EXPECT_EQ(figures.processes().size(), Figures::kMostProcesses);
  EXPECT_EQ(figures.total().attempts, Figures::kMostProcesses + 5);
}

TEST(Figures, WhatNobodyReportedTookNoTime) {
  Figures figures;
  Figures::Attempt lost;  // its node died
  figures.Add(lost);
  EXPECT_EQ(figures.total().attempts, 0U);
  EXPECT_TRUE(figures.processes().empty());
}

Waits::Look LookOf(uint64_t leased, uint64_t ready, bool listed) {
  return {4, leased, ready, listed, true, true};
}

TEST(Waits, IdleProcessesWaitForTheListingWhileItGoesOn) {
  Waits waits;
  const Instant begin;
  waits.Observe(LookOf(1, 0, false), begin);
  waits.Observe(LookOf(4, 10, false), begin + seconds(2));
  waits.Observe(LookOf(1, 10, false), begin + seconds(3));  // there is something: they will get it
  waits.Observe(LookOf(1, 0, true), begin + seconds(4));
  waits.Observe(LookOf(1, 0, true), begin + seconds(5));
  EXPECT_DOUBLE_EQ(waits.times().all, 4 * 5);
  EXPECT_DOUBLE_EQ(waits.times().listing, 3 * 2);
  EXPECT_DOUBLE_EQ(waits.times().last, 3 * 1);
}

TEST(Waits, BehindTheLastResultNobodyWaitsForOthers) {
  Waits waits;
  const Instant begin;
  waits.Observe(LookOf(3, 0, true), begin);
  waits.Observe(LookOf(0, 0, true), begin + seconds(1));  // until it is durable
  waits.Observe(LookOf(0, 0, true), begin + seconds(9));
  EXPECT_DOUBLE_EQ(waits.times().last, 1);
  EXPECT_DOUBLE_EQ(waits.times().all, 4 * 9);
}

TEST(Waits, WhatInitIsAtIsThatOfTheLastLook) {
  Waits waits;
  const Instant begin{seconds(1)};
  Waits::Look look = LookOf(0, 10, true);
  look.any_ready = false;
  look.init = "init() has been running for 30s on 1 node";
  waits.Observe(look, begin);
  EXPECT_EQ(waits.times().init, look.init);
  look.init = "";
  waits.Observe(look, begin + seconds(1));
  EXPECT_EQ(waits.times().init, "");
}

TEST(Waits, NodesThatAStoreKeepsWaitingAreCountedWhateverTheyDo) {
  Waits waits;
  const Instant begin;
  Waits::Look kept = LookOf(4, 10, true);
  kept.kept_by_stores = 2;
  kept.store = "node 1: throttled by the store s3://photos";
  waits.Observe(kept, begin);
  waits.Observe(LookOf(4, 10, true), begin + seconds(3));
  waits.Observe(LookOf(4, 10, true), begin + seconds(5));
  EXPECT_DOUBLE_EQ(waits.times().stores, 2 * 3);
  EXPECT_EQ(waits.times().store, "node 1: throttled by the store s3://photos");
}

TEST(Waits, NobodyWaitsBeforeAProcessIsReadyOrWhileNothingIsGivenOut) {
  Waits waits;
  Waits::Look starts = LookOf(0, 0, false);
  starts.any_ready = false;
  waits.Observe(starts, Instant());
  Waits::Look paused = LookOf(0, 0, false);
  paused.works = false;
  waits.Observe(paused, Instant(seconds(5)));
  waits.Observe(paused, Instant(seconds(9)));
  EXPECT_EQ(waits.times().all, 0);
}

}  // namespace
}  // namespace parallelrun::coordinator
