#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <random>
#include <stop_token>
#include <string>
#include <vector>

#include "plan/input_store.h"
#include "plan/listing.h"
#include "store/folder/folder_version.h"
#include "tests/support/disk_files.h"
#include "tests/unit/plan/folder.h"
#include "tests/unit/plan/places.h"

namespace parallelrun::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Names = std::vector<std::string>;

// An input and what its listing must not meet.
struct Settings : PlanInput {
  std::vector<std::string> forbidden;
};

Settings In(const std::string& root) {
  Settings settings;
  settings.name = "images";
  settings.root = root;
  return settings;
}

std::unique_ptr<store::Store> StoreOf(const Settings& settings) {
  return FolderStores(DiskFiles(), settings.forbidden)(settings);
}

// What the listing gives, and its error's message as a last name.
Names AllIn(store::Store& store, const PlanInput& input, const std::string& after = "") {
  Listing listing(input, store, after);
  Names names;
  while (true) {
    const auto name = listing.Next();
    if (!name.ok()) {
      names.push_back(std::string(CodeName(name.error().code)) + ": " + name.error().message);
      return names;
    }
    if (!*name) return names;
    names.emplace_back((*name)->name);
  }
}

// All, after checking that the listing goes on behind each of its names with just the rest.
Names AllFromEverywhereIn(store::Store& store, const PlanInput& input) {
  const Names names = AllIn(store, input);
  for (size_t i = 0; i < names.size(); ++i) {
    const Names rest(names.begin() + static_cast<ptrdiff_t>(i) + 1, names.end());
    EXPECT_EQ(AllIn(store, input, names[i]), rest) << "behind " << names[i];
  }
  return names;
}

Names All(const Settings& settings) { return AllIn(*StoreOf(settings), settings); }
Names AllFromEverywhere(const Settings& settings) {
  return AllFromEverywhereIn(*StoreOf(settings), settings);
}

template <typename Place>
class PlanNamesTest : public ::testing::Test {
 protected:
  std::unique_ptr<store::Store> StoreOf(const PlanInput& input) { return place_.Stores()(input); }
  Names All(const PlanInput& input, const std::string& after = "") {
    return AllIn(*StoreOf(input), input, after);
  }
  Names AllFromEverywhere(const PlanInput& input) {
    return AllFromEverywhereIn(*StoreOf(input), input);
  }
  Place place_;
};
TYPED_TEST_SUITE(PlanNamesTest, Places);

TYPED_TEST(PlanNamesTest, OrderIsThatOfWholePaths) {
  auto& folder = this->place_;
  for (const char* name : {"a/x", "a.txt", "a-b", "a/b/c", "a0", "a/b.c", "B", "\xC3\xA4", "a b"}) {
    folder.Write(name);
  }
  EXPECT_THAT(this->AllFromEverywhere(In(folder.path())),
              ElementsAre("B", "a b", "a-b", "a.txt", "a/b.c", "a/b/c", "a/x", "a0", "\xC3\xA4"));
}

TEST(PlanListingTest, OrderOfRandomTrees) {
  std::mt19937 random(7);
  const std::string letters = "ab-/.~0";
  for (int round = 0; round < 15; ++round) {
    PlanFolder folder;
    Names expected;
    for (int i = 0; i < 60; ++i) {
      std::string name = "p";
      for (size_t n = random() % 12; n > 0; --n) {
        const char letter = letters[random() % letters.size()];
        if (name.back() != '/' || (letter != '/' && letter != '.')) name += letter;
      }
      if (name.back() == '/') name += "x";
      std::error_code error;
      std::filesystem::create_directories(std::filesystem::path(folder / name).parent_path(),
                                          error);
      if (error || std::filesystem::exists(folder / name)) continue;
      folder.Write(name);
      expected.push_back(name);
    }
    std::sort(expected.begin(), expected.end());
    ASSERT_EQ(AllFromEverywhere(In(folder.path())), expected);
  }
}

TYPED_TEST(PlanNamesTest, GoesOnBehindNamesThatAreGone) {
  auto& folder = this->place_;
  for (const char* name : {"a/1", "a/3", "b/1"}) folder.Write(name);
  EXPECT_THAT(this->All(In(folder.path()), "a/2"), ElementsAre("a/3", "b/1"));
  EXPECT_THAT(this->All(In(folder.path()), "a/9/9"), ElementsAre("b/1"));
  EXPECT_THAT(this->All(In(folder.path()), "c"), IsEmpty());
}

TYPED_TEST(PlanNamesTest, LeavesOutHiddenAndExcluded) {
  auto& folder = this->place_;
  for (const char* name : {".hidden", ".git/config", "lost+found/#1", "a/.x", "a/lost+found/1",
                           "keep", "tmp/a", "tmp/b/c", "x.tmp", "a/x.tmp", "a/y"}) {
    folder.Write(name);
  }
  Settings settings = In(folder.path());
  settings.exclude = {"tmp", "**/*.tmp"};
  EXPECT_THAT(this->AllFromEverywhere(settings), ElementsAre("a/y", "keep"));
  settings.exclude = {"tmp/b/", "*.tmp"};
  EXPECT_THAT(this->AllFromEverywhere(settings), ElementsAre("a/x.tmp", "a/y", "keep", "tmp/a"));
}

TYPED_TEST(PlanNamesTest, PatternSelects) {
  auto& folder = this->place_;
  for (const char* name : {"x.png", "a/y.png", "a/b/z.png", "a/y.jpg"}) folder.Write(name);
  Settings settings = In(folder.path());
  settings.pattern = "**/*.png";
  EXPECT_THAT(this->AllFromEverywhere(settings), ElementsAre("a/b/z.png", "a/y.png", "x.png"));
  settings.pattern = "a/*.png";
  EXPECT_THAT(this->AllFromEverywhere(settings), ElementsAre("a/y.png"));
}

TEST(PlanListingTest, FollowsLinksOnce) {
  PlanFolder folder;
  PlanFolder outside;
  outside.Write("data/1");
  outside.Write("data/sub/2");
  folder.Write("real/x");
  folder.Write(".snapshot/7/s");
  folder.Link("real/x", "file-link");
  folder.Link("../real", "a/link");    // shown as real/
  folder.Link(outside / "data", "b");  // the first of two
  folder.Link(outside / "data", "c");
  folder.Link(outside / "data/sub", "d");  // within b
  folder.Link("..", "real/up");            // a cycle
  folder.Link(".snapshot/7", "current");   // its real name is hidden
  EXPECT_THAT(AllFromEverywhere(In(folder.path())),
              ElementsAre("b/1", "b/sub/2", "current/s", "file-link", "real/x"));
}

TEST(PlanListingTest, LinkCountsWhereThePatternLeavesOutTheRealName) {
  PlanFolder folder;
  folder.Write("2026-01/x");
  folder.Write("2026-02/x");
  folder.Link("2026-02", "latest");
  Settings settings = In(folder.path());
  settings.pattern = "latest/*";
  EXPECT_THAT(AllFromEverywhere(settings), ElementsAre("latest/x"));
  settings.pattern = "";
  settings.exclude = {"2026-*"};
  EXPECT_THAT(AllFromEverywhere(settings), ElementsAre("latest/x"));
  settings.exclude = {"*/y"};
  EXPECT_THAT(AllFromEverywhere(settings), ElementsAre("2026-01/x", "2026-02/x"));
}

TEST(PlanListingTest, LinkThatIsMetBeforeWhatItHolds) {
  PlanFolder folder;
  PlanFolder outside;
  outside.Write("sub/deep/1");
  outside.Write("sub/2");
  folder.Link(outside / "sub/deep", "a");
  folder.Link(outside.path(), "b");
  folder.Link(outside / "sub", "c");
  EXPECT_THAT(AllFromEverywhere(In(folder.path())), ElementsAre("a/1", "b/sub/2"));
}

TEST(PlanListingTest, RefusesLinkToNowhere) {
  PlanFolder folder;
  folder.Write("a");
  folder.Link("gone", "b.png");
  EXPECT_THAT(All(In(folder.path())),
              ElementsAre(AllOf(HasSubstr("Invalid: inputs[images]: " + folder.path() + "/b.png"),
                                HasSubstr("leads nowhere"), HasSubstr("exclude"))));
  Settings settings = In(folder.path());
  settings.exclude = {"b.png"};
  EXPECT_THAT(All(settings), ElementsAre("a"));
}

// A name is bytes: whoever wrote it could, and its data counts.
TYPED_TEST(PlanNamesTest, ThatAreNoUtf8OrHoldLineBreaks) {
  auto& folder = this->place_;
  const Names names = {"a\r.png",         "cut\xC3",      "line\nbreak",
                       "sub\n/x\xFF.png", "\xED\xA0\x80", "\xFF\xFE"};
  for (const std::string& name : names) folder.Write(name);
  EXPECT_EQ(this->AllFromEverywhere(In(folder.path())), names);
  EXPECT_THAT(this->All(In(folder / "\xFF\xFE")), ElementsAre("\xFF\xFE"));
  // A byte that is no UTF-8 is one character of a pattern.
  Settings settings = In(folder.path());
  settings.pattern = "**/?\xFF.png";
  EXPECT_THAT(this->All(settings), ElementsAre("sub\n/x\xFF.png"));
  settings.pattern = "";
  settings.exclude = {"*\n*", "*.png"};
  EXPECT_THAT(this->All(settings), ElementsAre("cut\xC3", "\xED\xA0\x80", "\xFF\xFE"));
}

TYPED_TEST(PlanNamesTest, TheRootMayBeOneFile) {
  auto& folder = this->place_;
  folder.Write("rows.csv", "a\n1\n");
  folder.Write("other");
  const Settings one = In(folder / "rows.csv");
  const auto store = this->StoreOf(one);
  EXPECT_THAT(AllFromEverywhereIn(*store, one), ElementsAre("rows.csv"));
  folder.Write(".hidden.csv", "a\n1\n");
  EXPECT_THAT(this->All(In(folder / ".hidden.csv")), ElementsAre(".hidden.csv"));
  EXPECT_EQ(store->Location(""), folder.path());
  EXPECT_EQ(Look(one, *store, "rows.csv").value()->size, 4u);
  EXPECT_THAT(this->All(In(folder.path() + "//")), ElementsAre("other", "rows.csv"));
  EXPECT_THAT(this->All(In(folder / "gone")),
              ElementsAre(AllOf(HasSubstr("NotFound: inputs[images]: " + folder.path() + "/gone"),
                                HasSubstr("does not exist"))));
  Settings may_be_missing = In(folder / "gone");
  may_be_missing.allow_empty = api::AllowEmpty::kMissing;
  EXPECT_THAT(All(may_be_missing), IsEmpty());
  // Not in the midst of it, and no bucket.
  const auto gone = StoreOf(may_be_missing);
  EXPECT_THAT(AllIn(*gone, may_be_missing, "a"), ElementsAre(HasSubstr("does not exist")));
  may_be_missing.store = "bucket";
  EXPECT_THAT(AllIn(*gone, may_be_missing), ElementsAre(HasSubstr("does not exist")));
}

TEST(PlanListingTest, RefusesForbiddenFolders) {
  PlanFolder folder;
  folder.Write("in/a");
  folder.Write("in/out/part");
  Settings settings = In(folder / "in");
  settings.forbidden = {folder / "in/out"};
  EXPECT_THAT(All(settings),
              ElementsAre("a", AllOf(HasSubstr("Invalid: inputs[images]: "),
                                     HasSubstr(folder / "in/out"), HasSubstr("inputs[].exclude"))));
  settings.exclude = {"out"};
  EXPECT_THAT(All(settings), ElementsAre("a"));
  settings.exclude.clear();
  settings.forbidden = {folder.path()};
  EXPECT_THAT(All(settings), ElementsAre(HasSubstr("lies in " + folder.path())));
  settings.forbidden = {folder / "in"};
  EXPECT_THAT(All(settings), ElementsAre(HasSubstr("Invalid")));
  settings.forbidden = {folder / "not-there"};
  EXPECT_THAT(All(settings), ElementsAre("a", "out/part"));
}

// Listings of millions of names take minutes; a job that ended does not wait for them.
TYPED_TEST(PlanNamesTest, EndsWithTheJob) {
  auto& folder = this->place_;
  for (const char* name : {"a/1", "a/2"}) folder.Write(name);
  std::stop_source job;
  Settings settings = In(folder.path());
  settings.stop = job.get_token();
  const auto store = this->StoreOf(settings);
  Listing between(settings, *store);
  ASSERT_TRUE(between.Next().ok());
  Listing at_work(settings, *store);
  ASSERT_TRUE(at_work.Start().ok());
  job.request_stop();
  const auto found = Look(settings, *store, "a/1");
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code, Code::kUnavailable);
  const auto next = between.Next();
  ASSERT_FALSE(next.ok());
  EXPECT_EQ(next.error().code, Code::kUnavailable);
  EXPECT_EQ(next.error().message,
            "inputs[images]: " + folder.path() + " is not listed to its end: the job ended");
  // In the midst of a folder, too.
  EXPECT_FALSE(Listing(settings, *store).Start().ok());
  EXPECT_FALSE(Listing(settings, *this->StoreOf(settings)).Start().ok());
}

TEST(PlanListingTest, SingleFileAndMissingRoot) {
  PlanFolder folder;
  folder.Write("rows.csv", "a\n1\n");
  folder.Write("other");
  const Settings settings = In(folder / "rows.csv");
  const auto store = StoreOf(settings);
  ASSERT_TRUE(Listing(settings, *store).Start().ok());
  EXPECT_EQ(store->Location(""), folder.path());
  EXPECT_EQ(Look(settings, *store, "rows.csv").value()->size, 4u);
  EXPECT_THAT(AllFromEverywhere(In(folder / "rows.csv")), ElementsAre("rows.csv"));
  EXPECT_THAT(All(In(folder.path() + "//")), ElementsAre("other", "rows.csv"));
  EXPECT_THAT(All(In(folder / "gone")),
              ElementsAre(AllOf(HasSubstr("NotFound: inputs[images]: " + folder.path() + "/gone"),
                                HasSubstr("does not exist"))));
}

TEST(PlanListingTest, ALookFollowsLinksAndMissesWhatIsGone) {
  PlanFolder folder;
  folder.Write("a", "12345");
  folder.Link("a", "b");
  const Settings settings = In(folder.path());
  const auto store = StoreOf(settings);
  ASSERT_TRUE(Listing(settings, *store).Next().ok());
  const auto found = Look(settings, *store, "b");
  EXPECT_EQ(found.value()->size, 5u);
  EXPECT_EQ(store::StampIn(found.value()->version).size, 5u);
  EXPECT_GT(store::StampIn(found.value()->version).mtime_ns, 1'000'000'000'000'000'000);
  EXPECT_FALSE(Look(settings, *store, "c").value());
}

}  // namespace
}  // namespace parallelrun::plan
