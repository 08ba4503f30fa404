#include "coordinator/flusher.h"

#include <gtest/gtest.h>

#include "ledger/chain_ledger.h"
#include "tests/unit/coordinator/core/journal_harness.h"
#include "tests/unit/ledger/ledger_testing.h"
#include "tests/unit/ledger/memory_links.h"

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
  flusher_.Flush(Instant{});
  flusher_.Flush(Instant{});  // one at a time
  loop_.Run();
  EXPECT_TRUE(Durable());
  EXPECT_TRUE(flusher_.Finish(std::chrono::hours(1)));
  EXPECT_EQ(told_, 1);
}

TEST_F(FlusherTest, WhatWasAskedForIsDoneBeforeTheEnd) {
  Append();
  flusher_.Flush(Instant{});
  EXPECT_TRUE(flusher_.Finish(std::chrono::hours(1)));
  EXPECT_TRUE(Durable());
}

// A chain makes few links once it has many, but for what somebody waits for.
TEST(FlusherOfAChainTest, WhatMayGatherIsPutOff) {
  FaultFiles files;
  ledger::MemoryLinks links;
  ledger::ChainLedgerOptions options;
  options.pace.allowance = 0;
  options.pace.per_second = 50;
  const auto claimed = ledger::ClaimChain(
      links, files, options,
      [](const job::Record&, const job::Place&, const job::Place&) { return Status(); });
  ASSERT_TRUE(claimed.ok()) << claimed.error().message;
  ledger::Ledger& chain = **claimed;
  ASSERT_TRUE(chain.Begin(ledger::TestSettings(), std::nullopt).ok());
  EventLoop loop;
  int told = 0;
  Flusher flusher(chain, loop, [&](const Result<uint64_t>& flushed) {
    EXPECT_TRUE(flushed.ok());
    ++told;
    loop.Stop();
  });
  const SystemClock clock;
  chain.AppendEncoded(ledger::ResultOf(1));
  flusher.Flush(clock.Now());
  chain.AppendEncoded(ledger::ResultOf(2));
  flusher.Flush(clock.Now());
  loop.Run();
  EXPECT_EQ(chain.durable(), chain.appended());
  EXPECT_EQ(told, 1);
  EXPECT_EQ(links.links.size(), 3u) << "the claim, the settings, and both results";
}

}  // namespace
}  // namespace parallelrun::coordinator
