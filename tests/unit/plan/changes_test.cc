#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <vector>

#include "plan/input_changes.h"
#include "plan/input_store.h"
#include "tests/support/memory_store.h"
#include "tests/unit/plan/folder.h"
#include "tests/unit/plan/plans.h"

namespace parallelrun::plan {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A plan as its ledger holds it: the first `chunks` of it, or all.
class Planned {
 public:
  explicit Planned(std::vector<PlanInput> inputs, size_t chunks = SIZE_MAX)
      : inputs_(std::move(inputs)), plan_(MakePlan(inputs_)), chunks_(chunks) {
    EXPECT_EQ(plan_.error, "");
  }

  InputChanges Changes() const {
    const Result<InputChanges> changes = FindInputChanges(
        [this](const auto& visit) -> Status {
          for (size_t i = 0; i < std::min(chunks_, plan_.chunks.size()); ++i) {
            visit(plan_.chunks[i]->record);
          }
          return {};
        },
        chunks_ >= plan_.chunks.size(), inputs_, FolderStores(DiskFiles()), [this] { ++steps_; });
    EXPECT_TRUE(changes.ok()) << changes.error().message;
    return changes.ok() ? *changes : InputChanges();
  }

  size_t chunks() const { return plan_.chunks.size(); }
  // Of all calls of Changes.
  size_t steps() const { return steps_; }

 private:
  const std::vector<PlanInput> inputs_;
  const Plan plan_;
  const size_t chunks_;
  mutable size_t steps_ = 0;
};

void ExpectNothing(const InputChanges& changes) {
  EXPECT_EQ(changes.differ.count, 0U);
  EXPECT_THAT(changes.differ.named, IsEmpty());
  EXPECT_EQ(changes.added.count, 0U);
  EXPECT_THAT(changes.added.named, IsEmpty());
}

void Touch(const std::string& path, time_t at) {
  const timespec times[2] = {{at, 0}, {at, 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
}

TEST(InputChangesTest, FilesThatAreGoneChangedAndAdded) {
  const PlanFolder folder;
  for (const char* name : {"a", "b/c", "b/d", "e"}) folder.Write(name, "text");
  Touch(folder / "e", 0);
  const Planned planned({FilesInput(folder.path(), 3)});
  ExpectNothing(planned.Changes());
  EXPECT_EQ(planned.steps(), 4U) << "a coordinator tells by them that it lives";

  std::filesystem::remove(folder / "a");
  folder.Write("b/c", "longer text");
  Touch(folder / "e", 60);
  folder.Write("b/new", "text");
  const InputChanges changes = planned.Changes();
  EXPECT_THAT(changes.differ.named,
              ElementsAre("inputs[images]: " + (folder / "a is gone"),
                          "inputs[images]: " + (folder / "b/c had 4 bytes, has 11"),
                          "inputs[images]: " + (folder / "e was modified at 1970-01-01T00:00:00Z,"
                                                         " and again at 1970-01-01T00:01:00Z")));
  EXPECT_THAT(changes.added.named, ElementsAre("inputs[images]: " + (folder / "b/new")));
}

TEST(InputChangesTest, TheFirstOfManyAreNamed) {
  const PlanFolder folder;
  for (int i = 0; i < 100; ++i) folder.Write("f" + std::to_string(100 + i), "text");
  const Planned planned({FilesInput(folder.path(), 7)});
  for (int i = 0; i < 50; ++i) folder.Write("f" + std::to_string(100 + i), "another");
  for (int i = 0; i < 20; ++i) folder.Write("g" + std::to_string(i), "text");
  const InputChanges changes = planned.Changes();
  EXPECT_EQ(changes.differ.count, 50U);
  ASSERT_EQ(changes.differ.named.size(), InputChanges::kMostNamed);
  EXPECT_THAT(changes.differ.named.back(), HasSubstr("f109 had 4 bytes, has 7"));
  EXPECT_EQ(changes.added.count, 20U);
  EXPECT_EQ(changes.added.named.size(), InputChanges::kMostNamed);
}

// What sorts behind the last planned name is planned when the run goes on.
TEST(InputChangesTest, OfAPlanThatHasNotEnded) {
  const PlanFolder folder;
  for (int i = 0; i < 200; ++i) folder.Write("f" + std::to_string(100 + i), "text");
  const PlanInput input = FilesInput(folder.path(), 1);
  const Planned planned({input, input}, 1);
  folder.Write("f100a", "text");
  folder.Write("f199a", "text");
  std::filesystem::remove(folder / "f299");
  EXPECT_THAT(planned.Changes().added.named, ElementsAre(HasSubstr("f100a")));
  EXPECT_EQ(planned.Changes().differ.count, 0U);
  std::filesystem::remove(folder / "f163");
  EXPECT_THAT(planned.Changes().differ.named, ElementsAre(HasSubstr("f163 is gone")));

  ExpectNothing(Planned({input}, 0).Changes());
}

// A run of an empty day says that it has succeeded: not once the data has come.
TEST(InputChangesTest, OfAPlanThatWasEmpty) {
  const PlanFolder folder;
  folder.Write("rows/empty.csv", "h\n");
  PlanInput rows = Rows(folder / "rows", 10);
  PlanInput late = FilesInput(folder / "late", 1);
  rows.allow_empty = late.allow_empty = api::AllowEmpty::kMissing;
  const Planned planned({rows, late});
  ASSERT_EQ(planned.chunks(), 0U);
  ExpectNothing(planned.Changes());
  folder.Write("rows/a.csv", "h\nrow\n");
  folder.Write("late/a.png", "x");
  EXPECT_THAT(planned.Changes().added.named,
              ElementsAre("inputs[rows]: " + (folder / "rows/a.csv"),
                          "inputs[images]: " + (folder / "late/a.png")));
}

TEST(InputChangesTest, EachInputHasItsFiles) {
  const PlanFolder folder;
  folder.Write("one/a", "text");
  folder.Write("two/a", "text");
  PlanInput one = FilesInput(folder / "one", 1);
  PlanInput two = FilesInput(folder / "two", 1);
  two.name = "others";
  const Planned planned({one, two});
  folder.Write("two/a", "texts");
  EXPECT_THAT(planned.Changes().differ.named, ElementsAre(HasSubstr("inputs[others]: ")));
}

TEST(InputChangesTest, VersionsAsAnEarlierReleaseHasPlannedThem) {
  MemoryObjects objects;
  for (const char* name : {"a", "b"}) objects.Put("memory://in/" + std::string(name), "text");
  PlanInput input = FilesInput("memory://in", 2);
  input.store = "bucket";
  const std::vector<std::string_view> versions = {"earlier put 1", "earlier put 2"};
  const job::FilesChunk files{2, "memory://in", std::string_view("a\0b", 3), versions};
  const job::PlanChunkRecord chunk{0, 0, 0, files, "bucket"};
  const auto changes = [&] {
    return FindInputChanges(
               [&chunk](const auto& visit) -> Status {
                 visit(chunk);
                 return {};
               },
               true, {input}, [&](const PlanInput&) { return objects.Open("memory://in"); }, [] {})
        .value();
  };
  ExpectNothing(changes());
  objects.Put("memory://in/b", "text");
  EXPECT_THAT(changes().differ.named, ElementsAre(HasSubstr("/b was earlier put 2, is put 3")));
}

// One file of many slices is one difference; a file without a row is no file.
TEST(InputChangesTest, Tables) {
  const PlanFolder folder;
  std::string rows = "h\n";
  for (int i = 0; i < 1000; ++i) rows += "row " + std::to_string(i) + "\n";
  folder.Write("a.csv", rows);
  folder.Write("empty.csv", "h\n");
  for (const api::HeaderMode header : {api::HeaderMode::kAllFiles, api::HeaderMode::kFirstFile}) {
    folder.Write("a.csv", rows);
    const Planned planned({Rows(folder.path(), 10, header)});
    ASSERT_GT(planned.chunks(), 2U);
    ExpectNothing(planned.Changes());
    folder.Write("a.csv", rows + "row 1000\n");
    folder.Write("b.csv", "h\nrow\n");
    EXPECT_THAT(planned.Changes().differ.named, ElementsAre(HasSubstr("a.csv had ")));
    EXPECT_THAT(planned.Changes().added.named, ElementsAre(HasSubstr("b.csv")));
    std::filesystem::remove(folder / "b.csv");
  }
}

TEST(InputChangesTest, Groups) {
  const PlanFolder folder;
  for (const char* name : {"x/1.csv", "x/2.csv", "y/1.csv", "y/2.csv"}) {
    folder.Write(name, "h\nrow\n");
  }
  for (const PlanKind kind : {PlanKind::kFiles, PlanKind::kDelimited}) {
    PlanInput input =
        kind == PlanKind::kFiles ? FilesInput(folder.path(), 1) : Rows(folder.path(), 1);
    input.partition_format = "{folder}/{number}.csv";
    input.partition_keys = {"number"};
    const Planned planned({input});
    ExpectNothing(planned.Changes());
    folder.Write("x/3.csv", "h\nrow\n");
    std::filesystem::remove(folder / "y/1.csv");
    const InputChanges changes = planned.Changes();
    EXPECT_THAT(changes.differ.named, ElementsAre(HasSubstr("y/1.csv is gone")));
    EXPECT_THAT(changes.added.named, ElementsAre(HasSubstr("x/3.csv")));
    folder.Write("y/1.csv", "h\nrow\n");
    std::filesystem::remove(folder / "x/3.csv");
  }
}

TEST(InputChangesTest, RanksHaveNoFiles) {
  PlanInput input;
  input.kind = PlanKind::kRanks;
  input.batch_size = 5;
  ExpectNothing(Planned({input}).Changes());
}

TEST(InputChangesTest, AFolderThatIsGoneIsAnError) {
  const PlanFolder folder;
  folder.Write("in/a", "text");
  const std::vector<PlanInput> inputs = {FilesInput(folder / "in", 1)};
  const Plan plan = MakePlan(inputs);
  std::filesystem::remove_all(folder / "in");
  const auto changes = FindInputChanges(
      [&plan](const auto& visit) -> Status {
        visit(plan.chunks[0]->record);
        return {};
      },
      true, inputs, FolderStores(DiskFiles()), [] {});
  ASSERT_FALSE(changes.ok());
  EXPECT_THAT(changes.error().message, AllOf(HasSubstr("inputs[images]"), HasSubstr("/in")));
}

TEST(InputChangesTest, WhereAFolderMayBeMissingItsFilesAreGone) {
  const PlanFolder folder;
  folder.Write("in/a", "text");
  PlanInput input = FilesInput(folder / "in", 1);
  input.allow_empty = api::AllowEmpty::kMissing;
  const Planned planned({input});
  std::filesystem::remove_all(folder / "in");
  EXPECT_THAT(planned.Changes().differ.named, ElementsAre(HasSubstr("in/a is gone")));
}

}  // namespace
}  // namespace parallelrun::plan
