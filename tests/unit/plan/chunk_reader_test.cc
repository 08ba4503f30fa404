#include "plan/chunk_reader.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>

namespace parallelrun::plan {
namespace {

// Reads what it is asked for, each once it is released; `came` are the chunks that came.
struct SlowReads {
  Result<std::string> Read(const job::Place& place) {
    begun.set_value();
    release.get_future().wait();
    ++reads;
    if (place.epoch == 9) return Error{Code::kCorrupt, "not a chunk"};
    return std::to_string(place.offset);
  }

  std::promise<void> begun;
  std::promise<void> release;
  std::atomic<int> reads = 0;
};

TEST(ChunkReaderTest, WhatIsAskedForTwiceIsReadOnceAndTakenOnce) {
  SlowReads disk;
  std::promise<void> came;
  ChunkReader reader([&](const job::Place& place) { return disk.Read(place); },
                     [&] { came.set_value(); });
  const job::Place place{1, 30, 5};
  EXPECT_FALSE(reader.Ask(place));
  disk.begun.get_future().wait();
  EXPECT_FALSE(reader.Ask(place)) << "it is being read";
  EXPECT_FALSE(reader.Take(place).ok());
  disk.release.set_value();
  came.get_future().wait();
  EXPECT_TRUE(reader.Ask(place));
  EXPECT_EQ(*reader.Take(place), "30");
  EXPECT_EQ(reader.Take(place).error().code, Code::kUnavailable);
  EXPECT_TRUE(reader.Finish(std::chrono::hours(1)));
  EXPECT_EQ(disk.reads, 1);
}

TEST(ChunkReaderTest, AnErrorIsTakenAsOne) {
  SlowReads disk;
  std::promise<void> came;
  ChunkReader reader([&](const job::Place& place) { return disk.Read(place); },
                     [&] { came.set_value(); });
  disk.release.set_value();
  reader.Ask({9, 30, 5});
  came.get_future().wait();
  ASSERT_TRUE(reader.Ask({9, 30, 5}));
  EXPECT_EQ(reader.Take({9, 30, 5}).error().code, Code::kCorrupt);
}

TEST(ChunkReaderTest, WhatNobodyTakesMakesRoomForTheRest) {
  constexpr uint64_t kChunks = 6;
  std::promise<void> all;
  std::atomic<uint64_t> came = 0;
  ChunkReader reader([](const job::Place& place) { return Result(std::to_string(place.offset)); },
                     [&] {
                       if (++came == kChunks) all.set_value();
                     });
  for (uint64_t i = 0; i < kChunks; ++i) EXPECT_FALSE(reader.Ask({1, i, 1}));
  all.get_future().wait();
  EXPECT_FALSE(reader.Take({1, 0, 1}).ok());
  EXPECT_FALSE(reader.Take({1, 1, 1}).ok());
  for (uint64_t i = 2; i < kChunks; ++i) EXPECT_EQ(*reader.Take({1, i, 1}), std::to_string(i));
}

TEST(ChunkReaderTest, OneThatHangsIsNotWaitedForLongerThanAsked) {
  SlowReads disk;
  ChunkReader reader([&](const job::Place& place) { return disk.Read(place); }, [] {});
  reader.Ask({1, 30, 5});
  disk.begun.get_future().wait();
  reader.Ask({1, 60, 5});
  EXPECT_FALSE(reader.Finish(Duration(0)));
  disk.release.set_value();
  EXPECT_TRUE(reader.Finish(std::chrono::hours(1)));
  EXPECT_EQ(disk.reads, 1) << "no more begins";
}

}  // namespace
}  // namespace parallelrun::plan
