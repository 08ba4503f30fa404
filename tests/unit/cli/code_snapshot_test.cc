#include "cli/run/code_snapshot.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace parallelrun {
namespace {

namespace fs = std::filesystem;

class CodeSnapshotTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = fs::temp_directory_path() / "snapshot-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    Write("score.py", "def run(b): return b\n");
    Write("pkg/helper.py", "x = 1\n");
  }
  void TearDown() override { fs::remove_all(folder_); }
  void Write(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(code() + "/" + path).parent_path());
    std::ofstream(code() + "/" + path) << text;
  }
  std::string code() const { return folder_ + "/code"; }
  uint64_t Take(const std::vector<std::string>& leave_out = {}) {
    const std::string target = folder_ + "/copy" + std::to_string(++copies_);
    const Result<uint64_t> digest = SnapshotCode(code(), target, leave_out);
    EXPECT_TRUE(digest.ok()) << digest.error().message;
    return *digest;
  }
  bool Copied(const std::string& path) const {
    return fs::exists(fs::symlink_status(folder_ + "/copy" + std::to_string(copies_) + "/" + path));
  }

  std::string folder_;
  int copies_ = 0;
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
    ASSERT_TRUE(SnapshotCode(from, to, {}).ok());
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
  const Result<uint64_t> there =
      SnapshotCode(folder_ + "/far/away/code", folder_ + "/far/copy", {});
  ASSERT_TRUE(there.ok());
  EXPECT_EQ(*there, here);
}

TEST_F(CodeSnapshotTest, AFolderOfDataIsNotCode) {
  fs::create_directories(code() + "/data");
  fs::resize_file((std::ofstream(code() + "/data/huge"), code() + "/data/huge"),
                  300ULL << 20);  // sparse
  const Result<uint64_t> digest = SnapshotCode(code(), folder_ + "/copy", {});
  ASSERT_FALSE(digest.ok());
  EXPECT_NE(digest.error().message.find("--code"), std::string::npos);
}

}  // namespace
}  // namespace parallelrun
