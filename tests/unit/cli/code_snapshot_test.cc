#include "cli/run/code_snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "cli/run/ignore_file.h"
#include "tests/support/temp_folder.h"

namespace parallelrun::cli {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

class CodeSnapshotTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Write("score.py", "def run(b): return b\n");
    Write("pkg/helper.py", "x = 1\n");
  }
  void Write(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(code() + "/" + path).parent_path());
    std::ofstream(code() + "/" + path) << text;
  }
  std::string code() const { return folder_ + "/code"; }
  uint64_t Take(const std::vector<std::string>& leave_out = {}) {
    const std::string target = folder_ + "/copy" + std::to_string(++copies_);
    const Result<CodeSnapshot> taken = SnapshotCode({code(), "score.py", leave_out}, target);
    EXPECT_TRUE(taken.ok()) << taken.error().message;
    notes_ = taken->notes;
    files_ = taken->files;
    return taken->digest;
  }
  bool Copied(const std::string& path) const {
    return fs::exists(fs::symlink_status(folder_ + "/copy" + std::to_string(copies_) + "/" + path));
  }

  const TempFolder temp_;
  const std::string folder_ = temp_.path();
  int copies_ = 0;
  std::vector<std::string> notes_;  // of the last one, as is this
  coordinator::CodeFiles files_;
};

TEST_F(CodeSnapshotTest, TheSameCodeHasTheSameDigest) {
  EXPECT_EQ(Take(), Take());
  EXPECT_TRUE(Copied("pkg/helper.py"));
}

TEST_F(CodeSnapshotTest, EveryChangeShows) {
  const uint64_t before = Take();
  Write("pkg/helper.py", "x = 2\n");
  const uint64_t content = Take();
  EXPECT_NE(content, before);
  fs::rename(code() + "/pkg/helper.py", code() + "/pkg/other.py");
  EXPECT_NE(Take(), content);
}

TEST_F(CodeSnapshotTest, DataAndCachesStayOut) {
  const uint64_t before = Take();
  Write("images/0.png", "data");
  Write(".git/HEAD", "ref");
  Write("pkg/__pycache__/helper.pyc", "cache");
  EXPECT_EQ(Take({code() + "/images"}), before);
  EXPECT_FALSE(Copied("images"));
  EXPECT_FALSE(Copied(".git"));
}

TEST_F(CodeSnapshotTest, WhichFileChangedIsSeen) {
  fs::create_symlink("score.py", code() + "/link.py");
  Take();
  const coordinator::CodeFiles before = files_;
  ASSERT_EQ(before.size(), 3U);
  Write("pkg/helper.py", "x = 2\n");
  Take();
  EXPECT_EQ(coordinator::FirstChange(before, files_), "pkg/helper.py was changed");
  Write("pkg/helper.py", "x = 1\n");
  fs::remove(code() + "/link.py");
  Write("link.py", "score.py");  // what the link said
  Take();
  EXPECT_EQ(coordinator::FirstChange(before, files_), "link.py was changed");
}

TEST_F(CodeSnapshotTest, LogsAreCopiedAndAreNoOtherCode) {
  const uint64_t before = Take();
  for (const char* name : {"run.log", "nohup.out", "pkg/train.log"}) {
    Write(name, "1 of 7 done");
    EXPECT_EQ(Take(), before) << name;
    EXPECT_TRUE(Copied(name)) << name;
  }
  for (const char* name : {"log", "run.log.py", "my_nohup.out", "outputs.txt"}) {
    Write(name, "1 of 7 done");
    EXPECT_NE(Take(), before) << name;
    fs::remove(code() + "/" + name);
  }
}

TEST_F(CodeSnapshotTest, AFileThatIsLeftOutMayBeNamedByAnotherWay) {
  const uint64_t before = Take();
  Write("said.txt", "what the command says");
  fs::create_directory_symlink(code(), folder_ + "/alias");
  EXPECT_EQ(Take({folder_ + "/alias/said.txt"}), before);
  EXPECT_FALSE(Copied("said.txt"));
  EXPECT_NE(Take({folder_ + "/said.txt", "pipe:[7]"}), before) << "others are not meant";
}

TEST_F(CodeSnapshotTest, OfVeryManyFilesTheDigestAloneIsTold) {
  const std::string long_name(200, 'x');
  for (int i = 0; i < 2500; ++i) Write("data/" + long_name + std::to_string(i), "");
  const uint64_t many = Take();
  EXPECT_TRUE(files_.empty());
  Write("data/" + long_name + "0", "other");
  EXPECT_NE(Take(), many);
}

TEST_F(CodeSnapshotTest, LinksStayLinks) {
  fs::create_symlink("score.py", code() + "/link.py");
  fs::create_symlink("/nowhere", code() + "/dangling");
  Take();
  EXPECT_TRUE(Copied("dangling"));
}

TEST_F(CodeSnapshotTest, ALinkOutOfTheCodeLeadsToTheSamePlace) {
  fs::create_directories(folder_ + "/aside");
  std::ofstream(folder_ + "/aside/model.txt") << "weights";
  fs::create_symlink("../aside", code() + "/m");
  fs::create_symlink("../../aside/model.txt", code() + "/pkg/model.txt");
  fs::create_symlink("../score.py", code() + "/pkg/score.py");
  const std::string other = folder_ + "/far/away";
  fs::create_directories(other);
  for (const std::string& from : {code(), folder_ + "/alias/to/code"}) {
    if (from != code()) {  // a link to the code has other folders beside it
      fs::create_directories(fs::path(from).parent_path());
      fs::create_directory_symlink(code(), from);
    }
    const std::string to = other + "/" + std::to_string(++copies_);
    ASSERT_TRUE(SnapshotCode({from, "", {}}, to).ok());
    EXPECT_TRUE(fs::is_symlink(to + "/m"));
    EXPECT_EQ(fs::canonical(to + "/m/model.txt"), fs::canonical(folder_ + "/aside/model.txt"));
    EXPECT_TRUE(fs::equivalent(to + "/pkg/model.txt", folder_ + "/aside/model.txt"));
    EXPECT_EQ(fs::read_symlink(to + "/pkg/score.py"), "../score.py");
  }
}

// The same code in another place is the same code.
TEST_F(CodeSnapshotTest, TheDigestDoesNotTellWhereTheCodeLies) {
  fs::create_symlink("../aside", code() + "/m");
  const uint64_t here = Take();
  fs::create_directories(folder_ + "/far/away");
  fs::copy(code(), folder_ + "/far/away/code",
           fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  const Result<CodeSnapshot> there =
      SnapshotCode({folder_ + "/far/away/code", "score.py", {}}, folder_ + "/far/copy");
  ASSERT_TRUE(there.ok());
  EXPECT_EQ(there->digest, here);
}

TEST_F(CodeSnapshotTest, AFolderOfDataIsNotCode) {
  fs::create_directories(code() + "/data");
  fs::resize_file((std::ofstream(code() + "/data/huge"), code() + "/data/huge"),
                  300ULL << 20);  // sparse
  Write("models/a.bin", std::string(3'000'000, 'x'));
  Take();
  EXPECT_FALSE(Copied("data"));
  EXPECT_TRUE(Copied("models/a.bin")) << "there is room for it";
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("files are copied: data (no Python file there)")));
  // With a module in it nobody knows.
  Write("data/deep/helper.py", "");
  const Result<CodeSnapshot> taken = SnapshotCode({code(), "score.py", {}}, folder_ + "/copy");
  ASSERT_FALSE(taken.ok());
  EXPECT_THAT(taken.error().message, HasSubstr("--code"));
  EXPECT_THAT(taken.error().message,
              HasSubstr("what takes most: data (314.6 MB, 2 files), models (3.0 MB, 1 file)"));
  EXPECT_FALSE(fs::exists(folder_ + "/copy")) << "nothing is copied in vain";
}

TEST(CodeListingTest, OfDataTheOutermostFolderWithoutPythonIsMeant) {
  using Kind = CodeEntry::Kind;
  CodeListing listing;
  listing.entries = {{"a", Kind::kFolder, 0},        {"a/huge.bin", Kind::kFile, 900},
                     {"a/x.py", Kind::kFile, 1},     {"b", Kind::kFolder, 0},
                     {"b/c", Kind::kFolder, 0},      {"b/c/1.bin", Kind::kFile, 50},
                     {"b/d.bin", Kind::kFile, 60},   {"b.bin", Kind::kFile, 999},
                     {"e", Kind::kFolder, 0},        {"e/f", Kind::kFolder, 0},
                     {"e/f/1.bin", Kind::kFile, 70}, {"e/score.R", Kind::kFile, 1}};
  EXPECT_EQ(BiggestOfData(listing, "s.py"), "b");
  EXPECT_EQ(BiggestOfData(listing, "b/score.sh"), "e");
  listing.entries.resize(3);
  EXPECT_EQ(BiggestOfData(listing, "s.py"), "");
}

// Both bytes and files are limited, so either may be what is too much.
TEST(CodeListingTest, WhatTakesMostComesFirst) {
  CodeListing listing;
  const auto add = [&](const std::string& path, uint64_t size) {
    listing.entries.push_back({path, CodeEntry::Kind::kFile, size});
  };
  add("model.bin", 90'000'000);
  listing.entries.push_back({"many", CodeEntry::Kind::kFolder});
  for (int i = 0; i < 20'001; ++i) add("many/" + std::to_string(i), 0);
  for (const char* small : {"a.py", "b.py", "c.py", "d.py"}) add(small, 1000);
  EXPECT_EQ(Biggest(listing),
            "many (0.0 MB, 20001 files), model.bin (90.0 MB), a.py (0.0 MB), b.py (0.0 MB), "
            "c.py (0.0 MB)");
}

TEST_F(CodeSnapshotTest, EnvironmentsLogsAndOutputsAreNeverCode) {
  const uint64_t before = Take();
  Write(".venv/bin/x", "");
  Write("my-env/pyvenv.cfg", "");
  Write("my-env/lib/site.py", "");
  Write("logs/a.txt", "");
  Write("outputs/a.txt", "");
  Write(".parallelrun-staged-000000000000009f/process000-1f/1/a.txt", "");
  EXPECT_EQ(Take(), before);
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("left out of the code: outputs, logs. While a job")));
  EXPECT_EQ(Take({code() + "/logs", code() + "/outputs"}), before);
  EXPECT_TRUE(notes_.empty()) << "the job's own, as everybody knows";
  Write("pkg/logs/code.py", "");
  EXPECT_NE(Take(), before) << "only at the top";
}

TEST_F(CodeSnapshotTest, WhatEarlierRunsHaveLeftIsNoCode) {
  const uint64_t before = Take();
  const auto run = [&](const std::string& state) {
    Write(state + "/run.json", "{}");
    Write(state + "/epochs/000001.log", "");
  };
  run("out/state");
  Write("out/parallel_run_step.txt", "rows");
  Write("out/logs/user/a.txt", "");
  run("pkg/deep/digits.state");
  run("scores.csv.run/state");
  Write("scores.csv", "rows");
  Write("scores.csv.index.jsonl", "");
  run("state");
  Write("logs/report.html", "");
  EXPECT_EQ(Take(), before);
  EXPECT_FALSE(Copied("out"));
  EXPECT_TRUE(notes_.empty()) << notes_[0];
  // What only looks so: checkpoints of a training, a module beside a run, a table.
  Write("checkpoints/epochs/1.bin", "");
  run("jobs/state");
  Write("jobs/logs/a.txt", "");
  Write("jobs/helper.py", "");
  Write("other.csv", "");
  Take();
  EXPECT_TRUE(Copied("checkpoints/epochs/1.bin"));
  EXPECT_TRUE(Copied("jobs/helper.py"));
  EXPECT_FALSE(Copied("jobs/state"));
  EXPECT_FALSE(Copied("jobs/logs"));
  EXPECT_TRUE(Copied("other.csv"));
}

TEST_F(CodeSnapshotTest, WhatGitignoreSaysIsLeftOutAndTold) {
  Write("data/big.bin", "data");
  Write("pkg/a.tmp", "");
  Write("pkg/keep.tmp", "");
  Write(".gitignore", "/data/\n*.tmp\nscore.py\n");
  Write("pkg/.gitignore", "!keep.tmp\n");
  Take();
  EXPECT_FALSE(Copied("data"));
  EXPECT_FALSE(Copied("pkg/a.tmp"));
  EXPECT_TRUE(Copied("pkg/keep.tmp")) << "the nearer file decides";
  EXPECT_TRUE(Copied("score.py")) << "what is to be run always stays";
  EXPECT_THAT(notes_,
              ElementsAre("left out of the code by .gitignore or .amlignore: data, pkg/a.tmp"));
  // Where there is an .amlignore, it alone counts.
  Write(".amlignore", "data\n");
  Take();
  EXPECT_FALSE(Copied("data"));
  EXPECT_TRUE(Copied("pkg/a.tmp"));
}

TEST_F(CodeSnapshotTest, WhatCannotBeReadIsLeftOutWithOneLine) {
  Write("secret/key", "");
  Write("private.txt", "");
  fs::permissions(code() + "/secret", fs::perms::none);
  fs::permissions(code() + "/private.txt", fs::perms::none);
  fs::permissions(folder_, fs::perms::all);
  const bool root = geteuid() == 0;  // who may read everything
  if (root) {
    ASSERT_EQ(seteuid(65534), 0);
  }
  const Result<CodeListing> listing = ListCode({code(), "score.py", {}});
  if (root) {
    ASSERT_EQ(seteuid(0), 0);
  }
  ASSERT_TRUE(listing.ok());
  EXPECT_THAT(listing->notes, ElementsAre("left out of the code, since it cannot be read: "
                                          "private.txt, secret"));
  fs::permissions(code() + "/secret", fs::perms::owner_all);
}

struct IgnoreCase {
  const char* lines;
  const char* path;  // a folder ends with "/"
  bool out;
};

// What `git check-ignore` says of each.
TEST(IgnoreFileTest, SpeaksTheLanguageOfGit) {
  for (const IgnoreCase& one : {
           IgnoreCase{"a.txt", "a.txt", true},
           {"a.txt", "deep/er/a.txt", true},
           {"/a.txt", "deep/a.txt", false},
           {"deep/a.txt", "deep/a.txt", true},
           {"deep/a.txt", "more/deep/a.txt", false},
           {"*.log", "x/y.log", true},
           {"build/", "build/", true},
           {"build/", "x/build/", true},
           {"build/", "build", false},
           {"# a.txt", "# a.txt", false},
           {"\\#x", "#x", true},
           {"a\\*", "a*", true},
           {"a\\*", "ab", false},
           {"*.txt\n!a.txt", "a.txt", false},
           {"!a.txt\n*.txt", "a.txt", true},
           {"a.txt   \r\n", "a.txt", true},
           {"**/models", "x/models/", true},
           {"x/**/b", "x/b", true},
           {"x/**/b", "x/y/z/b", true},
           {"x/**", "x/y", true},
           {"x/**", "x/", false},
           {"/*", "x", true},
           {"/*", "x/y", false},
           {"[ab].c", "b.c", true},
           {"\n\n/\n", "x", false},
       }) {
    std::string path = one.path;
    const bool folder = path.ends_with('/');
    if (folder) path.pop_back();
    EXPECT_EQ(IgnoreFile(one.lines).LeavesOut(path, folder).value_or(false), one.out)
        << one.lines << " and " << one.path;
  }
}

}  // namespace
}  // namespace parallelrun::cli
