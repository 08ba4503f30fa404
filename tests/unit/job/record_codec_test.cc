#include "job/record_codec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "base/bytes.h"
#include "tests/support/encoded.h"
#include "tests/support/file_version.h"

namespace parallelrun::job {
namespace {

using namespace std::string_literals;
using namespace std::string_view_literals;

const std::string kLongest(255, 'v');

PlanChunkRecord Files() {
  return {7, 70, 1,
          FilesChunk{2,
                     "/in",
                     "a.png\0b/c.png\0d.png"sv,
                     {FileVersion(1, 10), FileVersion(2, 20), FileVersion(3, -30)}}};
}

PlanChunkRecord FilesWithMetadata() {
  PlanChunkRecord files = Files();
  std::get<FilesChunk>(files.content).metadata = {R"({"label":"cat"})", "{}", R"({"n":[1]})"};
  return files;
}

PlanChunkRecord Slices() {
  return {
      9, 100, 0,
      TabularChunk{
          "/in/a.csv", 4000, FileVersion(4000, 5), "x,y\n", "{}", {{4, 100, 10}, {104, 96, 9}}}};
}

PlanChunkRecord Lines() {
  TabularChunk lines{
      "/in/a.jsonl", 4000, FileVersion(4000, 5), "", "{}", {{4, 100, 10}, {104, 96, 9}}};
  lines.kind = RowKind::kJsonLines;
  lines.context = "{\"day\":\"1\"}";
  return {11, 119, 0, lines};
}

PlanChunkRecord RowGroups() {
  TabularChunk groups{"/in/a.parquet", 4000, FileVersion(4000, 5), "", "", {{0, 2, 10}, {2, 1, 9}}};
  groups.kind = RowKind::kParquet;
  return {13, 138, 0, groups};
}

PlanChunkRecord Ranks() { return {15, 157, 0, RankChunk{5}}; }

PlanChunkRecord FileGroups() {
  return {
      20, 162, 2,
      FileGroupsChunk{{77, 2},
                      "/in",
                      {{"{\"user\":\"u1\"}", "a\0b"sv, {FileVersion(1, 10), FileVersion(2, 20)}},
                       {"", "c/d", {FileVersion(3, -30)}}}}};
}

PlanChunkRecord TableGroups() {
  return {
      22, 165, 0,
      TableGroupsChunk{{78, 9},
                       "{}",
                       {{"{\"k\":\"1\"}",
                         {{"/in/a.csv", "x\n", 2, 50, 5, 52, FileVersion(52, 1)},
                          {"/in/b.csv", "", 0, 60, 6, 60, FileVersion(60, -2)}}},
                        {"{\"k\":\"2\"}", {{"/in/c.csv", "x\n", 2, 1, 1, 3, FileVersion(3, 4)}}}}}};
}

// Some of these, their inputs in a bucket: with versions of one length, and of their own.
std::vector<PlanChunkRecord> InABucket() {
  PlanChunkRecord files = Files();
  std::get<FilesChunk>(files.content).versions = {"etag 1", "etag 2", "etag 3"};
  PlanChunkRecord more_files = files;
  std::get<FilesChunk>(more_files.content).versions = {"1", kLongest, "22"};
  PlanChunkRecord slices = Slices();
  std::get<TabularChunk>(slices.content).version = "generation 7";
  PlanChunkRecord groups = FileGroups();
  std::get<FileGroupsChunk>(groups.content).groups[1].versions = {"x"};
  PlanChunkRecord tables = TableGroups();
  std::get<TableGroupsChunk>(tables.content).groups[0].slices[1].version = "y";
  std::vector<PlanChunkRecord> all = {files, more_files, slices, groups, tables};
  for (PlanChunkRecord& chunk : all) chunk.store = "bucket";
  return all;
}

// One of each kind.
std::vector<Record> Samples() {
  PublishedRecord published{"/out/p.txt", 123, 45, {}};
  published.sha256[0] = 1;
  published.sha256[31] = 255;
  return {SealRecord{1, 4096, 0x1122334455667788},
          SettingsRecord{2, -5, 99, "uid-1", "{\"a\":1}", "{\"job\":true}", true},
          Files(),
          Slices(),
          Lines(),
          RowGroups(),
          Ranks(),
          FileGroups(),
          FilesWithMetadata(),
          TableGroups(),
          PlanEndRecord{11, 119},
          RowsRecord{7, {3, 8}, "row 1\n"},
          ResultRecord{{.run_ns = 1234567,
                        .cpu_ns = 8,
                        .elapsed_ns = 9,
                        .finished_us = -7,
                        .items_succeeded = 2,
                        .row_count = 2},
                       7,
                       {3, 8},
                       1,
                       2,
                       "row 2\nrow 3\n"},
          ResultRecord{{}, 8, {3, 9}, 1, 2, ""},
          FailedRecord{{.run_ns = 55, .cpu_ns = 5, .elapsed_ns = 4, .finished_us = 6},
                       7,
                       {3, 8},
                       1,
                       2,
                       Cause::kInput,
                       AttemptEnd::kFinal,
                       "Missing",
                       "no a.png",
                       "p/1.log",
                       {10, 20, 30, 40}},
          LostRecord{7, {3, 8}},
          VerdictRecord{Outcome::kFailed, 77, "TooManyFailures", "8 of 9 failed"},
          published,
          HeaderRecord{"a b\n"},
          StartedRecord{7 + (BatchId{3} << 32), {3, 8}, true},
          StartedRecord{7, {3, 8}, false},
          TypesRecord{2, R"({"columns":[]})"},
          CompanyRecord{2, {7, 8, 7 + (BatchId{3} << 32)}},
          SkippedRecord{7, {3, 8}, 5},
          ShutdownRecord{1, 2, ProcessEnd::kFailed, "OSError: full (s.py:3)", "user/error/1/p.txt"},
          AgainRecord{1, 2, {{7, 3, 4}, {8 + (BatchId{3} << 32), 1, 0}}},
          UnknownRecord{128, "more about it"},
          UnknownRecord{255, ""}};
}

TEST(RecordsTest, EachKindComesBack) {
  std::vector<Record> samples = Samples();
  for (const PlanChunkRecord& chunk : InABucket()) samples.emplace_back(chunk);
  for (const Record& record : samples) {
    const std::string bytes = Encoded(record);
    std::string_view left = bytes;
    const Result<DecodedRecord> decoded = DecodeRecord(left);
    ASSERT_TRUE(decoded.ok()) << record.index();
    EXPECT_TRUE(left.empty());
    EXPECT_EQ(decoded->record.index(), record.index());
    EXPECT_EQ(Encoded(decoded->record), bytes) << record.index();
  }
}

TEST(RecordsTest, FieldsKeepTheirPlaces) {
  const std::vector<Record> samples = Samples();
  const auto sample = std::find_if(samples.begin(), samples.end(), [](const Record& record) {
    return std::holds_alternative<FailedRecord>(record);
  });
  const std::string bytes = Encoded(*sample);
  std::string_view left = bytes;
  const Result<DecodedRecord> decoded = DecodeRecord(left);
  ASSERT_TRUE(decoded.ok());
  const auto& failed = std::get<FailedRecord>(decoded->record);
  EXPECT_EQ(failed.id, 7u);
  EXPECT_EQ(failed.fence, (Fence{3, 8}));
  EXPECT_EQ(failed.node, 1u);
  EXPECT_EQ(failed.process, 2u);
  EXPECT_EQ(failed.run_ns, 55u);
  EXPECT_EQ(failed.cause, Cause::kInput);
  EXPECT_EQ(failed.end, AttemptEnd::kFinal);
  EXPECT_EQ(failed.kind, "Missing");
  EXPECT_EQ(failed.message, "no a.png");
  EXPECT_EQ(failed.log, "p/1.log");
  EXPECT_EQ(failed.output, (OutputRanges{10, 20, 30, 40}));
}

TEST(RecordsTest, AFailedAttemptOfAnOlderLedgerHasNoOutput) {
  FailedRecord failed;
  failed.log = "p/1.log";
  failed.output = {1, 2, 3, 4};
  std::string bytes = Encoded(failed);
  bytes.resize(bytes.size() - 32);
  bytes[1] = static_cast<char>(bytes.size() - 5);
  std::string_view left = bytes;
  const Result<DecodedRecord> decoded = DecodeRecord(left);
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(std::get<FailedRecord>(decoded->record).log, "p/1.log");
  EXPECT_FALSE(std::get<FailedRecord>(decoded->record).output.known());
}

// The bytes are a contract with every ledger that was ever written.
TEST(RecordsTest, BytesAreThoseOfTheSpecification) {
  EXPECT_EQ(Encoded(LostRecord{0x0102, {3, 4}}),
            "\x08\x14\0\0\0"
            "\x02\x01\0\0\0\0\0\0"
            "\x03\0\0\0"
            "\x04\0\0\0\0\0\0\0"sv);
  EXPECT_EQ(Encoded(SealRecord{1, 2, 3}).size(), 25u);
}

TEST(RecordsTest, RowsLieWhereTheOffsetSays) {
  for (const Record& record : Samples()) {
    std::string bytes = "before";
    const size_t offset = EncodeRecord(record, bytes);
    std::string_view rows;
    if (const auto* r = std::get_if<RowsRecord>(&record)) rows = r->rows;
    if (const auto* r = std::get_if<ResultRecord>(&record)) rows = r->rows;
    EXPECT_EQ(offset, RowsOffset(TypeOf(record)));
    EXPECT_EQ(offset == 0 ? "" : bytes.substr(6 + offset), rows);
    std::string_view left = std::string_view(bytes).substr(6);
    EXPECT_EQ(DecodeRecord(left)->rows_offset, offset);
  }
}

TEST(RecordsTest, RecordsFollowEachOther) {
  std::string bytes;
  for (const Record& record : Samples()) EncodeRecord(record, bytes);
  std::string_view left = bytes;
  for (const Record& record : Samples()) {
    const Result<DecodedRecord> decoded = DecodeRecord(left);
    ASSERT_TRUE(decoded.ok());
    EXPECT_EQ(decoded->record.index(), record.index());
  }
  EXPECT_TRUE(left.empty());
}

TEST(RecordsTest, CutOffAnywhereIsCorrupt) {
  for (const Record& record : Samples()) {
    const std::string bytes = Encoded(record);
    for (size_t size = 0; size < bytes.size(); ++size) {
      const std::string cut = bytes.substr(0, size);
      std::string_view left = cut;
      const Result<DecodedRecord> decoded = DecodeRecord(left);
      ASSERT_FALSE(decoded.ok()) << record.index() << " at " << size;
      EXPECT_EQ(decoded.error().code, Code::kCorrupt);
      EXPECT_EQ(left.size(), size);
    }
  }
}

// The length says less, or more, than the body needs.
TEST(RecordsTest, WrongLengthIsCorruptOrLessRows) {
  for (const Record& record : Samples()) {
    const std::string bytes = Encoded(record);
    const auto body = static_cast<uint32_t>(bytes.size() - 5);
    for (uint32_t length = 0; length <= body + 1; ++length) {
      if (length == body) continue;
      std::string changed = bytes + "x";
      std::memcpy(changed.data() + 1, &length, sizeof(length));
      std::string_view left = changed;
      const Result<DecodedRecord> decoded = DecodeRecord(left);
      const size_t rows = RowsOffset(TypeOf(record));
      // A failed attempt may lack what the process wrote, and settings what they may replace: older
      // ledgers do not have it.
      const bool unknown = std::holds_alternative<UnknownRecord>(record);  // any body will do
      const bool older = (TypeOf(record) == RecordType::kFailed && length + 32 == body) ||
                         (TypeOf(record) == RecordType::kSettings && length + 1 == body);
      if (older || unknown || (rows != 0 && length + 5 >= rows)) {
        EXPECT_TRUE(decoded.ok());
      } else {
        EXPECT_FALSE(decoded.ok()) << record.index() << " with length " << length;
      }
    }
  }
}

// Whatever the bytes are: a value or an error, never a crash or a giant allocation.
TEST(RecordsTest, FlippedBitsDoNoHarm) {
  for (const Record& record : Samples()) {
    const std::string bytes = Encoded(record);
    for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
      std::string changed = bytes;
      changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << (bit % 8)));
      std::string_view left = changed;
      const Result<DecodedRecord> decoded = DecodeRecord(left);
      if (!decoded.ok()) continue;
      if (const auto* chunk = std::get_if<PlanChunkRecord>(&decoded->record)) {
        uint64_t items = 0;
        for (uint32_t i = 0; i < chunk->Batches(); ++i) items += chunk->ItemsOf(i);
        EXPECT_EQ(items, chunk->Items());
      }
    }
  }
}

TEST(RecordsTest, HostileCountsAreRefused) {
  for (const uint32_t count : {0u, 2u, 4u, 0x10000000u, 0xffffffffu}) {
    std::string bytes = Encoded(Files());
    std::memcpy(bytes.data() + 5 + 8 + 8 + 4 + 1 + 4, &count, sizeof(count));
    std::string_view left = bytes;
    EXPECT_FALSE(DecodeRecord(left).ok()) << count;
  }
  const std::string slices = Encoded(Slices());
  for (const uint32_t count : {0u, 1u, 3u, 0x10000000u, 0xffffffffu}) {
    std::string bytes = slices;
    std::memcpy(bytes.data() + bytes.size() - 2 * 20 - 4, &count, sizeof(count));
    std::string_view left = bytes;
    EXPECT_FALSE(DecodeRecord(left).ok()) << count;
  }
}

// The bytes of the plan's other kinds, from the kind on.
TEST(RecordsTest, PlanChunksAreThoseOfTheSpecification) {
  const auto body = [](const PlanChunkRecord& chunk) { return Encoded(chunk).substr(5 + 20); };
  EXPECT_EQ(body(Ranks()), "\x04\x05\0\0\0"sv);
  EXPECT_EQ(body({0, 0, 0, FileGroupsChunk{{7, 2}, "/", {{"{}", "a", {FileVersion(1, 10)}}}}}),
            "\x05\x07\0\0\0\0\0\0\0\x02\0\0\0\x01\0\0\0/\x01\0\0\0"
            "\x02\0\0\0{}\x01\0\0\0\x01\0\0\0a\x01\0\0\0\0\0\0\0\x0a\0\0\0\0\0\0\0"sv);
  EXPECT_EQ(body({0, 0, 0,
                  TableGroupsChunk{
                      {7, 2}, "F", {{"{}", {{"/a", "h\n", 2, 3, 1, 5, FileVersion(5, 6)}}}}}}),
            "\x06\x07\0\0\0\0\0\0\0\x02\0\0\0\x01\0\0\0F\x01\0\0\0"
            "\x02\0\0\0{}\x01\0\0\0\x02\0\0\0/a\x02\0\0\0h\n\x02\0\0\0\0\0\0\0"
            "\x03\0\0\0\0\0\0\0\x01\0\0\0\x05\0\0\0\0\0\0\0\x06\0\0\0\0\0\0\0"sv);
  TabularChunk part{"/a", 5, FileVersion(5, 6), "H", "F", {{2, 3, 1}}, "C", RowKind::kDelimited};
  const std::string front = "\x02\0\0\0/a\x05\0\0\0\0\0\0\0\x06\0\0\0\0\0\0\0\x01\0\0\0C"s;
  const std::string back = "\x01\0\0\0\x02\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\x01\0\0\0"s;
  EXPECT_EQ(body({0, 0, 0, part}), "\x02" + front + "\x01\0\0\0H\x01\0\0\0F"s + back);
  part.kind = RowKind::kJsonLines;
  EXPECT_EQ(body({0, 0, 0, part}), "\x03" + front + "\x01\0\0\0F"s + back);
  part.kind = RowKind::kParquet;
  EXPECT_EQ(body({0, 0, 0, part}), "\x07" + front + back);
}

TEST(RecordsTest, LayoutOfFilesThatAManifestDescribes) {
  const FilesChunk files{1, "/", "a\0b"sv, {"v1", "v2"}, {"{}", "{\"n\":1}"}};
  EXPECT_EQ(Encoded(PlanChunkRecord{0, 0, 0, files, "s"}).substr(5 + 20),
            "\x88\x01\0\0\0s\x02\x01\0\0\0\x02\0\0\0\x01\0\0\0/\x03\0\0\0"
            "a\0bv1v2\x02\0\0\0{}\x07\0\0\0{\"n\":1}"sv);
}

TEST(RecordsTest, LayoutOfAChunkInAStore) {
  const auto body = [](PlanChunkRecord chunk) {
    chunk.store = "s";
    return Encoded(chunk).substr(5 + 20);
  };
  EXPECT_EQ(body({0, 0, 0, FilesChunk{1, "/", "a\0b"sv, {"v1", "v2"}}}),
            "\x81\x01\0\0\0s\x02\x01\0\0\0\x02\0\0\0\x01\0\0\0/\x03\0\0\0"
            "a\0bv1v2"sv);
  EXPECT_EQ(body({0, 0, 0, FilesChunk{1, "/", "a\0b"sv, {"v1", "v"}}}),
            "\x81\x01\0\0\0s\xff\x01\0\0\0\x02\0\0\0\x01\0\0\0/\x03\0\0\0"
            "a\0b\x02v1\x01v"sv);
  EXPECT_EQ(body({0, 0, 0, TabularChunk{"/a", 5, "v", "H", "F", {{2, 3, 1}}}}),
            "\x82\x01\0\0\0s\x01\x02\0\0\0/a\x05\0\0\0\0\0\0\0v\0\0\0\0"
            "\x01\0\0\0H\x01\0\0\0F"
            "\x01\0\0\0\x02\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\x01\0\0\0"sv);
}

TEST(RecordsTest, TheSizeOfAFileComesBackWhereverItStands) {
  for (const std::string_view store : {"", "bucket"}) {
    PlanChunkRecord chunk = TableGroups();
    chunk.store = store;
    const std::string bytes = Encoded(chunk);
    std::string_view left = bytes;
    const Result<DecodedRecord> decoded = DecodeRecord(left);
    ASSERT_TRUE(decoded.ok());
    const auto& back = std::get<PlanChunkRecord>(decoded->record);
    EXPECT_EQ(back.store, store);
    const auto& slices = std::get<TableGroupsChunk>(back.content).groups[0].slices;
    EXPECT_EQ(slices[0].size, 52u);
    EXPECT_EQ(slices[1].size, 60u);
    EXPECT_EQ(slices[1].version, FileVersion(60, -2));
  }
}

TEST(RecordsTest, HostileVersionsAreRefused) {
  const auto refused = [](std::string_view bytes) { return !DecodeRecord(bytes).ok(); };
  // With `bytes` in place of `count` bytes, and the length of the record right.
  const auto with = [](std::string record, size_t at, size_t count, std::string_view bytes) {
    record.replace(at, count, bytes);
    const auto length = static_cast<uint32_t>(record.size() - 5);
    std::memcpy(record.data() + 1, &length, sizeof length);
    return record;
  };
  const std::vector<PlanChunkRecord> chunks = InABucket();
  const std::string files = Encoded(chunks[0]);
  const std::string counted = Encoded(chunks[1]);
  const size_t kind = 5 + 20;
  const size_t width = kind + 1 + 4 + 6;
  EXPECT_FALSE(refused(with(files, kind, 1, "\x81")));
  EXPECT_FALSE(refused(with(files, kind + 1, 10, "\1\0\0\0s"sv)));
  EXPECT_TRUE(refused(with(files, kind + 1, 10, "\0\0\0\0"sv))) << "a store without a name";
  for (const std::string_view bytes : {"\0"sv, "\5"sv, "\7"sv, "\xfe"sv, "\xff"sv}) {
    EXPECT_TRUE(refused(with(files, width, 1, bytes))) << static_cast<int>(bytes[0]);
  }
  const std::string ranks = Encoded(Ranks());
  EXPECT_FALSE(refused(ranks));
  EXPECT_TRUE(refused(with(ranks, kind, 1, "\x84\1\0\0\0s\1"sv))) << "ranks lie nowhere";
  EXPECT_FALSE(refused(with(counted, counted.size() - 3, 3,
                            "\1"
                            "2")));
  EXPECT_TRUE(refused(with(counted, counted.size() - 3, 3, "\0"sv))) << "an empty version";
  EXPECT_TRUE(refused(with(counted, counted.size() - 3, 1, "\xc8")));
}

TEST(RecordsTest, HostileCountsOfGroupsAreRefused) {
  const auto refused = [](std::string bytes, size_t at, uint32_t count) {
    std::memcpy(bytes.data() + at, &count, sizeof(count));
    std::string_view left = bytes;
    return !DecodeRecord(left).ok();
  };
  const size_t kind = 5 + 20;
  for (const uint32_t count : {0u, 65'537u, 0xffffffffu}) {
    EXPECT_TRUE(refused(Encoded(Ranks()), kind + 1, count)) << count;
  }
  for (const uint32_t count : {0u, 1u, 3u, 0x10000000u, 0xffffffffu}) {
    EXPECT_TRUE(refused(Encoded(FileGroups()), kind + 1 + 12 + 4 + 3, count)) << count;
    EXPECT_TRUE(refused(Encoded(TableGroups()), kind + 1 + 12 + 4 + 2, count)) << count;
  }
  const std::string groups = Encoded(FileGroups());
  const size_t files = kind + 1 + 12 + 4 + 3 + 4 + 4 + 13;
  for (const uint32_t count : {0u, 1u, 3u, 0x10000000u}) {
    EXPECT_TRUE(refused(groups, files, count)) << count;
  }
  // Row groups, and rows of a group, that no mini-batch can have.
  const std::string row_groups = Encoded(RowGroups());
  EXPECT_TRUE(refused(row_groups, row_groups.size() - 12, 65'537));
  PlanChunkRecord tables = TableGroups();
  std::get<TableGroupsChunk>(tables.content).groups[0].slices[0].rows = 0xffffffff;
  const std::string rows = Encoded(tables);
  std::string_view left = rows;
  EXPECT_FALSE(DecodeRecord(left).ok());
}

TEST(RecordsTest, UnknownValuesAreRefused) {
  const auto refused = [](std::string bytes, size_t at, char value) {
    bytes[at] = value;
    std::string_view left = bytes;
    const Result<DecodedRecord> decoded = DecodeRecord(left);
    return !decoded.ok() && decoded.error().code == Code::kCorrupt;
  };
  EXPECT_TRUE(refused(Encoded(LostRecord{}), 0, 0));
  EXPECT_TRUE(refused(Encoded(LostRecord{}), 0, 13));
  EXPECT_TRUE(refused(Encoded(SkippedRecord{}), 0, 18));
  EXPECT_TRUE(refused(Encoded(ShutdownRecord{}), 5 + 8, 0));
  EXPECT_TRUE(refused(Encoded(ShutdownRecord{}), 5 + 8, 6));
  EXPECT_TRUE(refused(Encoded(AgainRecord{1, 2, {{7, 3, 4}}}), 5 + 8, 2));
  EXPECT_TRUE(refused(Encoded(UnknownRecord{128, ""}), 0, 127));
  const size_t cause = 5 + 8 + 12 + 8 + 8 + 24;
  EXPECT_TRUE(refused(Encoded(FailedRecord{}), cause, 0));
  EXPECT_TRUE(refused(Encoded(FailedRecord{}), cause, 7));
  EXPECT_TRUE(refused(Encoded(FailedRecord{}), cause + 1, 3));
  EXPECT_TRUE(refused(Encoded(StartedRecord{}), 5 + 20, 2));
  EXPECT_TRUE(refused(Encoded(CompanyRecord{1, {4}}), 5, 0));
  EXPECT_TRUE(refused(Encoded(CompanyRecord{1, {4}}), 5 + 4, 2));
  EXPECT_TRUE(refused(Encoded(VerdictRecord{}), 5, 3));
  EXPECT_TRUE(refused(Encoded(Files()), 5 + 20, 8));      // kind of chunk
  EXPECT_TRUE(refused(Encoded(Files()), 5 + 20 + 1, 0));  // files in a mini-batch
}

TEST(RecordsTest, ChunksCountTheirItems) {
  EXPECT_EQ(Files().Batches(), 2u);
  EXPECT_EQ(Files().Items(), 3u);
  EXPECT_EQ(Files().ItemsOf(0), 2u);
  EXPECT_EQ(Files().ItemsOf(1), 1u);
  EXPECT_EQ(Slices().Batches(), 2u);
  EXPECT_EQ(Slices().Items(), 19u);
  EXPECT_EQ(Slices().ItemsOf(1), 9u);
  EXPECT_EQ(Ranks().Batches(), 5u);
  EXPECT_EQ(Ranks().Items(), 5u);
  EXPECT_EQ(FileGroups().Batches(), 2u);
  EXPECT_EQ(FileGroups().ItemsOf(0), 2u);
  EXPECT_EQ(FileGroups().Items(), 3u);
  EXPECT_EQ(TableGroups().Batches(), 2u);
  EXPECT_EQ(TableGroups().ItemsOf(0), 11u);
  EXPECT_EQ(TableGroups().Items(), 12u);
  PlanChunkRecord one = Files();
  std::get<FilesChunk>(one.content).files_per_batch = 0xffffffff;
  EXPECT_EQ(one.Batches(), 1u);
  EXPECT_EQ(one.ItemsOf(0), 3u);
}

}  // namespace
}  // namespace parallelrun::job
