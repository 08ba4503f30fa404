#include "coordinator/core/working_time.h"

#include <gtest/gtest.h>

#include <type_traits>

namespace parallelrun::coordinator {
namespace {

const Instant kStart{seconds(1000)};
const WorkInstant kWorkedAtStart{seconds(1000)};

TEST(WorkingTime, WhatWasLostIsTakenOffOnce) {
  WorkingTime time(kStart);
  EXPECT_EQ(time.At(kStart + seconds(1)), kWorkedAtStart + seconds(1));
  time.Pass(kStart + seconds(2));
  EXPECT_EQ(time.At(kStart + seconds(2)), kWorkedAtStart + seconds(2)) << "a late tick is no loss";
  time.Pass(kStart + seconds(62));
  EXPECT_EQ(time.At(kStart + seconds(62)), kWorkedAtStart + seconds(2));
  time.Pass(kStart + seconds(63));
  EXPECT_EQ(time.At(kStart + seconds(63)), kWorkedAtStart + seconds(3));
}

// Two kinds of time that can be compared, or whose difference can be taken.
template <typename A, typename B>
concept Comparable = requires(A a, B b) {
  a < b;
};
template <typename A, typename B>
concept Subtractable = requires(A a, B b) {
  a - b;
};

template <typename A, typename B>
constexpr bool kApartFrom = !std::is_constructible_v<A, B> && !std::is_constructible_v<B, A> &&
                            !std::is_assignable_v<A&, B> && !std::is_assignable_v<B&, A> &&
                            !Comparable<A, B> && !Subtractable<A, B>;

// Passed for each other they let leases run out that nobody could renew: no test of what is decided
// sees that unless a coordinator stood still in it.
static_assert(kApartFrom<WorkInstant, Instant>);
static_assert(kApartFrom<WorkInstant, WallTime>);
static_assert(kApartFrom<Instant, WallTime>);
static_assert(Comparable<WorkInstant, WorkInstant>);
static_assert(std::is_same_v<decltype(WorkInstant() - WorkInstant()), Duration>);
static_assert(std::is_same_v<decltype(WorkInstant() + seconds(1)), WorkInstant>);

}  // namespace
}  // namespace parallelrun::coordinator
