#include "cli/run/selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "cli/run/dry_run.h"
#include "tests/unit/plan/folder.h"
#include "tests/unit/plan/plans.h"

namespace parallelrun::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SelectionTest : public ::testing::Test {
 protected:
  SelectionTest() {
    for (int i = 0; i < 40; ++i) folder_.Write("a/" + std::to_string(10 + i) + ".png", "xx");
    folder_.Write("b/10.png", "xxx");
    folder_.Write("b/sub/new.png", "xxx");
    job_.layout.inputs = {plan::FilesInput(folder_ / "a", 10), plan::FilesInput(folder_ / "b", 10)};
    job_.layout.inputs[1].name = "more";
  }
  std::vector<uint64_t> FilesOf(const Chosen& chosen, const std::string& input) {
    return chosen.selection.files->at(input);
  }
  plan::PlanFolder folder_;
  LocalJob job_;
};

TEST_F(SelectionTest, NothingIsEverything) {
  const auto chosen = ChooseItems({}, job_);
  EXPECT_EQ(chosen->selection, api::Selection());
  EXPECT_EQ(chosen->note, "");
}

TEST_F(SelectionTest, OfALimitNothingIsListed) {
  job_.layout.inputs[0].root = folder_ / "not there";
  const auto chosen = ChooseItems({.limit = 3, .sample = {}, .only = {}}, job_);
  EXPECT_EQ(chosen->selection.limit, 3u);
  EXPECT_EQ(chosen->note, "--limit: the first 3 items are taken");
}

TEST_F(SelectionTest, ASampleDependsOnNamesAlone) {
  const SelectWords ten{.limit = {}, .sample = 10, .only = {}};
  const auto chosen = ChooseItems(ten, job_);
  size_t count = 0;
  for (const auto& [input, files] : *chosen->selection.files) count += files.size();
  EXPECT_EQ(count, 10u);
  EXPECT_EQ(chosen->note, "--sample: 10 of 42 files are taken");
  EXPECT_EQ(ChooseItems(ten, job_)->selection, chosen->selection);
  // A larger sample holds the smaller one.
  const auto more = ChooseItems({.limit = {}, .sample = 20, .only = {}}, job_);
  for (const auto& [input, files] : *chosen->selection.files) {
    for (const uint64_t file : files) EXPECT_THAT(FilesOf(*more, input), testing::Contains(file));
  }
  EXPECT_EQ(ChooseItems({.limit = {}, .sample = 100, .only = {}}, job_)->note,
            "--sample: 42 of 42 files are taken");
}

TEST_F(SelectionTest, ASampleOfNothingIsEverything) {
  for (plan::PlanInput& input : job_.layout.inputs) input.pattern = "*.jpg";
  const auto chosen = ChooseItems({.limit = {}, .sample = 10, .only = {}}, job_);
  EXPECT_EQ(chosen->selection, api::Selection());
}

TEST_F(SelectionTest, OnlyTakesPathsNamesAndTheirEnds) {
  const auto chosen = ChooseItems(
      {.limit = {}, .sample = {}, .only = {folder_ / "a/12.png", "17.png", "new.png"}}, job_);
  ASSERT_TRUE(chosen.ok()) << chosen.error().message;
  std::vector<uint64_t> both = {api::FileDigest("12.png"), api::FileDigest("17.png")};
  std::sort(both.begin(), both.end());
  EXPECT_EQ(FilesOf(*chosen, "images"), both);
  EXPECT_THAT(FilesOf(*chosen, "more"), ElementsAre(api::FileDigest("sub/new.png")));
  EXPECT_EQ(chosen->note, "--only: 3 files are taken");
}

TEST_F(SelectionTest, OnlyTakesWhatIsSaidMostExactlyAndOnce) {
  folder_.Write("b/top.png", "x");
  folder_.Write("b/sub/top.png", "x");
  const auto chosen = ChooseItems(
      {.limit = {}, .sample = {}, .only = {"top.png", "top.png", folder_ / "b/top.png"}}, job_);
  ASSERT_TRUE(chosen.ok()) << chosen.error().message;
  EXPECT_THAT(FilesOf(*chosen, "more"), ElementsAre(api::FileDigest("top.png")));
  EXPECT_EQ(chosen->note, "--only: 1 file is taken");
  // Two inputs have it.
  EXPECT_THAT(ChooseItems({.limit = {}, .sample = {}, .only = {"10.png"}}, job_).error().message,
              HasSubstr("--only 10.png: 2 files are called so; write the path"));
}

TEST_F(SelectionTest, OnlyRefusesWhatIsNotThereAndWhatIsCalledSoTwice) {
  folder_.Write("b/other/new.png", "x");
  folder_.Write("b/c\nat.png", "x");
  const auto error = [this](std::vector<std::string> only) {
    return ChooseItems({.limit = {}, .sample = {}, .only = std::move(only)}, job_).error().message;
  };
  EXPECT_THAT(
      error({"d/99.png", "12.png"}),
      HasSubstr("--only: no input has d/99.png (did you mean 19.png, 29.png or 39.png?); "));
  EXPECT_THAT(error({"cat.png"}), HasSubstr("no input has cat.png (did you mean c\\nat.png?); "));
  EXPECT_THAT(error({"b/12"}), HasSubstr("no input has b/12 (did you mean 12.png?); "));
  EXPECT_THAT(error({"something else"}), HasSubstr("no input has something else; "));
  EXPECT_THAT(ChooseItems({.limit = {}, .sample = {}, .only = {"new.png"}}, job_).error().message,
              HasSubstr("--only new.png: 2 files are called so"));
}

TEST_F(SelectionTest, GroupsAreNotTornApart) {
  job_.job.spec.partition_keys = {"key"};
  EXPECT_THAT(ChooseItems({.limit = {}, .sample = 3, .only = {}}, job_).error().message,
              HasSubstr("--sample does not go with partitionKeys"));
  EXPECT_TRUE(ChooseItems({.limit = 3, .sample = {}, .only = {}}, job_).ok());
}

TEST_F(SelectionTest, AHeaderOfTheFirstFileMayNotBeLeftOut) {
  job_.layout.inputs = {plan::Rows(folder_ / "a", 10, api::HeaderMode::kFirstFile)};
  EXPECT_THAT(ChooseItems({.limit = {}, .sample = 3, .only = {}}, job_).error().message,
              HasSubstr("whose header stands for all tables"));
}

TEST_F(SelectionTest, WhatARunWouldTake) {
  const auto all = MeasurePlan(job_, {});
  ASSERT_TRUE(all.ok()) << all.error().message;
  EXPECT_EQ(all->files, 42u);
  EXPECT_EQ(all->bytes, 40 * 2 + 2 * 3u);
  EXPECT_EQ(all->batches, 5u);
  const auto first = MeasurePlan(job_, {.limit = 12, .files = {}});
  EXPECT_EQ(first->files, 12u);
  EXPECT_EQ(first->bytes, 24u);
  EXPECT_EQ(first->batches, 2u);
}

TEST_F(SelectionTest, ATableIsOneFileInHoweverManyMiniBatches) {
  std::string text = "a,b\n";
  for (int i = 0; i < 100; ++i) text += "1,2\n";
  folder_.Write("t.csv", text);
  job_.layout.inputs = {plan::Rows(folder_ / "t.csv", 40)};
  const auto all = MeasurePlan(job_, {});
  ASSERT_TRUE(all.ok()) << all.error().message;
  EXPECT_EQ(all->files, 1u);
  EXPECT_EQ(all->bytes, 404u);
  EXPECT_EQ(all->items, 100u);
  EXPECT_GT(all->batches, 5u);
}

}  // namespace
}  // namespace parallelrun::cli
