#include "tests/unit/plan/compressed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "plan/columns/decide_types.h"
#include "plan/decompressor.h"
#include "plan/text_reader.h"
#include "tests/support/disk_store.h"
#include "tests/unit/plan/folder.h"
#include "tests/unit/plan/plans.h"

namespace parallelrun::plan {
namespace {

using namespace std::string_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Pack = std::string(std::string_view);
const std::vector<Pack*> kPacks = {Gzipped, Zstded};

// All that `packed` holds, given and taken in steps of these sizes; or what is wrong.
std::string Unpacked(const std::string& packed, size_t given, size_t room) {
  const auto decompressor = MakeDecompressor(packed);
  if (!decompressor) return "no decompressor";
  std::string text;
  std::string to(room, '\0');
  std::string_view left = packed;
  while (true) {
    const auto step = decompressor->Run(left.substr(0, given), to);
    if (!step.ok()) return step.error().message;
    left.remove_prefix(step->used);
    text.append(to, 0, step->made);
    if (left.empty() && step->made == 0) return decompressor->whole() ? text : "cut short";
  }
}

// All lines of a text that is no whole number of blocks.
std::string SomeText(size_t lines) {
  std::mt19937 random(3);
  std::string text = "id,zip\n";
  for (size_t i = 0; i < lines; ++i) {
    text += std::to_string(i) + "," + std::to_string(random()) + "\n";
  }
  return text;
}

TEST(DecompressorTest, GivesBackWhatWasCompressed) {
  const std::string text = SomeText(3000);
  for (Pack* const pack : kPacks) {
    for (const size_t given : {1, 7, 100'000}) {
      for (const size_t room : {1, 4096, 1 << 20}) {
        EXPECT_TRUE(Unpacked(pack(text), given, room) == text) << given << " " << room;
      }
    }
    EXPECT_EQ(Unpacked(pack(""), 9, 9), "");
    EXPECT_EQ(Unpacked(pack("a") + pack("") + pack("b"), 5, 5), "ab") << "several in one file";
  }
  EXPECT_EQ(Unpacked(Gzipped("a") + std::string(512, '\0'), 100, 100), "a") << "a padded block";
}

TEST(DecompressorTest, WhatIsDamagedIsNotTakenForTheEnd) {
  for (Pack* const pack : kPacks) {
    const std::string packed = pack(SomeText(50));
    for (size_t size = 4; size < packed.size(); ++size) {
      EXPECT_EQ(Unpacked(packed.substr(0, size), 64, 64), "cut short") << size;
    }
    EXPECT_THAT(Unpacked(packed + "rubbish", 64, 64), HasSubstr("cannot be decompressed"));
    std::string damaged = packed;
    damaged[packed.size() / 2] = static_cast<char>(damaged[packed.size() / 2] ^ 0x55);
    EXPECT_NE(Unpacked(damaged, 64, 64), SomeText(50));
  }
  EXPECT_EQ(MakeDecompressor("id,zip\n"), nullptr);
  EXPECT_EQ(MakeDecompressor(""), nullptr);
}

class CompressedTest : public ::testing::Test {
 protected:
  PlanFolder folder_;
};

// Wherever it is asked to go on, as the plain text does.
TEST_F(CompressedTest, OffsetsAreThoseOfTheText) {
  const std::string text = "\xEF\xBB\xBF" + SomeText(60'000);
  const std::string plain = folder_.Write("plain", text);
  for (Pack* const pack : kPacks) {
    const std::string packed = folder_.Write("packed", pack(text));
    const auto opened = TextReader::Open(DiskStore(), NameOnDisk(plain), true);
    const auto opened_packed = TextReader::Open(DiskStore(), NameOnDisk(packed), true);
    TextReader* const one = opened->get();
    TextReader* const other = opened_packed->get();
    EXPECT_FALSE(one->compressed());
    EXPECT_TRUE(other->compressed());
    for (const uint64_t offset : {uint64_t{0}, uint64_t{400'000}, uint64_t{400'001},
                                  uint64_t{70'000}, uint64_t{0}, uint64_t{text.size()}}) {
      one->Seek(offset);
      other->Seek(offset);
      ASSERT_TRUE(one->Fill().ok());
      ASSERT_TRUE(other->Fill().ok());
      EXPECT_EQ(one->offset(), other->offset());
      const size_t both = std::min(one->rest().size(), other->rest().size());
      EXPECT_EQ(both == 0, offset == text.size());
      EXPECT_EQ(one->rest().substr(0, both), other->rest().substr(0, both));
      EXPECT_EQ(*one->LineEndsBefore(offset), *other->LineEndsBefore(offset)) << offset;
    }
  }
}

TEST_F(CompressedTest, AFileIsOneMiniBatchAndIsPlannedAsThePlainOne) {
  const std::string rows = SomeText(20'000);
  std::string lines;
  for (int i = 0; i < 20'000; ++i) lines += "{\"n\": " + std::to_string(i) + "}\n\n";
  for (Pack* const pack : kPacks) {
    folder_.Write("a", pack(rows));
    folder_.Write("b", "id,zip\n1,2\n3,4\n");
    folder_.Write("c", pack(""));
    folder_.Write("d", pack("id,zip\n"));
    const Plan plan = PlanFromEverywhere({Rows(folder_.path(), 1)});
    ASSERT_THAT(plan.Batches(), ElementsAre(1, 1, 1));
    EXPECT_EQ(plan.items, 20'002u);
    EXPECT_EQ(plan.rows(0).header, "id,zip\n");
    EXPECT_EQ(plan.rows(0).slices[0].offset, 7u);
    EXPECT_EQ(plan.rows(0).slices[0].length, rows.size() - 7);
    EXPECT_EQ(plan.rows(0).format, R"({"compressed":true,"delimiter":",","encoding":"utf-8"})");
    EXPECT_EQ(plan.rows(1).format, R"({"delimiter":",","encoding":"utf-8"})");
    std::filesystem::remove(folder_ / "b");

    folder_.Write("a", pack(lines));
    PlanInput input = Rows(folder_.path(), 1);
    input.kind = PlanKind::kJsonLines;
    folder_.Write("d");
    const Plan of_lines = PlanFromEverywhere({input});
    ASSERT_THAT(of_lines.Batches(), ElementsAre(1));
    EXPECT_EQ(of_lines.items, 20'000u);
    EXPECT_EQ(of_lines.rows(0).slices[0].length, lines.size());
    EXPECT_EQ(of_lines.rows(0).format, R"({"compressed":true,"encoding":"utf-8"})");
  }
}

// A compressed file is planned at one go: what becomes of it later holds up no restart.
TEST_F(CompressedTest, ARestartGoesOnBehindAFileThatIsGone) {
  folder_.Write("a", Gzipped("x\n1\n2\n"));
  folder_.Write("b", Gzipped("x\n3\n"));
  const std::vector<PlanInput> inputs = {Rows(folder_.path(), 1)};
  const Plan plan = MakePlan(inputs);
  ASSERT_EQ(plan.chunks.size(), 2u);
  std::filesystem::remove(folder_ / "a");
  const Plan rest = MakePlan(inputs, CursorAfter(plan.chunks[0]->record, inputs));
  EXPECT_EQ(rest.error, "");
  EXPECT_EQ(rest.items, 3u);
}

TEST_F(CompressedTest, GroupsAndAHeaderThatStandsForAll) {
  folder_.Write("a/1", Gzipped("h\n1\n"));
  folder_.Write("a/2", "2\n3\n");
  folder_.Write("b/1", Zstded("4\n5\n"));
  PlanInput input = Rows(folder_.path(), 1, api::HeaderMode::kFirstFile);
  input.partition_format = "{key}/{n}";
  input.partition_keys = {"key"};
  const Plan plan = PlanFromEverywhere({input});
  EXPECT_EQ(plan.items, 5u);
  EXPECT_EQ(
      plan.table_groups(0).format,
      R"({"compressed":true,"delimiter":",","delimiterAtEnd":"FirstRows","encoding":"utf-8"})");
  const job::TableSlice& slice = plan.table_groups(1).groups[0].slices[0];
  EXPECT_EQ(slice.offset, 0u);
  EXPECT_EQ(slice.length, 4u);
}

TEST_F(CompressedTest, ErrorsNameTheLineOfTheText) {
  PlanInput input = Rows(folder_.path(), 1);
  input.tabular.max_field_size = 1000;
  const std::string path = folder_.Write("a", Gzipped(SomeText(40'000) + "1,\"open\n2,3\n"));
  EXPECT_THAT(MakePlan({input}).error,
              HasSubstr(path + ":40002: the quote that this field begins"));
  folder_.Write("a", Gzipped("x\n1\n").substr(0, 15));
  EXPECT_THAT(MakePlan({input}).error,
              HasSubstr(path + ": it is compressed, and its end is missing"));
  folder_.Write("a", Gzipped(Zstded("x\n1\n")));
  EXPECT_THAT(MakePlan({input}).error, HasSubstr(path + " is compressed twice (zstd)"));
}

TEST_F(CompressedTest, TypesAreThoseOfTheText) {
  const std::string text = SomeText(30'000) + "7,00239\n";
  folder_.Write("a.csv", text);
  const PlanInput input = Rows(folder_.path(), 1);
  const auto store = FolderStores(DiskFiles())(input);
  const auto plain = *DecideTypes(input, *store);
  for (Pack* const pack : kPacks) {
    folder_.Write("a.csv", pack(text));
    const auto packed = *DecideTypes(input, *store);
    EXPECT_EQ(ToJson(*packed), ToJson(*plain));
    // A bound on what is read is one on what is made.
    const auto some = *DecideTypes(input, *store, {100'000, 10});
    EXPECT_FALSE(some->all);
    EXPECT_THAT(some->from, HasSubstr("decompressed"));
  }
}

// A few kilobytes that hold 100 MB pass through buffers of 256 KiB.
TEST_F(CompressedTest, WhatHoldsMuchIsReadInPieces) {
  std::string bomb;
  const std::string frame = Zstded(std::string(4'000'000, '\n'));
  for (int i = 0; i < 25; ++i) bomb += frame;
  EXPECT_LT(bomb.size(), 100'000u);
  folder_.Write("a", "x\n1\n");
  folder_.Write("b", Zstded("x\n") + bomb + Zstded("2\n"));
  const Plan plan = MakePlan({Rows(folder_.path(), 1)});
  EXPECT_EQ(plan.error, "");
  EXPECT_EQ(plan.items, 2u);
  EXPECT_EQ(plan.rows(1).slices[0].length, 100'000'002u);
}

}  // namespace
}  // namespace parallelrun::plan
