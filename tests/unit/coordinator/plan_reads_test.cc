// The plan is read by somebody else, and comes when it comes: what the Coordinator does meanwhile.
#include <gmock/gmock.h>

#include <algorithm>
#include <vector>

#include "tests/unit/coordinator/core_harness.h"

namespace parallelrun::coordinator {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Kind = job::Finished::Kind;

// Chunks are there once they are let through, until they are taken.
class SlowChunks final : public plan::ChunkSource {
 public:
  explicit SlowChunks(const ledger::Ledger& ledger) : ledger_(ledger) {}
  bool Ask(const job::Place& place) override {
    const bool there = std::find(there_.begin(), there_.end(), place) != there_.end();
    if (!there) (quick_ ? there_ : asked_).push_back(place);
    return there;
  }
  Result<std::string> Take(const job::Place& place) override {
    EXPECT_EQ(std::erase(there_, place), 1U) << "taken without having come";
    return ledger_.Read(place);
  }
  void LetThrough() { there_ = std::exchange(asked_, {}); }
  // From now on they are there when they are asked for a second time.
  void Hurry() { quick_ = true; }
  bool asked() const { return !asked_.empty(); }

 private:
  const ledger::Ledger& ledger_;
  std::vector<job::Place> asked_;
  std::vector<job::Place> there_;
  bool quick_ = false;
};

class PlanReads : public ::testing::Test {
 protected:
  PlanReads() { ReadSlowly(); }

  // The next epoch, or this one, with chunks that are let through by hand.
  void ReadSlowly() {
    h_.core.reset();
    h_.plan.reset();
    chunks_.emplace(*h_.ledger);
    h_.plan = std::make_unique<plan::PlanStore>(*chunks_);
    h_.core = std::make_unique<Coordinator>(h_.limits, *h_.ledger, *h_.plan, h_.state, h_.now());
    h_.Look();
  }
  void Read() {
    chunks_->LetThrough();
    h_.core->OnPlanRead(h_.now());
    h_.Look();
  }

  CoordinatorHarness h_{[] {
    CoordinatorLimits limits;
    limits.spec.run_max_try = 1;
    return limits;
  }()};
  std::optional<SlowChunks> chunks_;
};

TEST_F(PlanReads, WhoWantsWorkWaitsForItAndIsWokenByIt) {
  h_.Plan(3);
  const job::Incarnation in = h_.Join(0);
  const auto waits = h_.Send(0, h_.Request(in, 1, 1000));
  EXPECT_EQ(waits->answers, 0);
  EXPECT_TRUE(chunks_->asked());
  Read();
  EXPECT_THAT(waits->leased, SizeIs(1));
  EXPECT_THAT(h_.Send(0, h_.Request(in, 1))->leased, SizeIs(1)) << "of the same chunk";
}

TEST_F(PlanReads, NobodyIsToldAgainAndAgainToWaitAndAParkEndsAllTheSame) {
  h_.Plan(3);
  const auto waits = h_.Send(0, h_.Request(h_.Join(0), 1, 1000));
  EXPECT_THAT(h_.Send(1, h_.Request(h_.Join(1), 1))->leased, IsEmpty());
  h_.Advance(seconds(1));
  EXPECT_EQ(waits->answers, 1);
  EXPECT_THAT(waits->leased, IsEmpty());
  EXPECT_EQ(h_.core->pending(), 3U) << "nothing stays leased";
}

TEST_F(PlanReads, AResultIsTakenWhileWorkIsNotAtHand) {
  h_.Plan(1, false);
  const job::Incarnation in = h_.Join(0);
  const auto first = h_.Send(0, h_.Request(in, 1, 1000));
  Read();
  h_.Plan(1);
  ReadSlowly();
  // Nothing of the plan is in memory now, and the volume does not answer.
  const job::Incarnation again = h_.Join(0);
  job::ExchangeRequest request = h_.Request(again, 1, 1000);
  request.held.push_back({first->leased[0].id, first->leased[0].fence, true});
  const auto said = h_.Send(0, request);
  EXPECT_THAT(said->adopted, SizeIs(1));
  EXPECT_THAT(said->leased, IsEmpty());
}

TEST_F(PlanReads, AnOfferIsAdoptedOnceItCanBeCompared) {
  h_.Plan(1);
  const auto leased = h_.Send(0, h_.Request(h_.Join(0), 1, 1000));
  Read();
  ASSERT_THAT(leased->leased, SizeIs(1));
  ReadSlowly();
  job::ExchangeRequest request = h_.Request(h_.Join(0));
  request.offered.push_back({0, leased->leased[0].fence, leased->digests[0]});
  const auto early = h_.Send(0, request);
  EXPECT_EQ(early->answers, 1);
  EXPECT_THAT(early->adopted, IsEmpty());
  EXPECT_THAT(early->refused, IsEmpty()) << "it is offered again";
  Read();
  EXPECT_THAT(h_.Send(0, request)->adopted, SizeIs(1));
}

// It may be in run() of what it offers. Its next report may be of something else, and then nobody
// else may begin.
TEST_F(PlanReads, ANodeIsHeardOnceItsOffersAreCompared) {
  h_.limits.nodes = 2;
  h_.Plan(2);
  const auto leased = h_.Send(0, h_.Request(h_.Join(0), 1, 1000));
  Read();
  ASSERT_THAT(leased->leased, SizeIs(1));
  h_.Start();
  ReadSlowly();
  const auto other = h_.Send(1, h_.Request(h_.Join(1), 2, 20'000));
  const job::Incarnation in = h_.Join(0);
  job::ExchangeRequest request = h_.Request(in);
  request.offered.push_back({0, leased->leased[0].fence, leased->digests[0]});
  EXPECT_THAT(h_.Send(0, request)->adopted, IsEmpty());
  h_.Send(0, h_.Request(in));
  Read();
  EXPECT_EQ(other->answers, 0);
  EXPECT_THAT(h_.Send(0, request)->adopted, SizeIs(1));
  ASSERT_THAT(other->leased, SizeIs(1));
  EXPECT_EQ(other->leased[0].id, 1U);
}

// The chunk came behind the look for its offer and before the look for what to lease: it would be
// given what it is at work on, and do it twice.
TEST_F(PlanReads, ANodeIsGivenNothingWhileOneOfItsOffersIsOpen) {
  h_.limits.speculation = true;  // else nobody gets anything before all nodes are heard
  h_.Plan(2);
  const auto leased = h_.Send(0, h_.Request(h_.Join(0), 1, 1000));
  Read();
  ASSERT_THAT(leased->leased, SizeIs(1));
  h_.Start();
  ReadSlowly();
  chunks_->Hurry();
  job::ExchangeRequest request = h_.Request(h_.Join(0), 2);
  request.offered.push_back({0, leased->leased[0].fence, leased->digests[0]});
  const auto early = h_.Send(0, request);
  EXPECT_THAT(early->adopted, IsEmpty());
  EXPECT_THAT(early->leased, IsEmpty());
  const auto again = h_.Send(0, request);
  EXPECT_THAT(again->adopted, SizeIs(1));
  ASSERT_THAT(again->leased, SizeIs(1));
  EXPECT_EQ(again->leased[0].id, 1U);
}

TEST_F(PlanReads, AVerdictWaitsForTheNamesThatItSays) {
  h_.Plan(1);
  const job::Incarnation in = h_.Join(0);
  const auto leased = h_.Send(0, h_.Request(in, 1, 1000));
  Read();
  ASSERT_THAT(leased->leased, SizeIs(1));
  ReadSlowly();
  const job::Incarnation again = h_.Join(0);
  job::ExchangeRequest request = h_.Request(again);
  request.held.push_back({0, leased->leased[0].fence, true});
  const auto adopted = h_.Send(0, request);
  ASSERT_THAT(adopted->adopted, SizeIs(1));
  h_.Report(0, again, {0, adopted->adopted[0].fence}, Kind::kFailed);
  EXPECT_FALSE(h_.core->decided());
  Read();
  ASSERT_TRUE(h_.core->decided());
  EXPECT_THAT(h_.state.verdict()->message, HasSubstr("rows of /in/rows.csv"));
}

}  // namespace
}  // namespace parallelrun::coordinator
