// The ledger on the real disk.
#include <gmock/gmock.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "tests/support/temp_folder.h"
#include "tests/unit/ledger/ledger_testing.h"

namespace parallelrun::ledger {
namespace {

using ::testing::ElementsAre;

class LedgerFilesTest : public ::testing::Test {
 protected:
  LedgerOptions Options() const {
    LedgerOptions options = TestOptions();
    options.state_folder = folder_ + "/deep/state";
    options.output_folder = folder_ + "/out";
    return options;
  }

  const TempFolder temp_;
  const std::string folder_ = temp_.path();
  std::unique_ptr<Files> files_ = MakeSystemFiles();
};

TEST_F(LedgerFilesTest, LivesOverRestarts) {
  std::string token;
  {
    Result<Claimed> first = TryClaim(*files_, Options());
    ASSERT_TRUE(first.ok()) << first.error().message;
    ASSERT_TRUE(first->ledger->Begin(TestSettings(), std::nullopt).ok());
    ASSERT_TRUE(Commit(*first->ledger, {ResultOf(1)}).ok());
    ASSERT_TRUE(Commit(*first->ledger, {ResultOf(2), FailureOf(3)}).ok());
    token = first->ledger->token_path();
    EXPECT_TRUE(std::filesystem::exists(token));
  }
  Result<Claimed> second = TryClaim(*files_, Options());
  ASSERT_TRUE(second.ok()) << second.error().message;
  EXPECT_EQ(second->ledger->epoch(), 2u);
  EXPECT_THAT(second->records,
              ElementsAre(Encoded(TestSettings()), ResultOf(1), ResultOf(2), FailureOf(3)));
  ASSERT_TRUE(second->ledger->Begin(std::nullopt, std::nullopt).ok());
  for (size_t i = 0; i < second->places.size(); ++i) {
    EXPECT_EQ(*second->ledger->Read(second->places[i]), second->records[i]);
  }
  EXPECT_FALSE(std::filesystem::exists(token));
  EXPECT_EQ(files_->Rename(token, folder_ + "/out/rows.txt").error().code, Code::kNotFound);
}

TEST_F(LedgerFilesTest, ReservedRoomIsNotPartOfTheLog) {
  Result<Claimed> first = TryClaim(*files_, Options());
  ASSERT_TRUE(first->ledger->Begin(TestSettings(), std::nullopt).ok());
  EXPECT_EQ(std::filesystem::file_size(folder_ + "/deep/state/epochs/000001.log"),
            first->ledger->durable());
}

// Appends on one thread, flushes on another, as the coordinator does.
TEST_F(LedgerFilesTest, AppendsWhileFlushing) {
  std::vector<std::string> expected;
  {
    Result<Claimed> first = TryClaim(*files_, Options());
    Ledger& ledger = *first->ledger;
    ASSERT_TRUE(ledger.Begin(std::nullopt, std::nullopt).ok());
    std::atomic<bool> stop = false;
    std::thread flusher([&] {
      while (!stop) ASSERT_TRUE(ledger.Flush().ok());
    });
    for (uint64_t i = 0; i < 20000; ++i) {
      expected.push_back(ResultOf(i));
      const auto appended = ledger.AppendEncoded(expected.back());
      const Result<std::string> rows = ledger.Read(appended.rows);
      ASSERT_TRUE(rows.ok() || rows.error().code == Code::kUnavailable);
    }
    stop = true;
    flusher.join();
    ASSERT_TRUE(ledger.Flush().ok());
  }
  const Result<Claimed> second = TryClaim(*files_, Options());
  ASSERT_TRUE(second.ok()) << second.error().message;
  EXPECT_TRUE(second->records == expected);
}

}  // namespace
}  // namespace parallelrun::ledger
