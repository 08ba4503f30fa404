// Plans of every kind of input but plain files and delimited text, which
// coordinator_plan_planner_test.cc has.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/memory_store.h"
#include "tests/unit/plan/folder.h"
#include "tests/unit/plan/parquet.h"
#include "tests/unit/plan/plans.h"
#include "tests/unit/store/s3/small_s3.h"

namespace parallelrun::plan {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace std::string_literals;

PlanInput Of(PlanKind kind, const std::string& root, uint64_t batch_size) {
  PlanInput input = FilesInput(root, batch_size);
  input.kind = kind;
  return input;
}

PlanInput Keyed(PlanInput input, const std::string& format, const std::vector<std::string>& keys) {
  input.partition_format = format;
  input.partition_keys = keys;
  return input;
}

// The contexts and the names, or paths below `root`, of all groups.
std::vector<std::pair<std::string, std::vector<std::string>>> GroupsOf(const Plan& plan,
                                                                       const std::string& root) {
  std::vector<std::pair<std::string, std::vector<std::string>>> found;
  for (const auto& chunk : plan.chunks) {
    if (const auto* files = std::get_if<job::FileGroupsChunk>(&chunk->record.content)) {
      EXPECT_EQ(files->root, root);
      for (const job::FileGroup& group : files->groups) {
        std::string_view names = group.names;
        auto& [context, list] = found.emplace_back(group.context, std::vector<std::string>());
        for (size_t i = 0; i < group.versions.size(); ++i) {
          const size_t end = std::min(names.find('\0'), names.size());
          list.emplace_back(names.substr(0, end));
          names.remove_prefix(std::min(end + 1, names.size()));
        }
      }
    } else {
      for (const job::TableGroup& group :
           std::get<job::TableGroupsChunk>(chunk->record.content).groups) {
        auto& [context, list] = found.emplace_back(group.context, std::vector<std::string>());
        for (const job::TableSlice& slice : group.slices) {
          list.emplace_back(slice.path.substr(root.size() + 1));
        }
      }
    }
  }
  return found;
}

using Groups = std::vector<std::pair<std::string, std::vector<std::string>>>;

class PlanKindsTest : public ::testing::Test {
 protected:
  PlanFolder folder_;
};

// --- JSON lines

TEST_F(PlanKindsTest, JsonLinesAreCountedAndTheFirstChunkIsSmall) {
  std::string text;
  for (int i = 0; i < 1001; ++i) text += "{\"n\": " + std::to_string(i) + "}\r\n";
  folder_.Write("a.jsonl", text + "\n\n");
  folder_.Write("b.jsonl", "[1]\n\n[2]\n[3]");
  folder_.Write("empty.jsonl");
  folder_.Write("ignored.txt", "x");
  PlanInput input = Of(PlanKind::kJsonLines, folder_.path(), 2);
  input.pattern = "*.jsonl";
  const Plan plan = PlanFromEverywhere({input});
  EXPECT_THAT(plan.Batches(), ElementsAre(1, 1, 2, 4, 8, 16, 32, 64, 128, 245, 2));
  EXPECT_EQ(plan.items, 1004u);
  EXPECT_EQ(plan.rows(0).kind, job::RowKind::kJsonLines);
  EXPECT_EQ(plan.rows(0).path, folder_ / "a.jsonl");
  EXPECT_EQ(plan.rows(0).format, R"({"encoding":"utf-8"})");
  EXPECT_EQ(plan.rows(0).header, "");
  EXPECT_EQ(plan.rows(0).slices[0].length, 20u);
  EXPECT_EQ(plan.chunks[9]->record.ItemsOf(244), 1u);
  EXPECT_EQ(plan.rows(10).slices[0].length, 9u);
  EXPECT_EQ(plan.rows(10).slices[1].rows, 1u);
}

TEST_F(PlanKindsTest, JsonLinesWithoutALine) {
  folder_.Write("a.jsonl", "\n \n");
  EXPECT_EQ(MakePlan({Of(PlanKind::kJsonLines, folder_.path(), 2)}).error,
            "Invalid: inputs[images]: no file below " + folder_.path() +
                " holds a row: put files there, or correct where the input lies; where it may be "
                "empty, write allowEmpty: Existing beside its name (without a job file: "
                "--allow-empty)");
}

TEST_F(PlanKindsTest, APathThatEndsInASlashIsNoObject) {
  PlanInput input = FilesInput(folder_.path(), 1);
  EXPECT_EQ(MakePlan({input}).error.find("without the /"), std::string::npos);
  input.is_prefix = true;
  EXPECT_THAT(MakePlan({input}).error,
              HasSubstr("; one object of that name is written without the / at the end of path"));
}

// --- inputs without an item

PlanInput MayBeEmpty(PlanInput input, api::AllowEmpty allowed) {
  input.allow_empty = allowed;
  return input;
}

TEST_F(PlanKindsTest, ATableWithoutARowIsRefusedWithWhatAllowsIt) {
  const std::string existing =
      "write allowEmpty: Existing beside its name (without a job file: --allow-empty)";
  const std::string missing =
      "write allowEmpty: Missing beside its name (without a job file: --allow-empty=Missing)";
  for (const char* text : {"id\n", "", "\n\n", "id"}) {
    folder_.Write("a.csv", text);
    PlanInput input = Rows(folder_.path(), 1);
    EXPECT_NE(MakePlan({input}).error.find(existing), std::string::npos) << MakePlan({input}).error;
    input.partition_format = "{k}.csv";
    input.partition_keys = {"k"};
    EXPECT_NE(MakePlan({input}).error.find(existing), std::string::npos) << MakePlan({input}).error;
    input.replaces = true;  // an output that has rows
    EXPECT_NE(MakePlan({input}).error.find(missing), std::string::npos) << MakePlan({input}).error;
  }
  // A name that was misspelt is no empty day.
  EXPECT_EQ(MakePlan({FilesInput(folder_ / "b", 1)}).error.find("allowEmpty"), std::string::npos);
}

TEST_F(PlanKindsTest, OnlyWhatIsThereMayBeEmptyWithoutMoreWords) {
  using api::AllowEmpty;
  folder_.Write("rows/a.csv", "id\n");
  folder_.Write("lines/a.jsonl", "\n");
  folder_.Write("empty/.hidden", "x");
  for (const std::string_view footer : kEmptyParquetFootersHex) {
    const std::string name = "groups/" + std::to_string(footer.size()) + ".parquet";
    folder_.Write(name, ParquetFile(FromHex(footer)));
  }
  PlanInput pattern = FilesInput(folder_.path(), 1);
  pattern.pattern = "*.png";
  const std::vector<PlanInput> there = {Rows(folder_ / "rows", 1),
                                        Rows(folder_ / "rows/a.csv", 1),
                                        Of(PlanKind::kJsonLines, folder_ / "lines", 1),
                                        FilesInput(folder_ / "empty", 1),
                                        Rows(folder_ / "empty", 1),
                                        Of(PlanKind::kParquet, folder_ / "groups", 1)};
  for (const PlanInput& input : there) {
    EXPECT_NE(MakePlan({MayBeEmpty(input, AllowEmpty::kNever)}).error, "") << input.root;
    for (const AllowEmpty allowed : {AllowEmpty::kExisting, AllowEmpty::kMissing}) {
      const Plan plan = MakePlan({MayBeEmpty(input, allowed)});
      EXPECT_EQ(plan.error, "") << input.root;
      EXPECT_EQ(plan.batches, 0u);
      ASSERT_FALSE(plan.notes.empty());
      EXPECT_THAT(plan.notes.back(), HasSubstr("EMPTY: no item below " + input.root));
    }
  }
  for (const PlanInput& input :
       {pattern, FilesInput(folder_ / "none", 1), Rows(folder_ / "no", 1)}) {
    EXPECT_NE(MakePlan({MayBeEmpty(input, AllowEmpty::kExisting)}).error, "") << input.root;
    EXPECT_EQ(MakePlan({MayBeEmpty(input, AllowEmpty::kMissing)}).error, "") << input.root;
  }
}

TEST_F(PlanKindsTest, AFolderOfABucketIsThereWhereItsMarkIs) {
  store::s3::SmallS3 server;
  server.Put("day/", "");
  server.Put("late/_SUCCESS", "");
  const OpenStore open = [&](const PlanInput& input) {
    return store::s3::StoreAt(store::s3::QuickOptions(server, input.root));
  };
  const auto plan_of = [&](const std::string& root, api::AllowEmpty allowed) {
    PlanInput input = MayBeEmpty(Rows(root, 1), allowed);
    input.store = "bucket";
    return MakePlanOn(open, {input});
  };
  for (const char* root : {"s3://bucket/day", "s3://bucket/late"}) {
    const Plan plan = plan_of(root, api::AllowEmpty::kExisting);
    EXPECT_EQ(plan.error, "");
    EXPECT_THAT(plan.notes, Contains(HasSubstr(std::string("EMPTY: no item below ") + root)));
    EXPECT_NE(plan_of(root, api::AllowEmpty::kNever).error, "");
  }
  for (const char* root : {"s3://bucket/da", "s3://bucket/days"}) {
    EXPECT_THAT(plan_of(root, api::AllowEmpty::kExisting).error,
                HasSubstr("allowEmpty: Existing is for what is there: write Missing"));
    EXPECT_EQ(plan_of(root, api::AllowEmpty::kMissing).error, "");
  }
  EXPECT_THAT(plan_of("s3://other", api::AllowEmpty::kExisting).error,
              HasSubstr("there is no bucket other"));
}

// Of a prefix nobody knows whether it is there, but for what lies below it.
TEST_F(PlanKindsTest, APrefixIsThereByWhatLiesBelowIt) {
  using api::AllowEmpty;
  MemoryObjects objects;
  objects.Put("memory://bucket/day/_SUCCESS", "");
  objects.Put("memory://bucket/header/a.csv", "id\n");
  const OpenStore stores = [&objects](const PlanInput& input) { return objects.Open(input.root); };
  const auto error = [&](const std::string& prefix, AllowEmpty allowed, const char* pattern = "") {
    PlanInput input = MayBeEmpty(Rows("memory://bucket/" + prefix, 1), allowed);
    input.store = "bucket";
    input.pattern = pattern;
    return MakePlanOn(stores, {input}).error;
  };
  for (const char* there : {"day", "header"}) {
    EXPECT_THAT(error(there, AllowEmpty::kNever), HasSubstr("no file"));
    EXPECT_EQ(error(there, AllowEmpty::kExisting), "");
    EXPECT_EQ(error(there, AllowEmpty::kMissing), "");
  }
  EXPECT_THAT(error("day", AllowEmpty::kExisting, "*.csv"), HasSubstr("write Missing"));
  EXPECT_EQ(error("header", AllowEmpty::kExisting, "*.csv"), "");
}

TEST_F(PlanKindsTest, AnOutputWithRowsIsNotReplacedByNothing) {
  using api::AllowEmpty;
  folder_.Write("rows/a.csv", "id\n");
  folder_.Write("more/a.csv", "id\n1\n");
  PlanInput empty = MayBeEmpty(Rows(folder_ / "rows", 1), AllowEmpty::kExisting);
  empty.replaces = true;
  EXPECT_THAT(MakePlan({empty}).error, HasSubstr("would replace one that has something"));
  EXPECT_EQ(MakePlan({MayBeEmpty(empty, AllowEmpty::kMissing)}).error, "");
  const Plan plan = MakePlan({empty, Rows(folder_ / "more", 1)});
  EXPECT_EQ(plan.error, "");
  EXPECT_EQ(plan.batches, 1u);
}

// --- rank mini-batches

TEST_F(PlanKindsTest, RankMiniBatches) {
  PlanInput ranks = Of(PlanKind::kRanks, "", 3);
  const Plan plan = PlanFromEverywhere({ranks});
  EXPECT_THAT(plan.Batches(), ElementsAre(3));
  EXPECT_EQ(plan.items, 3u);
  ranks.batch_size = 150'000;
  EXPECT_THAT(PlanFromEverywhere({ranks}).Batches(), ElementsAre(65'536, 65'536, 18'928));
}

// --- partition keys

TEST_F(PlanKindsTest, D7FilesByPartitionKeys) {
  for (const char* name :
       {"user1/winter/disco.wav", "user1/summer/piano.wav", "user2/fall/disco.wav",
        "user3/spring/piano.wav", "user4/fall/piano.wav", "user4/winter/piano.wav"}) {
    folder_.Write(name, "sound");
  }
  const PlanInput input =
      Keyed(FilesInput(folder_.path(), 10), "{user}/{season}/{genres}.wav", {"user", "genres"});
  const Plan plan = PlanFromEverywhere({input});
  // Five mini-batches of six files, in the order in which the keys appear in the listing.
  EXPECT_EQ(GroupsOf(plan, folder_.path()),
            (Groups{{R"({"user":"user1","genres":"piano"})", {"user1/summer/piano.wav"}},
                    {R"({"user":"user1","genres":"disco"})", {"user1/winter/disco.wav"}},
                    {R"({"user":"user2","genres":"disco"})", {"user2/fall/disco.wav"}},
                    {R"({"user":"user3","genres":"piano"})", {"user3/spring/piano.wav"}},
                    {R"({"user":"user4","genres":"piano"})",
                     {"user4/fall/piano.wav", "user4/winter/piano.wav"}}}));
  EXPECT_EQ(plan.items, 6u);
  EXPECT_EQ(SizeOf(plan.file_groups(0).groups[4].versions[1]), 5u);
}

TEST_F(PlanKindsTest, D7GroupsAreWholeHoweverFarTheirFilesAre) {
  for (int i = 0; i < 1000; ++i) {
    folder_.Write(std::to_string(1000 + i) + "-" + std::to_string(i % 300) + ".png");
  }
  const PlanInput input = Keyed(FilesInput(folder_.path(), 1), "{n}-{who}.png", {"who"});
  const Plan plan = PlanFromEverywhere({input, FilesInput(folder_.path(), 1000)});
  // The first chunk is small, and holds whole groups.
  EXPECT_THAT(plan.Batches(), ElementsAre(16, 16, 32, 74, 162, 1));
  EXPECT_EQ(plan.file_groups(0).groups[0].context, R"({"who":"0"})");
  EXPECT_EQ(plan.file_groups(0).groups[0].names,
            "1000-0.png\0001300-0.png\0001600-0.png\0001900-0.png"s);
  EXPECT_EQ(plan.items, 2000u);
}

TEST_F(PlanKindsTest, D10AFileThatDoesNotMatchTheFormatFailsThePlan) {
  folder_.Write("a/1.png");
  folder_.Write("b/readme.txt");
  const char* error = "b/readme.txt does not match partitionFormat {who}/{n}.png";
  const PlanInput input = FilesInput(folder_.path(), 1);
  const Plan plan = MakePlan({Keyed(input, "{who}/{n}.png", {"who"})});
  EXPECT_THAT(plan.error, HasSubstr("Invalid: inputs[images]: the file "));
  EXPECT_THAT(plan.error, HasSubstr(error));
  EXPECT_TRUE(plan.chunks.empty());  // nothing may be leased before all is grouped
  EXPECT_THAT(MakePlan({Keyed(input, "{who}/{n}.png", {})}).error, HasSubstr(error));
  PlanInput narrow = Keyed(input, "{who}/{n}.png", {"who"});
  narrow.pattern = "**/*.png";
  EXPECT_EQ(MakePlan({narrow}).error, "");
  EXPECT_THAT(MakePlan({Keyed(input, "{who}{n}", {"who"})}).error,
              HasSubstr("inputs[images]: partitionFormat {who}{n}: "));
}

TEST_F(PlanKindsTest, D7GroupsThatChangedAreNotGoneOnWith) {
  for (int i = 0; i < 200; ++i) folder_.Write("k" + std::to_string(100 + i) + "/1");
  const std::vector<PlanInput> inputs = {
      Keyed(FilesInput(folder_.path(), 1), "{key}/{n}", {"key"})};
  const Plan plan = PlanFromEverywhere(inputs);
  const PlanCursor cursor = CursorAfter(plan.chunks[0]->record, inputs);
  folder_.Write("k100/2");  // of a group that is planned already
  EXPECT_THAT(MakePlan(inputs, cursor).error,
              HasSubstr("Invalid: inputs[images]: files below " + folder_.path() + " were added"));
  std::filesystem::remove(folder_ / "k100/2");
  EXPECT_EQ(MakePlan(inputs, cursor).error, "");
}

TEST_F(PlanKindsTest, D11TablesByPartitionKeys) {
  folder_.Write("1000/dominicks/w1.csv", "week,sold\n1,5\n2,6\n");
  folder_.Write("1000/tropicana/w1.csv", "week,sold\n1,7\n");
  folder_.Write("1000/dominicks/w2.csv", "week,sold\n3,8\n");
  folder_.Write("1001/empty/w1.csv", "week,sold\n");
  folder_.Write("1002/tropicana/w1.csv", "week,sold\n4,9");
  const PlanInput input =
      Keyed(Rows(folder_.path(), 1), "{Store}/{Brand}/{file_name}.{extension}", {"Store", "Brand"});
  const Plan plan = PlanFromEverywhere({input});
  EXPECT_EQ(GroupsOf(plan, folder_.path()),
            (Groups{{R"({"Store":"1000","Brand":"dominicks"})",
                     {"1000/dominicks/w1.csv", "1000/dominicks/w2.csv"}},
                    {R"({"Store":"1000","Brand":"tropicana"})", {"1000/tropicana/w1.csv"}},
                    {R"({"Store":"1002","Brand":"tropicana"})", {"1002/tropicana/w1.csv"}}}));
  EXPECT_THAT(plan.Batches(), ElementsAre(1, 1, 1));
  EXPECT_EQ(plan.items, 5u);
  EXPECT_EQ(plan.chunks[0]->record.ItemsOf(0), 3u);
  EXPECT_EQ(plan.table_groups(0).format,
            R"({"delimiter":",","delimiterAtEnd":"FirstRows","encoding":"utf-8"})");
  const job::TableSlice& slice = plan.table_groups(0).groups[0].slices[0];
  EXPECT_EQ(slice.header, "week,sold\n");
  EXPECT_EQ(slice.offset, 10u);
  EXPECT_EQ(slice.length, 8u);
  EXPECT_EQ(slice.rows, 2u);
  EXPECT_EQ(slice.size, 18u);
}

TEST_F(PlanKindsTest, D11TheFirstFilesHeaderStandsForAllGroups) {
  folder_.Write("a/1.csv", "h\n1\n");
  folder_.Write("b/1.csv", "2\n3\n");
  folder_.Write("c/1.csv", "h\n4\n");
  const Plan plan = PlanFromEverywhere(
      {Keyed(Rows(folder_.path(), 1, api::HeaderMode::kFirstFile), "{key}/{n}.csv", {"key"})});
  EXPECT_EQ(plan.items, 4u);
  EXPECT_EQ(plan.table_groups(1).groups[0].slices[0].header, "h\n");
  EXPECT_EQ(plan.table_groups(1).groups[0].slices[0].offset, 0u);
  EXPECT_EQ(plan.table_groups(2).groups[0].slices[0].offset, 2u);
}

// --- a partition format without keys

TEST_F(PlanKindsTest, D10ContextOfFilesThatHaveTheSameValues) {
  for (const char* name : {"a/1.png", "a/2.png", "a/3.png", "b/1.png", "b/2.png"}) {
    folder_.Write(name);
  }
  PlanInput input = Keyed(FilesInput(folder_.path(), 2), "{who}/{n}.png", {});
  input.partition_format = "{who}/1.png";
  input.pattern = "*/1.png";
  EXPECT_EQ(GroupsOf(PlanFromEverywhere({input}), folder_.path()),
            (Groups{{"", {"a/1.png", "b/1.png"}}}));
  input = Keyed(FilesInput(folder_.path(), 1), "{who}/{n}.png", {});
  const Groups groups = GroupsOf(PlanFromEverywhere({input}), folder_.path());
  ASSERT_EQ(groups.size(), 5u);
  EXPECT_EQ(groups[3].first, R"({"who":"b","n":"1"})");
  EXPECT_THAT(groups[3].second, ElementsAre("b/1.png"));
}

TEST_F(PlanKindsTest, D10ContextOfTheSlicesOfAFile) {
  folder_.Write("s1/x.csv", "h\n1\n2\n");
  folder_.Write("s2/x.csv", "h\n3\n");
  const Plan plan = PlanFromEverywhere({Keyed(Rows(folder_.path(), 1), "{Store}/{f}.csv", {})});
  EXPECT_EQ(plan.rows(0).context, R"({"Store":"s1","f":"x"})");
  EXPECT_EQ(plan.rows(2).context, R"({"Store":"s2","f":"x"})");
  EXPECT_EQ(PlanFromEverywhere({Rows(folder_.path(), 1)}).rows(0).context, "");
}

// --- Parquet

TEST_F(PlanKindsTest, ParquetByRowGroups) {
  folder_.Write("a.parquet", ParquetFile(ParquetFooter()));
  folder_.Write("b.parquet", ParquetFile(ParquetFooter()));
  const Plan plan = PlanFromEverywhere({Of(PlanKind::kParquet, folder_.path(), 1)});
  EXPECT_THAT(plan.Batches(), ElementsAre(1, 1, 1, 3));
  EXPECT_EQ(plan.items, 50u);
  EXPECT_EQ(plan.rows(3).kind, job::RowKind::kParquet);
  EXPECT_EQ(plan.rows(3).path, folder_ / "b.parquet");
  EXPECT_EQ(plan.rows(3).slices[2].offset, 2u);
  EXPECT_EQ(plan.rows(3).slices[2].rows, 5u);
  EXPECT_THAT(PlanFromEverywhere({Of(PlanKind::kParquet, folder_.path(), 1 << 20)}).Batches(),
              ElementsAre(1, 1));
}

TEST_F(PlanKindsTest, ParquetByPartitionKeys) {
  folder_.Write("a/1.parquet", ParquetFile(ParquetFooter()));
  folder_.Write("a/2.parquet", ParquetFile(ParquetFooter()));
  const Plan plan = PlanFromEverywhere(
      {Keyed(Of(PlanKind::kParquet, folder_.path(), 1), "{key}/{n}.parquet", {"key"})});
  EXPECT_THAT(plan.Batches(), ElementsAre(1));
  EXPECT_EQ(plan.items, 50u);
  EXPECT_EQ(plan.table_groups(0).format, R"({"format":"parquet"})");
  const job::TableSlice& slice = plan.table_groups(0).groups[0].slices[1];
  EXPECT_EQ(slice.offset, 0u);
  EXPECT_EQ(slice.length, slice.size);
  EXPECT_EQ(slice.rows, 25u);
}

TEST_F(PlanKindsTest, S81WhatIsNoTextFailsThePlan) {
  const struct {
    std::string begin;
    const char* says;
  } cases[] = {
      {"PK\x03\x04", "is compressed (zip, as .xlsx is)"},
      {"\xFD\x37zXZ", "is compressed (xz)"},
      {"BZh91AY&SY", "is compressed (bzip2)"},
      {"PAR1", "is a Parquet file: set tabular.format to Parquet"},
  };
  for (const PlanKind kind : {PlanKind::kDelimited, PlanKind::kJsonLines}) {
    for (const auto& [begin, says] : cases) {
      SCOPED_TRACE(says);
      folder_.Write("a.csv", begin + "\n1,2\n");
      const std::string error = MakePlan({Of(kind, folder_.path(), 1)}).error;
      EXPECT_THAT(error, HasSubstr("Invalid: inputs[images]: "));
      EXPECT_THAT(error, HasSubstr((folder_ / "a.csv") + " " + says));
    }
  }
  folder_.Write("a.csv", "BZh9,PK\n1,2\n");
  EXPECT_EQ(MakePlan({Of(PlanKind::kDelimited, folder_.path(), 1)}).error, "");
}

TEST_F(PlanKindsTest, WideEncodingsAreToldBeforeAllElse) {
  using std::string_literals::operator""s;
  const struct {
    std::string mark;
    size_t before, behind;  // NULs around each character
    const char* says;
  } cases[] = {
      {"\xFF\xFE", 0, 1, "is utf-16 text"},         {"\xFE\xFF", 1, 0, "is utf-16 text"},
      {"\xFF\xFE\0\0"s, 0, 3, "is utf-32 text"},    {"\0\0\xFE\xFF"s, 3, 0, "is utf-32 text"},
      {"", 0, 1, "(`iconv -f utf-16le -t utf-8`)"}, {"", 1, 0, "(`iconv -f utf-16be -t utf-8`)"},
      {"", 0, 3, "(`iconv -f utf-32le -t utf-8`)"}, {"", 3, 0, "(`iconv -f utf-32be -t utf-8`)"},
  };
  for (const PlanKind kind : {PlanKind::kDelimited, PlanKind::kJsonLines}) {
    for (const auto& [mark, before, behind, says] : cases) {
      std::string text = mark;
      for (const char c : "id;name\n1;x\n"s) {
        text += std::string(before, '\0') + c + std::string(behind, '\0');
      }
      folder_.Write("a.csv", text);
      const std::string error = MakePlan({Of(kind, folder_.path(), 1)}).error;
      EXPECT_THAT(error, HasSubstr((folder_ / "a.csv") + " is utf-"));
      EXPECT_THAT(error, HasSubstr(says));
    }
  }
  folder_.Write("a.csv", "a,b\n\0,\0\n\0,\0\n"s);
  EXPECT_EQ(MakePlan({Of(PlanKind::kDelimited, folder_.path(), 1)}).error, "");
}

TEST_F(PlanKindsTest, AFileThatIsNoParquetFailsThePlan) {
  folder_.Write("a.parquet", "this is text, not a table");
  EXPECT_THAT(MakePlan({Of(PlanKind::kParquet, folder_.path(), 1)}).error,
              HasSubstr("Invalid: inputs[images]: " + (folder_ / "a.parquet") + " cannot be read"));
}

}  // namespace
}  // namespace parallelrun::plan
