#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <stop_token>
#include <string>
#include <vector>

#include "coordinator/plan/input_store.h"
#include "coordinator/plan/row_files.h"
#include "tests/unit/coordinator/plan/folder.h"
#include "tests/unit/coordinator/plan/parquet.h"
#include "tests/unit/coordinator/plan/plans.h"

namespace parallelrun {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class PlanPlannerTest : public ::testing::Test {
 protected:
  // Of 0 to 6 bytes, in turn. Links to the first seven: a file system makes these many times as
  // fast.
  void WriteFiles(int count, const std::string& below = "") {
    std::vector<std::string> first;
    for (int i = 0; i < count; ++i) {
      const std::string name = below + std::to_string(100000 + i);
      const auto size = static_cast<size_t>(i % 7);
      if (i < 7) {
        first.push_back(folder_.Write(name, std::string(size, 'x')));
      } else {
        std::filesystem::create_hard_link(first[size], folder_ / name);
      }
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
  EXPECT_EQ(SizeOf(plan.files(0).versions[5]), 5u);
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
  EXPECT_EQ(first.size, text.size());
  EXPECT_EQ(SizeOf(first.version), text.size());
  EXPECT_GT(ModifiedNs(first.version), 0);
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
  PlanInput input = Rows(folder_.path(), 16 << 20, HeaderMode::kNone);
  input.tabular.max_field_size = 64 << 20;
  EXPECT_THAT(MakePlan({input}).Batches(), ElementsAre(1, 1, 2, 4, 2));
}

TEST_F(PlanPlannerTest, HeaderModes) {
  folder_.Write("0.csv");
  folder_.Write("1.csv", "h\r\n1\r\n2\r\n");
  folder_.Write("2.csv", "3\n4\n");
  folder_.Write("3.csv", "h\n5\n");
  const auto headers = [&](HeaderMode mode) {
    const Plan plan = PlanFromEverywhere({Rows(folder_.path(), 100, mode)});
    std::vector<std::pair<std::string, uint64_t>> found;
    for (size_t i = 0; i < plan.chunks.size(); ++i) {
      found.emplace_back(plan.rows(i).header, plan.chunks[i]->record.Items());
    }
    return found;
  };
  using Found = std::vector<std::pair<std::string, uint64_t>>;
  EXPECT_EQ(headers(HeaderMode::kAllFiles), (Found{{"h\r\n", 2}, {"3\n", 1}, {"h\n", 1}}));
  EXPECT_EQ(headers(HeaderMode::kNone), (Found{{"", 3}, {"", 2}, {"", 2}}));
  // A file that repeats the first one's header has one.
  EXPECT_EQ(headers(HeaderMode::kFirstFile), (Found{{"h\r\n", 2}, {"h\r\n", 2}, {"h\r\n", 1}}));
}

TEST_F(PlanPlannerTest, FirstFileMayHoldTheHeaderOnly) {
  folder_.Write("1.csv", "a,b");
  folder_.Write("2.csv", "1,2\n3,4\n");
  const Plan plan = PlanFromEverywhere({Rows(folder_.path(), 1, HeaderMode::kFirstFile)});
  EXPECT_THAT(plan.Batches(), ElementsAre(1, 1));
  EXPECT_EQ(plan.rows(0).header, "a,b\n");
  EXPECT_EQ(plan.rows(0).slices[0].offset, 0u);
}

// What sorts in front, or was first and is gone, must not give the rest of the plan another header.
TEST_F(PlanPlannerTest, ARestartKeepsTheHeaderOfTheFirstFile) {
  folder_.Write("1.csv", "a,b\r\n1,2\r\n");
  folder_.Write("2.csv", "3,4\n5,6\n");
  folder_.Write("3.csv", "a,b\n7,8\n");
  folder_.Write("4.csv", "9,10\n");
  const PlanInput input = Rows(folder_.path(), 1, HeaderMode::kFirstFile);
  const Plan plan = PlanFromEverywhere({input});
  ASSERT_THAT(plan.Batches(), ElementsAre(1, 1, 1, 1, 1));
  const auto expect_same_rest = [&] {
    for (size_t i = 0; i < plan.chunks.size(); ++i) {
      const Plan rest = MakePlan({input}, CursorAfter(plan.chunks[i]->record, {input}));
      EXPECT_EQ(rest.error, "");
      ASSERT_EQ(rest.chunks.size(), plan.chunks.size() - i - 1);
      for (size_t k = 0; k < rest.chunks.size(); ++k) {
        EXPECT_EQ(rest.chunks[k]->encoded, plan.chunks[i + 1 + k]->encoded) << i << " " << k;
      }
    }
  };
  folder_.Write("0.csv", "x,y\n");
  expect_same_rest();
  std::filesystem::remove(folder_ / "0.csv");
  std::filesystem::remove(folder_ / "1.csv");
  expect_same_rest();
}

TEST_F(PlanPlannerTest, ARestartKeepsTheHeaderOfTheFirstFileOfGroups) {
  folder_.Write("k1/1.csv", "a,b\n1,2\n");
  folder_.Write("k2/1.csv", "3,4\n");
  PlanInput input = Rows(folder_.path(), 1, HeaderMode::kFirstFile);
  input.partition_format = "{key}/{n}.csv";
  input.partition_keys = {"key"};
  const Plan plan = PlanFromEverywhere({input});
  ASSERT_THAT(plan.Batches(), ElementsAre(1, 1));
  folder_.Write("k1/1.csv", "x,y\n1,2\n");
  const Plan rest = MakePlan({input}, CursorAfter(plan.chunks[0]->record, {input}));
  ASSERT_EQ(rest.chunks.size(), 1u);
  EXPECT_EQ(rest.table_groups(0).groups[0].slices[0].header, "a,b\n");
}

TEST_F(PlanPlannerTest, TabularRootMayBeAFile) {
  folder_.Write("rows.tsv", "a\tb\n1\t2\n3\t4\n");
  folder_.Write("aaa", "not this one");
  PlanInput input = Rows(folder_ / "rows.tsv", 1);
  input.tabular.delimiter = "\t";
  const Plan plan = PlanFromEverywhere({input});
  EXPECT_THAT(plan.Batches(), ElementsAre(1, 1));
  EXPECT_EQ(plan.rows(0).path, folder_ / "rows.tsv");
  EXPECT_EQ(plan.rows(0).format, R"({"delimiter":"\t","encoding":"utf-8"})");
}

TEST_F(PlanPlannerTest, TabularFormatAndLostFile) {
  folder_.Write("a.csv", "h\n1\n2\n");
  PlanInput input = Rows(folder_.path(), 1);
  input.tabular.encoding = "utf-16";
  EXPECT_THAT(MakePlan({input}).error,
              HasSubstr("Invalid: inputs[rows]: tabular.encoding \"utf-16\""));
  input.tabular.encoding = "utf-8";
  PlanCursor gone;
  gone.last_name = "gone.csv";
  gone.next_offset = 4;
  EXPECT_THAT(MakePlan({input}, gone).error,
              HasSubstr("NotFound: inputs[rows]: " + (folder_ / "gone.csv") + " is gone"));
}

TEST_F(PlanPlannerTest, EndsWithTheJobWhateverThereIsToPlan) {
  folder_.Write("k1/1.csv", "a,b\n1,2\n");
  std::stop_source job;
  job.request_stop();
  PlanInput files = FilesInput(folder_.path(), 1);
  PlanInput rows = Rows(folder_.path(), 1, HeaderMode::kFirstFile);
  PlanInput groups = rows;
  groups.partition_format = "{key}/{n}.csv";
  groups.partition_keys = {"key"};
  for (PlanInput input : {files, rows, groups}) {
    EXPECT_EQ(MakePlan({input}).error, "");
    input.stop = job.get_token();
    EXPECT_THAT(MakePlan({input}).error, HasSubstr("is not listed to its end: the job ended"));
  }
}

TEST_F(PlanPlannerTest, ParquetFilesAreNotOpenedOnceTheJobEnded) {
  folder_.Write("k/1.parquet", ParquetFile(ParquetFooter()));
  std::stop_source job;
  PlanInput input = Rows(folder_.path(), 1);
  input.kind = PlanKind::kParquet;
  input.stop = job.get_token();
  const auto store = FolderStores(DiskFiles())(input);
  RowFiles files(input, *store);
  EXPECT_TRUE(files.Open("k/1.parquet").ok());
  job.request_stop();
  const auto opened = files.Open("k/1.parquet");
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, Code::kUnavailable);
}

// --- a file that is another one when a restart goes on in it

TEST_F(PlanPlannerTest, AChangedFileIsNotGoneOnWithInTheMiddle) {
  folder_.Write("a.csv", "h\n1\n2\n3\n");
  folder_.Write("b.csv", "h\n4\n");
  const std::vector<PlanInput> inputs = {Rows(folder_.path(), 1)};
  const Plan plan = MakePlan(inputs);
  ASSERT_THAT(plan.Batches(), ElementsAre(1, 1, 1, 1));
  const PlanCursor middle = CursorAfter(plan.chunks[0]->record, inputs);
  folder_.Write("a.csv", "h\n11\n2\n3\n");
  const Plan rest = MakePlan(inputs, middle);
  EXPECT_TRUE(rest.chunks.empty());
  EXPECT_EQ(rest.error, "Invalid: inputs[rows]: " + (folder_ / "a.csv") +
                            " had 8 bytes, has 9, and a part of it is not planned yet; put it back "
                            "as it was, or start over by overwriting the output");
}

TEST_F(PlanPlannerTest, AFileOfTheSameSizeIsAnotherOneByItsTime) {
  folder_.Write("a.csv", "h\n1\n2\n");
  const std::vector<PlanInput> inputs = {Rows(folder_.path(), 1)};
  const Plan plan = MakePlan(inputs);
  const PlanCursor middle = CursorAfter(plan.chunks[0]->record, inputs);
  std::filesystem::last_write_time(
      folder_ / "a.csv",
      std::filesystem::last_write_time(folder_ / "a.csv") + std::chrono::hours(1));
  EXPECT_THAT(MakePlan(inputs, middle).error, HasSubstr(" was modified at "));
}

TEST_F(PlanPlannerTest, AChangedParquetFileIsNotGoneOnWithInTheMiddle) {
  folder_.Write("a.parquet", ParquetFile(ParquetFooter()));
  PlanInput input = Rows(folder_.path(), 1);
  input.kind = PlanKind::kParquet;
  const Plan plan = MakePlan({input});
  ASSERT_THAT(plan.Batches(), ElementsAre(1, 1, 1));
  folder_.Write("a.parquet", "more" + ParquetFile(ParquetFooter()));
  EXPECT_THAT(MakePlan({input}, CursorAfter(plan.chunks[1]->record, {input})).error,
              HasSubstr(", and a part of it is not planned yet; put it back as it was"));
}

TEST_F(PlanPlannerTest, AFilePlannedToItsEndMayChangeOrGo) {
  folder_.Write("a.csv", "h\n1\n2\n");
  folder_.Write("b.csv", "h\n3\n");
  const std::vector<PlanInput> inputs = {Rows(folder_.path(), 1)};
  const Plan plan = MakePlan(inputs);
  ASSERT_THAT(plan.Batches(), ElementsAre(1, 1, 1));
  const PlanCursor behind = CursorAfter(plan.chunks[1]->record, inputs);
  folder_.Write("a.csv", "h\n1\n2\n5\n");
  const auto expect_the_rest = [&] {
    const Plan rest = MakePlan(inputs, behind);
    EXPECT_EQ(rest.error, "");
    ASSERT_EQ(rest.chunks.size(), 1u);
    EXPECT_EQ(rest.chunks[0]->encoded, plan.chunks[2]->encoded);
  };
  expect_the_rest();
  std::filesystem::remove(folder_ / "a.csv");
  expect_the_rest();
}

}  // namespace
}  // namespace parallelrun
