#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/unit/coordinator/plan/folder.h"
#include "tests/unit/coordinator/plan/plans.h"

namespace parallelrun {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class PlanPlannerTest : public ::testing::Test {
 protected:
  void WriteFiles(int count, const std::string& below = "") {
    for (int i = 0; i < count; ++i) {
      folder_.Write(below + std::to_string(100000 + i),
                    std::string(static_cast<size_t>(i % 7), 'x'));
    }
  }
  PlanFolder folder_;
};

TEST_F(PlanPlannerTest, FilesChunksGrowAndEndWithAShortMiniBatch) {
  WriteFiles(1203);
  const Plan plan = PlanFromEverywhere({FilesInput(folder_.path(), 10)});
  EXPECT_THAT(plan.Batches(), ElementsAre(6, 6, 12, 24, 48, 25));
  EXPECT_EQ(plan.batches, 121u);
  EXPECT_EQ(plan.items, 1203u);
  EXPECT_EQ(plan.files(0).root, folder_.path());
  EXPECT_EQ(plan.files(0).files_per_batch, 10u);
  EXPECT_TRUE(plan.files(0).names.starts_with(std::string("100000\000100001\000", 14)));
  EXPECT_EQ(plan.files(0).stamps[5].size, 5u);
  EXPECT_EQ(plan.chunks[5]->record.ItemsOf(24), 3u);
}

TEST_F(PlanPlannerTest, FilesChunksAreBounded) {
  WriteFiles(13000);
  EXPECT_THAT(MakePlan({FilesInput(folder_.path(), 1)}).Batches(),
              ElementsAre(64, 64, 128, 256, 512, 1024, 2048, 4096, 4096, 712));
  EXPECT_THAT(MakePlan({FilesInput(folder_.path(), 100)}).Batches(),
              ElementsAre(1, 1, 2, 4, 8, 16, 32, 40, 26));
  const Plan large = PlanFromEverywhere({FilesInput(folder_.path(), 5000)});
  EXPECT_THAT(large.Batches(), ElementsAre(1, 1, 1));
  EXPECT_EQ(large.chunks[2]->record.Items(), 3000u);
}

TEST_F(PlanPlannerTest, MiniBatchesDoNotSpanInputs) {
  WriteFiles(7, "a/");
  WriteFiles(3, "b/");
  folder_.Write("one");
  const Plan plan = PlanFromEverywhere({FilesInput(folder_ / "a", 5), FilesInput(folder_ / "b/", 5),
                                        FilesInput(folder_ / "one", 5)});
  EXPECT_THAT(plan.Batches(), ElementsAre(2, 1, 1));
  EXPECT_EQ(plan.chunks[1]->record.input, 1u);
  EXPECT_EQ(plan.files(2).root, folder_.path());
  EXPECT_EQ(plan.files(2).names, "one");
}

TEST_F(PlanPlannerTest, GoesOnBehindTheLastNameAndNotByCount) {
  WriteFiles(100);
  const std::vector<PlanInput> inputs = {FilesInput(folder_.path(), 10)};
  const Plan plan = MakePlan(inputs);
  const PlanCursor cursor = CursorAfter(plan.chunks[0]->record, inputs);
  EXPECT_EQ(cursor.last_name, "100059");
  EXPECT_EQ(cursor.next_batch, 6u);
  std::filesystem::remove(folder_ / "100000");
  folder_.Write("1000001");
  EXPECT_EQ(MakePlan(inputs, cursor).chunks[0]->encoded, plan.chunks[1]->encoded);
}

TEST_F(PlanPlannerTest, AnInputThatHoldsNothingIsAnError) {
  WriteFiles(3, "a/");
  std::filesystem::create_directories(folder_ / "b");
  PlanInput input = FilesInput(folder_ / "b", 1);
  EXPECT_EQ(MakePlan({FilesInput(folder_ / "a", 1), input}).error,
            "Invalid: inputs[images]: no file below " + folder_.path() +
                "/b: put files there, or correct volume and path");
  input.pattern = "**/*.png";
  EXPECT_EQ(MakePlan({input}).error,
            "Invalid: inputs[images]: no file matches pattern **/*.png below " + (folder_ / "b") +
                ": put files there, or correct pattern and path");
  EXPECT_THAT(MakePlan({FilesInput(folder_ / "c", 1)}).error,
              HasSubstr("NotFound: inputs[images]: "));
  folder_.Write("b/empty.csv");
  folder_.Write("b/header.csv", "a,b\n");
  EXPECT_THAT(MakePlan({Rows(folder_ / "b", 1)}).error, HasSubstr("no file below"));
  EXPECT_THAT(MakePlan({Rows(folder_ / "b", 1)}).error, HasSubstr("holds a row"));
}

TEST_F(PlanPlannerTest, ForbiddenFolder) {
  WriteFiles(1, "out/");
  EXPECT_THAT(MakePlan({FilesInput(folder_.path(), 1)}, {}, {folder_ / "out"}).error,
              HasSubstr("Invalid: inputs[images]: the folder " + folder_.path() + "/out"));
}

TEST_F(PlanPlannerTest, TabularChunks) {
  std::string text = "id,text\n";
  for (int i = 0; i < 1000; ++i) text += std::to_string(10000 + i) + ",\"a\nb\"\n";
  folder_.Write("a.csv", text);
  folder_.Write("b.csv", "id,text\n1,x\n");
  folder_.Write("empty.csv");
  const Plan plan = PlanFromEverywhere({Rows(folder_.path(), 20)});  // two rows of 12 bytes
  EXPECT_THAT(plan.Batches(), ElementsAre(1, 1, 2, 4, 8, 16, 32, 64, 128, 244, 1));
  EXPECT_EQ(plan.items, 1001u);
  const TabularChunk& first = plan.rows(0);
  EXPECT_EQ(first.path, folder_ / "a.csv");
  EXPECT_EQ(first.stamp.size, text.size());
  EXPECT_GT(first.stamp.mtime_ns, 0);
  EXPECT_EQ(first.header, "id,text\n");
  EXPECT_EQ(first.format, R"({"delimiter":",","encoding":"utf-8"})");
  EXPECT_EQ(first.slices[0].offset, 8u);
  EXPECT_EQ(first.slices[0].length, 24u);
  EXPECT_EQ(first.slices[0].rows, 2u);
  EXPECT_EQ(plan.rows(10).path, folder_ / "b.csv");
}

TEST_F(PlanPlannerTest, TabularChunksAreBoundedInBytesToo) {
  std::ofstream file(folder_.Write("a.csv"), std::ios::in | std::ios::binary);
  for (int row = 1; row <= 10; ++row) {  // rows of 16 MiB, mostly a hole
    file.seekp((row << 24) - 1);
    file.put('\n');
  }
  file.close();
  EXPECT_THAT(MakePlan({Rows(folder_.path(), 16 << 20, PlanHeader::kNone)}).Batches(),
              ElementsAre(1, 1, 2, 4, 2));
}

TEST_F(PlanPlannerTest, HeaderModes) {
  folder_.Write("0.csv");
  folder_.Write("1.csv", "h\r\n1\r\n2\r\n");
  folder_.Write("2.csv", "3\n4\n");
  folder_.Write("3.csv", "h\n5\n");
  const auto headers = [&](PlanHeader mode) {
    const Plan plan = PlanFromEverywhere({Rows(folder_.path(), 100, mode)});
    std::vector<std::pair<std::string, uint64_t>> found;
    for (size_t i = 0; i < plan.chunks.size(); ++i) {
      found.emplace_back(plan.rows(i).header, plan.chunks[i]->record.Items());
    }
    return found;
  };
  using Found = std::vector<std::pair<std::string, uint64_t>>;
  EXPECT_EQ(headers(PlanHeader::kAllFiles), (Found{{"h\r\n", 2}, {"3\n", 1}, {"h\n", 1}}));
  EXPECT_EQ(headers(PlanHeader::kNone), (Found{{"", 3}, {"", 2}, {"", 2}}));
  // A file that repeats the first one's header has one.
  EXPECT_EQ(headers(PlanHeader::kFirstFile), (Found{{"h\r\n", 2}, {"h\r\n", 2}, {"h\n", 1}}));
}

TEST_F(PlanPlannerTest, FirstFileMayHoldTheHeaderOnly) {
  folder_.Write("1.csv", "a,b");
  folder_.Write("2.csv", "1,2\n3,4\n");
  const Plan plan = PlanFromEverywhere({Rows(folder_.path(), 1, PlanHeader::kFirstFile)});
  EXPECT_THAT(plan.Batches(), ElementsAre(1, 1));
  EXPECT_EQ(plan.rows(0).header, "a,b\n");
  EXPECT_EQ(plan.rows(0).slices[0].offset, 0u);
}

TEST_F(PlanPlannerTest, TabularRootMayBeAFile) {
  folder_.Write("rows.tsv", "a\tb\n1\t2\n3\t4\n");
  folder_.Write("aaa", "not this one");
  PlanInput input = Rows(folder_ / "rows.tsv", 1);
  input.delimiter = "\t";
  const Plan plan = PlanFromEverywhere({input});
  EXPECT_THAT(plan.Batches(), ElementsAre(1, 1));
  EXPECT_EQ(plan.rows(0).path, folder_ / "rows.tsv");
  EXPECT_EQ(plan.rows(0).format, R"({"delimiter":"\t","encoding":"utf-8"})");
}

TEST_F(PlanPlannerTest, TabularFormatAndLostFile) {
  folder_.Write("a.csv", "h\n1\n2\n");
  PlanInput input = Rows(folder_.path(), 1);
  input.encoding = "utf-16";
  EXPECT_THAT(MakePlan({input}).error,
              HasSubstr("Invalid: inputs[rows]: tabular.encoding \"utf-16\""));
  input.encoding = "utf-8";
  PlanCursor gone;
  gone.last_name = "gone.csv";
  gone.next_offset = 4;
  EXPECT_THAT(MakePlan({input}, gone).error,
              HasSubstr("NotFound: inputs[rows]: " + (folder_ / "gone.csv") + " is gone"));
}

}  // namespace
}  // namespace parallelrun
