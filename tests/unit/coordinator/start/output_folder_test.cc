#include "coordinator/start/output_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "output/output_claim.h"
#include "tests/support/disk_files.h"
#include "tests/support/temp_folder.h"

namespace parallelrun::coordinator {
namespace {

namespace fs = std::filesystem;

class OutputFolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(out_);
    own_.folders = {out_ + "/job/logs", out_ + "/job/state", out_ + "/in"};
    own_.made = {out_ + "/side", out_ + "/deep/er"};
  }
  void Put(const std::string& name) const {
    const fs::path path = fs::path(out_) / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << "x";
  }
  std::string Found() const {
    const Result<std::string> found = FirstOfOthers(DiskFiles(), out_, own_);
    EXPECT_TRUE(found.ok());
    return found.ok() ? *found : found.error().message;
  }

  const TempFolder temp_;
  const std::string out_ = temp_.path() + "/out";
  output::OwnPlaces own_;
};

TEST_F(OutputFolderTest, WhatIsTheJobsOwnDoesNotCount) {
  EXPECT_EQ(Found(), "");
  Put("job/logs/job_result.txt");
  Put("job/state/epochs/000001.log");
  Put("in/a.txt");
  Put(".parallelrun-claim");
  Put(".parallelrun-claim.0123456789abcdef");
  fs::create_directories(out_ + "/lost+found");
  fs::create_directories(out_ + "/side");
  fs::create_directories(out_ + "/deep/er");
  EXPECT_EQ(Found(), "");
}

TEST(OwnPlaces, AreTheFoldersThatArgumentsName) {
  CoordinatorConfig config;
  config.job.spec.arguments = {"--a=$(output)/a", "--b", "${{ output }}/b/c", "$${{output}}/d"};
  JobLayout layout;
  layout.output_folder = "/out";
  EXPECT_THAT(OwnPlacesOf(config, layout).made, ::testing::ElementsAre("/out/a", "/out/b/c"));
}

TEST_F(OutputFolderTest, AFolderOfTheJobThatHoldsTheOutputHidesNothing) {
  own_.folders = {temp_.path(), out_, ""};
  Put("part-0.csv");
  EXPECT_EQ(Found(), "part-0.csv");
}

TEST_F(OutputFolderTest, AllElseDoes) {
  for (const char* name :
       {"part-0.csv", "side/part-0.csv", "deep/er/a", "deep/b", "job/output.csv", ".hidden",
        ".parallelrun-claim.mine", "job/lost+found", "job/.parallelrun-claim"}) {
    Put(name);
    EXPECT_EQ(Found(), name);
    fs::remove(fs::path(out_) / name);
  }
  fs::create_directories(out_ + "/empty");
  EXPECT_EQ(Found(), "empty");
}

TEST_F(OutputFolderTest, LinksAreNotFollowed) {
  fs::create_directories(temp_.path() + "/elsewhere/logs");
  std::ofstream(temp_.path() + "/elsewhere/other.txt") << "x";
  fs::create_directory_symlink(temp_.path() + "/elsewhere", out_ + "/job");
  EXPECT_EQ(Found(), "");  // the way to the logs
  fs::create_symlink("/nowhere", out_ + "/link");
  EXPECT_EQ(Found(), "link");
}

// Its state was lost with a pod of its own: what its script has written by then is no reason to
// refuse it.
TEST_F(OutputFolderTest, AJobWithEphemeralStateThatHadTheOutputBeforeGoesOn) {
  CoordinatorConfig config;
  config.resource_uid = "uid";
  JobLayout layout;
  layout.output_folder = out_;
  Put("part-0.csv");
  output::OutputOwner owner;
  owner.uid = "uid";
  std::ofstream(out_ + "/.parallelrun-claim") << output::ClaimText(owner);
  NewRun kept;
  ASSERT_TRUE(LookAtOutput(config, layout, DiskFiles(), kept).ok());
  EXPECT_TRUE(kept.output_there);
  EXPECT_EQ(kept.lies_there, "part-0.csv");
  EXPECT_FALSE(kept.had_output);
  config.job.spec.state.ephemeral = true;
  NewRun lost;
  ASSERT_TRUE(LookAtOutput(config, layout, DiskFiles(), lost).ok());
  EXPECT_FALSE(lost.output_there);
  EXPECT_TRUE(lost.had_output);
  config.resource_uid = "another";
  NewRun other;
  ASSERT_TRUE(LookAtOutput(config, layout, DiskFiles(), other).ok());
  EXPECT_TRUE(other.output_there);
}

// A coordinator may end at any moment, also between the begin of a history and what follows it.
TEST_F(OutputFolderTest, WhatTheFirstCoordinatorOfARunCouldNotRemoveTheNextOneDoes) {
  const std::string state = temp_.path() + "/state";
  fs::create_directories(state);
  const auto of = [&](uint64_t run) {
    return output::ResultManifest(DiskFiles(), {out_, state, own_}, run);
  };
  JobLayout layout;
  layout.output_folder = out_;
  const auto begin = [&](bool with_nothing, uint64_t run) {
    output::ResultManifest manifest = of(run);
    return BeginResults(with_nothing, layout, own_, DiskFiles(), manifest);
  };
  EXPECT_EQ(begin(true, 1), "");
  Put("old.csv");
  ASSERT_TRUE(of(1).End().ok());
  Put("of-somebody.csv");
  EXPECT_EQ(begin(false, 1), "");  // the run goes on, and has its own results
  EXPECT_EQ(Found(), "of-somebody.csv");
  EXPECT_TRUE(fs::exists(out_ + "/old.csv"));

  EXPECT_THAT(begin(false, 2), testing::HasSubstr("not empty: of-somebody.csv is there"));
  EXPECT_FALSE(fs::exists(out_ + "/old.csv"));
  Put("new.csv");
  EXPECT_EQ(begin(false, 2), "");
  EXPECT_TRUE(fs::exists(out_ + "/new.csv"));
}

}  // namespace
}  // namespace parallelrun::coordinator
