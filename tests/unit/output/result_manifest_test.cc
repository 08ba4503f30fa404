#include "output/result_manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/disk_files.h"
#include "tests/support/temp_folder.h"

namespace parallelrun::output {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ResultManifestTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(out_);
    fs::create_directories(state_);
    own_.folders = {out_ + "/logs", out_ + "/in"};
  }
  void Put(const std::string& name, const std::string& text = "x") const {
    const fs::path path = fs::path(out_) / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  ResultManifest Of(uint64_t run, size_t most = ResultManifest::kMostNames) const {
    return {DiskFiles(), {out_, state_, own_}, run, most};
  }
  // A run that leaves these.
  void Run(uint64_t run, const std::vector<std::string>& names,
           size_t most = ResultManifest::kMostNames) const {
    ResultManifest manifest = Of(run, most);
    ASSERT_TRUE(manifest.Begin().ok());
    for (const std::string& name : names) Put(name);
    ASSERT_TRUE(manifest.End().ok());
  }
  // What is there once the next run has begun, sorted.
  std::vector<std::string> AfterTheNext() const {
    EXPECT_TRUE(Of(99).Begin().ok());
    return There();
  }
  std::vector<std::string> There() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(out_)) {
      names.push_back(entry.path().lexically_relative(out_).string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  const TempFolder temp_;
  const std::string out_ = temp_.path() + "/out";
  const std::string state_ = temp_.path() + "/state";
  OwnPlaces own_;
};

TEST_F(ResultManifestTest, WhatTheRunBeforeHasLeftIsRemovedWithItsFolders) {
  Run(1, {"a.csv", "deep/er/b.csv", "deep/c.csv"});
  const Result<uint64_t> removed = Of(2).Begin();
  ASSERT_TRUE(removed.ok());
  EXPECT_EQ(*removed, 3U);
  EXPECT_THAT(There(), IsEmpty());
}

TEST_F(ResultManifestTest, NamesAreBytes) {
  Run(1, {"of two\nlines", "not \xff utf-8", "with %41 and \"quotes\"", "\xc3\xa4/b"});
  EXPECT_THAT(AfterTheNext(), IsEmpty());
}

TEST_F(ResultManifestTest, WhatLayThereBeforeStaysHoweverOften) {
  Put("of-somebody.csv");
  fs::create_directories(out_ + "/empty");
  for (const uint64_t run : {1, 2, 3}) {
    Run(run, {"a.csv", "empty/b.csv"});
    Put("of-somebody.csv", "changed");
  }
  EXPECT_THAT(AfterTheNext(), ElementsAre("empty", "of-somebody.csv"));
}

TEST_F(ResultManifestTest, WhatCameOrChangedAfterwardsStays) {
  Run(1, {"a.csv", "deep/b.csv", "deep/c.csv", "d.csv"});
  Put("new.csv");
  Put("deep/b.csv", "longer than before");
  const fs::path same_size = out_ + "/d.csv";
  fs::last_write_time(same_size, fs::last_write_time(same_size) + std::chrono::milliseconds(1));
  EXPECT_THAT(AfterTheNext(), ElementsAre("d.csv", "deep", "deep/b.csv", "new.csv"));
}

TEST_F(ResultManifestTest, AnEmptyFolderThatLayThereStays) {
  fs::create_directories(out_ + "/empty");
  Run(1, {"a.csv"});
  EXPECT_THAT(AfterTheNext(), ElementsAre("empty"));
}

TEST_F(ResultManifestTest, AFileOfAnotherSizeStaysWhateverItsTime) {
  Run(1, {"a.csv"});
  const fs::path file = out_ + "/a.csv";
  const auto time = fs::last_write_time(file);
  Put("a.csv", "longer");
  fs::last_write_time(file, time);
  EXPECT_THAT(AfterTheNext(), ElementsAre("a.csv"));
}

TEST_F(ResultManifestTest, ARunThatIsContinuedDoesNotTakeWhatCameInBetween) {
  Run(1, {"a.csv"});
  Put("of-somebody.csv");
  ResultManifest continued = Of(1);
  ASSERT_TRUE(continued.GoOn().ok());
  Put("b.csv");
  ASSERT_TRUE(continued.End().ok());
  EXPECT_THAT(AfterTheNext(), ElementsAre("of-somebody.csv"));
}

TEST_F(ResultManifestTest, ARunThatWasCutOffIsContinuedWithWhatItHasWritten) {
  ASSERT_TRUE(Of(1).Begin().ok());
  Put("a.csv");
  ASSERT_TRUE(Of(1).GoOn().ok());
  Put("b.csv");
  ASSERT_TRUE(Of(1).End().ok());
  EXPECT_THAT(AfterTheNext(), IsEmpty());
}

TEST_F(ResultManifestTest, OfARunThatWasNotSeenToItsEndNothingIsRemoved) {
  ASSERT_TRUE(Of(1).Begin().ok());
  Put("a.csv");
  EXPECT_THAT(AfterTheNext(), ElementsAre("a.csv"));
}

TEST_F(ResultManifestTest, ARunThatNobodySawBeginNamesNothing) {
  Put("a.csv");
  ASSERT_TRUE(Of(1).End().ok());
  ASSERT_TRUE(Of(1).GoOn().ok());
  EXPECT_THAT(AfterTheNext(), ElementsAre("a.csv"));
  Put("b.csv");
  ASSERT_TRUE(Of(7).End().ok());  // another run's beginning is no beginning of this one
  EXPECT_THAT(AfterTheNext(), ElementsAre("a.csv", "b.csv"));
}

TEST_F(ResultManifestTest, ARunIsKnownToHaveBegunByItsOwnManifestAlone) {
  EXPECT_FALSE(Of(1).IsOfAnotherRun());  // of a run that an older release began there is none
  Run(1, {"a.csv"});
  EXPECT_FALSE(Of(1).IsOfAnotherRun());
  EXPECT_TRUE(Of(2).IsOfAnotherRun());
  std::ofstream(state_ + "/manifest.jsonl") << "{}\n";
  EXPECT_FALSE(Of(2).IsOfAnotherRun());
}

TEST_F(ResultManifestTest, TheJobsOwnPlacesAreNoResults) {
  Run(1, {"logs/job_result.txt", "in/a.txt", ".parallelrun-claim", "lost+found/x", "a.csv"});
  EXPECT_THAT(AfterTheNext(), ElementsAre(".parallelrun-claim", "in", "in/a.txt", "logs",
                                          "logs/job_result.txt", "lost+found", "lost+found/x"));
}

// The next run may read what the one before has written.
TEST_F(ResultManifestTest, WhatHasBecomeTheJobsOwnStays) {
  Run(1, {"parts/a.csv", "b.csv"});
  own_.folders.push_back(out_ + "/parts");
  EXPECT_THAT(AfterTheNext(), ElementsAre("parts", "parts/a.csv"));
}

TEST_F(ResultManifestTest, NothingIsRemovedThroughALinkOrOutOfTheFolder) {
  Run(1, {"deep/a.csv"});
  fs::create_directories(temp_.path() + "/elsewhere");
  fs::rename(out_ + "/deep/a.csv", temp_.path() + "/elsewhere/a.csv");
  fs::remove(out_ + "/deep");
  fs::create_directory_symlink(temp_.path() + "/elsewhere", out_ + "/deep");
  // Somebody who writes into the state folder names what lies elsewhere, exactly as it is.
  const std::string other = temp_.path() + "/other/b.csv";
  fs::create_directories(temp_.path() + "/other");
  fs::create_directories(temp_.path() + "/empty");
  std::ofstream(other) << "x";
  struct stat facts {};
  ASSERT_EQ(stat(other.c_str(), &facts), 0);
  const int64_t modified = facts.st_mtim.tv_sec * 1'000'000'000 + facts.st_mtim.tv_nsec;
  std::ofstream manifest(state_ + "/manifest.jsonl", std::ios::app);
  for (const char* path : {"..%2Fother%2Fb.csv", "deep%2F..%2Fother%2Fb.csv"}) {
    manifest << R"({"path":")" << path << R"(","bytes":1,"modifiedNs":)" << modified << "}\n";
  }
  manifest << R"({"path":"..%2Fempty%2F"})"
           << "\n";
  manifest.close();
  EXPECT_THAT(AfterTheNext(), ElementsAre("deep"));
  EXPECT_TRUE(fs::exists(temp_.path() + "/elsewhere/a.csv"));
  EXPECT_TRUE(fs::exists(other));
  EXPECT_TRUE(fs::exists(temp_.path() + "/empty"));
}

TEST_F(ResultManifestTest, LinksAreNotTheRunsToRemove) {
  ResultManifest manifest = Of(1);
  ASSERT_TRUE(manifest.Begin().ok());
  fs::create_symlink("/nonexistent", out_ + "/link");
  ASSERT_TRUE(manifest.End().ok());
  EXPECT_THAT(AfterTheNext(), ElementsAre("link"));
}

TEST_F(ResultManifestTest, WhatIsBeyondTheBoundStays) {
  Run(1, {"a", "b", "c"}, 2);
  EXPECT_EQ(AfterTheNext().size(), 1U);
}

TEST_F(ResultManifestTest, WhereTooMuchLiesThereNothingIsRemoved) {
  for (const char* name : {"a", "b", "c"}) Put(name);
  EXPECT_FALSE(Of(1, 2).Begin().ok());
  Put("d");
  ASSERT_TRUE(Of(1, 2).End().ok());
  EXPECT_EQ(AfterTheNext().size(), 4U);
}

TEST_F(ResultManifestTest, OneThatCannotBeUnderstoodRemovesNothing) {
  for (const char* text : {"", "{}", "[1]\n", "{\"manifest\":2,\"run\":\"1\"}\n{\"path\":\"a\"}\n",
                           "{\"path\":\"a\"}\n", "\xff\n", "{\"manifest\":1}\n{\"path\":\"%zz\"}\n",
                           "{\"manifest\":1}\n{\"path\":\"\"}\n"}) {
    Put("a");
    std::ofstream(state_ + "/manifest.jsonl") << text;
    EXPECT_THAT(AfterTheNext(), ElementsAre("a")) << text;
  }
}

}  // namespace
}  // namespace parallelrun::output
