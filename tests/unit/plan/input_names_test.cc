#include "plan/input_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/unit/plan/places.h"
#include "tests/unit/plan/plans.h"

namespace parallelrun::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Names = std::vector<std::string>;

PlanInput NamedInput(const std::string& name, const std::string& root,
                     const std::string& pattern = "") {
  PlanInput input = FilesInput(root, 1);
  input.name = name;
  input.pattern = pattern;
  return input;
}

// What each chunk holds, and at the end the error, or the notes.
Names PlannedAndTold(const OpenStore& stores, std::vector<PlanInput> inputs) {
  ShareNames(inputs);
  const Plan plan = MakePlanOn(stores, inputs);
  Names all;
  for (const auto& chunk : plan.chunks) {
    const std::string input = inputs[chunk->record.input].name + ":";
    if (const auto* files = std::get_if<job::FilesChunk>(&chunk->record.content)) {
      std::string names(files->names);
      for (char& c : names) c = c == '\0' ? ' ' : c;
      all.push_back(input + names);
    } else {
      all.push_back(input + std::string(std::get<job::TabularChunk>(chunk->record.content).path));
    }
  }
  if (!plan.error.empty()) {
    all.push_back(plan.error);
  } else {
    all.insert(all.end(), plan.notes.begin(), plan.notes.end());
  }
  return all;
}

bool Has(const PlanInput& input, const std::string& location) {
  return InputNames(input).HasAt(location);
}

TEST(InputNamesTest, HiddenNamesAreMeantByWhoeverWritesTheDot) {
  EXPECT_TRUE(Has(NamedInput("a", "/data/.in.csv"), "/data/.in.csv"));
  EXPECT_TRUE(Has(NamedInput("a", "/data/in", ".a*"), "/data/in/.a.png"));
  EXPECT_TRUE(Has(NamedInput("a", "/data/in", "**/.a.png"), "/data/in/b/.a.png"));
  EXPECT_TRUE(Has(NamedInput("a", "/data/in", "b/.c/*"), "/data/in/b/.c/a.png"));
  EXPECT_FALSE(Has(NamedInput("a", "/data/in", "b/.c/*"), "/data/in/b/.c/.a.png"));
  EXPECT_FALSE(Has(NamedInput("a", "/data/in", "*/*/*"), "/data/in/b/.c/a.png"));
  EXPECT_FALSE(Has(NamedInput("a", "/data/in", "**/.c/*"), "/data/in/b/.c/a.png"));
  EXPECT_FALSE(Has(NamedInput("a", "/data/in", "?a.png"), "/data/in/.a.png"));
}

TEST(InputNamesTest, WhatItsListingHas) {
  PlanInput input = NamedInput("a", "/data/in/", "**/*.png");
  input.exclude = {"old", "**/x*.png"};
  EXPECT_TRUE(Has(input, "/data/in/a.png"));
  EXPECT_TRUE(Has(input, "/data/in/b/c/a.png"));
  EXPECT_FALSE(Has(input, "/data/in/a.jpg"));
  EXPECT_FALSE(Has(input, "/data/in/.a.png"));
  EXPECT_FALSE(Has(input, "/data/in/.b/a.png"));
  EXPECT_FALSE(Has(input, "/data/in/lost+found/a.png"));
  EXPECT_FALSE(Has(input, "/data/in/old/a.png"));
  EXPECT_FALSE(Has(input, "/data/in/b/xa.png"));
  EXPECT_FALSE(Has(input, "/data/inner/a.png"));
  EXPECT_FALSE(Has(input, "/data/a.png"));
  EXPECT_FALSE(Has(input, "/data/in"));
}

TEST(InputNamesTest, OfARootThatIsAFileItsName) {
  EXPECT_TRUE(Has(NamedInput("a", "/in/a.png"), "/in/a.png"));
  EXPECT_TRUE(Has(NamedInput("a", "/in/a.png", "*.png"), "/in/a.png"));
  EXPECT_FALSE(Has(NamedInput("a", "/in/a.png"), "/in/a.png2"));
  EXPECT_TRUE(Has(NamedInput("a", "/", "etc/*"), "/etc/x"));
}

TEST(InputNamesTest, WhatIsNoDataOfATableIsNotListed) {
  PlanInput input = Rows("/in", 1);
  EXPECT_FALSE(Has(input, "/in/_temporary/a.csv"));
  EXPECT_FALSE(Has(input, "/in/_SUCCESS"));
  EXPECT_TRUE(Has(input, "/in/_a.csv"));
}

template <typename Place>
class SharedNamesTest : public ::testing::Test {
 protected:
  Names Planned(std::vector<PlanInput> inputs) {
    for (PlanInput& input : inputs) input.store = Place::kStore;
    return PlannedAndTold(place_.Stores(), std::move(inputs));
  }
  Place place_;
};
TYPED_TEST_SUITE(SharedNamesTest, Places);

TYPED_TEST(SharedNamesTest, AFileBelongsToTheFirstInputThatMeansIt) {
  auto& place = this->place_;
  for (const char* name : {"a1", "ab", "b1", "c", "d/a1"}) place.Write(name);
  EXPECT_THAT(
      this->Planned({NamedInput("first", place.path(), "a*"),
                     NamedInput("second", place.path(), "**/*1"),
                     NamedInput("third", place.path())}),
      ElementsAre("first:a1 ab", "second:b1 d/a1", "third:c",
                  "inputs[second]: 1 file is left out, the first a1: an input before this one has "
                  "it too, and each file is run once",
                  HasSubstr("inputs[third]: 4 files are left out, the first a1: ")));
}

TYPED_TEST(SharedNamesTest, AFolderInAnother) {
  auto& place = this->place_;
  for (const char* name : {"a", "d/b", "d/c"}) place.Write(name);
  EXPECT_THAT(this->Planned({NamedInput("inner", place / "d"), NamedInput("outer", place.path())}),
              ElementsAre("inner:b c", "outer:a",
                          HasSubstr("inputs[outer]: 2 files are left out, the first d/b: ")));
}

// Nothing of it is lost: the input before it has all.
TYPED_TEST(SharedNamesTest, TheSameInputTwiceIsRunOnce) {
  auto& place = this->place_;
  place.Write("a");
  EXPECT_THAT(
      this->Planned({NamedInput("one", place.path()), NamedInput("two", place.path() + "/")}),
      ElementsAre("one:a", HasSubstr("inputs[two]: 1 file is left out")));
}

TYPED_TEST(SharedNamesTest, AnEmptyInputIsStillAnError) {
  auto& place = this->place_;
  place.Write("a");
  EXPECT_THAT(
      this->Planned({NamedInput("one", place.path()), NamedInput("two", place.path(), "*.png")}),
      ElementsAre("one:a", HasSubstr("inputs[two]: no file matches pattern *.png")));
}

TYPED_TEST(SharedNamesTest, RowsOfATableAreThereOnceToo) {
  auto& place = this->place_;
  place.Write("a.csv", "x\n1\n");
  place.Write("b.csv", "x\n2\n");
  PlanInput first = Rows(place.path(), 100);
  first.name = "first";
  first.pattern = "a*";
  PlanInput second = first;
  second.name = "second";
  second.pattern = "";
  EXPECT_THAT(this->Planned({first, second}),
              ElementsAre("first:" + (place / "a.csv"), "second:" + (place / "b.csv"),
                          HasSubstr("inputs[second]: 1 file is left out, the first a.csv")));
}

// Its first file's header stands for all of an input, also where the rows of that file are another
// input's: the next file has none, and its first row is no header.
TYPED_TEST(SharedNamesTest, TheHeaderOfAFirstFileThatIsAnothersCounts) {
  auto& place = this->place_;
  place.Write("a.csv", "x\n1\n");
  place.Write("b.csv", "2\n3\n");
  PlanInput first = Rows(place.path(), 100, api::HeaderMode::kFirstFile);
  first.store = TypeParam::kStore;
  first.pattern = "a*";
  PlanInput second = first;
  second.pattern = "";
  std::vector<PlanInput> inputs = {first, second};
  ShareNames(inputs);
  const Plan plan = MakePlanOn(place.Stores(), inputs);
  ASSERT_EQ(plan.error, "");
  ASSERT_EQ(plan.chunks.size(), 2U);
  EXPECT_EQ(plan.rows(1).path, place / "b.csv");
  EXPECT_EQ(plan.rows(1).header, "x\n");
  EXPECT_EQ(plan.rows(1).slices[0].offset, 0U);
  EXPECT_EQ(plan.items, 3U);
}

// A table's rows and the file itself are different items.
TYPED_TEST(SharedNamesTest, InputsOfOtherKindsShareNothing) {
  auto& place = this->place_;
  place.Write("a.csv", "x\n1\n");
  PlanInput rows = Rows(place.path(), 100);
  EXPECT_THAT(this->Planned({rows, NamedInput("files", place.path())}),
              ElementsAre("rows:" + (place / "a.csv"), "files:a.csv"));
}

TEST(InputNamesTest, SharedOnlyWhereOneLiesInTheOther) {
  std::vector<PlanInput> inputs = {NamedInput("a", "/in/a"), NamedInput("b", "/in/ab"),
                                   NamedInput("c", "/in")};
  inputs.push_back(NamedInput("d", "/in"));
  inputs.back().store = "other";
  ShareNames(inputs);
  EXPECT_THAT(inputs[0].before, IsEmpty());
  EXPECT_THAT(inputs[1].before, IsEmpty());
  EXPECT_EQ(inputs[2].before.size(), 2U);
  EXPECT_THAT(inputs[3].before, IsEmpty());
}

}  // namespace
}  // namespace parallelrun::plan
