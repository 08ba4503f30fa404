#include "agent/objects/cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>
#include <vector>

namespace parallelrun::agent {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using Kind = Cache::Step::Kind;

job::ObjectName Named(const std::string& name) { return {"s", "s3://b/" + name, "v1"}; }

// Does what the cache says, with objects of one size.
void Work(Cache& cache, uint64_t bytes) {
  while (const auto step = cache.Next()) {
    if (step->kind == Kind::kLook) {
      cache.Looked(step->number, bytes);
    } else if (step->kind == Kind::kFetch) {
      cache.Fetched(step->number);
    } else {
      cache.Removed(step->number);
    }
  }
}

TEST(Cache, AMiniBatchIsReadyWhenAllOfItsObjectsAreHere) {
  Cache cache(100);
  cache.Want(1, {Named("a"), Named("b"), Named("a")});
  const auto look = cache.Next();
  const auto second = cache.Next();
  ASSERT_TRUE(look && second);
  EXPECT_EQ(look->object, Named("a"));
  EXPECT_EQ(second->object, Named("b"));
  EXPECT_FALSE(cache.Next()) << "both are looked at";
  cache.Looked(look->number, 10);
  const auto fetch = cache.Next();
  ASSERT_TRUE(fetch);
  EXPECT_EQ(fetch->kind, Kind::kFetch);
  EXPECT_EQ(cache.promised(), 10U) << "before the first byte";
  cache.Looked(second->number, 20);
  cache.Fetched(fetch->number);
  EXPECT_THAT(cache.TakeReady(), IsEmpty());
  Work(cache, 20);
  EXPECT_THAT(cache.TakeReady(), ElementsAre(1));
  EXPECT_EQ(cache.promised(), 30U);
}

TEST(Cache, AnObjectIsFetchedOnceForAllWhoWantIt) {
  Cache cache(100);
  cache.Want(1, {Named("table")});
  cache.Want(2, {Named("table")});
  Work(cache, 60);
  EXPECT_THAT(cache.TakeReady(), ElementsAre(1, 2));
  cache.Drop(1);
  cache.Drop(2);
  cache.Want(3, {Named("table")});
  EXPECT_THAT(cache.TakeReady(), ElementsAre(3)) << "it stayed";
  EXPECT_FALSE(cache.Next());
  EXPECT_EQ(cache.promised(), 60U);
}

TEST(Cache, ASliceIsAnotherThanItsObjectAndThanTheNext) {
  Cache cache(100);
  job::ObjectName first = Named("table");
  first.range = {0, 30};
  job::ObjectName next = Named("table");
  next.range = {30, 20};
  cache.Want(1, {first});
  cache.Want(2, {next});
  cache.Want(3, {Named("table")});
  cache.Want(4, {first});
  EXPECT_NE(cache.NumberOf(first), cache.NumberOf(next));
  EXPECT_NE(cache.NumberOf(first), cache.NumberOf(Named("table")));
  while (const auto step = cache.Next()) {
    if (step->kind == Kind::kLook) {
      cache.Looked(step->number, step->object.range.whole() ? 50 : step->object.range.length);
    } else {
      cache.Fetched(step->number);
    }
  }
  EXPECT_EQ(cache.promised(), 100U);
  EXPECT_THAT(cache.TakeReady(), testing::UnorderedElementsAre(1, 2, 3, 4));
}

TEST(Cache, WhatNobodyWantsGoesWhenItsRoomIsNeeded) {
  Cache cache(100);
  cache.Want(1, {Named("a")});
  cache.Want(2, {Named("b")});
  Work(cache, 50);
  cache.Drop(2);
  cache.Drop(1);
  EXPECT_FALSE(cache.Next());
  cache.Want(3, {Named("c")});
  cache.Looked(cache.Next()->number, 50);
  const auto removal = cache.Next();
  ASSERT_TRUE(removal);
  EXPECT_EQ(removal->kind, Kind::kRemove);
  EXPECT_EQ(removal->number, 2U) << "b was let go of first";
  EXPECT_FALSE(cache.Next()) << "its bytes are on the disk until its file is removed";
  EXPECT_EQ(cache.promised(), 100U);
  cache.Removed(removal->number);
  Work(cache, 50);
  EXPECT_THAT(cache.TakeReady(), Contains(3));
  EXPECT_EQ(cache.promised(), 100U);
}

TEST(Cache, NobodyGivesWayWhileRoomIsBeingMade) {
  Cache cache(100);
  cache.Want(1, {Named("a")});
  Work(cache, 100);
  cache.Drop(1);
  cache.Want(2, {Named("b")});
  cache.Want(3, {Named("c")});
  cache.Looked(cache.Next()->number, 60);
  const auto removal = cache.Next();
  ASSERT_EQ(removal->kind, Kind::kRemove);
  cache.Looked(cache.Next()->number, 60);
  EXPECT_FALSE(cache.Next());
  EXPECT_THAT(cache.TakeFailed(), IsEmpty());
  cache.Removed(removal->number);
  EXPECT_EQ(cache.Next()->object, Named("b"));
}

TEST(Cache, NobodyGetsRoomPastOneThatWaits) {
  Cache cache(100);
  cache.Want(1, {Named("a")});
  Work(cache, 60);
  cache.Want(2, {Named("large")});
  const auto look = cache.Next();
  cache.Want(3, {Named("small")});
  const auto next = cache.Next();
  cache.Looked(next->number, 1);
  EXPECT_FALSE(cache.Next()) << "nobody knows yet what the one before it takes";
  cache.Looked(look->number, 60);
  EXPECT_FALSE(cache.Next()) << "the first mini-batch has the room";
  cache.Drop(1);
  cache.Removed(cache.Next()->number);
  EXPECT_EQ(cache.Next()->object, Named("large"));
  EXPECT_EQ(cache.Next()->object, Named("small"));
}

TEST(Cache, AMiniBatchThatNeverFitsFailsInWords) {
  Cache cache(100);
  cache.Want(1, {Named("a"), Named("b"), Named("c")});
  cache.Want(2, {Named("d")});
  Work(cache, 40);
  const auto failed = cache.TakeFailed();
  ASSERT_THAT(failed, SizeIs(1));
  EXPECT_EQ(failed[0].first, 1U);
  EXPECT_THAT(failed[0].second.message, HasSubstr("raise spec.cache.size"));
  EXPECT_THAT(cache.TakeReady(), ElementsAre(2));
}

TEST(Cache, WhatFailsFailsAllWhoWantIt) {
  Cache cache(100);
  cache.Want(1, {Named("a"), Named("b")});
  cache.Want(2, {Named("b")});
  const auto a = cache.Next();
  const auto b = cache.Next();
  cache.Failed(b->number, {Code::kStale, "changed"});
  EXPECT_THAT(cache.TakeFailed(), SizeIs(2));
  EXPECT_FALSE(cache.Wanted(a->number));
  cache.Looked(a->number, 10);
  EXPECT_FALSE(cache.Next());
  EXPECT_EQ(cache.promised(), 0U);
}

TEST(Cache, WhatIsTriedAgainGivesItsRoomBack) {
  Cache cache(100);
  cache.Want(1, {Named("a")});
  cache.Looked(cache.Next()->number, 100);
  const auto fetch = cache.Next();
  cache.Again(fetch->number);
  EXPECT_EQ(cache.promised(), 0U);
  Work(cache, 100);
  EXPECT_THAT(cache.TakeReady(), ElementsAre(1));
}

// Two that share an object could each hold what the other waits for.
TEST(Cache, OneOfTwoThatWaitForEachOtherGivesWay) {
  Cache cache(100);
  cache.Want(1, {Named("shared")});
  Work(cache, 40);
  cache.Want(2, {Named("a"), Named("b")});
  cache.Want(3, {Named("shared"), Named("c")});
  cache.Drop(1);
  EXPECT_THAT(cache.TakeReady(), ElementsAre(1));
  Work(cache, 40);
  const auto failed = cache.TakeFailed();
  ASSERT_THAT(failed, SizeIs(1));
  EXPECT_EQ(failed[0].first, 3U);
  EXPECT_EQ(failed[0].second.code, Code::kUnavailable);
  EXPECT_THAT(cache.TakeReady(), ElementsAre(2));
}

TEST(Cache, NeverPromisesMoreThanItsSizeAndServesEverybody) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
    Cache cache(100);
    std::set<Key> wants;
    std::set<Key> ready;
    std::vector<Cache::Step> at_work;
    Key next = 1;
    for (int round = 0; round < 2000; ++round) {
      if (round < 1500 && below(3) == 0) {
        std::vector<job::ObjectName> objects;
        for (uint32_t n = below(3) + 1; n > 0; --n) {
          objects.push_back(Named(std::to_string(below(20))));
        }
        cache.Want(next, objects);
        wants.insert(next++);
      }
      if (auto step = cache.Next()) at_work.push_back(*step);
      ASSERT_LE(cache.promised(), 100U);
      if (!at_work.empty() && below(2) == 0) {
        const size_t i = below(static_cast<uint32_t>(at_work.size()));
        const Cache::Step step = at_work[i];
        at_work.erase(at_work.begin() + i);
        if (step.kind != Kind::kRemove && below(20) == 0) {
          cache.Again(step.number);
        } else if (step.kind == Kind::kLook) {
          cache.Looked(step.number, std::stoul(step.object.location.substr(7)) * 3);
        } else if (step.kind == Kind::kFetch) {
          cache.Fetched(step.number);
        } else {
          cache.Removed(step.number);
        }
      }
      for (const auto& [key, error] : cache.TakeFailed()) wants.erase(key);
      for (const Key key : cache.TakeReady()) {
        if (wants.contains(key)) ready.insert(key);
      }
      if (!ready.empty() && below(2) == 0) {
        cache.Drop(*ready.begin());
        wants.erase(*ready.begin());
        ready.erase(ready.begin());
      }
    }
    EXPECT_THAT(wants, IsEmpty()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace parallelrun::agent
