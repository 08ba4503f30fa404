#include "base/in_order.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <memory>
#include <numeric>
#include <vector>

namespace parallelrun {
namespace {

TEST(InOrderTest, EachIsMadeOnceAndTakenInItsTurn) {
  for (const size_t threads : {1, 2, 5}) {
    for (const size_t count : {0, 1, 3, 200}) {
      std::vector<std::atomic<int>> made(count);
      std::vector<size_t> taken;
      MakeInOrder(
          {"makes", threads}, count,
          [&](size_t i) {
            ++made[i];
            return std::make_unique<size_t>(i * i);  // may only be moved
          },
          [&](size_t i, std::unique_ptr<size_t> square) {
            EXPECT_EQ(*square, i * i);
            taken.push_back(i);
            return true;
          });
      std::vector<size_t> all(count);
      std::iota(all.begin(), all.end(), size_t{0});
      EXPECT_EQ(taken, all) << threads;
      for (const std::atomic<int>& times : made) EXPECT_EQ(times, 1) << threads;
    }
  }
}

TEST(InOrderTest, SeveralAreMadeAtOnce) {
  std::latch begun(3);  // each waits for the two others
  size_t taken = 0;
  MakeInOrder(
      {"makes", 3}, 3,
      [&](size_t i) {
        begun.arrive_and_wait();
        return i;
      },
      [&](size_t, size_t) {
        ++taken;
        return true;
      });
  EXPECT_EQ(taken, 3U);
}

// However far the first one is behind the others.
TEST(InOrderTest, NoMoreAreHeldThanIsSaid) {
  for (const size_t threads : {1, 2, 4}) {
    const Makers makers{"makes", threads};
    std::atomic<size_t> held = 0;
    std::atomic<bool> too_many = false;
    MakeInOrder(
        makers, 500,
        [&](size_t i) {
          if (++held > makers.most_held()) too_many = true;
          return i;
        },
        [&](size_t, size_t) {
          --held;
          return true;
        });
    EXPECT_FALSE(too_many) << threads;
    EXPECT_EQ(held, 0U);
  }
}

TEST(InOrderTest, NothingIsBegunBehindTheOneThatEndsIt) {
  for (const size_t threads : {1, 3}) {
    const Makers makers{"makes", threads};
    std::atomic<size_t> made = 0;
    size_t taken = 0;
    MakeInOrder(
        makers, 1000,
        [&](size_t i) {
          ++made;
          return i;
        },
        [&](size_t i, size_t) {
          ++taken;
          return i < 9;
        });
    EXPECT_EQ(taken, 10U) << threads;
    EXPECT_LE(made, 9 + makers.most_held()) << threads;
  }
}

}  // namespace
}  // namespace parallelrun
