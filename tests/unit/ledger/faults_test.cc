// The ledger on a disk that fails, fills up and forgets.
#include <gmock/gmock.h>

#include <algorithm>

#include "tests/support/fault_files.h"
#include "tests/support/sanitized.h"
#include "tests/unit/ledger/ledger_testing.h"

namespace parallelrun::ledger {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

// What one coordinator knows, and what it told others.
struct Story {
  std::vector<std::string> written;  // everything, in order, durable or not
  size_t acknowledged = 0;           // so many of them
};

// Several epochs of work; stops at the first error.
Status Work(Files& files, Story& story) {
  for (uint64_t epoch = 0; epoch < 3; ++epoch) {
    Result<Claimed> claimed = TryClaim(files);
    if (!claimed.ok()) return claimed.error();
    Ledger& ledger = *claimed->ledger;
    EXPECT_TRUE(IsPrefix(claimed->records, story.written));
    EXPECT_GE(claimed->records.size(), story.acknowledged);
    story.written = claimed->records;
    story.written.push_back(Encoded(TestSettings(static_cast<uint32_t>(epoch))));
    if (Status s = ledger.Begin(TestSettings(static_cast<uint32_t>(epoch)), std::nullopt);
        !s.ok()) {
      return s;
    }
    story.acknowledged = story.written.size();
    for (uint64_t i = 0; i < 3; ++i) {
      const std::vector<std::string> records = {ResultOf(10 * epoch + i, 700), FailureOf(i)};
      story.written.insert(story.written.end(), records.begin(), records.end());
      if (Status s = Commit(ledger, records); !s.ok()) return s;
      story.acknowledged = story.written.size();
    }
  }
  return {};
}

struct Way {
  const char* name;
  FaultMoment moment;
  CrashMode crash;
  Code code;
};

class LedgerFaultsTest : public ::testing::TestWithParam<Way> {};

// Every operation fails once, then the machine crashes: all that was acknowledged is there, nothing
// else but what was written, and work goes on.
TEST_P(LedgerFaultsTest, EveryOperationFailsOnce) {
  const Way way = GetParam();
  for (uint64_t n = 1;; ++n) {
    FaultFiles files(n);
    files.FailOperation(n, Error{way.code, "injected"}, way.moment);
    Story story;
    const Status worked = Work(files, story);
    const bool untouched = files.operations() < n;
    ASSERT_TRUE(worked.ok() || !untouched) << worked.error().message;
    if (untouched) {
      EXPECT_GT(n, 60u);
      break;
    }
    files.ClearFaults();
    for (int i = 0; i < 2; ++i) {
      files.Crash(way.crash);
      Result<Claimed> after = TryStart(files);
      ASSERT_TRUE(after.ok()) << n << ": " << after.error().message;
      ASSERT_TRUE(IsPrefix(after->records, story.written)) << n;
      ASSERT_GE(after->records.size(), story.acknowledged) << n;
      EXPECT_TRUE(after->ledger->CheckNewest().ok());
      EXPECT_TRUE(files.Has(after->ledger->token_path()));
      EXPECT_EQ(after->ledger->run_id(), kTestRun);
      story.written = after->records;
      story.acknowledged = story.written.size();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Ways, LedgerFaultsTest,
    ::testing::Values(
        Way{"LoseAll", FaultMoment::kBefore, CrashMode::kLoseAll, Code::kInternal},
        Way{"LoseSome", FaultMoment::kBefore, CrashMode::kLoseSome, Code::kInternal},
        Way{"KeepAll", FaultMoment::kBefore, CrashMode::kKeepAll, Code::kInternal},
        Way{"AnswerLostLoseAll", FaultMoment::kAfter, CrashMode::kLoseAll, Code::kInternal},
        Way{"AnswerLostLoseSome", FaultMoment::kAfter, CrashMode::kLoseSome, Code::kTimeout},
        Way{"AnswerLostKeepAll", FaultMoment::kAfter, CrashMode::kKeepAll, Code::kInternal},
        Way{"NoSpace", FaultMoment::kBefore, CrashMode::kLoseSome, Code::kNoSpace}),
    [](const auto& way) { return std::string(way.param.name); });

// A crash, without a failed operation, at every step.
TEST(LedgerCrashTest, AtEveryOperation) {
  for (const CrashMode mode : {CrashMode::kLoseAll, CrashMode::kLoseSome}) {
    for (uint64_t n = 1;; ++n) {
      FaultFiles files(n);
      files.RunBefore(n, [&] { files.Crash(mode); });
      Story story;
      const Status worked = Work(files, story);
      const bool untouched = files.operations() < n;
      // A crash between two operations of which none uses an open file goes by unnoticed: like a
      // coordinator on another machine that survives the file server's. Then it must be safe too.
      Result<Claimed> after = TryStart(files);
      ASSERT_TRUE(after.ok()) << n << ": " << after.error().message;
      ASSERT_TRUE(IsPrefix(after->records, story.written)) << n;
      ASSERT_GE(after->records.size(), story.acknowledged) << n;
      if (untouched) break;
    }
  }
}

// A coordinator dies at one operation of its claim while its machine lives on; the next one's
// machine crashes at any of its own. What the first left unsynced must not lock the third out.
TEST(LedgerCrashTest, ProcessThenMachine) {
  uint64_t operations = 100;
  for (uint64_t n = 1; n <= operations; ++n) {
    for (uint64_t m = kSanitized ? 1 + n % 3 : 1; m <= operations; m += kSanitized ? 3 : 1) {
      for (uint64_t seed = 1; seed <= (kSanitized ? 1 : 4); ++seed) {
        FaultFiles files(seed);
        ASSERT_TRUE(Commit(*Start(files).ledger, {ResultOf(1)}).ok());
        const uint64_t before = files.operations();
        files.FailOperation(n, Error{Code::kInternal, "injected"});
        if (TryStart(files).ok()) operations = std::min(operations, files.operations() - before);
        files.ClearFaults();
        files.FailOperation(m, Error{Code::kInternal, "injected"}, FaultMoment::kAfter);
        (void)TryStart(files).ok();
        files.ClearFaults();
        files.Crash(CrashMode::kLoseSome);
        const Result<Claimed> after = TryStart(files);
        ASSERT_TRUE(after.ok()) << n << " " << m << " " << seed << ": " << after.error().message;
        ASSERT_THAT(after->records, ElementsAre(ResultOf(1)));
      }
    }
  }
  EXPECT_LT(operations, 100u);
}

// A round of several groups was written, but never synced. The successor reads all of it from the
// page cache and begins; then the machine loses it. Or the machine loses parts of it at once.
TEST(LedgerCrashTest, RoundOfSeveralGroupsThatWasNeverSynced) {
  std::vector<std::string> records;
  for (uint64_t i = 0; i < 4; ++i) records.push_back(ResultOf(i, 700 << 10));
  for (uint64_t seed = 1; seed <= (kSanitized ? 3 : 8); ++seed) {
    FaultFiles files(seed);
    Claimed first = Start(files);
    for (const std::string& record : records) first.ledger->AppendEncoded(record);
    files.FailOperation(2, Error{Code::kInternal, "injected"});  // the sync
    ASSERT_FALSE(first.ledger->Flush().ok());
    if (seed == 1) {
      ASSERT_TRUE(Start(files).records == records);
      files.Crash(CrashMode::kLoseAll);
      EXPECT_TRUE(Start(files).records == records);
    } else {
      files.Crash(CrashMode::kLoseSome);
      const Result<Claimed> after = TryStart(files);
      ASSERT_TRUE(after.ok()) << after.error().message;
      EXPECT_TRUE(IsPrefix(after->records, records));
    }
  }
}

// Coordinators start, stall, wake up, lose their machine, in random order. The one that sealed last
// owns the history: its successor replays what it acknowledged, and nothing that it did not write.
TEST(LedgerCrashTest, RandomLives) {
  for (uint64_t seed = 1; seed <= (kSanitized ? 100 : 400); ++seed) {
    FaultRng rng(seed);
    FaultFiles files(seed);
    struct Life {
      Claimed claimed;
      Story story;
    };
    std::vector<std::unique_ptr<Life>> lives;  // newest last; all but the newest are stale
    Story owner;                               // of the newest that sealed
    uint64_t number = 0;
    for (int step = 0; step < 60; ++step) {
      switch (rng.Below(8)) {
        case 0: {
          auto life = std::make_unique<Life>();
          life->claimed = Start(files);
          ASSERT_TRUE(IsPrefix(life->claimed.records, owner.written)) << seed << " " << step;
          ASSERT_GE(life->claimed.records.size(), owner.acknowledged) << seed << " " << step;
          life->story.written = life->claimed.records;
          life->story.acknowledged = life->story.written.size();
          owner = life->story;
          lives.push_back(std::move(life));
          break;
        }
        case 1:
          if (rng.Below(3) == 0) {
            files.Crash(rng.Below(2) == 0 ? CrashMode::kLoseAll : CrashMode::kLoseSome);
            lives.clear();
          }
          break;
        case 2:
          if (!lives.empty()) lives.erase(lives.begin());
          break;
        default: {
          if (lives.empty()) break;
          const size_t which = rng.Below(2) == 0 ? lives.size() - 1 : rng.Below(lives.size());
          Life& life = *lives[which];
          const uint64_t count = rng.Below(4);
          for (uint64_t i = 0; i < count; ++i) {
            const std::string record = ResultOf(++number, rng.Below(3000));
            life.claimed.ledger->AppendEncoded(record);
            life.story.written.push_back(record);
          }
          if (rng.Below(3) != 0) {
            ASSERT_TRUE(life.claimed.ledger->Flush().ok());
            life.story.acknowledged = life.story.written.size();
          }
          if (which == lives.size() - 1) owner = life.story;
        }
      }
    }
  }
}

// After a failed sync the system has forgotten the bytes: a second sync says yes and keeps nothing.
TEST(LedgerFaultTest, FailedSyncIsFinal) {
  for (const Code code : {Code::kInternal, Code::kNoSpace, Code::kUnavailable}) {
    FaultFiles files;
    Claimed first = Start(files);
    first.ledger->AppendEncoded(ResultOf(1));
    files.FailOperation(2, Error{code, "sync: injected"});  // write, sync: room was reserved before
    const Result<uint64_t> flushed = first.ledger->Flush();
    ASSERT_FALSE(flushed.ok());
    EXPECT_EQ(flushed.error().code, Code::kInternal);
    EXPECT_THAT(flushed.error().message, HasSubstr("sync: injected"));
    EXPECT_FALSE(first.ledger->Flush().ok());
    first.ledger->AppendEncoded(ResultOf(2));
    EXPECT_FALSE(first.ledger->Flush().ok());
    EXPECT_FALSE(first.ledger->Begin(std::nullopt, std::nullopt).ok());
  }
}

TEST(LedgerSpaceTest, FullDiskPausesAndGoesOn) {
  for (const bool reserve_works : {true, false}) {
    FaultFiles files;
    files.SetReserveWorks(reserve_works);
    Claimed first = Start(files);
    ASSERT_TRUE(Commit(*first.ledger, {ResultOf(1)}).ok());
    const uint64_t durable = first.ledger->durable();
    files.SetCapacity(files.used() + 1000);
    first.ledger->AppendEncoded(ResultOf(2, 5 << 20));
    for (int i = 0; i < 3; ++i) {
      const Result<uint64_t> flushed = first.ledger->Flush();
      ASSERT_FALSE(flushed.ok());
      EXPECT_EQ(flushed.error().code, Code::kNoSpace);
      EXPECT_EQ(first.ledger->durable(), durable);
      EXPECT_TRUE(!reserve_works || files.Contents(LogOfEpoch(1)).size() == durable);
      first.ledger->AppendEncoded(ResultOf(3 + static_cast<uint64_t>(i)));
    }
    const std::string partly = files.Contents(LogOfEpoch(1));
    files.SetCapacity(std::nullopt);
    ASSERT_TRUE(first.ledger->Flush().ok());
    EXPECT_EQ(first.ledger->durable(), first.ledger->appended());
    // What a failed write left is written again with the same bytes.
    EXPECT_EQ(files.Contents(LogOfEpoch(1)).substr(0, partly.size()), partly);
    files.Crash(CrashMode::kLoseAll);
    EXPECT_THAT(Start(files).records, ElementsAre(ResultOf(1), ResultOf(2, 5 << 20), ResultOf(3),
                                                  ResultOf(4), ResultOf(5)));
  }
}

TEST(LedgerSpaceTest, JobCanEndOnAFullDisk) {
  FaultFiles files;
  Claimed first = Start(files);
  files.SetCapacity(files.used());
  // Fills what was reserved ahead, down to the part that is kept for the end.
  uint64_t number = 0;
  std::vector<std::string> expected;
  Status status;
  while (status.ok()) {
    expected.push_back(ResultOf(++number, 100000));
    status = Commit(*first.ledger, {expected.back()});
  }
  EXPECT_EQ(status.error().code, Code::kNoSpace);
  EXPECT_GT(number, 10u);
  const std::string verdict =
      Encoded(job::VerdictRecord{job::Outcome::kFailed, 1, "NoSpace", "full"});
  // Not past results that wait: they come first in the log.
  EXPECT_EQ(Commit(*first.ledger, {verdict}).error().code, Code::kNoSpace);

  FaultFiles others;
  Claimed ending = Start(others);
  others.SetCapacity(others.used());
  // With what each has used in front of it, as a coordinator writes it.
  const std::string usage = Encoded(job::UnknownRecord{job::kUsageType, std::string(42, 'u')});
  while (Commit(*ending.ledger, {usage, FailureOf(++number)}).ok()) {
    ASSERT_LT(ending.ledger->durable(), uint64_t{16} << 20);
  }
  // All that was ever reserved was used.
  EXPECT_LT(others.used() - others.Contents(LogOfEpoch(1)).size(), 200u);
}

TEST(LedgerSpaceTest, ReserveIsKeptForTheEnd) {
  FaultFiles files;
  Claimed first = Start(files);
  files.SetCapacity(files.used());
  std::vector<std::string> expected;
  // Results of one byte less than what is left down to the last 256 KiB.
  const uint64_t room = files.used() - first.ledger->durable();
  ASSERT_GT(room, uint64_t{256} << 10);
  expected.push_back(ResultOf(1, room - (256 << 10) - 200));
  ASSERT_TRUE(Commit(*first.ledger, {expected.back()}).ok());
  const std::string verdict =
      Encoded(job::VerdictRecord{job::Outcome::kFailed, 1, "NoSpace", "full"});
  for (const std::string& record : {FailureOf(1), FailureOf(2), verdict}) {
    ASSERT_TRUE(Commit(*first.ledger, {record}).ok());
    expected.push_back(record);
  }
  EXPECT_EQ(Commit(*first.ledger, {ResultOf(2)}).error().code, Code::kNoSpace);
  files.SetCapacity(std::nullopt);
  files.Crash(CrashMode::kLoseAll);
  EXPECT_EQ(Start(files).records, expected);
}

TEST(LedgerSpaceTest, BeginOnAFullDiskCanBeRepeated) {
  FaultFiles files;
  Result<Claimed> first = TryClaim(files);
  files.SetCapacity(files.used());
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(first->ledger->Begin(TestSettings(), std::nullopt).error().code, Code::kNoSpace);
  }
  files.SetCapacity(std::nullopt);
  ASSERT_TRUE(first->ledger->Begin(TestSettings(), std::nullopt).ok());
  EXPECT_THAT(Start(files).records, ElementsAre(Encoded(TestSettings())));
}

// What a crashed epoch had reserved, and could not give back itself.
TEST(LedgerSpaceTest, OnlyTheNewestEpochReservesRoom) {
  FaultFiles files;
  uint64_t one = 0;
  for (int i = 0; i < 10; ++i) {
    Claimed claimed = Start(files);
    ASSERT_TRUE(Commit(*claimed.ledger, {ResultOf(static_cast<uint64_t>(i))}).ok());
    if (i == 0) one = files.used();
    EXPECT_LT(files.used(), one + (uint64_t{64} << 10));
    files.Crash(CrashMode::kLoseAll);
  }
  const Claimed last = Start(files);
  EXPECT_EQ(last.records.size(), 10u);
}

TEST(LedgerSpaceTest, AnEpochThatEndsGivesItsReserveBack) {
  FaultFiles files;
  {
    Claimed first = Start(files);
    ASSERT_TRUE(Commit(*first.ledger, {ResultOf(1)}).ok());
    EXPECT_GT(files.used(), uint64_t{256} << 10);
    first.ledger->GiveBackReserve();
  }
  EXPECT_LT(files.used(), uint64_t{8} << 10);
  EXPECT_THAT(Start(files).records, ElementsAre(ResultOf(1)));
}

// The disk is full, and all the room that is left for the job's end is a crashed epoch's.
TEST(LedgerSpaceTest, TheReserveOfACrashedEpochIsPassedOn) {
  FaultFiles files;
  {
    Claimed first = Start(files);
    ASSERT_TRUE(Commit(*first.ledger, {ResultOf(1)}).ok());
    files.Crash(CrashMode::kLoseAll);
  }
  files.SetCapacity(files.used() + 2000);
  Claimed second = Start(files);
  const std::string verdict =
      Encoded(job::VerdictRecord{job::Outcome::kFailed, 1, "NoSpace", "full"});
  ASSERT_TRUE(Commit(*second.ledger, {ResultOf(2, 100'000), verdict}).ok());
  files.Crash(CrashMode::kLoseAll);
  files.SetCapacity(std::nullopt);
  EXPECT_THAT(Start(files).records, ElementsAre(ResultOf(1), ResultOf(2, 100'000), verdict));
}

TEST(LedgerSpaceTest, AFullDiskIsToldWithWhatIsNeeded) {
  FaultFiles files;
  Claimed first = Start(files);
  ASSERT_TRUE(Commit(*first.ledger, {ResultOf(1)}).ok());
  files.SetCapacity(files.used() + 1000);
  const Status full = Commit(*first.ledger, {ResultOf(2, 5 << 20)});
  ASSERT_EQ(full.error().code, Code::kNoSpace);
  EXPECT_THAT(full.error().message,
              MatchesRegex("the disk of .* is full, [0-9]+ KiB more are needed \\(.*\\)"));
}

// Room is reserved in steps: hardly ever, and still when only the exact need is there.
TEST(LedgerSpaceTest, ReservesSeldom) {
  FaultFiles files;
  Claimed first = Start(files);
  const uint64_t before = files.operations();
  for (uint64_t i = 0; i < 1000; ++i) ASSERT_TRUE(Commit(*first.ledger, {ResultOf(i, 1000)}).ok());
  EXPECT_LE(files.operations() - before, 2000u + 1u);  // a write and a sync each
  files.SetCapacity(files.used() + (300 << 10));
  EXPECT_TRUE(Commit(*first.ledger, {ResultOf(1, 3 << 20)}).ok());
}

}  // namespace
}  // namespace parallelrun::ledger
