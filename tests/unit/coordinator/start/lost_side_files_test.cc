#include "coordinator/start/lost_side_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/fmt/fmt.h>

#include <memory>
#include <string>
#include <vector>

#include "ledger/ledger.h"
#include "tests/support/fault_files.h"

namespace parallelrun::coordinator {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kOut[] = "/out";
constexpr char kStaged[] = ".parallelrun-staged-0000000000000007";

// Of the mini-batches 0, 1 and 2 each has left a file of three bytes, 1 in parts; 3 has left none.
class LostSideFilesTest : public ::testing::Test {
 protected:
  LostSideFilesTest() {
    ledger::LedgerOptions options;
    options.state_folder = "/state";
    options.nonce = 1;
    options.new_run_id = 7;
    auto claimed = ledger::Ledger::Claim(
        files_, options,
        [](const job::Record&, const job::Place&, const job::Place&) { return Status(); });
    EXPECT_TRUE(claimed.ok());
    ledger_ = std::move(*claimed);
    job::SettingsRecord settings;
    settings.generation = 1;
    settings.plan_settings = R"({"output":{"sideFiles":"Staged"}})";
    EXPECT_TRUE(ledger_->Begin(settings, std::nullopt).ok());
    EXPECT_TRUE(state_.Apply(settings, {}, {}).ok());
    job::PlanChunkRecord chunk;
    chunk.content = job::RankChunk{4};
    Append(chunk);
    for (job::BatchId id = 0; id < 3; ++id) {
      const std::string rows = ListOfOne(id) + "\nrow\n";
      const size_t parts = id == 1 ? 20 : 0;
      if (parts > 0) {
        Append(job::RowsRecord{id, {1, 10 + id}, std::string_view(rows).substr(0, parts)});
      }
      Succeed(id, rows.substr(parts));
      files_.Put(PathOf(id), "abc");
    }
    Succeed(3, "{}\n");
    EXPECT_TRUE(ledger_->Flush().ok());
  }

  static std::string PathOf(job::BatchId id) {
    return fmt::format("{}/{}/process000-1f/{}/{}.txt", kOut, kStaged, id, id);
  }
  std::vector<job::BatchId> Lost() const {
    const auto records =
        ResultsWithoutSideFiles(*ledger_, state_, HaveStagedFiles(files_, kOut, kStaged));
    EXPECT_TRUE(records.ok());
    std::vector<job::BatchId> ids;
    for (const job::AgainRecord& record : *records) {
      EXPECT_EQ(record.node, 4u);
      EXPECT_EQ(record.process, 5u);
      for (const job::AgainRecord::Result& result : record.results) {
        EXPECT_EQ(result.items_succeeded, 1u);
        EXPECT_EQ(result.row_count, 2u);
        ids.push_back(result.id);
      }
    }
    return ids;
  }
  void Append(const job::Record& record) {
    const auto at = ledger_->Append(record);
    ASSERT_TRUE(state_.Apply(record, at.record, at.rows).ok());
  }

  FaultFiles files_;
  std::unique_ptr<ledger::Ledger> ledger_;
  job::JobState state_;

 private:
  void Succeed(job::BatchId id, const std::string& rows) {
    job::ResultRecord result;
    result.id = id;
    result.fence = {1, 10 + id};
    result.node = 4;
    result.process = 5;
    result.items_succeeded = 1;
    result.row_count = 2;
    result.rows = rows;
    Append(result);
  }
  static std::string ListOfOne(job::BatchId id) {
    return fmt::format(R"({{"folder":"process000-1f/{}","files":[["{}.txt",3,"{}"]]}})", id, id,
                       std::string(64, '0'));
  }
};

TEST_F(LostSideFilesTest, AreThoseOfNeitherSizeNorPlace) {
  EXPECT_THAT(Lost(), IsEmpty());
  files_.Drop(PathOf(0));
  EXPECT_THAT(Lost(), ElementsAre(0));
  files_.Put("/out/0.txt", "abc");  // it was moved, before its coordinator died
  EXPECT_THAT(Lost(), IsEmpty());
  files_.Put("/out/0.txt", "another");
  files_.Put(PathOf(1), "ab");
  EXPECT_THAT(Lost(), ElementsAre(0, 1));
}

TEST_F(LostSideFilesTest, AreOfResultsThatAreInForce) {
  files_.Drop(PathOf(2));
  Append(job::AgainRecord{4, 5, {{2, 1, 2}}});
  EXPECT_THAT(Lost(), IsEmpty());
}

}  // namespace
}  // namespace parallelrun::coordinator
