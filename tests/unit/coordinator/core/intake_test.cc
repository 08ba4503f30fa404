#include "coordinator/core/intake.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "tests/unit/coordinator/core/journal_harness.h"

namespace parallelrun::coordinator {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class IntakeTest : public JournalHarness, public ::testing::Test {
 protected:
  void SetUp() override { Plan(3); }
  // A request of the node's first incarnation, after those in answer to which it got leases.
  job::ExchangeRequest Request(uint32_t node = 0) const {
    job::ExchangeRequest request;
    request.incarnation = {1, node + 1};
    request.number = 5;
    return request;
  }
  Intake::Taken Take(const job::ExchangeRequest& request, uint32_t node = 0) {
    Intake intake(node, request, kStart, 17, *journal, *availability, attempts_, *plan);
    intake.TakeUnheard();
    intake.TakeHeld();
    intake.TakeOffered();
    intake.TakeParts();
    intake.TakeFinished();
    return std::move(intake.taken());
  }

  Attempts attempts_{{}, *journal, *availability, *plan};
};

TEST_F(IntakeTest, AResultIsSettledAndItsAnswerWaitsForTheRecord) {
  job::ExchangeRequest request = Request();
  request.finished = {Done(Lease(0))};
  const Intake::Taken taken = Take(request);
  EXPECT_THAT(taken.reply.settled, ElementsAre(job::LeaseName{0, {1, 1}}));
  EXPECT_EQ(taken.position, journal->appended());
  EXPECT_TRUE(taken.moved);
  const uint64_t appended = journal->appended();
  EXPECT_EQ(Take(request).position, appended) << "a repeat waits for the same";
  EXPECT_EQ(journal->appended(), appended);
}

TEST_F(IntakeTest, AFailedAttemptIsAFactForWhoeverJudgesTheProgram) {
  job::ExchangeRequest request = Request();
  request.finished = {Done(Lease(0), job::Finished::Kind::kFailed)};
  EXPECT_THAT(Take(request).failed, ElementsAre(&request.finished[0]));
}

TEST_F(IntakeTest, WhatIsNotItsOwnIsRefusedWithAReason) {
  const job::LeaseName name = Lease(0);
  job::ExchangeRequest request = Request(1);
  request.finished = {Done(name)};
  const Intake::Taken taken = Take(request, 1);
  EXPECT_THAT(taken.reply.refused, ElementsAre(name));
  ASSERT_EQ(taken.refused.size(), 1U);
  EXPECT_EQ(taken.refused[0].why, RefusalReason::kLeased);
  EXPECT_EQ(taken.position, 0U);
}

TEST_F(IntakeTest, ALateResultOfWhatNobodyHasIsAdoptedAndToldAgain) {
  const job::LeaseName name = Lease(0);
  availability->End(name);
  job::ExchangeRequest request = Request();
  request.finished = {Done(name)};
  const Intake::Taken taken = Take(request);
  ASSERT_EQ(taken.reply.adopted.size(), 1U);
  EXPECT_EQ(taken.reply.adopted[0].old_fence, name.fence);
  EXPECT_EQ(state.counts().succeeded, 0U);
}

TEST_F(IntakeTest, ALateFailureAndALateReturnAreNotAdopted) {
  const job::LeaseName name = Lease(0);
  availability->End(name);
  job::ExchangeRequest request = Request();
  request.finished = {Done(name, job::Finished::Kind::kFailed),
                      Done(name, job::Finished::Kind::kReturned)};
  const Intake::Taken taken = Take(request);
  EXPECT_THAT(taken.reply.adopted, IsEmpty());
  EXPECT_THAT(taken.reply.refused, ElementsAre(name, name));
  EXPECT_EQ(taken.refused.size(), 1U) << "what it gives back is as good as taken";
}

TEST_F(IntakeTest, WhatAnAnswerGrantedThatWasNeverHeardIsHandedBack) {
  const job::LeaseName unheard = Lease(0, 2);
  const job::LeaseName held = Lease(0, 3);
  const job::LeaseName open = Lease(0, 4);
  job::ExchangeRequest request = Request();
  request.unheard = true;
  request.open = 4;
  request.held = {{held.id, held.fence, false}};
  Take(request);
  EXPECT_FALSE(availability->Leased(unheard.id));
  EXPECT_TRUE(availability->Leased(held.id));
  EXPECT_TRUE(availability->Leased(open.id)) << "its answer may be on the way";
}

TEST_F(IntakeTest, AnOfferIsAdoptedByItsDigest) {
  const Result<uint64_t> digest = plan->Digest(state, 1);
  ASSERT_TRUE(digest.ok());
  job::ExchangeRequest request = Request();
  request.offered = {{1, {0, 9}, *digest}, {2, {0, 8}, *digest + 1}, {77, {0, 7}, 1}};
  const Intake::Taken taken = Take(request);
  ASSERT_EQ(taken.reply.adopted.size(), 1U);
  EXPECT_EQ(taken.reply.adopted[0].id, 1U);
  ASSERT_EQ(taken.refused.size(), 2U);
  EXPECT_EQ(taken.refused[0].why, RefusalReason::kContent);
  EXPECT_EQ(taken.refused[1].why, RefusalReason::kUnknown);
  EXPECT_TRUE(taken.compared);
}

// Chunks that never come.
struct HangingChunks final : public plan::ChunkSource {
  bool Ask(const job::Place&) override { return false; }
  Result<std::string> Take(const job::Place&) override { return Error{Code::kUnavailable, ""}; }
};

TEST_F(IntakeTest, AnOfferThatCannotBeComparedYetIsNeitherAdoptedNorRefused) {
  HangingChunks chunks;
  const auto before = std::exchange(plan, std::make_unique<plan::PlanStore>(chunks));
  job::ExchangeRequest request = Request();
  request.offered = {{1, {0, 9}, 1}, {77, {0, 7}, 1}};
  const Intake::Taken taken = Take(request);
  EXPECT_FALSE(taken.compared);
  EXPECT_THAT(taken.reply.adopted, IsEmpty());
  ASSERT_EQ(taken.refused.size(), 1U);
  EXPECT_EQ(taken.refused[0].why, RefusalReason::kUnknown) << "for that nothing is read";
}

TEST_F(IntakeTest, AResultWhosePartsAreNotAllThereIsRunAgain) {
  const job::LeaseName name = Lease(0);
  job::ExchangeRequest request = Request();
  request.parts = {{name.id, name.fence, 0, "row\n"}, {name.id, name.fence, 9, "gap\n"}};
  request.finished = {Done(name)};
  request.finished[0].rows_offset = 8;
  const Intake::Taken taken = Take(request);
  EXPECT_EQ(state.PartBytes(name.id, name.fence), 4U);
  ASSERT_EQ(taken.refused.size(), 1U);
  EXPECT_EQ(taken.refused[0].why, RefusalReason::kIncomplete);
  EXPECT_FALSE(availability->Leased(name.id));
}

TEST_F(IntakeTest, AfterTheVerdictNothingIsTaken) {
  const job::LeaseName name = Lease(0);
  journal->Add(job::VerdictRecord{job::Outcome::kFailed, 0, "Canceled", ""});
  job::ExchangeRequest request = Request();
  request.finished = {Done(name)};
  const Intake::Taken taken = Take(request);
  ASSERT_EQ(taken.refused.size(), 1U);
  EXPECT_EQ(taken.refused[0].why, RefusalReason::kJobOver);
}

}  // namespace
}  // namespace parallelrun::coordinator
