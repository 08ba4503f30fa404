#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <stop_token>
#include <string>
#include <vector>

#include "plan/row_files.h"
#include "tests/unit/plan/parquet.h"
#include "tests/unit/plan/places.h"
#include "tests/unit/plan/plans.h"

namespace parallelrun::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <typename Place>
class PlanPlannerTest : public ::testing::Test {
 protected:
  // Of 0 to 6 bytes, in turn. The same as the first seven: a file system makes these many times as
  // fast.
  void WriteFiles(int count, const std::string& below = "") {
    std::vector<std::string> first;
    for (int i = 0; i < count; ++i) {
      const std::string name = below + std::to_string(100000 + i);
      const auto size = static_cast<size_t>(i % 7);
      if (i < 7) {
        first.push_back(place_.Write(name, std::string(size, 'x')));
      } else {
        place_.WriteSame(name, first[size]);
      }
    }
  }
  Plan MakePlan(const std::vector<PlanInput>& inputs, const PlanCursor& from = {}) {
    return MakePlanOn(place_.Stores(), InPlace(inputs), from);
  }
  Plan PlanFromEverywhere(const std::vector<PlanInput>& inputs) {
    return plan::PlanFromEverywhere(InPlace(inputs), place_.Stores());
  }
  static std::vector<PlanInput> InPlace(std::vector<PlanInput> inputs) {
    for (PlanInput& input : inputs) input.store = Place::kStore;
    return inputs;
  }
  Place place_;
};
TYPED_TEST_SUITE(PlanPlannerTest, Places);

// What only files have, and what only objects.
using PlanFolderTest = PlanPlannerTest<FolderPlace>;
using PlanMemoryTest = PlanPlannerTest<MemoryPlace>;

TYPED_TEST(PlanPlannerTest, FilesChunksGrowAndEndWithAShortMiniBatch) {
  this->WriteFiles(1203);
  const Plan plan = this->PlanFromEverywhere({FilesInput(this->place_.path(), 10)});
  EXPECT_THAT(plan.Batches(), ElementsAre(6, 6, 12, 24, 48, 25));
  EXPECT_EQ(plan.batches, 121u);
  EXPECT_EQ(plan.items, 1203u);
  EXPECT_EQ(plan.files(0).root, this->place_.path());
  EXPECT_EQ(plan.files(0).files_per_batch, 10u);
  EXPECT_TRUE(plan.files(0).names.starts_with(std::string("100000\000100001\000", 14)));
  EXPECT_EQ(plan.chunks[5]->record.ItemsOf(24), 3u);
}

TYPED_TEST(PlanPlannerTest, FilesChunksAreBounded) {
  this->WriteFiles(13000);
  EXPECT_THAT(this->MakePlan({FilesInput(this->place_.path(), 1)}).Batches(),
              ElementsAre(64, 64, 128, 256, 512, 1024, 2048, 4096, 4096, 712));
  EXPECT_THAT(this->MakePlan({FilesInput(this->place_.path(), 100)}).Batches(),
              ElementsAre(1, 1, 2, 4, 8, 16, 32, 40, 26));
  const Plan large = this->PlanFromEverywhere({FilesInput(this->place_.path(), 5000)});
  EXPECT_THAT(large.Batches(), ElementsAre(1, 1, 1));
  EXPECT_EQ(large.chunks[2]->record.Items(), 3000u);
}

TYPED_TEST(PlanPlannerTest, MiniBatchesDoNotSpanInputs) {
  this->WriteFiles(7, "a/");
  this->WriteFiles(3, "b/");
  this->place_.Write("one");
  const Plan plan = this->PlanFromEverywhere({FilesInput(this->place_ / "a", 5),
                                              FilesInput(this->place_ / "b/", 5),
                                              FilesInput(this->place_ / "one", 5)});
  EXPECT_THAT(plan.Batches(), ElementsAre(2, 1, 1));
  EXPECT_EQ(plan.chunks[1]->record.input, 1u);
  EXPECT_EQ(plan.files(2).root, this->place_.path());
  EXPECT_EQ(plan.files(2).names, "one");
}

TYPED_TEST(PlanPlannerTest, GoesOnBehindTheLastNameAndNotByCount) {
  this->WriteFiles(100);
  const std::vector<PlanInput> inputs = {FilesInput(this->place_.path(), 10)};
  const Plan plan = this->MakePlan(inputs);
  const PlanCursor cursor = CursorAfter(plan.chunks[0]->record, inputs);
  EXPECT_EQ(cursor.last_name, "100059");
  EXPECT_EQ(cursor.next_batch, 6u);
  this->place_.Remove("100000");
  this->place_.Write("1000001");
  EXPECT_EQ(this->MakePlan(inputs, cursor).chunks[0]->encoded, plan.chunks[1]->encoded);
}

TEST_F(PlanFolderTest, AnInputThatHoldsNothingIsAnError) {
  this->WriteFiles(3, "a/");
  std::filesystem::create_directories(this->place_ / "b");
  PlanInput input = FilesInput(this->place_ / "b", 1);
  EXPECT_EQ(this->MakePlan({FilesInput(this->place_ / "a", 1), input}).error,
            "Invalid: inputs[images]: no file below " + this->place_.path() +
                "/b: put files there, or correct where the input lies");
  input.pattern = "**/*.png";
  EXPECT_EQ(this->MakePlan({input}).error,
            "Invalid: inputs[images]: no file matches pattern **/*.png below " +
                (this->place_ / "b") + ": put files there, or correct the pattern");
  EXPECT_THAT(this->MakePlan({FilesInput(this->place_ / "c", 1)}).error,
              HasSubstr("NotFound: inputs[images]: "));
  this->place_.Write("b/empty.csv");
  this->place_.Write("b/header.csv", "a,b\n");
  EXPECT_THAT(this->MakePlan({Rows(this->place_ / "b", 1)}).error, HasSubstr("no file below"));
  EXPECT_THAT(this->MakePlan({Rows(this->place_ / "b", 1)}).error, HasSubstr("holds a row"));
}

// What workers compare, and older ledgers hold.
TEST_F(PlanFolderTest, AVersionIsSizeAndTime) {
  WriteFiles(20, "files/");
  const Plan files = MakePlan({FilesInput(place_ / "files", 10)});
  ASSERT_EQ(files.files(0).versions[5].size(), 16u);
  EXPECT_EQ(SizeOf(files.files(0).versions[5]), 5u);
  EXPECT_GT(ModifiedNs(files.files(0).versions[5]), 0);
  place_.Write("rows/a.csv", "a,b\n1,2\n");
  const Plan rows = MakePlan({Rows(place_ / "rows", 20)});
  ASSERT_EQ(rows.rows(0).version.size(), 16u);
  EXPECT_EQ(SizeOf(rows.rows(0).version), 8u);
  EXPECT_GT(ModifiedNs(rows.rows(0).version), 0);
}

// A plan says in which store its input lies, and which version of each object was there.
TEST_F(PlanMemoryTest, AVersionIsWhatTheStoreSays) {
  for (const char* name : {"a", "a/b", "c"}) place_.Write(name, "x");
  const Plan plan = PlanFromEverywhere({FilesInput(place_.path(), 10)});
  EXPECT_EQ(plan.chunks[0]->record.store, "memory");
  EXPECT_EQ(plan.files(0).root, "memory://in");
  EXPECT_EQ(plan.files(0).names, std::string_view("a\0a/b\0c", 7));
  EXPECT_THAT(plan.files(0).versions, ElementsAre("put 1", "put 2", "put 3"));
}

TEST_F(PlanMemoryTest, AnotherVersionIsNotGoneOnWithInTheMiddle) {
  place_.Write("a.csv", "h\n1\n2\n3\n");
  const std::vector<PlanInput> inputs = {Rows(place_.path(), 1)};
  const Plan plan = MakePlan(inputs);
  const PlanCursor middle = CursorAfter(plan.chunks[0]->record, inputs);
  place_.Write("a.csv", "h\n1\n2\n3\n");
  EXPECT_THAT(MakePlan(inputs, middle).error,
              HasSubstr("/a.csv was put 1, is put 2, and a part of it is not planned yet"));
}

TEST_F(PlanFolderTest, ForbiddenFolder) {
  this->WriteFiles(1, "out/");
  EXPECT_THAT(
      plan::MakePlan({FilesInput(this->place_.path(), 1)}, {}, {this->place_ / "out"}).error,
      HasSubstr("Invalid: inputs[images]: the folder " + this->place_.path() + "/out"));
}

TYPED_TEST(PlanPlannerTest, TabularChunks) {
  std::string text = "id,text\n";
  for (int i = 0; i < 1000; ++i) text += std::to_string(10000 + i) + ",\"a\nb\"\n";
  this->place_.Write("a.csv", text);
  this->place_.Write("b.csv", "id,text\n1,x\n");
  this->place_.Write("empty.csv");
  const Plan plan =
      this->PlanFromEverywhere({Rows(this->place_.path(), 20)});  // two rows of 12 bytes
  EXPECT_THAT(plan.Batches(), ElementsAre(1, 1, 2, 4, 8, 16, 32, 64, 128, 244, 1));
  EXPECT_EQ(plan.items, 1001u);
  const job::TabularChunk& first = plan.rows(0);
  EXPECT_EQ(first.path, this->place_ / "a.csv");
  EXPECT_EQ(first.size, text.size());
  EXPECT_EQ(first.header, "id,text\n");
  EXPECT_EQ(first.format, R"({"delimiter":",","encoding":"utf-8"})");
  EXPECT_EQ(first.slices[0].offset, 8u);
  EXPECT_EQ(first.slices[0].length, 24u);
  EXPECT_EQ(first.slices[0].rows, 2u);
  EXPECT_EQ(plan.rows(10).path, this->place_ / "b.csv");
}

TEST_F(PlanFolderTest, TabularChunksAreBoundedInBytesToo) {
  std::ofstream file(this->place_.Write("a.csv"), std::ios::in | std::ios::binary);
  for (int row = 1; row <= 10; ++row) {  // rows of 16 MiB, mostly a hole
    file.seekp((row << 24) - 1);
    file.put('\n');
  }
  file.close();
  PlanInput input = Rows(this->place_.path(), 16 << 20, api::HeaderMode::kNone);
  input.tabular.max_field_size = 64 << 20;
  EXPECT_THAT(this->MakePlan({input}).Batches(), ElementsAre(1, 1, 2, 4, 2));
}

TYPED_TEST(PlanPlannerTest, HeaderModes) {
  this->place_.Write("0.csv");
  this->place_.Write("1.csv", "h\r\n1\r\n2\r\n");
  this->place_.Write("2.csv", "3\n4\n");
  this->place_.Write("3.csv", "h\n5\n");
  const auto headers = [&](api::HeaderMode mode) {
    const Plan plan = this->PlanFromEverywhere({Rows(this->place_.path(), 100, mode)});
    std::vector<std::pair<std::string, uint64_t>> found;
    for (size_t i = 0; i < plan.chunks.size(); ++i) {
      found.emplace_back(plan.rows(i).header, plan.chunks[i]->record.Items());
    }
    return found;
  };
  using Found = std::vector<std::pair<std::string, uint64_t>>;
  EXPECT_EQ(headers(api::HeaderMode::kAllFiles), (Found{{"h\r\n", 2}, {"3\n", 1}, {"h\n", 1}}));
  EXPECT_EQ(headers(api::HeaderMode::kNone), (Found{{"", 3}, {"", 2}, {"", 2}}));
  // A file that repeats the first one's header has one.
  EXPECT_EQ(headers(api::HeaderMode::kFirstFile),
            (Found{{"h\r\n", 2}, {"h\r\n", 2}, {"h\r\n", 1}}));
}

TYPED_TEST(PlanPlannerTest, FirstFileMayHoldTheHeaderOnly) {
  this->place_.Write("1.csv", "a,b");
  this->place_.Write("2.csv", "1,2\n3,4\n");
  const Plan plan =
      this->PlanFromEverywhere({Rows(this->place_.path(), 1, api::HeaderMode::kFirstFile)});
  EXPECT_THAT(plan.Batches(), ElementsAre(1, 1));
  EXPECT_EQ(plan.rows(0).header, "a,b\n");
  EXPECT_EQ(plan.rows(0).slices[0].offset, 0u);
}

// What sorts in front, or was first and is gone, must not give the rest of the plan another header.
TYPED_TEST(PlanPlannerTest, ARestartKeepsTheHeaderOfTheFirstFile) {
  this->place_.Write("1.csv", "a,b\r\n1,2\r\n");
  this->place_.Write("2.csv", "3,4\n5,6\n");
  this->place_.Write("3.csv", "a,b\n7,8\n");
  this->place_.Write("4.csv", "9,10\n");
  const PlanInput input = Rows(this->place_.path(), 1, api::HeaderMode::kFirstFile);
  const Plan plan = this->PlanFromEverywhere({input});
  ASSERT_THAT(plan.Batches(), ElementsAre(1, 1, 1, 1, 1));
  const auto expect_same_rest = [&] {
    for (size_t i = 0; i < plan.chunks.size(); ++i) {
      const Plan rest = this->MakePlan({input}, CursorAfter(plan.chunks[i]->record, {input}));
      EXPECT_EQ(rest.error, "");
      ASSERT_EQ(rest.chunks.size(), plan.chunks.size() - i - 1);
      for (size_t k = 0; k < rest.chunks.size(); ++k) {
        EXPECT_EQ(rest.chunks[k]->encoded, plan.chunks[i + 1 + k]->encoded) << i << " " << k;
      }
    }
  };
  this->place_.Write("0.csv", "x,y\n");
  expect_same_rest();
  this->place_.Remove("0.csv");
  this->place_.Remove("1.csv");
  expect_same_rest();
}

TYPED_TEST(PlanPlannerTest, ARestartKeepsTheHeaderOfTheFirstFileOfGroups) {
  this->place_.Write("k1/1.csv", "a,b\n1,2\n");
  this->place_.Write("k2/1.csv", "3,4\n");
  PlanInput input = Rows(this->place_.path(), 1, api::HeaderMode::kFirstFile);
  input.partition_format = "{key}/{n}.csv";
  input.partition_keys = {"key"};
  const Plan plan = this->PlanFromEverywhere({input});
  ASSERT_THAT(plan.Batches(), ElementsAre(1, 1));
  this->place_.Write("k1/1.csv", "x,y\n1,2\n");
  const Plan rest = this->MakePlan({input}, CursorAfter(plan.chunks[0]->record, {input}));
  ASSERT_EQ(rest.chunks.size(), 1u);
  EXPECT_EQ(rest.table_groups(0).groups[0].slices[0].header, "a,b\n");
}

TYPED_TEST(PlanPlannerTest, TabularRootMayBeAFile) {
  this->place_.Write("rows.tsv", "a\tb\n1\t2\n3\t4\n");
  this->place_.Write("aaa", "not this one");
  PlanInput input = Rows(this->place_ / "rows.tsv", 1);
  input.tabular.delimiter = "\t";
  const Plan plan = this->PlanFromEverywhere({input});
  EXPECT_THAT(plan.Batches(), ElementsAre(1, 1));
  EXPECT_EQ(plan.rows(0).path, this->place_ / "rows.tsv");
  EXPECT_EQ(plan.rows(0).format, R"({"delimiter":"\t","encoding":"utf-8"})");
}

TYPED_TEST(PlanPlannerTest, TabularFormatAndLostFile) {
  this->place_.Write("a.csv", "h\n1\n2\n");
  PlanInput input = Rows(this->place_.path(), 1);
  input.tabular.encoding = "utf-16";
  EXPECT_THAT(this->MakePlan({input}).error,
              HasSubstr("Invalid: inputs[rows]: tabular.encoding \"utf-16\""));
  input.tabular.encoding = "utf-8";
  PlanCursor gone;
  gone.last_name = "gone.csv";
  gone.next_offset = 4;
  EXPECT_THAT(this->MakePlan({input}, gone).error,
              HasSubstr("NotFound: inputs[rows]: " + (this->place_ / "gone.csv") + " is gone"));
}

TYPED_TEST(PlanPlannerTest, EndsWithTheJobWhateverThereIsToPlan) {
  this->place_.Write("k1/1.csv", "a,b\n1,2\n");
  std::stop_source job;
  job.request_stop();
  PlanInput files = FilesInput(this->place_.path(), 1);
  PlanInput rows = Rows(this->place_.path(), 1, api::HeaderMode::kFirstFile);
  PlanInput groups = rows;
  groups.partition_format = "{key}/{n}.csv";
  groups.partition_keys = {"key"};
  for (PlanInput input : {files, rows, groups}) {
    EXPECT_EQ(this->MakePlan({input}).error, "");
    input.stop = job.get_token();
    EXPECT_THAT(this->MakePlan({input}).error,
                HasSubstr("is not listed to its end: the job ended"));
  }
}

TYPED_TEST(PlanPlannerTest, ParquetFilesAreNotOpenedOnceTheJobEnded) {
  this->place_.Write("k/1.parquet", ParquetFile(ParquetFooter()));
  std::stop_source job;
  PlanInput input = Rows(this->place_.path(), 1);
  input.kind = PlanKind::kParquet;
  input.stop = job.get_token();
  const auto store = this->place_.Stores()(input);
  RowFiles files(input, *store);
  EXPECT_TRUE(files.Open("k/1.parquet").ok());
  job.request_stop();
  const auto opened = files.Open("k/1.parquet");
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, Code::kUnavailable);
}

// --- a file that is another one when a restart goes on in it

TEST_F(PlanFolderTest, AChangedFileIsNotGoneOnWithInTheMiddle) {
  this->place_.Write("a.csv", "h\n1\n2\n3\n");
  this->place_.Write("b.csv", "h\n4\n");
  const std::vector<PlanInput> inputs = {Rows(this->place_.path(), 1)};
  const Plan plan = this->MakePlan(inputs);
  ASSERT_THAT(plan.Batches(), ElementsAre(1, 1, 1, 1));
  const PlanCursor middle = CursorAfter(plan.chunks[0]->record, inputs);
  this->place_.Write("a.csv", "h\n11\n2\n3\n");
  const Plan rest = this->MakePlan(inputs, middle);
  EXPECT_TRUE(rest.chunks.empty());
  EXPECT_EQ(rest.error, "Invalid: inputs[rows]: " + (this->place_ / "a.csv") +
                            " had 8 bytes, has 9, and a part of it is not planned yet; put it back "
                            "as it was, or start over by overwriting the output");
}

TEST_F(PlanFolderTest, AFileOfTheSameSizeIsAnotherOneByItsTime) {
  this->place_.Write("a.csv", "h\n1\n2\n");
  const std::vector<PlanInput> inputs = {Rows(this->place_.path(), 1)};
  const Plan plan = this->MakePlan(inputs);
  const PlanCursor middle = CursorAfter(plan.chunks[0]->record, inputs);
  std::filesystem::last_write_time(
      this->place_ / "a.csv",
      std::filesystem::last_write_time(this->place_ / "a.csv") + std::chrono::hours(1));
  EXPECT_THAT(this->MakePlan(inputs, middle).error, HasSubstr(" was modified at "));
}

TYPED_TEST(PlanPlannerTest, AChangedParquetFileIsNotGoneOnWithInTheMiddle) {
  this->place_.Write("a.parquet", ParquetFile(ParquetFooter()));
  PlanInput input = Rows(this->place_.path(), 1);
  input.kind = PlanKind::kParquet;
  const Plan plan = this->MakePlan({input});
  ASSERT_THAT(plan.Batches(), ElementsAre(1, 1, 1));
  this->place_.Write("a.parquet", "more" + ParquetFile(ParquetFooter()));
  EXPECT_THAT(this->MakePlan({input}, CursorAfter(plan.chunks[1]->record, {input})).error,
              HasSubstr(", and a part of it is not planned yet; put it back as it was"));
}

TYPED_TEST(PlanPlannerTest, AFilePlannedToItsEndMayChangeOrGo) {
  this->place_.Write("a.csv", "h\n1\n2\n");
  this->place_.Write("b.csv", "h\n3\n");
  const std::vector<PlanInput> inputs = {Rows(this->place_.path(), 1)};
  const Plan plan = this->MakePlan(inputs);
  ASSERT_THAT(plan.Batches(), ElementsAre(1, 1, 1));
  const PlanCursor behind = CursorAfter(plan.chunks[1]->record, inputs);
  this->place_.Write("a.csv", "h\n1\n2\n5\n");
  const auto expect_the_rest = [&] {
    const Plan rest = this->MakePlan(inputs, behind);
    EXPECT_EQ(rest.error, "");
    ASSERT_EQ(rest.chunks.size(), 1u);
    EXPECT_EQ(rest.chunks[0]->encoded, plan.chunks[2]->encoded);
  };
  expect_the_rest();
  this->place_.Remove("a.csv");
  expect_the_rest();
}

}  // namespace
}  // namespace parallelrun::plan
