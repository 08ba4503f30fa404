#include "coordinator/flusher.h"

#include <gtest/gtest.h>

#include "tests/unit/coordinator/core/journal_harness.h"

namespace parallelrun::coordinator {
namespace {

class FlusherTest : public JournalHarness, public ::testing::Test {
 protected:
  void Append() { journal->Add(job::HeaderRecord{"a,b\n"}); }
  bool Durable() const { return ledger->durable() == ledger->appended(); }

  EventLoop loop_;
  int told_ = 0;
  Flusher flusher_{*ledger, loop_, [this](const Result<uint64_t>& flushed) {
                     EXPECT_TRUE(flushed.ok());
                     ++told_;
                     loop_.Stop();
                   }};
};

TEST_F(FlusherTest, WhatWasAppendedIsDurableWhenThatIsTold) {
  Append();
  flusher_.Flush();
  flusher_.Flush();  // one at a time
  loop_.Run();
  EXPECT_TRUE(Durable());
  EXPECT_TRUE(flusher_.Finish(std::chrono::hours(1)));
  EXPECT_EQ(told_, 1);
}

TEST_F(FlusherTest, WhatWasAskedForIsDoneBeforeTheEnd) {
  Append();
  flusher_.Flush();
  EXPECT_TRUE(flusher_.Finish(std::chrono::hours(1)));
  EXPECT_TRUE(Durable());
}

}  // namespace
}  // namespace parallelrun::coordinator
