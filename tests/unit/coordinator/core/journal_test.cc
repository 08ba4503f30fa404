#include "coordinator/core/journal.h"

#include <gtest/gtest.h>

#include "tests/unit/coordinator/core/journal_harness.h"

namespace parallelrun::coordinator {
namespace {

TEST(Journal, WhatIsAddedIsInTheStateAtOnceAndDurableAfterASync) {
  JournalHarness h;
  const uint64_t position = h.journal->Add(job::PlanEndRecord{0, 0});
  EXPECT_TRUE(h.journal->state().plan_ended());
  EXPECT_EQ(h.journal->appended(), position);
  EXPECT_LT(h.journal->durable(), position);
  h.Sync();
  EXPECT_GE(h.journal->durable(), position);
}

TEST(Journal, AVerdictDecidesBeforeItIsDurable) {
  JournalHarness h;
  EXPECT_FALSE(h.journal->decided());
  h.journal->Add(job::VerdictRecord{job::Outcome::kFailed, 0, "Canceled", ""});
  EXPECT_TRUE(h.journal->decided());
}

TEST(Journal, AChunkThatCannotFollowIsAnErrorAndPlansNothing) {
  JournalHarness h;
  const std::string first = h.Chunk(2);
  ASSERT_TRUE(h.journal->AddChunk(first).ok());
  EXPECT_EQ(h.journal->AddChunk(first).error().code, Code::kCorrupt) << "it was planned already";
  EXPECT_FALSE(h.journal->AddChunk(first.substr(0, first.size() - 1)).ok());
  EXPECT_EQ(h.state.counts().planned, 2U);
}

TEST(Journal, ItSaysWhyItCannotBeWritten) {
  JournalHarness h;
  h.journal->Pause("the disk is full");
  EXPECT_EQ(h.journal->paused(), "the disk is full");
  h.journal->Unpause();
  EXPECT_EQ(h.journal->paused(), "");
}

TEST(Journal, TextIsBoundedAndItsCharactersStayWhole) {
  EXPECT_EQ(Bounded("short"), "short");
  const std::string long_text = std::string(4095, 'a') + "\xc3\xa4";  // a letter of two bytes
  EXPECT_EQ(Bounded(long_text), std::string(4095, 'a'));
}

}  // namespace
}  // namespace parallelrun::coordinator
