#include "plan/columns/decide_types.h"

#include <gtest/gtest.h>

#include <random>
#include <stop_token>
#include <string>
#include <vector>

#include "job/record_codec.h"
#include "tests/unit/plan/compressed.h"
#include "tests/unit/plan/folder.h"
#include "tests/unit/plan/plans.h"

namespace parallelrun::plan {
namespace {

class DecideTypesTest : public testing::Test {
 protected:
  PlanInput Input(api::HeaderMode header = api::HeaderMode::kAllFiles) const {
    return Rows(folder_.path(), 10, header);
  }

  std::string Line(const PlanInput& input, const TypesLimit& limit = kSampleLimit) const {
    const auto table = DecideTypes(input, *FolderStores(DiskFiles())(input), limit);
    if (!table.ok()) return table.error().message;
    if (!*table) return "no table";
    std::string line = ColumnsLine(**table, input, 1000);
    const std::string folder = folder_.path().substr(folder_.path().rfind('/') + 1);
    for (size_t at = line.find(folder); at != std::string::npos; at = line.find(folder)) {
      line.replace(at, folder.size(), "in");
    }
    return line;
  }

  PlanFolder folder_;
};

TEST_F(DecideTypesTest, AllOfTheInputDecides) {
  folder_.Write("a.csv", "id,zip,ok\n1,1234,True\n2,5678,\n");
  folder_.Write("b.csv", "id,zip,ok\n\n3,\"00239\",False\n,77,True\n");
  EXPECT_EQ(Line(Input()),
            "columns: id number (an empty field is missing, in/b.csv:4), zip text (\"00239\" has a "
            "leading zero, in/b.csv:3), ok boolean (some missing)");
}

TEST_F(DecideTypesTest, ColumnsInAnotherOrderAreReadByName) {
  folder_.Write("a.csv", "id,name\n1,x\n");
  folder_.Write("b.csv", "name,id\ny,2\n");
  EXPECT_EQ(Line(Input()), "columns: id integer, name text");
}

TEST_F(DecideTypesTest, OtherColumnsAreAnErrorWithTheFile) {
  folder_.Write("a.csv", "id,name\n1,x\n");
  folder_.Write("b.csv", "id,nam\n2,y\n");
  EXPECT_EQ(Line(Input()),
            "inputs[rows]: " + folder_.path() +
                "/b.csv has no column \"name\", and has the additional column \"nam\": the files "
                "of an input have the same columns, in any order. Correct it, leave it out with "
                "exclude, set tabular.header to None if no file has a header, or tabular.typing to "
                "PerMiniBatch");
}

TEST_F(DecideTypesTest, HeaderModes) {
  folder_.Write("a.csv", "1,x\n");
  folder_.Write("b.csv", "2,7\n");
  EXPECT_EQ(Line(Input(api::HeaderMode::kNone)),
            "columns: Column1 integer, Column2 text (\"x\" is not a number, in/a.csv:1)");
  folder_.Write("0.csv", "id,name\n5,6\n");
  EXPECT_EQ(Line(Input(api::HeaderMode::kFirstFile)),
            "columns: id integer, name text (\"x\" is not a number, in/a.csv:1)");
}

// A table without a header loses its first row, and all else looks right.
TEST_F(DecideTypesTest, NamesThatLookLikeValuesAreAskedAbout) {
  const std::string asked =
      "; the first row gives them their names: if it is data, set tabular.header to None";
  folder_.Write("a.csv", "1,-2.5,Ann\n2,3.5,Bob\n");
  EXPECT_EQ(Line(Input()), "columns: 1 integer, -2.5 number, Ann text" + asked);
  EXPECT_EQ(Line(Input(api::HeaderMode::kFirstFile)).find(asked) == std::string::npos, false);
  EXPECT_EQ(Line(Input(api::HeaderMode::kNone)).find(asked), std::string::npos);
  for (const char* table :
       {"id,2024,2025\n1,5,6\n", "country,name\nde,Ann\n", "ok,inf.\nTrue,x\n"}) {
    folder_.Write("a.csv", table);
    EXPECT_EQ(Line(Input()).find(asked), std::string::npos) << table;
  }
}

TEST_F(DecideTypesTest, OneColumnWhoseNameHoldsADelimiterIsAskedAbout) {
  folder_.Write("a.csv", "id;zip\n1;00239\n");
  EXPECT_EQ(Line(Input()),
            "columns: id;zip text; the delimiter seems to be \";\": write delimiter: \";\"");
  folder_.Write("a.csv", "id\tzip\n1\t00239\n");
  EXPECT_EQ(Line(Input()),
            "columns: id\\tzip text; the delimiter seems to be \"\\t\": write delimiter: \"\\t\"");
  folder_.Write("a.csv", "id|zip;city\n1|00239;x\n");
  EXPECT_NE(Line(Input()).find("write delimiter: \";\""), std::string::npos) << "of equal ones";
  for (const char* delimiter : {"||", "::", ", "}) {
    const std::string to = delimiter;
    folder_.Write("a.csv", "id" + to + "zip" + to + "a,b\n1" + to + "00239" + to + "x\n");
    PlanInput input = Input();
    input.tabular.delimiter = ";";
    if (to != ", ")
      folder_.Write("a.csv", "id" + to + "zip" + to + "ab\n1" + to + "00239" + to + "x,y\n");
    EXPECT_NE(Line(input).find("write delimiter: \"" + to + "\""), std::string::npos)
        << Line(input);
    input.tabular.delimiter = to;
    EXPECT_EQ(Line(input).find("columns: id integer, zip text"), 0U) << Line(input);
    EXPECT_EQ(Line(input).find("seems"), std::string::npos) << Line(input);
  }
  folder_.Write("a.csv", "id|zip;city\n1|00239\n2|00240\n");
  EXPECT_NE(Line(Input()).find("write delimiter: \"|\""), std::string::npos) << "the one that fits";
  for (const char* plain : {"id;zip,ok\n1,2\n", "\"name, first name\"\nx\n", "\"a;b\"\nx\n"}) {
    folder_.Write("a.csv", plain);
    EXPECT_EQ(Line(Input()).find("delimiter"), std::string::npos) << plain;
  }
}

TEST_F(DecideTypesTest, OtherDialectsAreToldWithTheFieldsToWrite) {
  const struct {
    const char* text;
    const char* delimiter;
    const char* says;  // empty: nothing about delimiters, and commas
  } cases[] = {
      {"sep=;\nid;n\n1;2\n", ",",
       "the first line names \";\" as the delimiter: write delimiter: "
       "\";\" and skipRows: 1"},
      {"\"sep=;\"\r\nid;n\r\n1;2\r\n", ";", "write delimiter: \";\" and skipRows: 1"},
      {"sep=||\nid||n\n1||2\n", ",", "write delimiter: \"||\" and skipRows: 1"},
      {"id, n\n1, x,y\n2, y\n", ",", "the delimiter seems to be \", \": write delimiter: \", \""},
      {"a||b,c\n1||2\n", "||", ""},
      {"id;price\n1;2,5\n2;3,5\n", ",",
       "the delimiter seems to be \";\": write delimiter: \";\"; "
       "\"2,5\" has a decimal comma: such columns are text, turn them "
       "into numbers in run()"},
      {"id;price\n1;-1.234,5\n", ";", "; \"-1.234,5\" has a decimal comma"},
      {"id,n\tm\n1,x\t2\n2,y,z\t3\n", ",", "the delimiter seems to be \"\\t\""},
      {"a,b\n1,2\n3\n4,5\n", ",", "; 1 of the 3 rows read has fewer fields than the header"},
      {"a,b\n1,2\n3,4,5\n6,7,8\n9\n", ",",
       "; 2 of the 4 rows read have more fields than the header, and 1 has fewer"},
      {"a,b\n1,2,3\n", ",", "; the only row read has more fields than the header"},
      {"id;price\n1;2.5\n", ";", ""},
      {"a,b\n1,\"2,5\"\n", ",", ""},
  };
  for (const auto& [text, delimiter, says] : cases) {
    folder_.Write("a.csv", text);
    PlanInput input = Input();
    input.tabular.delimiter = delimiter;
    const std::string line = Line(input);
    EXPECT_NE(line.find(says), std::string::npos) << line;
    EXPECT_EQ(line.find(" 0 "), std::string::npos) << line;
    if (*says == '\0') {
      EXPECT_EQ(line.find(';'), std::string::npos) << line;
    }
  }
}

// A header says no types. Nothing but empty fields does: these are numbers that are missing.
TEST_F(DecideTypesTest, ColumnsWithoutARowHaveNoTypes) {
  folder_.Write("a.csv", "id,zip\n");
  EXPECT_EQ(Line(Input()), "columns: id, zip; there is no row");
  EXPECT_EQ(Line(Input(api::HeaderMode::kFirstFile)), "columns: id, zip; there is no row");
  EXPECT_EQ(Line(Input(), kWholeInput), "columns: id, zip; there is no row");
  PlanInput input = Input();
  input.tabular.dtypes = {{"zip", api::ColumnType::kText}};
  EXPECT_EQ(Line(input), "columns: id, zip text (as written); there is no row");
  folder_.Write("b.csv", "zip,id\n\n");
  EXPECT_EQ(Line(Input()), "columns: id, zip; there is no row");
  folder_.Write("c.csv.gz", Gzipped("id,zip\n"));
  EXPECT_EQ(Line(Input()), "columns: id, zip; there is no row");
  folder_.Write("d.csv", "id,zip\n,\n");
  EXPECT_EQ(Line(Input()), "columns: id number, zip number");
}

// Whether there was one is kept: a run that goes on says the same.
TEST_F(DecideTypesTest, ThatThereIsNoRowIsKept) {
  folder_.Write("a.csv", "id\n");
  const PlanInput input = Input();
  const auto table = DecideTypes(input, *FolderStores(DiskFiles())(input));
  ASSERT_TRUE(table.ok() && *table);
  const auto again = TypesFromJson(ToJson(**table));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(ColumnsLine(*again, input, 1000), "columns: id; there is no row");
}

TEST_F(DecideTypesTest, TheFormatOfEachWorkHoldsWhatTheDialectSeemsToBe) {
  folder_.Write("a.csv", "id;n\n1;2,5\n");
  const PlanInput input = Input();
  const auto table = DecideTypes(input, *FolderStores(DiskFiles())(input));
  ASSERT_TRUE(table.ok() && *table);
  const auto again = TypesFromJson(ToJson(**table));
  ASSERT_TRUE(again.ok());
  EXPECT_NE(FormatMembers(*again, input)
                .find(R"("dialect":"the delimiter seems to be \";\": write delimiter: \";\")"),
            std::string::npos);
}

// A row or a file of which all is wide is told with it.
TEST_F(DecideTypesTest, ABadRowIsToldWithTheDialect) {
  folder_.Write("a.csv", "id;price\n1;2,5\n2;3,5\n");
  const std::string line = Line(Input(), kWholeInput);
  EXPECT_NE(line.find(":2: the row has 2 fields, and the table 1 columns: fix the file, or write "
                      "badRows: Skip; the delimiter seems to be \";\""),
            std::string::npos)
      << line;
}

// What people are told to fit every row is no type of a file that a run refuses.
TEST_F(DecideTypesTest, WhoReadsAllOfItHearsOfTheFirstBadRow) {
  using std::string_literals::operator""s;
  const struct {
    std::string rows;
    const char* bad;
  } cases[] = {
      {"1,x\n2,\"y\n3,z\n", ":3: the quote that this field begins with is still open at the end"},
      {"1,x\n2," + std::string(2'000'000, 'y') + "\n", ":3: a field is longer than 1048576 bytes"},
      {"1,\"x\n\"\n\n2,y,\n", ":5: the row has 3 fields, and the table 2 columns"},
      {"1,x,\n2,y\n", ":3: the row has 2 fields, and the table 2 columns and a delimiter behind"},
      {"1,x,\n2,y,z\n", ":3: the row has 3 fields, and the table 2 columns and a delimiter behind"},
      {"1,x\n2,\0\n"s, ":3: the row has a NUL byte, which is no text"},
      {"1,x\n2,caf\xE9\n3,\0\n"s, ":3: the row has bytes that are not UTF-8"},
  };
  for (const bool packed : {false, true}) {
    for (const auto& [rows, bad] : cases) {
      const std::string text = "id,name\n" + rows;
      folder_.Write("a.csv", packed ? Gzipped(text) : text);
      const std::string line = Line(Input(), kWholeInput);
      EXPECT_NE(line.find("a.csv"s + bad), std::string::npos) << line;
      EXPECT_EQ(line.find("inputs[rows]: "), 0u) << line;
    }
  }
  folder_.Write("a.csv", "id,name\n1,x,\n2,caf\xC3\xA9,\n");
  EXPECT_EQ(Line(Input(), kWholeInput).find("columns: id integer, name text"), 0u);
}

TEST_F(DecideTypesTest, BadRowsThatAreSkippedAndOtherEncodingsAreNoErrors) {
  folder_.Write("a.csv", "id,name\n1,caf\xE9\n2,y,z\n");
  PlanInput input = Input();
  input.tabular.bad_rows = api::BadRows::kSkip;
  EXPECT_EQ(Line(input, kWholeInput).find("columns: id integer, name text"), 0u);
  folder_.Write("a.csv", "id,name\n1,caf\xE9\n");
  input = Input();
  input.tabular.encoding = "latin-1";
  EXPECT_EQ(Line(input, kWholeInput).find("columns: id integer, name text"), 0u);
}

TEST_F(DecideTypesTest, MarksAndEncodings) {
  folder_.Write("a.csv", "\xEF\xBB\xBFid,n\n1,2\n");
  EXPECT_EQ(Line(Input()), "columns: id integer, n integer");
  folder_.Write("a.csv",
                "id,gr\xF6\xDF"
                "e\n1,2\n");
  PlanInput latin = Input();
  latin.tabular.encoding = "latin-1";
  const auto table = DecideTypes(latin, *FolderStores(DiskFiles())(latin));
  ASSERT_TRUE(table.ok() && *table);
  EXPECT_EQ((*table)->columns[1].name, "größe");
  EXPECT_TRUE((*table)->columns[1].raw);
  EXPECT_FALSE((*table)->columns[0].raw);
}

TEST_F(DecideTypesTest, FilesWithoutRowsDecideNothing) {
  folder_.Write("a.csv", "");
  EXPECT_EQ(Line(Input()), "no table");
  folder_.Write("b.csv", "id\n");
  folder_.Write("c.csv", "id\n7\n");
  EXPECT_EQ(Line(Input()), "columns: id integer");
}

TEST_F(DecideTypesTest, OfLargeInputsASampleThatIsSaid) {
  std::string text = "id,name\n";
  for (int i = 0; i < 10'000; ++i) text += std::to_string(i) + ",\"a, \"\"b\"\"\nc\"\n";
  folder_.Write("a.csv", text);
  folder_.Write("b.csv", text);
  EXPECT_EQ(Line(Input(), {100'000, 10}),
            "columns (from 100 KB of 358 KB, 2 of 2 files): id integer, name text");
  folder_.Write("c.csv", text);
  EXPECT_EQ(Line(Input(), {100'000, 2}),
            "columns (from 100 KB, 2 of the first 2 files): id integer, name text");
  EXPECT_EQ(Line(Input(), {1'000'000, 10}), "columns: id integer, name text");
}

TEST_F(DecideTypesTest, ASampleSeesTheEndOfAFile) {
  std::string text = "id,zip\n";
  for (int i = 0; i < 10'000; ++i) text += std::to_string(i) + ",77\n";
  folder_.Write("a.csv", text + "1,007\n");
  const std::string line = Line(Input(), {3'000, 10});
  EXPECT_TRUE(line.ends_with("id integer, zip text (\"007\" has a leading zero, in/a.csv, byte " +
                             std::to_string(text.size()) + ")"))
      << line;
}

// --- by several threads

std::string DecidedBy(const PlanInput& input, TypesLimit limit, size_t threads) {
  limit.threads = threads;
  const auto table = DecideTypes(input, *FolderStores(DiskFiles())(input), limit);
  if (!table.ok()) return table.error().message;
  return *table ? ToJson(**table) : "no table";
}

std::string RandomTable(std::mt19937& random, bool turned, size_t rows) {
  std::string text = turned ? "name,id,price\n" : "id,price,name\n";
  for (size_t i = 0; i < rows; ++i) {
    std::string id = std::to_string(random() % 1000);
    std::string price = std::to_string(random() % 100);
    std::string name = random() % 3 == 0 ? "\"a, \"\"b\"\"\nc\"" : "Ann";
    if (random() % 2000 == 0) id = "00" + id;
    if (random() % 500 == 0) price += ".5";
    if (random() % 1000 == 0) name = "";
    text += turned ? name + "," + id + "," + price : id + "," + price + "," + name;
    text += random() % 1500 == 0 ? ",\n" : "\n";
  }
  return text;
}

TEST_F(DecideTypesTest, HowManyReadAtOnceDoesNotMatter) {
  std::mt19937 random(17);
  for (int round = 0; round < 12; ++round) {
    const PlanFolder folder;
    const size_t files = 1 + random() % 9;
    for (size_t i = 0; i < files; ++i) {
      const std::string text = RandomTable(random, random() % 3 == 0, random() % 3000);
      const bool packed = round % 4 == 3 && random() % 2 == 0;
      folder.Write(std::to_string(i) + ".csv", packed ? Gzipped(text) : text);
      if (random() % 4 == 0) folder.Write(std::to_string(i) + "b.csv", "\n \n");
    }
    const PlanInput input = Rows(folder.path(), 10, api::HeaderMode::kAllFiles);
    for (const TypesLimit& limit :
         {kSampleLimit, kWholeInput, TypesLimit{40'000, 100}, TypesLimit{3'000, 4}}) {
      const std::string alone = DecidedBy(input, limit, 1);
      for (const size_t threads : {2, 3, 8}) {
        EXPECT_EQ(DecidedBy(input, limit, threads), alone) << round;
      }
    }
  }
}

// The header is the first block's alone: its words are of no row, wherever the blocks are read.
TEST_F(DecideTypesTest, BlocksOfOneFileAreReadAtOnce) {
  std::string text = "id,zip\n";
  for (int i = 0; i < 10'000; ++i) text += std::to_string(i) + ",77\n";
  folder_.Write("a.csv", text);
  const std::string alone = DecidedBy(Input(), {30'000, 10}, 1);
  EXPECT_NE(alone.find(R"({"name":"id","type":"integer"},{"name":"zip","type":"integer"})"),
            std::string::npos)
      << alone;
  for (const size_t threads : {2, 3, 8}) {
    EXPECT_EQ(DecidedBy(Input(), {30'000, 10}, threads), alone);
  }
}

TEST_F(DecideTypesTest, TheFirstFileThatIsRefusedIsTold) {
  for (int i = 10; i < 40; ++i) {
    const std::string header = i == 17 || i == 18 || i == 30 ? "id,nam\n" : "id,name\n";
    const std::string bad = i >= 25 ? "1,2,3\n" : "";
    folder_.Write(std::to_string(i) + ".csv", header + "1,x\n" + bad);
  }
  for (const size_t threads : {1, 2, 8}) {
    EXPECT_NE(DecidedBy(Input(), kWholeInput, threads).find("/17.csv has no column \"name\""),
              std::string::npos);
  }
  for (const int i : {17, 18, 30}) folder_.Write(std::to_string(i) + ".csv", "id,name\n1,x\n");
  for (const size_t threads : {1, 2, 8}) {
    EXPECT_NE(DecidedBy(Input(), kWholeInput, threads).find("/25.csv:3: the row has 3 fields"),
              std::string::npos);
  }
}

TEST_F(DecideTypesTest, NothingIsReadForAJobThatHasEnded) {
  for (const char* name : {"a.csv", "b.csv", "c.csv"}) folder_.Write(name, "id\n1\n");
  std::stop_source stop;
  PlanInput input = Input();
  input.stop = stop.get_token();
  EXPECT_NE(DecidedBy(input, kSampleLimit, 2).find("\"integer\""), std::string::npos);
  stop.request_stop();
  EXPECT_NE(DecidedBy(input, kSampleLimit, 2).find("the job ended"), std::string::npos);
}

TEST_F(DecideTypesTest, WhatAPersonWroteIsTaken) {
  folder_.Write("a.csv", "id,zip\n1,2\n");
  PlanInput input = Input();
  input.tabular.dtypes = {{"zip", api::ColumnType::kText}};
  EXPECT_EQ(Line(input), "columns: id integer, zip text (as written)");
  input.tabular.dtypes = {{"zpi", api::ColumnType::kText}};
  EXPECT_EQ(Line(input),
            "inputs[rows]: tabular.dtypes names the column \"zpi\", and no file has it: did you "
            "mean \"zip\"?; the columns are: id, zip");
}

TEST_F(DecideTypesTest, LinesAtTheFrontAndCommentsAreNoRows) {
  folder_.Write("a.csv",
                "made by \"x\ny\", 2020\r\n\n# units: \"m\nid,n # of them\n1,2 # two\n#3,x\n");
  PlanInput input = Input();
  input.tabular.skip_rows = 2;
  input.tabular.comment = "#";
  EXPECT_EQ(Line(input), "columns: id integer, n  integer");
  const Plan plan = MakePlan({input});
  ASSERT_EQ(plan.error, "");
  EXPECT_EQ(plan.rows(0).header, "id,n # of them\n");
  EXPECT_EQ(plan.items, 1U);
  input.tabular.header = api::HeaderMode::kFirstFile;
  folder_.Write("b.csv", "other\n\n7,8\n");
  EXPECT_EQ(Line(input), "columns: id integer, n  integer");
  EXPECT_EQ(MakePlan({input}).items, 2U);
}

TEST_F(DecideTypesTest, WorkSaysHowColumnsAreRead) {
  folder_.Write("a.csv", "id,zip,ok\n1,2,true\n2,3,\n");
  PlanInput input = Input();
  input.tabular.dtypes = {{"zip", api::ColumnType::kText}};
  const auto table = DecideTypes(input, *FolderStores(DiskFiles())(input));
  ASSERT_TRUE(table.ok() && *table);
  const auto kept = TypesFromJson(ToJson(**table));
  ASSERT_TRUE(kept.ok());
  EXPECT_EQ(FormatMembers(*kept, input),
            R"("columns":[{"name":"id","type":"integer"},)"
            R"({"name":"zip","type":"text","written":true},)"
            R"({"missing":true,"name":"ok","type":"boolean"}],"all":true)");
  input.tabular.dtypes = {};
  input.tabular.na_values = {"-"};
  input.tabular.keep_default_na = false;
  EXPECT_TRUE(FormatMembers(*kept, input).ends_with(R"(,"na":["-"])"));
  input.tabular.comment = "#";
  input.tabular.escape = "\\";
  input.tabular.bad_rows = api::BadRows::kSkip;
  EXPECT_TRUE(FormatMembers(*kept, input)
                  .ends_with(R"(,"na":["-"],"comment":"#","escape":"\\","badRows":"Skip")"));
  EXPECT_EQ(TypesFromJson("{}").error().code, Code::kCorrupt);
  EXPECT_EQ(TypesFromJson(R"({"columns":[{"name":"a","type":"x"}]})").error().code, Code::kCorrupt);
}

// --- the planner

TEST_F(DecideTypesTest, ThePlannerGivesThemInFrontOfTheFirstChunkOnce) {
  folder_.Write("a.csv", "id\n1\n");
  PlanInput input = Input();
  input.decide_types = true;
  Planner planner({input}, FolderStores(DiskFiles()), {});
  auto next = planner.Next();
  ASSERT_TRUE(next.ok() && *next);
  std::string_view bytes = **next;
  const auto decoded = job::DecodeRecord(bytes);
  ASSERT_TRUE(decoded.ok());
  const auto& types = std::get<job::TypesRecord>(decoded->record);
  EXPECT_EQ(types.input, 0U);
  EXPECT_EQ(types.types, R"({"all":true,"columns":[{"name":"id","type":"integer"}]})");
  next = planner.Next();
  ASSERT_TRUE(next.ok() && *next);
  std::string_view chunk_bytes = **next;
  const auto chunk = job::DecodeRecord(chunk_bytes);
  ASSERT_TRUE(chunk.ok());
  // Who goes on behind a chunk that was planned without types goes on without.
  Planner rest({input}, FolderStores(DiskFiles()),
               CursorAfter(std::get<job::PlanChunkRecord>(chunk->record), {input}));
  next = rest.Next();
  EXPECT_TRUE(next.ok() && !*next);
}

TEST_F(DecideTypesTest, AFileThatIsPlannedLaterHasTheSameColumns) {
  folder_.Write("a.csv", "id,name\n1,x\n");
  PlanInput input = Input();
  input.columns = {"name", "id"};
  EXPECT_EQ(MakePlan({input}).error, "");
  input.columns = {"id"};
  EXPECT_NE(MakePlan({input}).error.find("a.csv has the additional column \"name\""),
            std::string::npos);
}

}  // namespace
}  // namespace parallelrun::plan
