#include "coordinator/core/attempts.h"

#include <gtest/gtest.h>

#include <memory>

#include "tests/unit/coordinator/core/journal_harness.h"

namespace parallelrun::coordinator {
namespace {

CoordinatorLimits WithTries(int32_t tries, bool isolate = false) {
  CoordinatorLimits limits;
  limits.spec.run_max_try = tries;
  limits.spec.isolate_failures = isolate;
  return limits;
}

class AttemptsTest : public ::testing::Test {
 protected:
  using State = job::Availability::State;
  static constexpr int64_t kWall = 17;

  void Make(const CoordinatorLimits& limits, uint32_t batches, uint32_t items = 1) {
    job::LeaseRules leases;
    leases.max_try = static_cast<uint32_t>(limits.spec.run_max_try);
    leases.speculation = limits.speculation;
    h_ = std::make_unique<JournalHarness>(leases);
    h_->Plan(batches, items);
    limits_ = limits;
    attempts_ = std::make_unique<Attempts>(limits_, *h_->journal, *h_->availability, *h_->plan);
  }
  State StateOf(job::BatchId id) const { return h_->availability->Of(id).state; }
  void Fail(const job::LeaseName& name, job::Cause cause = job::Cause::kRun) {
    job::Finished done = JournalHarness::Done(name, job::Finished::Kind::kFailed);
    done.cause = cause;
    attempts_->Failed(0, done, kWall);
    h_->Sync();
  }
  // The node says that run() has begun.
  job::Held Begin(uint32_t node, const job::LeaseName& name) const {
    const job::HeldLease held{name.id, name.fence, true};
    EXPECT_TRUE(h_->availability->Renew({1, node + 1}, held, JournalHarness::kStart));
    attempts_->Began(held);
    return h_->availability->HeldBy(node).front();
  }

  CoordinatorLimits limits_;
  std::unique_ptr<JournalHarness> h_;
  std::unique_ptr<Attempts> attempts_;
};

TEST_F(AttemptsTest, AResultSettlesAndWaitsForItsRecord) {
  Make({}, 1);
  const uint64_t position = attempts_->Succeeded(0, JournalHarness::Done(h_->Lease(0)), kWall);
  EXPECT_EQ(position, h_->journal->appended());
  EXPECT_EQ(StateOf(0), State::kSettled);
  EXPECT_EQ(h_->state.counts().succeeded, 1U);
}

TEST_F(AttemptsTest, AFailureIsTriedAgainUntilTheTriesAreUsed) {
  Make(WithTries(2), 1);
  Fail(h_->Lease(0));
  EXPECT_EQ(StateOf(0), State::kReady);
  Fail(h_->Lease(0));
  EXPECT_EQ(StateOf(0), State::kSettled);
  EXPECT_EQ(h_->state.counts().failed, 1U);
}

TEST_F(AttemptsTest, WhatDoesNotFitItsTypesWillNotFitThenEither) {
  Make(WithTries(3), 1);
  Fail(h_->Lease(0), job::Cause::kMisfit);
  EXPECT_EQ(h_->state.counts().failed, 1U);
}

TEST_F(AttemptsTest, ADebuggerHasNoTerminalAtTheNextTryEither) {
  Make(WithTries(3), 2);
  job::Finished done = JournalHarness::Done(h_->Lease(0), job::Finished::Kind::kFailed);
  done.message = "bdb.BdbQuit: A debugger has no terminal here (score.py:3)";
  attempts_->Failed(0, done, kWall);
  EXPECT_EQ(h_->state.counts().failed, 1U);
  done = JournalHarness::Done(h_->Lease(0), job::Finished::Kind::kFailed);
  done.message = "NameError: name 'x' is not defined (score.py:3)";
  attempts_->Failed(0, done, kWall);
  EXPECT_EQ(h_->state.counts().failed, 1U) << "another node may have what this one lacks";
}

TEST_F(AttemptsTest, TheLastFailureOfSeveralItemsSplitsThemWhereTheyAreIsolated) {
  Make(WithTries(1, true), 1, 4);
  Fail(h_->Lease(0));
  EXPECT_EQ(StateOf(0), State::kSplit);
  // A piece needs no second try: splitting it loses nothing.
  const job::LeaseName piece = h_->Lease(0);
  EXPECT_TRUE(job::IsPiece(piece.id));
  Fail(piece);
  EXPECT_EQ(StateOf(piece.id), State::kSplit);
}

TEST_F(AttemptsTest, WhatIsHandedBackIsNobodysLoss) {
  Make({}, 1);
  const job::LeaseName name = h_->Lease(0);
  attempts_->HandBack(name);
  EXPECT_EQ(StateOf(0), State::kReady);
  EXPECT_EQ(h_->state.batch(0).losses, 0U);
}

TEST_F(AttemptsTest, WhatHadBegunOnANodeThatDiedIsALossAndWhatOnlyWaitedThereIsNot) {
  Make({}, 2);
  const job::LeaseName began = h_->Lease(0);
  h_->Lease(0);
  Begin(0, began);
  attempts_->NodeDied(0, h_->availability->HeldBy(0), nullptr, kWall);
  EXPECT_EQ(h_->state.batch(0).losses, 1U);
  EXPECT_EQ(h_->state.batch(1).losses, 0U);
  EXPECT_EQ(h_->availability->live(), 0U);
}

TEST_F(AttemptsTest, WhatWasAloneHadBegun) {
  Make({}, 1);
  h_->Lease(0);
  attempts_->NodeDied(0, h_->availability->HeldBy(0), nullptr, kWall);
  EXPECT_EQ(h_->state.batch(0).losses, 1U);
}

TEST_F(AttemptsTest, ALossTooManyIsAFailureWithoutTheFenceOfTheLease) {
  Make({.max_losses = 2}, 1);
  attempts_->Lost(0, h_->Lease(0));
  const job::LeaseName last = h_->Lease(0);
  attempts_->Lost(3, last);
  EXPECT_EQ(h_->state.counts().lost, 1U);
  EXPECT_EQ(StateOf(0), State::kSettled);
  EXPECT_FALSE(h_->state.Recorded(last.id, last.fence)) << "a late report would be a repeat of it";
}

// Reads the ledger until its volume hangs.
struct VolumeThatHangs final : public plan::ChunkSource {
  explicit VolumeThatHangs(const ledger::Ledger& of) : ledger(of) {}
  bool Ask(const job::Place&) override { return !hangs; }
  Result<std::string> Take(const job::Place& place) override {
    EXPECT_FALSE(hangs);
    return ledger.Read(place);
  }

  const ledger::Ledger& ledger;
  bool hangs = false;
};

TEST_F(AttemptsTest, ALossTooManyNamesTheItemsThatWereNotedAndAsksNoDisk) {
  constexpr uint64_t kChunks = 6;  // more than are kept in memory
  h_ = std::make_unique<JournalHarness>();
  VolumeThatHangs volume(*h_->ledger);
  plan::PlanStore plan(volume);
  Attempts attempts({.max_losses = 1}, *h_->journal, *h_->availability, plan);
  for (uint64_t i = 0; i < kChunks; ++i) {
    const Result<uint64_t> position = h_->journal->AddChunk(h_->Chunk(1));
    ASSERT_TRUE(position.ok());
    h_->availability->Plan(*position, i + 1);
  }
  h_->Sync();
  const job::LeaseName noted = h_->Lease(0);
  attempts.NoteLastChance(noted.id);
  const job::LeaseName other = h_->Lease(0);
  for (uint64_t i = 1; i < kChunks; ++i) ASSERT_TRUE(plan.Digest(h_->state, i).ok());
  volume.hangs = true;
  attempts.Lost(0, noted);
  const std::string named = h_->state.errors().Top(1).at(0).message;
  EXPECT_NE(named.find("mini-batch 0 (rows of /in/rows.csv) ends"), std::string::npos) << named;
  attempts.Lost(0, other);
  EXPECT_EQ(h_->state.counts().lost, 2U) << "though nobody can say what is in it";
}

TEST_F(AttemptsTest, TheOnlyOneThatRanWhenTheMemoryWasUsedUpHasFailed) {
  Make(WithTries(1), 2);
  const job::LeaseName began = h_->Lease(0);
  h_->Lease(0);
  Begin(0, began);
  const PodEnd end{0, 1, kOutOfMemory, 137};
  attempts_->NodeDied(0, h_->availability->HeldBy(0), &end, kWall);
  EXPECT_EQ(h_->state.counts().failed, 1U);
  EXPECT_EQ(h_->state.errors().Top(1).at(0).kind, kOutOfMemory);
  EXPECT_EQ(StateOf(1), State::kReady);
}

TEST_F(AttemptsTest, WhatAReplacedAgentHeldIsNobodyElsesWhileItMayGoOn) {
  Make({}, 1);
  h_->Lease(0);
  attempts_->SetAside(0);
  EXPECT_EQ(StateOf(0), State::kBlocked);
  h_->availability->TimePassed(JournalHarness::kStart + seconds(11));
  EXPECT_EQ(StateOf(0), State::kReady);
}

TEST_F(AttemptsTest, ThatASuspectHasBegunIsRecordedOnceAndTakenBackWithIt) {
  Make({}, 1);
  attempts_->Lost(0, h_->Lease(0));
  const job::LeaseName name = h_->Lease(0);
  Begin(0, name);
  const uint64_t appended = h_->journal->appended();
  Begin(0, name);
  EXPECT_EQ(h_->journal->appended(), appended);
  EXPECT_TRUE(h_->state.started().contains(0));
  attempts_->HandBack(name);
  EXPECT_FALSE(h_->state.started().contains(0)) << "the next epoch would call it lost";
}

TEST_F(AttemptsTest, SlowIsSeveralTimesTheMeanAndNeverLittle) {
  Make({.speculation = true, .slow_least = seconds(10)}, 2);
  EXPECT_FALSE(attempts_->Slow()) << "nothing has ended yet";
  job::Finished done = JournalHarness::Done(h_->Lease(0));
  done.elapsed_ns = 20'000'000'000;
  attempts_->Succeeded(0, done, kWall);
  EXPECT_FALSE(attempts_->Slow()) << "there is something else to do";
  h_->Lease(1);
  EXPECT_EQ(attempts_->Slow(), seconds(60));
}

TEST_F(AttemptsTest, NothingIsRecordedAfterTheVerdict) {
  Make({}, 2);
  const job::LeaseName began = h_->Lease(0);
  h_->Lease(0);
  const job::Held held = Begin(0, began);
  h_->journal->Add(job::VerdictRecord{job::Outcome::kFailed, 0, "Canceled", ""});
  const uint64_t appended = h_->journal->appended();
  attempts_->NodeDied(0, h_->availability->HeldBy(0), nullptr, kWall);
  attempts_->Lost(0, {held.id, held.lease.fence});
  EXPECT_EQ(h_->journal->appended(), appended);
  EXPECT_EQ(h_->availability->live(), 0U);
}

}  // namespace
}  // namespace parallelrun::coordinator
