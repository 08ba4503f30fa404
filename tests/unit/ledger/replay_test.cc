#include <gmock/gmock.h>

#include <algorithm>

#include "tests/support/fault_files.h"
#include "tests/support/sanitized.h"
#include "tests/unit/ledger/ledger_testing.h"

namespace parallelrun::ledger {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(LedgerReplayTest, WhatWasFlushedComesBackInOrderAndPlace) {
  FaultFiles files;
  Claimed first = Start(files);
  Ledger& ledger = *first.ledger;
  const std::string rows = Encoded(job::RowsRecord{5, {1, 1}, "part\n"});
  const auto a = ledger.AppendEncoded(rows);
  const auto b = ledger.Append(job::ResultRecord{
      {.run_ns = 9, .items_succeeded = 1, .row_count = 2}, 5, {1, 1}, 0, 0, "rest\n"});
  const auto c = ledger.Append(job::LostRecord{6, {1, 2}});
  EXPECT_LT(a.position, b.position);
  EXPECT_LT(b.position, c.position);
  EXPECT_LT(ledger.durable(), a.position);
  EXPECT_EQ(ledger.Read(a.record).error().code, Code::kUnavailable);
  ASSERT_TRUE(ledger.Flush().ok());
  EXPECT_GE(ledger.durable(), c.position);
  EXPECT_EQ(*ledger.Read(a.record), rows);
  EXPECT_EQ(*ledger.Read(a.rows), "part\n");
  EXPECT_EQ(*ledger.Read(b.rows), "rest\n");
  EXPECT_EQ(c.rows.length, 0u);

  files.Crash(CrashMode::kLoseAll);
  const Claimed second = Start(files);
  ASSERT_EQ(second.records.size(), 3u);
  EXPECT_EQ(second.records[0], rows);
  EXPECT_EQ(second.records[2], Encoded(job::LostRecord{6, {1, 2}}));
  EXPECT_EQ(*second.ledger->Read(second.rows[0]), "part\n");
  EXPECT_EQ(*second.ledger->Read(second.rows[1]), "rest\n");
  EXPECT_EQ(second.rows[2].length, 0u);
}

TEST(LedgerReplayTest, UnflushedIsGone) {
  FaultFiles files;
  Claimed first = Start(files);
  ASSERT_TRUE(Commit(*first.ledger, {ResultOf(1)}).ok());
  first.ledger->AppendEncoded(ResultOf(2));
  first.ledger.reset();
  EXPECT_THAT(Start(files).records, ElementsAre(ResultOf(1)));
}

TEST(LedgerReplayTest, FlushOfNothingWritesNothing) {
  FaultFiles files;
  Claimed first = Start(files);
  const size_t size = files.Contents(LogOfEpoch(1)).size();
  const uint64_t operations = files.operations();
  EXPECT_EQ(*first.ledger->Flush(), size);
  EXPECT_EQ(files.operations(), operations);
}

// The chain: each seal counts the log before it, and every record keeps one place that is read.
TEST(LedgerReplayTest, ManyEpochs) {
  FaultFiles files;
  std::vector<std::string> expected;
  for (uint64_t i = 0; i < 20; ++i) {
    Claimed claimed = Start(files);
    EXPECT_EQ(claimed.records, expected) << i;
    for (size_t k = 0; k < claimed.places.size(); ++k) {
      EXPECT_EQ(*claimed.ledger->Read(claimed.places[k]), expected[k]);
    }
    const std::vector<std::string> more = {ResultOf(2 * i), ResultOf(2 * i + 1)};
    for (const std::string& record : more) {
      ASSERT_TRUE(Commit(*claimed.ledger, {record}).ok());
      expected.push_back(record);
    }
    files.Crash(CrashMode::kLoseAll);
  }
}

// Finder and NFS leave names of their own.
TEST(LedgerReplayTest, InspectionCountsLogsOnly) {
  FaultFiles files;
  const auto inspect = [&] {
    return Ledger::Inspect(
        files, "/job/state",
        [](const job::Record&, const job::Place&, const job::Place&) { return Status(); });
  };
  EXPECT_EQ(inspect().error().code, Code::kNotFound);
  ASSERT_TRUE(files.MakeFolders(kTestLogs).ok());
  files.Put(kTestLogs + "/.DS_Store", "x");
  EXPECT_EQ(inspect().error().code, Code::kNotFound);
  for (uint64_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(Commit(*Start(files).ledger, {ResultOf(i)}).ok());
  }
  files.Put(kTestLogs + "/.nfs000012", "x");
  const Result<uint64_t> run_id = inspect();
  ASSERT_TRUE(run_id.ok()) << run_id.error().message;
  EXPECT_EQ(*run_id, kTestRun);
  files.Drop(LogOfEpoch(1));
  EXPECT_EQ(inspect().error().code, Code::kCorrupt);
  EXPECT_THAT(inspect().error().message, HasSubstr(LogName(1)));
  files.FailOperation(1, {Code::kPermission, "list: Permission denied"});
  EXPECT_EQ(inspect().error().code, Code::kPermission);
}

// Records of the newest group are known to nobody as durable: they get a copy in the new log.
TEST(LedgerReplayTest, TailIsCopied) {
  FaultFiles files;
  Claimed first = Start(files);
  ASSERT_TRUE(Commit(*first.ledger, {ResultOf(1)}).ok());
  ASSERT_TRUE(Commit(*first.ledger, {ResultOf(2), ResultOf(3)}).ok());
  Claimed second = Start(files);
  EXPECT_THAT(second.records, ElementsAre(ResultOf(1), ResultOf(2), ResultOf(3)));
  ASSERT_EQ(second.places.size(), 3u);
  EXPECT_EQ(second.places[0].epoch, 1u);
  EXPECT_EQ(second.places[1].epoch, 2u);
  EXPECT_EQ(second.places[2].epoch, 2u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(*second.ledger->Read(second.places[i]), second.records[i]);
  }
  // The predecessor's copy may vanish now.
  std::string log = files.Contents(LogOfEpoch(1));
  log.resize(second.places[0].offset + second.places[0].length);
  files.Put(LogOfEpoch(1), log);
  EXPECT_THAT(Start(files).records, ElementsAre(ResultOf(1), ResultOf(2), ResultOf(3)));
}

TEST(LedgerReplayTest, TheTailIsReadBeforeItIsCopied) {
  FaultFiles files;
  Claimed first = Start(files);
  ASSERT_TRUE(Commit(*first.ledger, {ResultOf(1)}).ok());
  ASSERT_TRUE(Commit(*first.ledger, {ResultOf(2), ResultOf(3)}).ok());
  const Result<Claimed> claimed = TryClaim(files);
  ASSERT_TRUE(claimed.ok());
  ASSERT_EQ(claimed->places.size(), 3u);
  EXPECT_EQ(claimed->places[2].epoch, 2u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(*claimed->ledger->Read(claimed->places[i]), claimed->records[i]);
  }
}

// A stale epoch goes on after its successor's seal, for as long as it likes: nobody reads that.
TEST(LedgerReplayTest, StaleEpochIsNotRead) {
  FaultFiles files;
  Claimed stale = Start(files);
  ASSERT_TRUE(Commit(*stale.ledger, {ResultOf(1)}).ok());
  Claimed second = Start(files);
  for (uint64_t i = 100; i < 110; ++i) ASSERT_TRUE(Commit(*stale.ledger, {ResultOf(i)}).ok());
  ASSERT_TRUE(Commit(*second.ledger, {ResultOf(2)}).ok());
  for (uint64_t i = 110; i < 120; ++i) ASSERT_TRUE(Commit(*stale.ledger, {ResultOf(i)}).ok());
  Claimed third = Start(files);
  EXPECT_THAT(third.records, ElementsAre(ResultOf(1), ResultOf(2)));
  ASSERT_TRUE(Commit(*second.ledger, {ResultOf(120)}).ok());
  EXPECT_THAT(Start(files).records, ElementsAre(ResultOf(1), ResultOf(2)));
}

TEST(LedgerReplayTest, UnsealedEpochBetweenCountsNothing) {
  FaultFiles files;
  Claimed first = Start(files);
  ASSERT_TRUE(Commit(*first.ledger, {ResultOf(1)}).ok());
  Result<Claimed> unsealed = TryClaim(files);  // never begins before the third is there
  ASSERT_TRUE(unsealed.ok());
  ASSERT_TRUE(Commit(*first.ledger, {ResultOf(2)}).ok());
  Claimed third = Start(files);
  EXPECT_THAT(third.records, ElementsAre(ResultOf(1), ResultOf(2)));
  // It wakes up too late.
  ASSERT_TRUE(unsealed->ledger->Begin(TestSettings(9), std::nullopt).ok());
  ASSERT_TRUE(Commit(*unsealed->ledger, {ResultOf(50)}).ok());
  EXPECT_THAT(Start(files).records, ElementsAre(ResultOf(1), ResultOf(2)));
}

// The predecessor's only group, seal included, may get lost after it was read: the new epoch does
// not hang its seal on it.
TEST(LedgerReplayTest, PredecessorWhoseSealIsNotKnownDurableIsReplaced) {
  FaultFiles files;
  Claimed first = Start(files);
  ASSERT_TRUE(Commit(*first.ledger, {ResultOf(1)}).ok());
  ASSERT_TRUE(Commit(*first.ledger, {ResultOf(2)}).ok());
  Result<Claimed> second = TryClaim(files);
  ASSERT_TRUE(second->ledger->Begin(TestSettings(2), std::nullopt).ok());
  const std::vector<std::string> expected = {ResultOf(1), ResultOf(2), Encoded(TestSettings(2))};
  Claimed third = Start(files);
  EXPECT_EQ(third.records, expected);
  files.Put(LogOfEpoch(2), files.Contents(LogOfEpoch(2)).substr(0, kLogHeaderSize));
  Claimed fourth = Start(files);
  EXPECT_EQ(fourth.records, expected);
}

TEST(LedgerReplayTest, OverwriteStartsAnewUnderANewRunId) {
  FaultFiles files;
  Claimed first = Start(files);
  ASSERT_TRUE(Commit(*first.ledger, {ResultOf(1)}).ok());
  Result<Claimed> second = TryClaim(files);
  ASSERT_TRUE(second->ledger->Begin(TestSettings(), 0x4242).ok());
  EXPECT_EQ(second->ledger->run_id(), 0x4242u);
  ASSERT_TRUE(Commit(*second->ledger, {ResultOf(2)}).ok());
  ASSERT_TRUE(Commit(*first.ledger, {ResultOf(3)}).ok());
  for (int i = 0; i < 3; ++i) {
    const Claimed next = Start(files);
    EXPECT_EQ(next.ledger->run_id(), 0x4242u);
    EXPECT_THAT(next.ledger->token_path(), HasSubstr("0000000000004242"));
    EXPECT_THAT(next.records, ElementsAre(Encoded(TestSettings()), ResultOf(2)));
  }
}

TEST(LedgerReplayTest, GroupsAndRoundsOfBigRecords) {
  FaultFiles files;
  std::vector<std::string> expected;
  Claimed first = Start(files);
  const size_t mib = size_t{1} << 20;
  uint64_t number = 0;
  for (const size_t size : {size_t{10}, mib, 3 * mib, size_t{10}, 33 * mib, size_t{10}, 20 * mib,
                            15 * mib, 64 * mib - 2048, size_t{10}}) {
    if (kSanitized && size > 16 * mib) continue;
    expected.push_back(ResultOf(++number, size));
    const auto appended = first.ledger->AppendEncoded(expected.back());
    EXPECT_EQ(appended.record.length, expected.back().size());
  }
  ASSERT_TRUE(first.ledger->Flush().ok());
  EXPECT_EQ(first.ledger->durable(), first.ledger->appended());
  Claimed second = Start(files);
  EXPECT_TRUE(second.records == expected);
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_TRUE(*second.ledger->Read(second.places[i]) == expected[i]) << i;
  }
}

// The largest record as the tail of one epoch, then of the next.
TEST(LedgerReplayTest, LargestTailCanBeCopied) {
  FaultFiles files;
  Claimed first = Start(files);
  const std::string empty = Encoded(job::ResultRecord{});
  const size_t size = kSanitized ? kMaxRecordSize / 8 : kMaxRecordSize;
  const std::string largest =
      Encoded(job::ResultRecord{{}, 1, {}, 0, 0, std::string(size - empty.size(), 'x')});
  ASSERT_EQ(largest.size(), size);
  ASSERT_TRUE(Commit(*first.ledger, {largest}).ok());
  for (int i = 0; i < (kSanitized ? 1 : 3); ++i) {
    Result<Claimed> next = TryClaim(files);
    ASSERT_TRUE(next.ok()) << next.error().message;
    ASSERT_EQ(next->records.size(), 1u + static_cast<size_t>(i));
    EXPECT_TRUE(next->records[0] == largest);
    ASSERT_TRUE(next->ledger->Begin(TestSettings(), std::nullopt).ok());
  }
}

TEST(LedgerReplayTest, RecordOverTheLimitIsAProgrammersError) {
  FaultFiles files;
  Claimed first = Start(files);
  const std::string record = ResultOf(1, kMaxRecordSize);
#ifdef NDEBUG
  const uint64_t position = first.ledger->AppendEncoded(record).position;
  const Result<uint64_t> flushed = first.ledger->Flush();
  ASSERT_FALSE(flushed.ok());
  EXPECT_EQ(flushed.error().code, Code::kInvalid);
  EXPECT_LT(first.ledger->durable(), position);
#else
  EXPECT_DEATH(first.ledger->AppendEncoded(record), "added");
#endif
}

// --- Damage

// A small ledger of three epochs, and what a claim of it replays.
struct Small {
  Small() {
    for (uint64_t epoch = 1; epoch <= 3; ++epoch) {
      Claimed claimed = Start(files);
      expected = claimed.records;
      for (uint64_t i = 0; i < 3; ++i) {
        durable = expected.size();
        EXPECT_TRUE(Commit(*claimed.ledger, {ResultOf(10 * epoch + i, 5)}).ok());
        expected.push_back(ResultOf(10 * epoch + i, 5));
      }
    }
    for (uint32_t epoch = 1; epoch <= 3; ++epoch) logs.push_back(files.Contents(LogOfEpoch(epoch)));
  }

  // Claims with the log of `epoch` replaced, on a disk of its own.
  Result<Claimed> With(uint32_t epoch, const std::string& bytes) const {
    FaultFiles copy;
    for (uint32_t e = 1; e <= 3; ++e) copy.Put(LogOfEpoch(e), e == epoch ? bytes : logs[e - 1]);
    return TryClaim(copy);
  }

  FaultFiles files;
  std::vector<std::string> logs;
  std::vector<std::string> expected;
  size_t durable = 0;  // records of `expected` that the last mark covers
};

TEST(LedgerDamageTest, EveryTruncation) {
  const Small small;
  ASSERT_EQ(small.With(0, "")->records, small.expected);
  for (uint32_t epoch = 1; epoch <= 3; ++epoch) {
    const std::string& log = small.logs[epoch - 1];
    size_t refused = 0;
    for (size_t size = 0; size < log.size(); ++size) {
      const Result<Claimed> claimed = small.With(epoch, log.substr(0, size));
      if (!claimed.ok()) {
        ++refused;
        EXPECT_EQ(claimed.error().code, Code::kCorrupt);
        EXPECT_THAT(claimed.error().message, HasSubstr(LogOfEpoch(epoch)));
        EXPECT_THAT(claimed.error().message, HasSubstr(" at ")) << claimed.error().message;
        continue;
      }
      EXPECT_TRUE(IsPrefix(claimed->records, small.expected)) << epoch << " at " << size;
      // A sealed log may only miss what its successor has copied.
      EXPECT_TRUE(epoch == 3 || claimed->records == small.expected) << epoch << " at " << size;
    }
    EXPECT_TRUE(epoch == 3 || refused > log.size() / 2) << epoch;
  }
}

TEST(LedgerDamageTest, EveryFlippedByte) {
  const Small small;
  for (uint32_t epoch = 1; epoch <= 3; ++epoch) {
    const std::string& log = small.logs[epoch - 1];
    size_t refused = 0;
    for (size_t at = 0; at < log.size(); at += kSanitized ? 3 : 1) {
      for (const int mask : {0x01, 0x80, 0xff}) {
        std::string changed = log;
        changed[at] = static_cast<char>(changed[at] ^ mask);
        const Result<Claimed> claimed = small.With(epoch, changed);
        if (!claimed.ok()) {
          ++refused;
          EXPECT_EQ(claimed.error().code, Code::kCorrupt) << claimed.error().message;
          EXPECT_THAT(claimed.error().message, HasSubstr(LogOfEpoch(epoch)));
          continue;
        }
        EXPECT_TRUE(IsPrefix(claimed->records, small.expected)) << epoch << " at " << at;
        // What lies below the last mark is there, or the ledger is refused.
        EXPECT_GE(claimed->records.size(), epoch < 3 ? small.expected.size() : small.durable)
            << epoch << " at " << at;
      }
    }
    EXPECT_GT(refused, log.size() / (kSanitized ? 3 : 1)) << epoch;
  }
}

// Damage that all checksums of one log overlook, because it is a whole log: of another history.
TEST(LedgerDamageTest, LogOfAnotherHistoryIsRefused) {
  const Small small;
  FaultFiles other;
  Claimed first = Start(other);
  for (uint64_t i = 0; i < 4; ++i) ASSERT_TRUE(Commit(*first.ledger, {ResultOf(77 + i, 5)}).ok());
  const Result<Claimed> claimed = small.With(1, other.Contents(LogOfEpoch(1)));
  ASSERT_FALSE(claimed.ok());
  EXPECT_EQ(claimed.error().code, Code::kCorrupt);
  EXPECT_THAT(claimed.error().message, HasSubstr("does not fit"));
}

TEST(LedgerDamageTest, TornTailIsLeftOut) {
  FaultFiles files;
  Claimed first = Start(files);
  ASSERT_TRUE(Commit(*first.ledger, {ResultOf(1)}).ok());
  const std::string log = files.Contents(LogOfEpoch(1));
  for (const std::string& tail :
       {std::string(1, 'x'), std::string(5000, '\0'), std::string(5000, '\xff'),
        log.substr(kLogHeaderSize), log + log}) {
    files.Put(LogOfEpoch(1), log + tail);
    FaultFiles copy;
    copy.Put(LogOfEpoch(1), log + tail);
    const Result<Claimed> claimed = TryClaim(copy);
    ASSERT_TRUE(claimed.ok()) << claimed.error().message;
    EXPECT_THAT(claimed->records, ElementsAre(ResultOf(1)));
  }
}

// Many whole groups after a damaged one that was durable.
TEST(LedgerDamageTest, DamageInTheMiddleNamesFileAndOffset) {
  FaultFiles files;
  Claimed first = Start(files);
  for (uint64_t i = 0; i < 50; ++i) ASSERT_TRUE(Commit(*first.ledger, {ResultOf(i)}).ok());
  std::string log = files.Contents(LogOfEpoch(1));
  Claimed probe = Start(files);
  const job::Place place = probe.places[20];
  ASSERT_EQ(place.epoch, 1u);
  FaultFiles copy;
  log[place.offset + 50] ^= 1;
  copy.Put(LogOfEpoch(1), log);
  const Result<Claimed> claimed = TryClaim(copy);
  ASSERT_FALSE(claimed.ok());
  EXPECT_EQ(claimed.error().code, Code::kCorrupt);
  EXPECT_THAT(claimed.error().message,
              HasSubstr(LogOfEpoch(1) + " at " + std::to_string(place.offset - kGroupHeaderSize)));
}

// A flipped or short read is refused, or noticed and repeated; it never loses the newest records.
TEST(LedgerDamageTest, BadReads) {
  const Small small;
  for (const bool flip : {true, false}) {
    int survived = 0;
    for (uint64_t n = 1; n <= 10; ++n) {
      for (uint64_t seed = 1; seed <= 50; ++seed) {
        FaultFiles files(seed);
        for (uint32_t e = 1; e <= 3; ++e) files.Put(LogOfEpoch(e), small.logs[e - 1]);
        flip ? files.FlipRead(n) : files.ShortenRead(n);
        const Result<Claimed> claimed = TryClaim(files);
        if (!claimed.ok()) continue;
        ++survived;
        ASSERT_EQ(claimed->records, small.expected) << n << " " << seed;
      }
    }
    EXPECT_GT(survived, 0);
  }
}

}  // namespace
}  // namespace parallelrun::ledger
