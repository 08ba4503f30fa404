#include <gmock/gmock.h>

#include "base/bytes.h"
#include "ledger/claim.h"
#include "tests/support/fault_files.h"
#include "tests/unit/ledger/ledger_testing.h"

namespace parallelrun::ledger {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string TokenOf(uint32_t epoch, uint64_t run = kTestRun) {
  char hex[17];
  snprintf(hex, sizeof(hex), "%016llx", static_cast<unsigned long long>(run));
  return "/job/output/.rows.txt." + std::string(hex) + "." + std::to_string(epoch) + ".tmp";
}

TEST(LedgerClaimTest, FreshFolder) {
  FaultFiles files;
  Result<Claimed> claimed = TryClaim(files);
  ASSERT_TRUE(claimed.ok()) << claimed.error().message;
  const Ledger& ledger = *claimed->ledger;
  EXPECT_EQ(ledger.epoch(), 1u);
  EXPECT_EQ(ledger.run_id(), kTestRun);
  EXPECT_TRUE(ledger.fresh());
  EXPECT_EQ(ledger.token_path(), TokenOf(1));
  EXPECT_TRUE(files.Has(TokenOf(1)));
  EXPECT_TRUE(files.Has(IndexTokenOf(TokenOf(1))));
  EXPECT_THAT(claimed->records, IsEmpty());
  EXPECT_TRUE(ledger.CheckNewest().ok());
  EXPECT_EQ(files.Contents(LogOfEpoch(1)).size(), kLogHeaderSize);

  ASSERT_TRUE(claimed->ledger->Begin(TestSettings(), std::nullopt).ok());
  EXPECT_EQ(ledger.durable(), ledger.appended());
  files.Crash(CrashMode::kLoseAll);
  const Claimed next = Start(files);
  EXPECT_EQ(next.ledger->epoch(), 2u);
  EXPECT_EQ(next.ledger->run_id(), kTestRun);
  EXPECT_FALSE(next.ledger->fresh());
  EXPECT_THAT(next.records, ElementsAre(Encoded(TestSettings())));
}

TEST(LedgerClaimTest, HeaderIsThatOfTheSpecification) {
  FaultFiles files;
  LedgerOptions options = TestOptions();
  options.nonce = 0x99;
  ASSERT_TRUE(TryClaim(files, options).ok());
  const std::string header = files.Contents(LogOfEpoch(1));
  Decoder from(header);
  EXPECT_EQ(from.Bytes(8), "PRLEDGER");
  EXPECT_EQ(from.U32(), 2u);
  EXPECT_EQ(from.U32(), 1u);
  EXPECT_EQ(from.U64(), kTestRun);
  EXPECT_EQ(from.U64(), 0x99u);
  std::string version(PARALLELRUN_VERSION);
  version.resize(24, '\0');
  EXPECT_EQ(from.Bytes(24), version);
  EXPECT_EQ(from.left(), 8u);
}

TEST(LedgerClaimTest, SummaryOnlyHasNoToken) {
  FaultFiles files;
  LedgerOptions options = TestOptions();
  options.output_folder = options.output_file = "";
  const Result<Claimed> claimed = TryClaim(files, options);
  ASSERT_TRUE(claimed.ok());
  EXPECT_EQ(claimed->ledger->token_path(), "");
  EXPECT_FALSE(*files.Exists("/job/output"));
}

// Several epochs may die before their first group: the run keeps its id, and stays fresh.
TEST(LedgerClaimTest, EpochsThatNeverBegan) {
  FaultFiles files;
  ASSERT_TRUE(TryClaim(files).ok());
  LedgerOptions options = TestOptions();
  options.new_run_id = 77;
  const Result<Claimed> second = TryClaim(files, options);
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second->ledger->epoch(), 2u);
  EXPECT_EQ(second->ledger->run_id(), kTestRun);
  EXPECT_TRUE(second->ledger->fresh());
  files.Put(LogOfEpoch(3), "");
  files.Put(LogOfEpoch(4), std::string(kLogHeaderSize, '\0'));
  const Result<Claimed> fifth = TryClaim(files, options);
  ASSERT_TRUE(fifth.ok()) << fifth.error().message;
  EXPECT_EQ(fifth->ledger->epoch(), 5u);
  EXPECT_EQ(fifth->ledger->run_id(), kTestRun);
}

TEST(LedgerClaimTest, MissingLogIsRefusedByName) {
  FaultFiles files;
  for (int i = 0; i < 3; ++i) Start(files);
  for (const uint32_t epoch : {1u, 2u}) {
    const std::string bytes = files.Contents(LogOfEpoch(epoch));
    files.Drop(LogOfEpoch(epoch));
    const Result<Claimed> claimed = TryClaim(files);
    ASSERT_FALSE(claimed.ok());
    EXPECT_EQ(claimed.error().code, Code::kCorrupt);
    EXPECT_THAT(claimed.error().message, HasSubstr(LogOfEpoch(epoch) + " is missing"));
    EXPECT_FALSE(files.Has(LogOfEpoch(4)));
    files.Put(LogOfEpoch(epoch), bytes);
  }
  EXPECT_TRUE(TryClaim(files).ok());
}

TEST(LedgerClaimTest, ALedgerWhoseOnlyLogIsGoneIsRefused) {
  FaultFiles files;
  const Claimed running = Start(files);
  EXPECT_TRUE(running.ledger->CheckNewest().ok());
  const std::string bytes = files.Contents(LogOfEpoch(1));
  files.Drop(LogOfEpoch(1));
  const Status gone = running.ledger->CheckNewest();
  ASSERT_FALSE(gone.ok());
  EXPECT_EQ(gone.error().code, Code::kNotFound);
  EXPECT_THAT(gone.error().message, HasSubstr(LogOfEpoch(1) + " is not there any more"));
  const Result<Claimed> claimed = TryClaim(files);
  ASSERT_FALSE(claimed.ok());
  EXPECT_EQ(claimed.error().code, Code::kCorrupt);
  EXPECT_THAT(claimed.error().message, HasSubstr(LogOfEpoch(1) + " is missing"));
  EXPECT_FALSE(files.Has(LogOfEpoch(1)));
  files.Put(LogOfEpoch(1), bytes);
  EXPECT_EQ(TryClaim(files)->ledger->epoch(), 2u);
}

TEST(LedgerClaimTest, ForeignNamesAreIgnored) {
  FaultFiles files;
  for (const char* name : {"7.log", "0000007.log", "+00007.log", "00000a.log", "99999999999.log",
                           ".nfs0001", "000002.log.bak", "000000.log", ".log"}) {
    files.Put(kTestLogs + "/" + name, "x");
  }
  EXPECT_EQ(Start(files).ledger->epoch(), 1u);
}

TEST(LedgerClaimTest, LogUnderAnotherNameIsRefused) {
  FaultFiles files;
  Start(files);
  Start(files);
  files.Put(LogOfEpoch(2), files.Contents(LogOfEpoch(1)));
  const Result<Claimed> claimed = TryClaim(files);
  ASSERT_FALSE(claimed.ok());
  EXPECT_EQ(claimed.error().code, Code::kCorrupt);
  EXPECT_THAT(claimed.error().message, HasSubstr("epoch 1 under another name"));
}

TEST(LedgerClaimTest, FileSystemWithoutExclusiveCreateIsRefusedByName) {
  FaultFiles files;
  files.SetExclusiveWorks(false);
  const Result<Claimed> claimed = TryClaim(files);
  ASSERT_FALSE(claimed.ok());
  EXPECT_EQ(claimed.error().code, Code::kInvalid);
  EXPECT_THAT(claimed.error().message, HasSubstr(LogOfEpoch(1)));
  EXPECT_THAT(claimed.error().message, HasSubstr("another volume"));
}

// The second create is refused, but at some moment another coordinator's header replaces ours.
TEST(LedgerClaimTest, ForeignNonceIsRefused) {
  bool refused = false;
  for (uint64_t n = 1; n <= 20; ++n) {
    FaultFiles files;
    files.RunBefore(n, [&] {
      if (files.Has(LogOfEpoch(1))) {
        files.Put(LogOfEpoch(1), EncodeLogHeader({1, kTestRun, 0xffffffff}));
      }
    });
    const Result<Claimed> claimed = TryClaim(files);
    if (!claimed.ok()) {
      EXPECT_EQ(claimed.error().code, Code::kInvalid);
      refused = true;
    }
  }
  EXPECT_TRUE(refused);
}

TEST(LedgerClaimTest, TokensOfLowerEpochsGo) {
  FaultFiles files;
  const std::string other_run = TokenOf(1, 0x1234);  // another job's
  const std::string higher = TokenOf(9);
  const std::string other_file = "/job/output/.other.txt.0000000000abcdef.1.tmp";
  const std::vector<std::string> foreign = {"/job/output/.rows.txt.1.tmp",
                                            "/job/output/rows.txt",
                                            "/job/output/.rows.txt.tmp",
                                            "/job/output/.rows.txt.000000000000123x.1.tmp",
                                            "/job/output/.rows.txt.backup.tmp",
                                            "/job/output/.rows.txt.0000000000ABCDEF.1.tmp",
                                            "/job/output/.rows.txt.0000000000abcdef.01.tmp",
                                            "/job/output/.rows.txt.0000000000abcdef.0.tmp",
                                            "/job/output/.rows.txt.0000000000abcdef.1.x.tmp",
                                            "/job/output/.rows.txt.0000000000abcdef.1x.tmp",
                                            "/job/output/.rows.txt.0000000000abcdef.1.index",
                                            "/job/output/.rows.txt.index.tmp"};
  Start(files);
  for (const std::string& path : foreign) files.Put(path, "");
  for (const std::string& path : {other_run, higher, other_file}) files.Put(path, "");
  Start(files);
  EXPECT_FALSE(files.Has(TokenOf(1)));
  EXPECT_FALSE(files.Has(IndexTokenOf(TokenOf(1))));
  EXPECT_TRUE(files.Has(TokenOf(2)));
  EXPECT_TRUE(files.Has(IndexTokenOf(TokenOf(2))));
  EXPECT_TRUE(files.Has(other_run));
  EXPECT_TRUE(files.Has(higher));
  EXPECT_TRUE(files.Has(other_file));
  for (const std::string& path : foreign) EXPECT_TRUE(files.Has(path)) << path;
}

// The removal is durable before the claim returns: a crash does not bring the token back.
TEST(LedgerClaimTest, StaleCoordinatorCannotPublish) {
  FaultFiles files;
  const Claimed stale = Start(files);
  const Claimed newer = Start(files);
  EXPECT_EQ(files.Rename(stale.ledger->token_path(), "/job/output/rows.txt").error().code,
            Code::kNotFound);
  EXPECT_EQ(files.Open(stale.ledger->token_path()).error().code, Code::kNotFound);
  EXPECT_EQ(stale.ledger->CheckNewest().error().code, Code::kStale);
  EXPECT_THAT(stale.ledger->CheckNewest().error().message, HasSubstr(LogOfEpoch(2)));
  EXPECT_TRUE(newer.ledger->CheckNewest().ok());
  files.Crash(CrashMode::kLoseAll);
  EXPECT_FALSE(files.Has(stale.ledger->token_path()));
  EXPECT_TRUE(files.Rename(newer.ledger->token_path(), "/job/output/rows.txt").ok());
}

// A second coordinator runs through its whole claim at each moment of the first one's. However
// they interleave, the one with the higher epoch alone can publish, and owns the history.
TEST(LedgerClaimTest, TwoCoordinatorsClaimAtOnce) {
  int stale = 0;
  int overtaken = 0;
  for (uint64_t n = 1;; ++n) {
    FaultFiles files;
    {
      Claimed before = Start(files);
      ASSERT_TRUE(Commit(*before.ledger, {ResultOf(0)}).ok());
    }
    std::optional<Claimed> other;
    files.RunBefore(n, [&] {
      other = Start(files);
      EXPECT_TRUE(Commit(*other->ledger, {ResultOf(1)}).ok());
    });
    Result<Claimed> first = TryStart(files);
    if (!other) break;  // the claim has fewer operations
    ASSERT_THAT(other->records, ElementsAre(ResultOf(0)));
    const std::string& others_token = other->ledger->token_path();
    if (!first.ok()) {
      ++stale;
      EXPECT_EQ(first.error().code, Code::kStale) << n << first.error().message;
      EXPECT_EQ(files.Has(others_token), true) << n;
    } else if (first->ledger->epoch() > other->ledger->epoch()) {
      EXPECT_FALSE(files.Has(others_token)) << n;
      EXPECT_TRUE(files.Has(first->ledger->token_path())) << n;
      EXPECT_THAT(first->records, ElementsAre(ResultOf(0), ResultOf(1))) << n;
    } else {
      ++overtaken;
      EXPECT_TRUE(files.Has(others_token)) << n;
      EXPECT_FALSE(files.Has(first->ledger->token_path())) << n;
    }
    other->ledger->AppendEncoded(ResultOf(2));
    if (first.ok()) {
      first->ledger->AppendEncoded(ResultOf(3));
      ASSERT_TRUE(first->ledger->Flush().ok());
    }
    ASSERT_TRUE(other->ledger->Flush().ok());
    // Whoever has sealed last with the higher epoch is the predecessor now.
    const uint32_t winner =
        first.ok() ? std::max(first->ledger->epoch(), other->ledger->epoch()) : 3u;
    const Claimed after = Start(files);
    EXPECT_EQ(after.ledger->epoch(), 4u);
    if (winner == other->ledger->epoch()) {
      EXPECT_THAT(after.records, ElementsAre(ResultOf(0), ResultOf(1), ResultOf(2))) << n;
    } else {
      EXPECT_THAT(after.records, ElementsAre(ResultOf(0), ResultOf(1), ResultOf(3))) << n;
    }
  }
  EXPECT_GT(stale, 0);
  EXPECT_GT(overtaken, 0);
}

TEST(LedgerClaimTest, VisitorsErrorEndsTheClaim) {
  FaultFiles files;
  Claimed first = Start(files);
  ASSERT_TRUE(Commit(*first.ledger, {ResultOf(1)}).ok());
  const auto claimed = Ledger::Claim(files, TestOptions(), [](auto&&...) {
    return Status(Error{Code::kInvalid, "no"});
  });
  ASSERT_FALSE(claimed.ok());
  EXPECT_EQ(claimed.error().message, "no");
}

}  // namespace
}  // namespace parallelrun::ledger
