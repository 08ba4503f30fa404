// Ledgers of other formats: of format 1, as a program of before wrote them
// (tests/unit/data/ledger_format_1: two epochs, of which the second ended without a mark behind its
// last group), of later ones, and records of types that are not known yet.
#include <gmock/gmock.h>

#include <xxhash.h>

#include <fstream>
#include <iterator>

#include "base/bytes.h"
#include "job/job_state.h"
#include "tests/support/fault_files.h"
#include "tests/support/source_folder.h"
#include "tests/unit/ledger/ledger_testing.h"

namespace parallelrun::ledger {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Stored(uint32_t epoch) {
  std::ifstream file(SourceFolder() + "tests/unit/data/ledger_format_1/epochs/" + LogName(epoch),
                     std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void PutFormat1(FaultFiles& files) {
  ASSERT_TRUE(files.MakeFolders(kTestLogs).ok());
  for (const uint32_t epoch : {1U, 2U}) {
    ASSERT_GT(Stored(epoch).size(), kLogHeaderSize);
    files.Put(LogOfEpoch(epoch), Stored(epoch));
  }
  files.Put("/job/state/begun", "");
}

uint32_t FormatOf(const FaultFiles& files, uint32_t epoch) {
  const std::string log = files.Contents(LogOfEpoch(epoch));
  Decoder from(log);
  from.Bytes(8);
  return from.U32();
}

struct Job {
  job::JobState state;
  std::unique_ptr<Ledger> ledger;
};

Job Continue(FaultFiles& files) {
  Job job;
  Result<std::unique_ptr<Ledger>> ledger = Ledger::Claim(
      files, TestOptions(),
      [&job](const job::Record& record, const job::Place& place, const job::Place& rows) {
        return job.state.Apply(record, place, rows);
      });
  EXPECT_TRUE(ledger.ok()) << ledger.error().message;
  job.ledger = std::move(*ledger);
  EXPECT_TRUE(job.ledger->Begin(std::nullopt, std::nullopt).ok());
  return job;
}

std::vector<std::string> Rows(const Job& job) {
  std::vector<std::string> rows;
  for (job::BatchId id = 0; id < job.state.batches().size(); ++id) {
    for (const job::Place& place : job.state.RowsOf(id)) rows.push_back(*job.ledger->Read(place));
  }
  return rows;
}

void ExpectFormat1(const Job& job) {
  const job::JobState& state = job.state;
  const job::JobCounts& counts = state.counts();
  EXPECT_EQ(counts.planned, 8U);
  EXPECT_EQ(counts.succeeded, 7U);
  EXPECT_EQ(counts.failed, 1U);
  EXPECT_EQ(counts.items_planned, 33U);
  EXPECT_EQ(counts.items_succeeded, 24U);
  EXPECT_EQ(counts.items_failed, 8U);
  EXPECT_EQ(counts.items_skipped, 1U);
  EXPECT_EQ(counts.items_missing, 1U);
  EXPECT_EQ(counts.items_isolated, 2U);
  EXPECT_EQ(counts.rows, 23U);
  EXPECT_EQ(counts.lost, 1U);
  EXPECT_EQ(state.batch(4).losses, 2U);
  EXPECT_EQ(state.companies().Of(4), 1U);
  EXPECT_EQ(state.types().at(0), R"({"columns":[{"name":"id","type":"integer"}],"all":true})");
  EXPECT_EQ(state.header(), "id name\n");
  EXPECT_EQ(state.settings()->resource_uid, "uid");
  EXPECT_TRUE(state.settings()->may_replace);
  EXPECT_EQ(state.verdict()->reason, "CompletedWithFailures");
  EXPECT_EQ(state.published()->path, "/out/rows.txt");
  EXPECT_EQ(job.ledger->run_id(), kTestRun);
  EXPECT_THAT(Rows(job), ElementsAre("zero\n", "one\n", "two, first part\n", "two, second part\n",
                                     "three, first piece\n", "five\n", "seven\n"));
}

TEST(LedgerFormatTest, ALedgerOfFormat1GoesOnInThisOne) {
  FaultFiles files;
  PutFormat1(files);
  {
    const Job job = Continue(files);
    EXPECT_EQ(job.ledger->epoch(), 3U);
    ExpectFormat1(job);
    // The verdict lay beyond the mark, in a log of format 1.
    EXPECT_EQ(FormatOf(files, 3), 2U);
    job::SettingsRecord again = TestSettings(2);
    again.resource_uid = "another";
    ASSERT_TRUE(Commit(*job.ledger, {Encoded(again), Encoded(job::LostRecord{4, {3, 1}})}).ok());
    const std::string rows = "four\n";
    ASSERT_TRUE(
        Commit(*job.ledger,
               {Encoded(job::ResultRecord{
                   {.run_ns = 5, .items_succeeded = 5, .row_count = 1}, 4, {3, 2}, 0, 0, rows})})
            .ok());
  }
  EXPECT_EQ(FormatOf(files, 1), 1U);
  EXPECT_EQ(files.Contents(LogOfEpoch(1)), Stored(1)) << "what was written stays as it is";
  EXPECT_EQ(files.Contents(LogOfEpoch(2)), Stored(2));
  const Job next = Continue(files);
  EXPECT_EQ(next.ledger->epoch(), 4U);
  EXPECT_EQ(next.state.counts().succeeded, 7U);
  EXPECT_EQ(next.state.counts().split, 1U) << "the piece that had failed is tried again";
  EXPECT_EQ(next.state.batch(4).losses, 1U);
  EXPECT_EQ(Rows(next)[5], "four\n");
  EXPECT_EQ(Rows(next).size(), 8U);
}

TEST(LedgerFormatTest, ACrashAnywhereLosesNothingOfFormat1) {
  for (uint64_t operation = 1; operation < 100; ++operation) {
    SCOPED_TRACE(operation);
    FaultFiles files(operation);
    PutFormat1(files);
    files.FailOperation(operation, {Code::kInternal, "an error"}, FaultMoment::kAfter);
    const bool whole = TryStart(files).ok();
    files.ClearFaults();
    files.Crash(CrashMode::kLoseSome);
    ExpectFormat1(Continue(files));
    if (whole) return;  // the last operation was reached
  }
  FAIL() << "there was always one operation more";
}

// As a later version writes the header of a log.
void MakeFormat(FaultFiles& files, uint32_t format, const std::string& version) {
  const std::string log = files.Contents(LogOfEpoch(1));
  std::string header = log.substr(0, 8);
  Encoder to(header);
  to.U32(format);
  to.Bytes(std::string_view(log).substr(12, 20));
  to.Bytes(version + std::string(24 - version.size(), '\0'));
  to.U64(XXH3_64bits(header.data(), header.size()));
  files.Put(LogOfEpoch(1), header + log.substr(kLogHeaderSize));
}

TEST(LedgerFormatTest, ALaterFormatIsRefusedByTheVersionThatReadsIt) {
  FaultFiles files;
  Start(files);
  MakeFormat(files, 3, "9.8.7");
  const std::string before = files.Contents(LogOfEpoch(1));
  const Result<Claimed> claimed = TryClaim(files);
  ASSERT_FALSE(claimed.ok());
  EXPECT_EQ(claimed.error().code, Code::kInvalid);
  EXPECT_THAT(claimed.error().message,
              AllOf(HasSubstr(LogOfEpoch(1)), HasSubstr("format 3"), HasSubstr("formats 1 to 2"),
                    HasSubstr("use parallelrun 9.8.7, which wrote it, or a later one")));
  EXPECT_EQ(files.Contents(LogOfEpoch(1)), before);
  EXPECT_FALSE(files.Has(LogOfEpoch(2)));
  const auto nothing = [](const job::Record&, const job::Place&, const job::Place&) {
    return Status();
  };
  EXPECT_EQ(Ledger::Inspect(files, "/job/state", nothing).error().code, Code::kInvalid);
}

TEST(LedgerFormatTest, TheVersionOfALaterFormatIsNotTrusted) {
  FaultFiles files;
  Start(files);
  MakeFormat(files, 4'000'000'000, "\x1b[2J\n");
  EXPECT_THAT(TryClaim(files).error().message, AllOf(Not(HasSubstr("\x1b")), Not(HasSubstr("\n"))));
  MakeFormat(files, 3, "");
  EXPECT_THAT(TryClaim(files).error().message, HasSubstr("the version of parallelrun that wrote"));
  MakeFormat(files, 0, "");
  EXPECT_EQ(TryClaim(files).error().code, Code::kInvalid);
}

std::string OfType(uint8_t type, const std::string& body) {
  return Encoded(job::UnknownRecord{type, body});
}

// A program of the same format that knows more types was at work in between.
TEST(LedgerFormatTest, RecordsOfUnknownTypesArePassedOverAndCopied) {
  FaultFiles files;
  PutFormat1(files);
  std::vector<std::string> records = {OfType(130, "a key"), OfType(128, ""), ResultOf(9),
                                      OfType(255, std::string(1000, 'x'))};
  {
    const Claimed first = Start(files);
    ASSERT_TRUE(Commit(*first.ledger, {records[0], records[1]}).ok());
    ASSERT_TRUE(Commit(*first.ledger, {records[2], records[3]}).ok());  // beyond the mark
  }
  for (const uint32_t epoch : {4U, 5U}) {  // each copies what the one before has copied
    SCOPED_TRACE(epoch);
    const Claimed next = Start(files);
    ASSERT_GE(next.records.size(), 4U);
    EXPECT_THAT(std::vector<std::string>(next.records.end() - 4, next.records.end()),
                ElementsAre(records[0], records[1], records[2], records[3]));
    EXPECT_EQ(next.places.back().epoch, epoch);
    EXPECT_EQ(*next.ledger->Read(next.places.back()), records[3]);
  }
}

TEST(LedgerFormatTest, RecordsOfUnknownTypesChangeNothing) {
  FaultFiles files;
  PutFormat1(files);
  {
    const Claimed first = Start(files);
    for (int type = 128; type < 256; ++type) {
      ASSERT_TRUE(Commit(*first.ledger, {OfType(static_cast<uint8_t>(type), "more")}).ok());
    }
  }
  ExpectFormat1(Continue(files));
}

TEST(LedgerFormatTest, ATypeThatMustBeKnownIsCorruption) {
  for (const char type : {'\0', '\x10', '\x7f'}) {
    FaultFiles files;
    {
      const Claimed first = Start(files);
      std::string record = OfType(128, "more");
      record[0] = type;
      ASSERT_TRUE(Commit(*first.ledger, {record}).ok());
    }
    EXPECT_EQ(TryClaim(files).error().code, Code::kCorrupt) << int{type};
  }
}

}  // namespace
}  // namespace parallelrun::ledger
