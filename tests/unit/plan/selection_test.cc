// Plans of a part of the input.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "api/selection.h"
#include "plan/input_changes.h"
#include "plan/planner.h"
#include "tests/unit/plan/folder.h"
#include "tests/unit/plan/plans.h"

namespace parallelrun::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class PlanSelectionTest : public ::testing::Test {
 protected:
  void WriteFiles(int count, const std::string& below) {
    for (int i = 0; i < count; ++i) folder_.Write(below + std::to_string(1000 + i), "x");
  }
  static std::vector<PlanInput> First(uint64_t items, std::vector<PlanInput> inputs) {
    api::Selection selection;
    selection.limit = items;
    TakeOnly(selection, inputs);
    return inputs;
  }
  static std::vector<PlanInput> Only(const std::map<std::string, std::vector<std::string>>& names,
                                     std::vector<PlanInput> inputs) {
    api::Selection selection;
    selection.files.emplace();
    for (const auto& [input, files] : names) {
      std::vector<uint64_t>& digests = (*selection.files)[input];
      for (const std::string& file : files) digests.push_back(api::FileDigest(file));
      std::sort(digests.begin(), digests.end());
    }
    TakeOnly(selection, inputs);
    return inputs;
  }
  static uint64_t RowsIn(const job::TabularChunk& chunk) {
    uint64_t rows = 0;
    for (const job::Slice& slice : chunk.slices) rows += slice.rows;
    return rows;
  }
  // The same inputs, looked at again when nothing has changed.
  static InputChanges ChangesOf(const Plan& plan, const std::vector<PlanInput>& inputs) {
    const auto changes = FindInputChanges(
        [&](const std::function<void(const job::PlanChunkRecord&)>& visit) -> Status {
          for (const auto& chunk : plan.chunks) visit(chunk->record);
          return {};
        },
        true, inputs, FolderStores(DiskFiles()), [] {});
    EXPECT_TRUE(changes.ok());
    return *changes;
  }
  PlanFolder folder_;
};

TEST_F(PlanSelectionTest, ALimitEndsThePlanInAMiniBatch) {
  WriteFiles(100, "");
  const auto inputs = First(75, {FilesInput(folder_.path(), 10)});
  const Plan plan = PlanFromEverywhere(inputs);
  EXPECT_THAT(plan.Batches(), ElementsAre(6, 2));
  EXPECT_EQ(plan.items, 75u);
  EXPECT_EQ(plan.chunks[1]->record.ItemsOf(1), 5u);
  EXPECT_EQ(ChangesOf(plan, inputs).added.count, 0u);
}

TEST_F(PlanSelectionTest, ALimitIsOneForAllInputs) {
  WriteFiles(7, "a/");
  WriteFiles(5, "b/");
  WriteFiles(5, "c/");
  const auto inputs = First(9, {FilesInput(folder_ / "a", 5), FilesInput(folder_ / "b", 5),
                                FilesInput(folder_ / "c", 5)});
  const Plan plan = PlanFromEverywhere(inputs);
  EXPECT_THAT(plan.Batches(), ElementsAre(2, 1));
  EXPECT_EQ(plan.items, 9u);
  EXPECT_EQ(ChangesOf(plan, inputs).added.count, 0u);
}

TEST_F(PlanSelectionTest, ALimitCutsRowsOfTables) {
  std::string text = "a,b\n";
  for (int i = 0; i < 500; ++i) text += std::to_string(i) + ",x\n";
  folder_.Write("t.csv", text);
  folder_.Write("u.csv", text);
  for (const uint64_t rows : {1, 2, 137, 500, 501, 1000}) {
    const Plan plan = PlanFromEverywhere(First(rows, {Rows(folder_.path(), 900)}));
    EXPECT_EQ(plan.items, rows);
  }
  EXPECT_EQ(PlanFromEverywhere(First(5000, {Rows(folder_.path(), 900)})).items, 1000u);
}

TEST_F(PlanSelectionTest, ALimitCutsLines) {
  std::string text;
  for (int i = 0; i < 50; ++i) text += "{}\n";
  folder_.Write("t.jsonl", text);
  PlanInput input = Rows(folder_.path(), 20);
  input.kind = PlanKind::kJsonLines;
  const Plan plan = PlanFromEverywhere(First(33, {input}));
  EXPECT_EQ(plan.items, 33u);
  EXPECT_EQ(plan.rows(0).slices[0].rows, 20u);
}

TEST_F(PlanSelectionTest, ALimitTakesWholeGroups) {
  for (const char* name : {"a/1", "a/2", "a/3", "b/1", "b/2", "c/1"}) folder_.Write(name, "x");
  PlanInput input = FilesInput(folder_.path(), 1);
  input.partition_format = "{key}/{*}";
  input.partition_keys = {"key"};
  const Plan plan = PlanFromEverywhere(First(4, {input}));
  EXPECT_EQ(plan.error, "");
  EXPECT_EQ(plan.batches, 2u);
  EXPECT_EQ(plan.items, 5u);
}

TEST_F(PlanSelectionTest, ChosenFilesStandInTheirOrder) {
  WriteFiles(30, "a/");
  WriteFiles(30, "b/");
  std::vector<PlanInput> all = {FilesInput(folder_ / "a", 2), FilesInput(folder_ / "b", 2)};
  all[1].name = "masks";
  const auto inputs = Only({{"images", {"1020", "1003", "1007"}}}, all);
  const Plan plan = PlanFromEverywhere(inputs);
  EXPECT_EQ(plan.error, "");
  EXPECT_EQ(plan.batches, 2u);
  EXPECT_EQ(plan.files(0).names, std::string("1003\0001007\0001020", 14));
  const InputChanges changes = ChangesOf(plan, inputs);
  EXPECT_EQ(changes.added.count, 0u);
  EXPECT_EQ(changes.differ.count, 0u);
}

TEST_F(PlanSelectionTest, AChosenFileThatIsGoneIsAnInputWithoutFiles) {
  WriteFiles(3, "");
  const Plan plan = MakePlan(Only({{"images", {"2000"}}}, {FilesInput(folder_.path(), 2)}));
  EXPECT_THAT(plan.error, HasSubstr("no file below"));
}

}  // namespace
}  // namespace parallelrun::plan
