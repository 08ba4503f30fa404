#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/fmt/fmt.h>

#include <filesystem>
#include <string>
#include <vector>

#include "plan/input_changes.h"
#include "plan/input_names.h"
#include "plan/input_store.h"
#include "plan/listing.h"
#include "plan/manifest_pin.h"
#include "plan/manifest_reader.h"
#include "plan/manifest_store.h"
#include "plan/source.h"
#include "tests/support/disk_files.h"
#include "tests/unit/plan/folder.h"
#include "tests/unit/plan/plans.h"

namespace parallelrun::plan {
namespace {

using namespace std::string_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Names = std::vector<std::string>;

// A folder of files, and beside it the list that names some of them.
class ManifestTest : public ::testing::Test {
 protected:
  PlanInput Input(const std::string& manifest, uint64_t batch_size = 2) const {
    folder_.Write("list.txt", manifest);
    return NoManifestWritten(batch_size);
  }
  PlanInput NoManifestWritten(uint64_t batch_size = 2) const {
    PlanInput input = FilesInput(folder_ / "in", batch_size);
    input.manifest.path = folder_ / "list.txt";
    return input;
  }
  void Put(const Names& names) const {
    for (const std::string& name : names) folder_.Write("in/" + name, name);
  }

  const PlanFolder folder_{};
};

TEST_F(ManifestTest, ItemsAreItsLinesInTheirOrder) {
  Put({"a", "b/c", "z", ".hidden", "not named"});
  const Plan plan = PlanFromEverywhere({Input("z\nb/c\n.hidden\na\n")});
  EXPECT_EQ(NamesOf(plan), (Names{"z", "b/c", ".hidden", "a"}));
  EXPECT_EQ(plan.batches, 2U);
  EXPECT_EQ(plan.files(0).root, folder_ / "in");
  EXPECT_EQ(SizeOf(plan.files(0).versions[1]), 3U);
}

TEST_F(ManifestTest, WhatEditorsAndToolsLeaveInItIsPassedOver) {
  Put({"a", "b", "c d", " e"});
  EXPECT_EQ(NamesOf(MakePlan({Input("\xEF\xBB\xBF./a\r\n\n \t\nb\r\n././c d\n e")})),
            (Names{"a", "b", "c d", " e"}));
}

TEST_F(ManifestTest, ChunksGrowAndItGoesOnBehindEach) {
  std::string manifest;
  Names expected;
  for (int i = 400; i > 0; --i) {
    expected.push_back(fmt::format("f{}", i));
    manifest += expected.back() + "\n";
  }
  Put(expected);
  const Plan plan = PlanFromEverywhere({Input(manifest, 10)});
  EXPECT_EQ(NamesOf(plan), expected);
  EXPECT_GT(plan.chunks.size(), 2U) << "the first ones come before the manifest is read";
}

TEST_F(ManifestTest, WhatIsNotThereIsAnItemTooAndSoIsWhatIsNoFile) {
  Put({"a", "folder/b"});
  const Plan plan = PlanFromEverywhere({Input("gone\na\nfolder\n", 3)});
  EXPECT_EQ(NamesOf(plan), (Names{"gone", "a", "folder"}));
  EXPECT_EQ(plan.files(0).versions[0], job::kNoVersion);
  EXPECT_NE(plan.files(0).versions[1], job::kNoVersion);
  EXPECT_EQ(plan.files(0).versions[2], job::kNoVersion);
}

TEST_F(ManifestTest, WhatItMayNotNameIsRefusedWithItsLine) {
  Put({"a"});
  const std::string list = folder_ / "list.txt";
  const auto error = [&](const std::string& line) {
    return MakePlan({Input("a\n\n" + line + "\n")}).error;
  };
  const std::string place = "Invalid: inputs[images]: " + list + ":3: ";
  EXPECT_EQ(error("../secret"), place +
                                    "\"../secret\" leaves the folder of the input: name what lies "
                                    "below it");
  EXPECT_THAT(error("b/../../secret"), HasSubstr(":3: \"b/../../secret\" leaves the folder"));
  EXPECT_THAT(error("/etc/passwd"), HasSubstr(":3: \"/etc/passwd\" is an absolute path"));
  EXPECT_THAT(error("http://169.254.169.254/x"), HasSubstr("is a URL"));
  EXPECT_THAT(error("file:///etc/passwd"), HasSubstr("is a URL"));
  EXPECT_THAT(error("b//c"), HasSubstr("is not how a listing writes a path"));
  EXPECT_THAT(error("b/./c"), HasSubstr("is not how a listing writes a path"));
  EXPECT_THAT(error("b/"), HasSubstr("is not how a listing writes a path"));
  EXPECT_THAT(error("a\0b"s), HasSubstr("has a NUL byte"));
  EXPECT_THAT(error(std::string(4097, 'x')), HasSubstr("is longer than 4,096 bytes"));
  EXPECT_THAT(error("b/" + std::string(256, 'x')), HasSubstr("a part longer than 255 bytes"));
  EXPECT_THAT(error(std::string(ManifestReader::kMostLine + 1, 'x')),
              HasSubstr(":3: the line is longer than 65,536 bytes"));
  EXPECT_THAT(error("\x1B]0;x\x07/../b"), AllOf(HasSubstr("leaves"), Not(HasSubstr("\x1B"))))
      << "it is shown on terminals";
}

TEST_F(ManifestTest, ANameTwiceIsRefusedWithBothLines) {
  Put({"a", "b"});
  EXPECT_EQ(MakePlan({Input("a\nb\n./a\n")}).error,
            "Invalid: inputs[images]: " + folder_ / "list.txt" +
                ":3: \"a\" stands in line 1 too, and would be run twice: leave one of them out, "
                "or write duplicates: Keep");
}

TEST_F(ManifestTest, ANameTwiceIsAnItemForEachLineWhereThatIsAllowed) {
  std::string manifest;
  Names expected;
  for (int i = 0; i < 300; ++i) {  // in several chunks, each of which ends with a name of others
    expected.push_back(fmt::format("f{}", i % 7 % 3));
    manifest += expected.back() + "\n";
  }
  Put({"f0", "f1", "f2"});
  PlanInput input = Input(manifest, 10);
  input.manifest.keeps_twice = true;
  const Plan plan = PlanFromEverywhere({input});
  EXPECT_EQ(NamesOf(plan), expected);
  EXPECT_GT(plan.chunks.size(), 2U);

  // Behind other inputs, whose items do not count.
  std::vector<PlanInput> inputs = {FilesInput(folder_ / "in", 2), input};
  inputs[0].name = "all";
  const Plan both = MakePlan(inputs);
  EXPECT_EQ(both.items, 303U);
  inputs[1].manifest.items_before = 3;
  const job::PlanChunkRecord& second = both.chunks[2]->record;
  EXPECT_EQ(second.input, 1U);
  const Plan rest = MakePlan(inputs, CursorAfter(second, inputs));
  EXPECT_EQ(rest.items, 303U);
  const Names all = NamesOf(both);
  const auto from = static_cast<std::ptrdiff_t>(second.first_item + second.Items());
  EXPECT_EQ(NamesOf(rest), Names(all.begin() + from, all.end()));
}

TEST_F(ManifestTest, ARunThatGoesOnKnowsANameThatCameTwice) {
  Put({"a", "b"});
  PlanInput input = Input("a\nb\na\nb\nb\n", 1);
  input.manifest.keeps_twice = true;
  const Plan plan = MakePlan({input});
  const auto changes = [&](size_t chunks, bool ended) {
    const Result<InputChanges> found = FindInputChanges(
        [&](const auto& visit) -> Status {
          for (size_t i = 0; i < chunks; ++i) visit(plan.chunks[i]->record);
          return {};
        },
        ended, {input}, FolderStores(DiskFiles()), [] {});
    EXPECT_TRUE(found.ok()) << found.error().message;
    return found.ok() ? found->differ.named : Names();
  };
  const size_t all = plan.chunks.size();
  EXPECT_THAT(changes(all, true), IsEmpty());
  EXPECT_THAT(changes(all, false), IsEmpty());
  folder_.Write("in/a", "longer than it was");
  EXPECT_THAT(changes(all, true),
              ElementsAre("inputs[images]: " + folder_ / "in/a" + " had 1 bytes, has 18"));
}

TEST_F(ManifestTest, ALinkIntoAFolderOfTheJobIsRefused) {
  Put({"a", "sub/b"});
  folder_.Write("out/part", "x");
  folder_.Link(folder_ / "out", "in/link");
  const auto error = [&](const std::string& manifest) {
    return MakePlan({Input(manifest)}, {}, {folder_ / "out", folder_ / "not/there"}).error;
  };
  EXPECT_EQ(error("a\nsub/b\n"), "");
  EXPECT_THAT(error("a\nlink/part\n"),
              HasSubstr(":2: \"link/part\" lies where the job writes its output, state or logs"));
  // Other links are followed, as in a folder that is listed.
  folder_.Link(folder_ / "in/sub", "in/other");
  EXPECT_EQ(error("other/b\n"), "");
}

TEST_F(ManifestTest, OneThatIsNotThereOrNamesNothing) {
  Put({"a"});
  const std::string list = folder_ / "list.txt";
  EXPECT_EQ(MakePlan({NoManifestWritten()}).error,
            "NotFound: inputs[images]: " + list +
                ": the manifest is not there, or is no file; correct manifest.path");
  EXPECT_THAT(MakePlan({Input("\n \n")}).error,
              HasSubstr("the manifest " + list + " names no file"));
  PlanInput empty = Input("");
  empty.allow_empty = api::AllowEmpty::kExisting;
  const Plan allowed = MakePlan({empty});
  EXPECT_EQ(allowed.error, "");
  EXPECT_THAT(allowed.notes, ElementsAre("inputs[images]: EMPTY: no item in " + list +
                                         ", which allowEmpty: Existing permits"));
  std::filesystem::remove(list);
  EXPECT_THAT(MakePlan({empty}).error, HasSubstr("is not there"));
  empty.allow_empty = api::AllowEmpty::kMissing;
  EXPECT_EQ(MakePlan({empty}).error, "");
}

TEST_F(ManifestTest, TheInputIsAFolder) {
  Put({"a"});
  PlanInput input = Input("a\n");
  input.root = folder_ / "in/a";
  EXPECT_THAT(MakePlan({input}).error, HasSubstr("in/a is a file, and a manifest names files"));
  input.root = folder_ / "none";
  EXPECT_THAT(MakePlan({input}).error, HasSubstr("none does not exist"));
}

TEST_F(ManifestTest, WhatTwoInputsNameIsRunByBoth) {
  Put({"a", "b"});
  std::vector<PlanInput> inputs = {Input("a\n"), FilesInput(folder_ / "in", 2)};
  inputs[1].name = "all";
  ShareNames(inputs);
  EXPECT_EQ(NamesOf(MakePlan(inputs)), (Names{"a", "a", "b"}));
}

// --- what its lines say

// Its worker says how the file differs.
TEST_F(ManifestTest, ASizeOfAFileStandsInThePlan) {
  Put({"a", "b"});
  PlanInput input = Input("path,size\na,17\nb,\ngone,3\n", 3);
  input.manifest.format = api::ManifestFormat::kCsv;
  const Plan found = MakePlan({input});
  input.manifest.size_column = "size";
  const Plan plan = PlanFromEverywhere({input});
  EXPECT_EQ(NamesOf(plan), (Names{"a", "b", "gone"}));
  EXPECT_EQ(SizeOf(plan.files(0).versions[0]), 17U);
  EXPECT_EQ(plan.files(0).versions[0].substr(8), found.files(0).versions[0].substr(8));
  EXPECT_EQ(plan.files(0).versions[1], found.files(0).versions[1]);
  EXPECT_EQ(plan.files(0).versions[2], job::kNoVersion);
}

TEST_F(ManifestTest, ChunksHoldWhatItSays) {
  Put({"a", "b"});
  PlanInput input = Input("n,path\r\n1,b\r\n\r\n2,gone\r\n3,a\r\n");
  input.manifest.format = api::ManifestFormat::kCsv;
  const Plan plan = PlanFromEverywhere({input});
  EXPECT_EQ(NamesOf(plan), (Names{"b", "gone", "a"}));
  EXPECT_THAT(plan.files(0).metadata,
              ElementsAre(R"({"n":"1","path":"b"})", R"({"n":"2","path":"gone"})",
                          R"({"n":"3","path":"a"})"));
  input = Input("n,path\n1,b\n2\n");
  input.manifest.format = api::ManifestFormat::kCsv;
  EXPECT_THAT(MakePlan({input}).error, HasSubstr("list.txt:3: the row has 1 field"));
}

// What it says may be much more than names are: a chunk must fit a group of the ledger.
TEST_F(ManifestTest, AChunkEndsWhereItsBytesAreMany) {
  Put({"a"});                                   // else there is no folder
  constexpr uint64_t kMiB = uint64_t{1} << 20;  // in place of kMostChunkBytes
  const std::string much(20'000, 'x');
  std::string manifest;
  for (int i = 0; i < 300; ++i) {  // 6 MB, and by its items alone a chunk has 64 of them
    manifest += fmt::format(R"({{"path": "gone{}", "x": "{}"}})", i, much) + "\n";
  }
  PlanInput input = Input(manifest, 10);
  input.manifest.format = api::ManifestFormat::kJsonLines;
  const auto store = FolderStores(DiskFiles())(input);
  PlanCursor at;
  const auto source = MakeFileSource(input, *store, kMiB);
  std::vector<uint64_t> ends;  // items, behind each chunk
  for (Result<std::optional<std::string>> chunk = source->Next(at);; chunk = source->Next(at)) {
    ASSERT_TRUE(chunk.ok()) << chunk.error().message;
    if (!*chunk) break;
    EXPECT_LE((*chunk)->size(), kMiB);
    ends.push_back(at.next_item);
  }
  // Of whole mini-batches: the first end where a half of what a chunk may hold is there.
  EXPECT_THAT(ends, ElementsAre(30, 60, 90, 120, 150, 180, 210, 240, 270, 300));
  input.batch_size = 100;
  PlanCursor begin;
  const auto too_large = MakeFileSource(input, *store, kMiB)->Next(begin);
  ASSERT_FALSE(too_large.ok());
  EXPECT_EQ(too_large.error().message,
            "inputs[images]: a mini-batch of 100 files is too large, names and metadata of 53 "
            "take 1 MiB; lower miniBatchSize");
}

// --- which manifest it was

TEST_F(ManifestTest, WhichOneItIsStandsInFrontOfTheFirstChunk) {
  Put({"a", "b", "c"});
  PlanInput input = Input("c\nb\na\n", 1);
  input.decide_types = true;
  Planner planner({input}, FolderStores(DiskFiles()), {});
  const auto first = planner.Next();
  ASSERT_TRUE(first.ok() && *first);
  std::string_view bytes = **first;
  const auto decoded = job::DecodeRecord(bytes);
  ASSERT_TRUE(decoded.ok());
  const auto& record = std::get<job::TypesRecord>(decoded->record);
  EXPECT_EQ(record.input, 0U);
  const auto pinned = ManifestIn(record.types);
  ASSERT_TRUE(pinned.ok());
  EXPECT_EQ(SizeOf(pinned->version.bytes()), 6U);
  EXPECT_EQ(pinned->items_before, 0U);
  EXPECT_TRUE(planner.Next().ok());
  EXPECT_EQ(planner.items(), 3U);

  // Who goes on with another one plans nothing.
  input.decide_types = false;
  EXPECT_TRUE(KeepManifest(record.types, input.manifest).ok());
  EXPECT_EQ(input.manifest.planned, pinned->version);
  EXPECT_EQ(MakePlan({input}).error, "");
  folder_.Write("list.txt", "c\nb\n");
  EXPECT_THAT(MakePlan({input}).error,
              AllOf(HasSubstr("list.txt: the manifest has changed since items of it were planned"),
                    HasSubstr("--overwrite")));
}

TEST_F(ManifestTest, OneThatChangesWhileItIsReadEndsThePlan) {
  Put({"a"});
  std::string manifest = "a\n";
  for (int i = 0; i < 100; ++i) manifest += fmt::format("gone{}\n", i);
  const PlanInput input = Input(manifest, 1);
  Planner planner({input}, FolderStores(DiskFiles()), {});
  ASSERT_TRUE(planner.Next().ok());
  folder_.Write("list.txt", manifest + "one more\n");
  Result<std::optional<std::string>> next = planner.Next();
  while (next.ok() && *next) next = planner.Next();
  ASSERT_FALSE(next.ok());
  EXPECT_THAT(next.error().message, HasSubstr("the manifest has changed"));
}

TEST_F(ManifestTest, AnotherOneIsOneDifferenceOfARunThatGoesOn) {
  Put({"a", "b", "not named"});
  PlanInput input = Input("b\ngone\na\n", 3);
  input.manifest.planned = FolderStores(DiskFiles())(input)->Stat(kManifestItself).value()->version;
  const Plan plan = MakePlan({input});
  const auto changes = [&] {
    const Result<InputChanges> found = FindInputChanges(
        [&](const auto& visit) -> Status {
          for (const auto& chunk : plan.chunks) visit(chunk->record);
          return {};
        },
        true, {input}, FolderStores(DiskFiles()), [] {});
    EXPECT_TRUE(found.ok()) << found.error().message;
    return found.ok() ? *found : InputChanges();
  };
  EXPECT_THAT(changes().differ.named, IsEmpty());
  EXPECT_THAT(changes().added.named, IsEmpty());
  // Nobody has read it.
  Put({"gone"});
  EXPECT_THAT(changes().differ.named, IsEmpty());
  folder_.Write("in/a", "longer than it was");
  std::filesystem::remove(folder_ / "in/b");
  EXPECT_THAT(changes().differ.named,
              ElementsAre("inputs[images]: " + folder_ / "in/b" + " is gone",
                          "inputs[images]: " + folder_ / "in/a" + " had 1 bytes, has 18"));
  folder_.Write("list.txt", "b\n");
  EXPECT_THAT(changes().differ.named,
              ElementsAre("inputs[images]: " + folder_ / "list.txt" + " had 9 bytes, has 2"));
}

TEST_F(ManifestTest, WhatALedgerSaysOfOneIsRead) {
  for (const uint64_t before : {uint64_t{0}, uint64_t{12'345'678'901}}) {
    const PinnedManifest manifest{store::Version("16 bytes of one."), before};
    EXPECT_EQ(ManifestIn(PinOf(manifest)).value(), manifest);
  }
  for (const char* text : {"", "{}", "{\"manifest\":\"\"}", "{\"manifest\":1}"}) {
    EXPECT_EQ(ManifestIn(text).error().code, Code::kCorrupt) << text;
  }
}

}  // namespace
}  // namespace parallelrun::plan
