#include "job/work.h"

#include <gtest/gtest.h>
#include <xxhash.h>

#include "base/bytes.h"
#include "tests/support/encoded.h"
#include "tests/support/file_version.h"

namespace parallelrun::job {
namespace {

using namespace std::string_literals;
using namespace std::string_view_literals;

WorkMaker Maker(const PlanChunkRecord& chunk) {
  Result<WorkMaker> maker = WorkMaker::FromRecord(Encoded(chunk));
  EXPECT_TRUE(maker.ok());
  return std::move(*maker);
}

const PlanChunkRecord kFiles{
    7, 70, 0,
    FilesChunk{
        2, "/in", "a\0b/c\0d"sv, {FileVersion(1, 10), FileVersion(2, 20), FileVersion(3, -30)}}};
const PlanChunkRecord kSlices{9, 100, 0,
                              TabularChunk{"/in/a.csv",
                                           4000,
                                           FileVersion(4000, -5),
                                           "x\n",
                                           "{}",
                                           {{4, 100, 10}, {104, 96, 9}, {200, 1, 1}}}};

struct Head {
  uint8_t kind;
  uint16_t attempts;
  uint64_t id;
  uint64_t first_item;
  uint32_t items;

  std::string_view context;

  explicit Head(Decoder& from) : kind(from.U8()) {
    EXPECT_EQ(from.U8(), 0);
    attempts = from.U16();
    id = from.U64();
    first_item = from.U64();
    items = from.U32();
    context = from.Text();
  }
};

TEST(WorkTest, FilesOfAMiniBatch) {
  const WorkMaker maker = Maker(kFiles);
  const std::string first = maker.Make(0);
  Decoder from(first);
  const Head head(from);
  EXPECT_EQ(head.kind, 1);
  EXPECT_EQ(head.attempts, 0);
  EXPECT_EQ(head.id, 7u);
  EXPECT_EQ(head.first_item, 70u);
  EXPECT_EQ(head.items, 2u);
  EXPECT_EQ(from.Text(), "/in");
  EXPECT_EQ(from.Text(), "a\0b/c"sv);
  EXPECT_EQ(from.U64(), 1u);
  EXPECT_EQ(from.I64(), 10);
  EXPECT_EQ(from.U64(), 2u);
  EXPECT_EQ(from.I64(), 20);
  EXPECT_TRUE(from.Done());

  const std::string last = maker.Make(1);
  Decoder rest(last);
  const Head tail(rest);
  EXPECT_EQ(tail.id, 8u);
  EXPECT_EQ(tail.first_item, 72u);
  EXPECT_EQ(tail.items, 1u);
  EXPECT_EQ(rest.Text(), "/in");
  EXPECT_EQ(rest.Text(), "d");
  EXPECT_EQ(rest.U64(), 3u);
  EXPECT_EQ(rest.I64(), -30);
  EXPECT_TRUE(rest.Done());
}

// What a manifest names and is not there: whoever opens it finds out.
TEST(WorkTest, NothingIsComparedOfAFileThatNobodyLookedAt) {
  const WorkMaker maker =
      Maker({7, 70, 0, FilesChunk{2, "/in", "a\0b"sv, {kNoVersion, FileVersion(2, 20)}}});
  const std::string work = maker.Make(0);
  Decoder from(work);
  const Head head(from);
  EXPECT_EQ(head.items, 2u);
  EXPECT_EQ(from.Text(), "/in");
  EXPECT_EQ(from.Text(), "a\0b"sv);
  EXPECT_EQ(from.U64(), UINT64_MAX);
  EXPECT_EQ(from.I64(), 0);
  EXPECT_EQ(from.U64(), 2u);
  EXPECT_EQ(from.I64(), 20);
  EXPECT_TRUE(from.Done());
}

TEST(WorkTest, WhatAManifestSaysStandsBehindTheFiles) {
  PlanChunkRecord chunk = kFiles;
  std::get<FilesChunk>(chunk.content).metadata = {R"({"n":1})", R"({"n":2})", R"({"n":3})"};
  const WorkMaker maker = Maker(chunk);
  const std::string plain = Maker(kFiles).Make(0);
  const std::string work = maker.Make(0);
  EXPECT_EQ(plain[1], 0);
  EXPECT_EQ(work[1], 2);
  EXPECT_EQ(work.substr(2, plain.size() - 2), plain.substr(2));
  EXPECT_EQ(work.substr(plain.size()), "\x11\0\0\0[{\"n\":1},{\"n\":2}]"sv);
  EXPECT_TRUE(maker.Make(1).ends_with("\x09\0\0\0[{\"n\":3}]"sv));
  // A piece is described by its own lines.
  EXPECT_TRUE(maker.MakePiece(0, 99, 1, 1).ends_with("\x09\0\0\0[{\"n\":2}]"sv));

  std::get<FilesChunk>(chunk.content).versions = {"v1", "v2", "v3"};
  chunk.store = "bucket";
  EXPECT_EQ(Maker(chunk).Make(0)[1], 3);
}

TEST(WorkTest, SliceOfAMiniBatch) {
  const std::string work = Maker(kSlices).Make(2);
  Decoder from(work);
  const Head head(from);
  EXPECT_EQ(head.kind, 2);
  EXPECT_EQ(head.id, 11u);
  EXPECT_EQ(head.first_item, 119u);
  EXPECT_EQ(head.items, 1u);
  EXPECT_EQ(from.Text(), "/in/a.csv");
  EXPECT_EQ(from.U64(), 200u);
  EXPECT_EQ(from.U64(), 1u);
  EXPECT_EQ(from.Text(), "x\n");
  EXPECT_EQ(from.U64(), 4000u);
  EXPECT_EQ(from.I64(), -5);
  EXPECT_EQ(from.Text(), "{}");
  EXPECT_TRUE(from.Done());
}

TEST(WorkTest, D11PartOfATableWithContext) {
  PlanChunkRecord chunk = kSlices;
  std::get<TabularChunk>(chunk.content).context = "{\"s\":\"1\"}";
  const std::string work = Maker(chunk).Make(0);
  Decoder from(work);
  EXPECT_EQ(Head(from).context, "{\"s\":\"1\"}");
  EXPECT_EQ(from.Text(), "/in/a.csv");
}

// Where the input is no folder, versions say how long they are.
TEST(WorkTest, OfAnInputInAStore) {
  PlanChunkRecord files = kFiles;
  files.store = "bucket";
  std::get<FilesChunk>(files.content).versions = {"v1", "longer", "v3"};
  const std::string work = Maker(files).Make(0);
  EXPECT_EQ(work[1], 1);
  EXPECT_TRUE(work.ends_with("\6\0\0\0bucket\3\0\0\0/in\5\0\0\0a\0b/c\2v1\6longer"sv));
  PlanChunkRecord slices = kSlices;
  slices.store = "bucket";
  std::get<TabularChunk>(slices.content).version = "v1";
  const std::string part = Maker(slices).Make(0);
  EXPECT_EQ(part[1], 1);
  EXPECT_NE(part.find("x\n\xa0\x0f\0\0\0\0\0\0\2v1\2\0\0\0{}"sv), std::string::npos);
}

// Nobody fetches them, so that there is nothing to compare.
TEST(WorkTest, UrlsOfAnInputInAStore) {
  PlanChunkRecord files = kFiles;
  files.store = "bucket";
  std::get<FilesChunk>(files.content).root = "s3://b/in";
  std::get<FilesChunk>(files.content).versions = {"v1", "longer", "v3"};
  WorkMaker maker = Maker(files);
  maker.GiveUrls();
  const std::string unknown = "\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\0\0\0\0\0"s;
  EXPECT_EQ(maker.Make(0)[1], 0);
  EXPECT_TRUE(maker.Make(0).ends_with("\x09\0\0\0s3://b/in\5\0\0\0a\0b/c"s + unknown + unknown));
  EXPECT_TRUE(maker.MakePiece(0, 7, 1, 1).ends_with("s3://b/in\3\0\0\0b/c"s + unknown));
}

TEST(WorkTest, JsonLinesOfAMiniBatch) {
  TabularChunk lines{
      "/in/a.jsonl", 4000, FileVersion(4000, -5), "", "{}", {{3, 100, 10}, {103, 96, 9}}};
  lines.kind = RowKind::kJsonLines;
  const std::string work = Maker({9, 100, 0, lines}).Make(1);
  Decoder from(work);
  const Head head(from);
  EXPECT_EQ(head.kind, 3);
  EXPECT_EQ(head.id, 10u);
  EXPECT_EQ(head.first_item, 110u);
  EXPECT_EQ(head.items, 9u);
  EXPECT_EQ(from.Text(), "/in/a.jsonl");
  EXPECT_EQ(from.U64(), 103u);
  EXPECT_EQ(from.U64(), 96u);
  EXPECT_EQ(from.U64(), 4000u);
  EXPECT_EQ(from.I64(), -5);
  EXPECT_EQ(from.Text(), "{}");
  EXPECT_TRUE(from.Done());
}

TEST(WorkTest, ParquetRowGroupsOfAMiniBatch) {
  TabularChunk groups{"/in/a.parquet",        4000, FileVersion(4000, -5), "", "",
                      {{0, 2, 10}, {2, 1, 9}}};
  groups.kind = RowKind::kParquet;
  const WorkMaker maker = Maker({9, 100, 0, groups});
  const auto format = [&](uint32_t index, uint64_t first_item) {
    const std::string work = maker.Make(index);
    Decoder from(work);
    const Head head(from);
    EXPECT_EQ(head.kind, 2);
    EXPECT_EQ(head.first_item, first_item);
    EXPECT_EQ(from.Text(), "/in/a.parquet");
    EXPECT_EQ(from.U64(), 0u);
    EXPECT_EQ(from.U64(), 4000u);
    EXPECT_EQ(from.Text(), "");
    EXPECT_EQ(from.U64(), 4000u);
    EXPECT_EQ(from.I64(), -5);
    const std::string found(from.Text());
    EXPECT_TRUE(from.Done());
    return found;
  };
  EXPECT_EQ(format(0, 100), R"({"format":"parquet","rowGroups":[0,1]})");
  EXPECT_EQ(format(1, 110), R"({"format":"parquet","rowGroups":[2]})");
}

TEST(WorkTest, RankMiniBatchHasNoContent) {
  const std::string work = Maker({4, 4, 0, RankChunk{3}}).Make(2);
  Decoder from(work);
  const Head head(from);
  EXPECT_EQ(head.kind, 4);
  EXPECT_EQ(head.id, 6u);
  EXPECT_EQ(head.first_item, 6u);
  EXPECT_EQ(head.items, 1u);
  EXPECT_TRUE(from.Done());
}

TEST(WorkTest, D7FilesOfAGroup) {
  const FileGroupsChunk groups{
      {1, 2},
      "/in",
      {{"{\"user\":\"u1\"}", "a\0b"sv, {FileVersion(1, 10), FileVersion(2, 20)}},
       {"{}", "c/d", {FileVersion(3, -30)}}}};
  const WorkMaker maker = Maker({20, 162, 2, groups});
  const std::string first = maker.Make(0);
  Decoder from(first);
  const Head head(from);
  EXPECT_EQ(head.kind, 1);
  EXPECT_EQ(head.items, 2u);
  EXPECT_EQ(head.context, "{\"user\":\"u1\"}");
  EXPECT_EQ(from.Text(), "/in");
  EXPECT_EQ(from.Text(), "a\0b"sv);
  EXPECT_EQ(from.U64(), 1u);
  EXPECT_EQ(from.I64(), 10);
  EXPECT_EQ(from.U64(), 2u);
  EXPECT_EQ(from.I64(), 20);
  EXPECT_TRUE(from.Done());

  const std::string second = maker.Make(1);
  Decoder rest(second);
  EXPECT_EQ(Head(rest).first_item, 164u);
  EXPECT_EQ(rest.Text(), "/in");
  EXPECT_EQ(rest.Text(), "c/d");
}

TEST(WorkTest, D11TablesOfAGroup) {
  const TableGroupsChunk groups{
      {1, 9},
      "{}",
      {{"{\"k\":\"1\"}", {{"/in/z.csv", "x\n", 2, 9, 7, 11, FileVersion(11, 0)}}},
       {"{\"k\":\"2\"}",
        {{"/in/a.csv", "x\n", 2, 50, 5, 52, FileVersion(52, 1)},
         {"/in/b.csv", "", 0, 60, 6, 60, FileVersion(60, -2)}}}}};
  const std::string work = Maker({22, 165, 0, groups}).Make(1);
  Decoder from(work);
  const Head head(from);
  EXPECT_EQ(head.kind, 5);
  EXPECT_EQ(head.id, 23u);
  EXPECT_EQ(head.first_item, 172u);
  EXPECT_EQ(head.items, 11u);
  EXPECT_EQ(head.context, "{\"k\":\"2\"}");
  EXPECT_EQ(from.U32(), 2u);
  EXPECT_EQ(from.Text(), "/in/a.csv");
  EXPECT_EQ(from.U64(), 2u);
  EXPECT_EQ(from.U64(), 50u);
  EXPECT_EQ(from.Text(), "x\n");
  EXPECT_EQ(from.U64(), 52u);
  EXPECT_EQ(from.I64(), 1);
  EXPECT_EQ(from.Text(), "/in/b.csv");
  EXPECT_EQ(from.U64(), 0u);
  EXPECT_EQ(from.U64(), 60u);
  EXPECT_EQ(from.Text(), "");
  EXPECT_EQ(from.U64(), 60u);
  EXPECT_EQ(from.I64(), -2);
  EXPECT_EQ(from.Text(), "{}");
  EXPECT_TRUE(from.Done());
}

// --- pieces (docs/worker-protocol.md)

constexpr BatchId kPiece = 8 + (BatchId{5} << 32);

TEST(WorkTest, APieceOfFilesNamesItsOwn) {
  const WorkMaker maker = Maker(kFiles);
  const std::string piece = maker.MakePiece(0, kPiece, 1, 1);
  Decoder from(piece);
  const Head head(from);
  EXPECT_EQ(head.id, kPiece);
  EXPECT_EQ(head.first_item, 71u);
  EXPECT_EQ(head.items, 1u);
  EXPECT_EQ(from.Text(), "/in");
  EXPECT_EQ(from.Text(), "b/c");
  EXPECT_EQ(from.U64(), 2u);
  EXPECT_EQ(from.I64(), 20);
  EXPECT_TRUE(from.Done());
  EXPECT_NE(WorkDigest(piece), WorkDigest(maker.MakePiece(0, kPiece, 0, 1)));
}

TEST(WorkTest, APieceOfAGroupOfFilesNamesItsOwn) {
  const std::string names = "a\0bb\0c"s;
  const FileGroupsChunk groups{
      {1, 9}, "/in", {{"", names, {FileVersion(1, 1), FileVersion(2, 2), FileVersion(3, 3)}}}};
  const WorkMaker maker = Maker({8, 0, 0, groups});
  const std::string_view wanted[] = {"a", "bb", "c"};
  for (uint32_t i = 0; i < 3; ++i) {
    const std::string piece = maker.MakePiece(0, kPiece, i, 1);
    Decoder from(piece);
    EXPECT_EQ(Head(from).items, 1u);
    EXPECT_EQ(from.Text(), "/in");
    EXPECT_EQ(from.Text(), wanted[i]);
    EXPECT_EQ(from.U64(), i + 1);
  }
  const std::string two = maker.MakePiece(0, kPiece, 0, 2);
  EXPECT_NE(two.find("a\0bb"s), std::string::npos);
  EXPECT_EQ(two.find("bb\0c"s), std::string::npos);
}

TEST(WorkTest, APieceOfRowsSaysWhich) {
  const TableGroupsChunk groups{{1, 9},
                                "{\"delimiter\":\",\"}",
                                {{"", {{"/in/z.csv", "x\n", 2, 9, 7, 11, FileVersion(11, 0)}}}}};
  const std::string tables = Maker({8, 0, 0, groups}).MakePiece(0, kPiece, 3, 4);
  EXPECT_NE(tables.find("{\"delimiter\":\",\",\"rows\":[3,4]}"), std::string::npos);
  TabularChunk parquet;
  parquet.kind = RowKind::kParquet;
  parquet.path = "/in/a.parquet";
  parquet.slices = {{0, 2, 9}};
  const std::string rows = Maker({8, 0, 0, parquet}).MakePiece(0, kPiece, 0, 5);
  EXPECT_NE(rows.find("\"rowGroups\":[0,1],\"rows\":[0,5]}"), std::string::npos);
}

TEST(WorkTest, TheFormatOfATableMayHaveMore) {
  WorkMaker maker = Maker(kSlices);
  const std::string plain = maker.Make(0);
  maker.AddToFormat(R"("columns":[])");
  EXPECT_TRUE(maker.Make(0).ends_with(R"("columns":[]})"));
  EXPECT_NE(WorkDigest(maker.Make(0)), WorkDigest(plain));
  EXPECT_TRUE(maker.MakePiece(0, 7, 1, 1).ends_with(R"("columns":[],"rows":[1,1]})"));
}

TEST(WorkTest, OfWhatTheChunkSaysOfItsSlicesEachWorkHasItsOwn) {
  PlanChunkRecord record = kSlices;
  auto& rows = std::get<TabularChunk>(record.content);
  const std::string plain = R"({"delimiter":",","encoding":"utf-8"})";
  const std::string told = WithMayLose(plain, {0, 5, ~uint64_t{0}});
  EXPECT_EQ(told, R"({"delimiter":",","encoding":"utf-8","mayLose":[0,5,18446744073709551615]})");
  rows.format = told;
  WorkMaker maker = Maker(record);
  EXPECT_TRUE(maker.Make(0).ends_with(R"({"delimiter":",","encoding":"utf-8","mayLose":[0]})"));
  EXPECT_TRUE(maker.Make(2).ends_with(R"("utf-8","mayLose":[18446744073709551615]})"));
  maker.AddToFormat(R"("columns":[])");
  EXPECT_TRUE(maker.MakePiece(1, 7, 1, 1)
                  .ends_with(R"("encoding":"utf-8","columns":[],"mayLose":[5],"rows":[1,1]})"));

  const TableSlice slice{"/in/z.csv", "x\n", 2, 9, 7, 11, FileVersion(11, 0)};
  TableGroupsChunk groups{{1, 9}, "", {{"", {slice}}, {"", {slice, slice}}}};
  const std::string of_groups = WithMayLose("{}", {{3}, {0, 4}});
  EXPECT_EQ(of_groups, R"({"mayLose":[[3],[0,4]]})");
  groups.format = of_groups;
  maker = Maker({8, 0, 0, groups});
  EXPECT_TRUE(maker.Make(0).ends_with(R"({"mayLose":[3]})"));
  EXPECT_TRUE(maker.Make(1).ends_with(R"({"mayLose":[0,4]})"));
}

TEST(WorkTest, WhatAChunkSaysOfOtherSlicesIsNotTaken) {
  const auto work = [](std::string_view format) {
    PlanChunkRecord record = kSlices;
    std::get<TabularChunk>(record.content).format = format;
    return Maker(record).Make(0);
  };
  // As one that says nothing is passed on: by these bytes a restart knows its mini-batches.
  EXPECT_TRUE(work(R"({"encoding":"utf-8", "delimiter":","})")
                  .ends_with(R"({"encoding":"utf-8", "delimiter":","})"));
  for (const char* wrong : {R"({"mayLose":[1,2]})", R"({"mayLose":[1,2,-3]})",
                            R"({"mayLose":[1,2,"3"]})", R"({"mayLose":7})", R"({"a":"mayLose"})"}) {
    EXPECT_TRUE(work(wrong).ends_with(wrong)) << wrong;
  }
}

TEST(WorkTest, WhatStandsInThePathsIsSaidOfEachSlice) {
  const auto length = [](std::string_view path) { return std::to_string(path.size()); };
  WorkMaker maker = Maker(kSlices);
  maker.AddPathValues(length);
  EXPECT_TRUE(maker.Make(1).ends_with(R"({"pathValues":[9]})"));
  const TableGroupsChunk groups{{1, 9},
                                "{}",
                                {{"",
                                  {{"/in/z.csv", "x\n", 2, 9, 7, 11, FileVersion(11, 0)},
                                   {"/in/long.csv", "x\n", 2, 9, 7, 11, FileVersion(11, 0)}}}}};
  maker = Maker({8, 0, 0, groups});
  maker.AddToFormat(R"("pathColumns":[])");
  maker.AddPathValues(length);
  EXPECT_TRUE(maker.Make(0).ends_with(R"({"pathColumns":[],"pathValues":[9,12]})"));
  // A piece is of all slices, for its rows are counted in all of them.
  EXPECT_TRUE(maker.MakePiece(0, 7, 8, 1).ends_with(R"("pathValues":[9,12],"rows":[8,1]})"));
}

TEST(WorkTest, MakerSurvivesAMove) {
  WorkMaker maker = Maker(kFiles);
  const std::string before = maker.Make(1);
  const WorkMaker moved = std::move(maker);
  EXPECT_EQ(moved.Make(1), before);
  EXPECT_EQ(moved.chunk().first, 7u);
}

TEST(WorkTest, OnlyOneWholePlanChunkMakesWork) {
  const std::string chunk = Encoded(kFiles);
  EXPECT_EQ(WorkMaker::FromRecord(Encoded(LostRecord{})).error().code, Code::kCorrupt);
  EXPECT_EQ(WorkMaker::FromRecord(chunk + chunk).error().code, Code::kCorrupt);
  EXPECT_EQ(WorkMaker::FromRecord("").error().code, Code::kCorrupt);
  for (size_t size = 0; size < chunk.size(); ++size) {
    EXPECT_FALSE(WorkMaker::FromRecord(chunk.substr(0, size)).ok()) << size;
  }
}

TEST(WorkTest, AttemptsDoNotChangeTheDigest) {
  const WorkMaker maker = Maker(kFiles);
  std::string work = maker.Make(0);
  const uint64_t digest = WorkDigest(work);
  SetWorkAttempts(work, 0x0201);
  Decoder from(work);
  EXPECT_EQ(Head(from).attempts, 0x0201);
  EXPECT_EQ(WorkDigest(work), digest);
  SetWorkAttempts(work, 0);
  EXPECT_EQ(work, maker.Make(0));
  EXPECT_NE(WorkDigest(maker.Make(1)), digest);
}

// Agents offer finished work to the next epoch by this number: it must never change.
TEST(WorkTest, DigestIsXxh3OfTheBytes) {
  const std::string work = Maker(kFiles).Make(0);
  EXPECT_EQ(WorkDigest(work), XXH3_64bits(work.data(), work.size()));
  EXPECT_EQ(WorkDigest(work), 16678731215499138936u);
}

}  // namespace
}  // namespace parallelrun::job
