#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "plan/left_out.h"
#include "plan/listing.h"
#include "plan/source.h"
#include "plan/table_logs.h"
#include "tests/support/disk_files.h"
#include "tests/unit/plan/folder.h"
#include "tests/unit/plan/places.h"
#include "tests/unit/plan/plans.h"

namespace parallelrun::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Names = std::vector<std::string>;

PlanKind KindOf(DataNames names) {
  if (names == DataNames::kAll) return PlanKind::kFiles;
  return names == DataNames::kAsSpark ? PlanKind::kParquet : PlanKind::kDelimited;
}

// What is listed and, at the end, the error or what is said of the rest.
Names ListedIn(store::Store& store, const PlanInput& input, const std::string& after = "") {
  Listing listing(input, store, after);
  Names all;
  while (true) {
    const auto name = listing.Next();
    if (!name.ok()) {
      all.push_back(name.error().message);
      return all;
    }
    if (!*name) break;
    all.emplace_back((*name)->name);
  }
  const Names lines = listing.left_out().Lines(DataNamesOf(input.kind));
  all.push_back(lines.empty() ? "" : lines.front());
  return all;
}

Names Listed(const std::string& root, DataNames names, const Names& exclude = {},
             const std::string& pattern = "", const std::string& after = "") {
  PlanInput input = Rows(root, 1000);
  input.kind = KindOf(names);
  input.pattern = pattern;
  input.exclude = exclude;
  return ListedIn(*RefusingTableLogs(FolderStores(DiskFiles()))(input), input, after);
}

template <typename Place>
class LeftOutNamesTest : public ::testing::Test {
 protected:
  Place place_;
};
TYPED_TEST_SUITE(LeftOutNamesTest, Places);

TEST(LeftOutTest, ParquetIsReadAsSparkReadsIt) {
  for (const char* name : {"_SUCCESS", "_metadata", "_common_metadata", "_temporary", "_x.parquet",
                           "a.parquet._COPYING_", "_started_17"}) {
    EXPECT_FALSE(IsData(DataNames::kAsSpark, name)) << name;
  }
  for (const char* name : {"a.parquet", "_k=v", "_year=2026", "a_b", "=", "a._COPYING_.parquet"}) {
    EXPECT_TRUE(IsData(DataNames::kAsSpark, name)) << name;
  }
}

TEST(LeftOutTest, OfOtherTablesKnownMarksOnly) {
  for (const char* name : {"_SUCCESS", "_committed_817", "_started_817", "_temporary"}) {
    EXPECT_FALSE(IsData(DataNames::kNoMarks, name)) << name;
    EXPECT_TRUE(IsData(DataNames::kAll, name)) << name;
  }
  for (const char* name : {"_x.csv", "_SUCCESS.csv", "_metadata", "x_SUCCESS", "_committed"}) {
    EXPECT_TRUE(IsData(DataNames::kNoMarks, name)) << name;
  }
}

// A store may ask about a name as often as it likes.
TEST(LeftOutTest, EachNameCountsOnce) {
  LeftOut left_out;
  const auto lines = [&left_out] { return left_out.Lines(DataNames::kAsSpark); };
  for (const char* name : {"b", "a", "b"}) left_out.AddNoData(name);
  EXPECT_THAT(lines(), ElementsAre(StartsWith("2 names are left out, the first a:")));
  for (size_t i = 2; i < CountedNames::kMost; ++i) left_out.AddNoData("b" + std::to_string(i));
  EXPECT_THAT(lines(), ElementsAre(StartsWith("1000 names are left out")));
  left_out.AddNoData("_");
  left_out.AddNoData("a");
  EXPECT_THAT(lines(), ElementsAre(StartsWith("more than 1000 names are left out, the first _:")));
  left_out.AddOfOther("x.csv");
  EXPECT_THAT(lines(), ElementsAre(StartsWith("more than 1000 names"),
                                   StartsWith("1 file is left out, the first x.csv: an input "
                                              "before this one has it too")));
}

TYPED_TEST(LeftOutNamesTest, AFolderThatSparkWrote) {
  auto& folder = this->place_;
  for (const char* name : {"_SUCCESS", "_k=1/b.parquet", "a.parquet", "_temporary/0/x.parquet",
                           "_temporary/0/y.parquet"}) {
    folder.Write(name);
  }
  PlanInput input = Rows(folder.path(), 1000);
  input.kind = PlanKind::kParquet;
  EXPECT_THAT(ListedIn(*folder.Stores()(input), input),
              ElementsAre("_k=1/b.parquet", "a.parquet", StartsWith("2 names are left out, the")));
  input.root = folder / "_SUCCESS";
  EXPECT_THAT(ListedIn(*folder.Stores()(input), input), ElementsAre("_SUCCESS", ""));
}

TEST(LeftOutTest, AFolderThatSparkWrote) {
  PlanFolder folder;
  for (const char* name : {"_SUCCESS", "_k=1/b.parquet", "_k=1/_c.parquet", "a.parquet", ".a.crc",
                           "_temporary/0/x.parquet", "_temporary/0/y.parquet"}) {
    folder.Write(name);
  }
  EXPECT_THAT(Listed(folder.path(), DataNames::kAsSpark),
              ElementsAre("_k=1/b.parquet", "a.parquet",
                          "3 names are left out, the first _SUCCESS: in Parquet folders a name "
                          "with _ in front is no data"));
  EXPECT_THAT(Listed(folder.path(), DataNames::kNoMarks),
              ElementsAre("_k=1/_c.parquet", "_k=1/b.parquet", "a.parquet",
                          "2 names are left out, the first _SUCCESS: marks of the program that "
                          "wrote the folder are no data"));
  // What nobody asked for is not left out, and one that is named counts nothing.
  EXPECT_THAT(Listed(folder.path(), DataNames::kAsSpark, {}, "*.parquet"),
              ElementsAre("a.parquet", ""));
  EXPECT_THAT(Listed(folder.path(), DataNames::kNoMarks, {"_*"}), ElementsAre("a.parquet", ""));
  EXPECT_EQ(Listed(folder.path(), DataNames::kAll).size(), 7u);
  // Behind a name it counts the same of the folders that it still reads.
  EXPECT_THAT(Listed(folder.path(), DataNames::kAsSpark, {}, "", "_k=1/b.parquet"),
              ElementsAre("a.parquet", StartsWith("3 names")));
}

TEST(LeftOutTest, AFileThatIsNamedIsData) {
  PlanFolder folder;
  EXPECT_THAT(Listed(folder.Write("_x.parquet"), DataNames::kAsSpark),
              ElementsAre("_x.parquet", ""));
}

// A link to a folder that is left out under its own name is listed under the link's.
TEST(LeftOutTest, ALinkIntoWhatIsLeftOut) {
  PlanFolder folder;
  folder.Write("_staged/x.parquet");
  folder.Link("_staged", "data");
  EXPECT_THAT(Listed(folder.path(), DataNames::kAsSpark),
              ElementsAre("data/x.parquet", StartsWith("1 name is left out, the first _staged")));
}

TEST(LeftOutTest, ATableWithALogIsRefused) {
  PlanFolder folder;
  folder.Write("delta/_delta_log/00000.json");
  folder.Write("delta/d=1/a.parquet");
  folder.Write("ice/metadata/v1.metadata.json");
  folder.Write("ice/data/a.parquet");
  folder.Write("plain/metadata/notes.json");
  folder.Write("plain/a.parquet");
  const auto refused = [](const std::string& table, const char* kind, const char* log) {
    return ElementsAre(AllOf(HasSubstr("inputs[rows]: " + table + " is " + kind + " table"),
                             HasSubstr("rows that were removed"),
                             HasSubstr(std::string("name ") + log + " in inputs[].exclude")));
  };
  const auto delta = refused(folder / "delta", "a Delta", "_delta_log");
  const auto ice = refused(folder / "ice", "an Iceberg", "metadata");
  for (const DataNames names : {DataNames::kAsSpark, DataNames::kNoMarks}) {
    EXPECT_THAT(Listed(folder.path(), names), delta);  // the first one it comes to
    EXPECT_THAT(Listed(folder.path(), names, {"delta"}), ice);
    // A part of a table, one file of it, and a pattern that does not ask for its log.
    EXPECT_THAT(Listed(folder / "delta/d=1", names), delta);
    EXPECT_THAT(Listed(folder / "delta/d=1/a.parquet", names), delta);
    EXPECT_THAT(Listed(folder / "ice/data", names), ice);
    EXPECT_THAT(Listed(folder / "ice", names, {}, "data/*.parquet"), ice);
    // On purpose.
    EXPECT_THAT(Listed(folder / "delta", names, {"_delta_log"}), ElementsAre("d=1/a.parquet", ""));
    EXPECT_THAT(Listed(folder / "ice/data", names, {"metadata"}), ElementsAre("a.parquet", ""));
  }
  EXPECT_THAT(Listed(folder / "plain", DataNames::kNoMarks),
              ElementsAre("a.parquet", "metadata/notes.json", ""));
  // Paths of files are given as they are.
  EXPECT_EQ(Listed(folder.path(), DataNames::kAll).size(), 7u);
}

// Whatever the store is: a plan of it is refused, before its first mini-batch where the log is the
// root's, or in front of it.
TYPED_TEST(LeftOutNamesTest, NoStoreGivesRowsThatWereRemoved) {
  this->place_.Write("delta/Part/a.csv", "x\n1\n");
  this->place_.Write("delta/_delta_log/00000.json");
  this->place_.Write("ice/data/a.csv", "x\n1\n");
  this->place_.Write("ice/metadata/v1.metadata.json");
  this->place_.Write("plain/a.csv", "x\n1\n");
  this->place_.Write("plain/metadata/notes.json");
  this->place_.Write("plain/_delta_log", "a file of that name");
  const auto planned = [this](const std::string& below, const Names& exclude = {}) -> std::string {
    PlanInput input = Rows(below.empty() ? this->place_.path() : this->place_ / below, 1000);
    input.store = TypeParam::kStore;
    input.kind = PlanKind::kDelimited;
    input.pattern = "**/*.csv";
    input.exclude = exclude;
    Planner planner({input}, this->place_.Stores(), {});
    int chunks = 0;
    for (auto next = planner.Next();; next = planner.Next()) {
      if (!next.ok()) return std::to_string(chunks) + " chunks, " + next.error().message;
      if (!*next) return std::to_string(chunks) + " chunks";
      ++chunks;
    }
  };
  EXPECT_THAT(planned("delta"), HasSubstr("0 chunks, inputs[rows]: "));
  for (const char* part : {"delta", "delta/Part", "delta/Part/a.csv", ""}) {
    EXPECT_THAT(planned(part), HasSubstr("is a Delta table (_delta_log/00000.json is there)"));
  }
  EXPECT_THAT(planned("ice"), HasSubstr("0 chunks, inputs[rows]: "));
  for (const char* part : {"ice", "ice/data", "ice/data/a.csv"}) {
    EXPECT_THAT(planned(part), HasSubstr("an Iceberg table (metadata/v1.metadata.json is there)"));
  }
  EXPECT_THAT(planned("", {"delta"}), HasSubstr("an Iceberg table"));
  EXPECT_EQ(planned("plain"), "1 chunks");
  EXPECT_EQ(planned("ice/data", {"metadata"}), "1 chunks");
  EXPECT_EQ(planned("", {"**/_delta_log", "**/metadata"}), "3 chunks");
}

// The way to a part of a table may be a link.
TEST(LeftOutTest, ALinkIntoATableWithALogIsRefused) {
  PlanFolder folder;
  folder.Write("delta/_delta_log/00000.json");
  folder.Write("delta/d=1/a.parquet");
  folder.Link("delta/d=1", "link");
  EXPECT_THAT(Listed(folder / "link", DataNames::kAsSpark),
              ElementsAre(HasSubstr("is a Delta table")));
}

TEST(LeftOutTest, ThePlanSaysIt) {
  PlanFolder folder;
  folder.Write("a.csv", "x\n1\n");
  folder.Write("_SUCCESS");
  PlanFolder other;
  other.Write("_SUCCESS");
  other.Write("a.csv", "x\n1\n");
  PlanInput second = Rows(other.path(), 1000);
  second.name = "more";
  for (const std::vector<std::string>& keys : {Names(), Names{"n"}}) {
    PlanInput first = Rows(folder.path(), 1000);
    first.partition_keys = keys;
    first.partition_format = keys.empty() ? "" : "{n}.csv";
    Planner planner({first, second}, FolderStores(DiskFiles()), {});
    Names notes;
    while (true) {
      const auto next = planner.Next();
      ASSERT_TRUE(next.ok()) << next.error().message;
      for (const std::string& note : planner.TakeNotes()) notes.push_back(note);
      if (!*next) break;
    }
    EXPECT_THAT(notes, ElementsAre(StartsWith("inputs[rows]: 1 name is left out, the first _SUCC"),
                                   StartsWith("inputs[more]: 1 name is left out")));
  }
}

// Somebody has written it: it was passed over without a word, as the mark of a folder.
TEST(LeftOutTest, WhatNoFileCanBeCalledIsNamed) {
  MemoryPlace place;
  place.Write("", "text");
  for (const char* name : {"a.csv/", "b/", ".c/", "_SUCCESS/", "d/e.csv/"})
    place.Write(name, "x\n1\n");
  place.Write("f/");
  place.Write("g.csv", "x\n1\n");
  const auto notes_of = [&place](PlanInput input) {
    input.store = MemoryPlace::kStore;
    Planner planner({std::move(input)}, place.Stores(), {});
    Names notes;
    while (true) {
      const auto next = planner.Next();
      EXPECT_TRUE(next.ok()) << next.error().message;
      for (const std::string& note : planner.TakeNotes()) notes.push_back(note);
      if (!next.ok() || !*next) return notes;
    }
  };
  PlanInput input = Rows(place.path(), 1000);
  EXPECT_THAT(
      notes_of(input),
      ElementsAre("inputs[rows]: 4 objects are left out, the first a.csv/: no file can have "
                  "a name that ends in /, and it is no mark of a folder, for it holds "
                  "bytes: copy it to another name"));
  // The way to a name is no part of what a pattern means.
  input.pattern = "*.csv";
  EXPECT_THAT(notes_of(input),
              ElementsAre(StartsWith("inputs[rows]: 1 object is left out, the first a.csv/: no")));
  input.pattern = "";
  input.exclude = {"a.csv", "b", "d"};
  EXPECT_THAT(notes_of(input), ElementsAre(HasSubstr("1 object is left out, the first in/: no")));
}

TEST(LeftOutTest, WhereNothingIsLeftThePlanSaysWhy) {
  PlanFolder folder;
  folder.Write("_a.parquet");
  PlanInput input = Rows(folder.path(), 1000);
  input.kind = PlanKind::kParquet;
  const std::string error = MakePlan({input}).error;
  EXPECT_THAT(error, HasSubstr("no file below"));
  EXPECT_THAT(error, HasSubstr("(1 name is left out, the first _a.parquet: in Parquet folders"));
}

}  // namespace
}  // namespace parallelrun::plan
