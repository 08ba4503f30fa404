#include "agent/core/held.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace parallelrun::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr Instant kSent(seconds(100));
constexpr job::LeaseName kFirst{0, {1, 100}};

job::Leased LeaseOf(job::BatchId id, uint32_t epoch = 1) {
  return {id, {epoch, 100 + id}, 7, "work"};
}

Outcome SomeOutcome() {
  Outcome outcome;
  outcome.kind = job::Finished::Kind::kSucceeded;
  return outcome;
}

TEST(Held, WhatIsLeasedWaitsInItsOrder) {
  Held held;
  const Key a = *held.Add(LeaseOf(0), false, kSent);
  const Key b = *held.Add(LeaseOf(1), false, kSent);
  EXPECT_FALSE(held.Add(LeaseOf(0), false, kSent)) << "it is here already";
  EXPECT_EQ(held.FirstWaiting(), a);
  held.Give(a, 3);
  EXPECT_EQ(held.At(a).process, 3U);
  EXPECT_EQ(held.FirstWaiting(), b);
  held.GiveAgain(a, 1);
  EXPECT_EQ(held.FirstWaiting(), a) << "it is the first again";
  EXPECT_EQ(held.At(a).bounces, 1U);
  EXPECT_EQ(held.unfinished(), 2U);
}

TEST(Held, WhatIsHandedBackLeavesTheFirstOnesToWait) {
  Held held;
  const Key a = *held.Add(LeaseOf(0), false, kSent);
  const Key b = *held.Add(LeaseOf(1), false, kSent);
  const Key c = *held.Add(LeaseOf(2), false, kSent);
  const Key d = *held.Add(LeaseOf(3), false, kSent);
  held.Give(a, 0);
  EXPECT_THAT(held.Waiting(1), ElementsAre(c, d));
  EXPECT_EQ(held.FirstWaiting(), b);
  EXPECT_THAT(held.Waiting(0), ElementsAre(b));
  EXPECT_FALSE(held.FirstWaiting());
}

TEST(Held, AResultIsReportedUntilItIsSettled) {
  Held held;
  const Key key = *held.Add(LeaseOf(0), false, kSent);
  held.Give(key, 3);
  held.AddRows(key, "a\nb\n");
  EXPECT_TRUE(held.Finish(key, SomeOutcome()));
  EXPECT_EQ(held.unfinished(), 0U);
  for (int times = 0; times < 3; ++times) {
    Flight flight;
    job::ExchangeRequest request;
    EXPECT_FALSE(held.Report(flight, request)) << "nothing is left";
    ASSERT_THAT(request.finished, SizeIs(1));
    EXPECT_EQ(request.finished[0].rows, "a\nb\n");
    EXPECT_EQ(request.finished[0].process, 3U);
    EXPECT_FALSE(held.Report(flight, request));
    EXPECT_THAT(request.finished, SizeIs(1)) << "it is under way";
    EXPECT_TRUE(held.ReportAgain(flight.finished));
  }
  held.Forget(key);
  EXPECT_FALSE(held.ReportAgain({key}));
  EXPECT_FALSE(held.any());
}

TEST(Held, ARefusedOneStaysWhileAProcessHasIt) {
  Held held;
  const Key waits = *held.Add(LeaseOf(0), false, kSent);
  const Key runs = *held.Add(LeaseOf(1), false, kSent);
  held.Give(*held.FirstWaiting(), 0);
  EXPECT_EQ(held.At(waits).state, Batch::State::kGiven);
  EXPECT_FALSE(held.Refuse(runs)) << "it only waited: it is gone";
  EXPECT_TRUE(held.Refuse(waits));
  EXPECT_EQ(held.size(), 1U);
  EXPECT_EQ(held.unfinished(), 0U);
  EXPECT_FALSE(held.Find(kFirst)) << "its name means nothing any more";
  Flight flight;
  job::ExchangeRequest request;
  held.List({}, flight, request);
  EXPECT_THAT(request.held, IsEmpty());
  held.Forget(waits);
  EXPECT_FALSE(held.any());
}

// A lease under a later fence may have the same id as one that runs on without a lease.
TEST(Held, ARefusedOneAndItsSuccessorAreTwo) {
  Held held;
  const Key old = *held.Add(LeaseOf(0), false, kSent);
  held.Give(old, 0);
  held.Refuse(old);
  const Key again = *held.Add({0, {1, 500}, 7, "work"}, false, kSent);
  held.Forget(old);
  EXPECT_EQ(held.Find({0, {1, 500}}), again);
  EXPECT_EQ(held.unfinished(), 1U);
}

TEST(Held, ANewRegistrationIsOfferedWhatIsWorthIt) {
  Held held;
  const Key fresh = *held.Add(LeaseOf(0), false, kSent + seconds(5));
  const Key done = *held.Add(LeaseOf(1), false, kSent);
  held.Add(LeaseOf(2), false, kSent);  // its lease may be over
  const Key back = *held.Add(LeaseOf(3), false, kSent);
  held.Give(fresh, 0);
  held.Finish(done, SomeOutcome());
  held.Finish(back, {});
  const std::vector<job::LeaseName> dropped = held.OfferAll(kSent);
  EXPECT_THAT(dropped, SizeIs(2));
  EXPECT_TRUE(held.offers());
  job::ExchangeRequest request;
  held.Offer(request);
  ASSERT_THAT(request.offered, SizeIs(2));
  EXPECT_LE(request.offered[0].id, 1U);
  EXPECT_LE(request.offered[1].id, 1U);
  Flight flight;
  held.Report(flight, request);
  EXPECT_THAT(request.finished, IsEmpty()) << "not before it is adopted";
}

TEST(Held, WhatIsAdoptedIsReportedUnderItsNewFenceFromItsFirstRow) {
  Held held;
  const Key key = *held.Add(LeaseOf(0), false, kSent);
  held.Give(key, 0);
  held.AddRows(key, "row\n");
  held.Finish(key, SomeOutcome());
  held.OfferAll(Instant::min());
  held.HeardParts({{key, 2}});  // under the fence before
  const auto adoption = held.Adopt({0, {1, 100}, {2, 1}}, kSent + seconds(9));
  ASSERT_TRUE(adoption);
  EXPECT_EQ(adoption->key, key);
  EXPECT_TRUE(adoption->report);
  EXPECT_FALSE(held.offers());
  EXPECT_FALSE(held.Over(key, kSent + seconds(8))) << "the adoption confirms it";
  Flight flight;
  job::ExchangeRequest request;
  held.Report(flight, request);
  ASSERT_THAT(request.finished, SizeIs(1));
  EXPECT_EQ(request.finished[0].fence, (job::Fence{2, 1}));
  EXPECT_EQ(request.finished[0].rows_offset, 0U);
  EXPECT_FALSE(held.Adopt({0, {1, 100}, {2, 2}}, kSent)) << "the old name is gone";
}

TEST(Held, AnOfferedOneThatIsHandedBackIsJustLetGo) {
  Held held;
  const Key key = *held.Add(LeaseOf(0), true, kSent);
  EXPECT_FALSE(held.Finish(key, {}));
  EXPECT_FALSE(held.any());
  EXPECT_FALSE(held.offers());
}

TEST(Held, ALeaseIsOverByWhenItWasConfirmedLast) {
  Held held;
  const Key key = *held.Add(LeaseOf(0), false, kSent);
  EXPECT_TRUE(held.Over(key, kSent));
  const job::LeaseName name = held.At(key).name;
  held.Confirm({name, {99, {1, 99}}}, kSent + seconds(1));
  EXPECT_FALSE(held.Over(key, kSent));
  held.Confirm({name}, kSent);
  EXPECT_FALSE(held.Over(key, kSent)) << "an older answer takes nothing back";
  EXPECT_FALSE(held.Over(key, Instant::min()));
  held.Give(key, 0);
  held.Refuse(key);
  EXPECT_FALSE(held.Over(key, kSent + seconds(9))) << "it has no lease";
}

// Two requests are under way; the answer of the first adopts what both name. The coordinator
// refused what the second named, and its new lease ends counted from the first.
TEST(Held, AnAnswerRenewsNoLeaseThatItsRequestNamedOtherwise) {
  Held held;
  const Key key = *held.Add(LeaseOf(0), false, kSent);
  const job::LeaseName before = held.At(key).name;
  ASSERT_TRUE(held.Adopt({before.id, before.fence, {2, 7}}, kSent));
  held.Confirm({before}, kSent + seconds(1));
  EXPECT_TRUE(held.Over(key, kSent));
  held.Confirm({held.At(key).name}, kSent + seconds(1));
  EXPECT_FALSE(held.Over(key, kSent));
}

TEST(Held, RowsThatFitIntoNoRequestGoInParts) {
  Held held;
  const Key key = *held.Add(LeaseOf(0), false, kSent);
  held.AddRows(key, std::string(job::kMaxRowsBytes + 10, 'x'));
  held.Finish(key, SomeOutcome());
  Flight first;
  job::ExchangeRequest request;
  EXPECT_TRUE(held.Report(first, request));
  ASSERT_THAT(request.parts, SizeIs(1));
  EXPECT_LT(request.parts[0].rows.size(), job::kMaxRowsBytes);
  EXPECT_THAT(request.finished, IsEmpty());
  held.HeardParts(first.parts);
  Flight second;
  job::ExchangeRequest rest;
  EXPECT_FALSE(held.Report(second, rest));
  ASSERT_THAT(rest.finished, SizeIs(1));
  EXPECT_EQ(rest.finished[0].rows_offset, first.parts[0].second);
}

TEST(Held, TooManyRowsAreFull) {
  Held held;
  const Key key = *held.Add(LeaseOf(0), false, kSent);
  held.AddRows(key, std::string(Held::kMaxKeptBytes, 'x'));
  EXPECT_FALSE(held.Full());
  held.AddRows(key, "x");
  EXPECT_TRUE(held.Full());
  held.DropRows(key);
  EXPECT_FALSE(held.Full());
}

TEST(Held, WhatHasBegunIsListedSo) {
  Held held;
  const Key key = *held.Add(LeaseOf(0), false, kSent);
  held.Give(key, 0);
  for (const bool begun : {false, true}) {
    Flight flight;
    job::ExchangeRequest request;
    held.List({{key, begun}}, flight, request);
    ASSERT_THAT(request.held, SizeIs(1));
    EXPECT_EQ(request.held[0].started, begun);
    EXPECT_THAT(flight.held, ElementsAre(held.At(key).name));
  }
}

}  // namespace
}  // namespace parallelrun::agent
