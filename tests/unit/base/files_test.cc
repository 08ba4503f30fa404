#include "base/files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "tests/support/temp_folder.h"

namespace parallelrun {
namespace {

class FilesTest : public testing::Test {
 protected:
  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  std::string ReadAll(const std::string& path) {
    auto file = files_->OpenRead(path);
    if (!file.ok()) return "error: " + file.error().message;
    return *(*file)->ReadAt(0, 1 << 20);
  }

  const TempFolder temp_;
  const std::string folder_ = temp_.path();
  std::unique_ptr<Files> files_ = MakeSystemFiles();
};

TEST_F(FilesTest, WritesAndReadsAtOffsets) {
  auto file = files_->CreateExclusive(Path("a"));
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE((*file)->WriteAt(0, "hello world").ok());
  ASSERT_TRUE((*file)->WriteAt(6, "W").ok());
  ASSERT_TRUE((*file)->Sync().ok());
  EXPECT_EQ(*(*file)->Size(), 11u);
  EXPECT_EQ(*(*file)->ReadAt(6, 100), "World");
  EXPECT_EQ(*(*file)->ReadAt(11, 5), "");
  EXPECT_EQ(*(*file)->ReadAt(1000, 5), "");
}

TEST_F(FilesTest, ReserveKeepsTheVisibleLength) {
  auto file = files_->CreateExclusive(Path("a"));
  ASSERT_TRUE((*file)->Reserve(1 << 20).ok());
  EXPECT_EQ(*(*file)->Size(), 0u);
}

TEST_F(FilesTest, TrimGivesBackWhatWasReserved) {
  auto file = files_->CreateExclusive(Path("a"));
  ASSERT_TRUE((*file)->WriteAt(0, "hello").ok());
  ASSERT_TRUE((*file)->Sync().ok());
  const auto blocks = [this] {
    struct stat status {};
    EXPECT_EQ(stat(Path("a").c_str(), &status), 0);
    return status.st_blocks;
  };
  const auto before = blocks();
  ASSERT_TRUE((*file)->Reserve(1 << 20).ok());
  if (blocks() == before) GTEST_SKIP() << "this file system reserves nothing";
  ASSERT_TRUE((*file)->Trim().ok());
  EXPECT_EQ(blocks(), before);
  EXPECT_EQ(*(*file)->ReadAt(0, 100), "hello");
}

TEST_F(FilesTest, ErrorsHaveCodesAndPaths) {
  const auto missing = files_->Open(Path("missing"));
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, Code::kNotFound);
  EXPECT_NE(missing.error().message.find(Path("missing")), std::string::npos);
  EXPECT_EQ(files_->Remove(Path("missing")).error().code, Code::kNotFound);
  EXPECT_EQ(files_->Rename(Path("missing"), Path("b")).error().code, Code::kNotFound);
  ASSERT_TRUE(files_->CreateExclusive(Path("a")).ok());
  EXPECT_EQ(files_->CreateExclusive(Path("a")).error().code, Code::kExists);
  EXPECT_EQ(files_->List(Path("missing")).error().code, Code::kNotFound);
  EXPECT_FALSE(*files_->Exists(Path("missing")));
  EXPECT_FALSE(*files_->Exists(Path("a/b")));
  EXPECT_TRUE(*files_->Exists(Path("a")));
}

TEST_F(FilesTest, DescriptorsAreNotInherited) {
  auto file = files_->CreateExclusive(Path("a"));
  int found = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code ec;
    if (std::filesystem::read_symlink(entry.path(), ec) != Path("a")) continue;
    ++found;
    EXPECT_TRUE(fcntl(std::stoi(entry.path().filename()), F_GETFD) & FD_CLOEXEC);
  }
  EXPECT_EQ(found, 1);
}

TEST_F(FilesTest, FoldersAreMadeAndListed) {
  ASSERT_TRUE(files_->MakeFolders(Path("x/y/z")).ok());
  ASSERT_TRUE(files_->MakeFolders(Path("x/y/z")).ok());
  ASSERT_TRUE(files_->CreateExclusive(Path("x/b")).ok());
  ASSERT_TRUE(files_->CreateExclusive(Path("x/B")).ok());
  EXPECT_EQ(*files_->List(Path("x")), (std::vector<std::string>{"B", "b", "y"}));
  EXPECT_FALSE(files_->MakeFolders(Path("x/b/c")).ok());
  EXPECT_TRUE(files_->SyncFolder(Path("x")).ok());
  EXPECT_GT(*files_->FreeSpace(folder_), 0u);
}

TEST_F(FilesTest, PublishReplacesAndLeavesNothingElse) {
  ASSERT_TRUE(PublishFile(*files_, Path("out"), "one").ok());
  ASSERT_TRUE(PublishFile(*files_, Path("out"), "two").ok());
  EXPECT_EQ(ReadAll(Path("out")), "two");
  EXPECT_EQ(files_->List(folder_)->size(), 1u);
}

TEST_F(FilesTest, PublishThatFailsLeavesNoTemporary) {
  ASSERT_TRUE(files_->MakeFolders(Path("out")).ok());  // a file cannot replace a folder
  EXPECT_FALSE(PublishFile(*files_, Path("out"), "one").ok());
  EXPECT_EQ(files_->List(folder_)->size(), 1u);
}

TEST_F(FilesTest, AFolderThatRefusesLinksMeetsNone) {
  ASSERT_TRUE(files_->MakeFolders(Path("in/a")).ok());
  ASSERT_TRUE(PublishFile(*files_, Path("secret"), "secret").ok());
  std::filesystem::create_symlink("../../secret", Path("in/a/link"));
  std::filesystem::create_directory_symlink("..", Path("in/up"));
  const auto refuses = files_->OpenFolder(Path("in"), Links::kRefuse);
  ASSERT_TRUE(refuses.ok());
  for (const char* name : {"a/link", "up/secret", "../secret"}) {
    EXPECT_EQ((*refuses)->OpenRead(name).error().code, Code::kPermission) << name;
    EXPECT_EQ((*refuses)->OpenOrCreate(name).error().code, Code::kPermission) << name;
    EXPECT_EQ((*refuses)->Append(name, "x").error().code, Code::kPermission) << name;
  }
  EXPECT_FALSE((*refuses)->OpenFolder("up").ok());
  EXPECT_EQ((*refuses)->Stat("a/link", Links::kRefuse)->kind, EntryKind::kLink);
  EXPECT_EQ((*refuses)->Stat("up", Links::kFollow)->kind, EntryKind::kLink);
  for (const char* name : {"..", "up/secret", "a/../../secret"}) {
    EXPECT_EQ((*refuses)->Stat(name, Links::kRefuse).error().code, Code::kPermission) << name;
  }
  EXPECT_EQ(ReadAll(Path("secret")), "secret");
  EXPECT_TRUE((*refuses)->Remove("a/link").ok());
  EXPECT_TRUE((*refuses)->Remove("a").ok());
  EXPECT_EQ(ReadAll(Path("secret")), "secret");

  const auto follows = files_->OpenFolder(Path("in"), Links::kFollow);
  ASSERT_TRUE(follows.ok());
  EXPECT_TRUE((*follows)->OpenRead("up/secret").ok());
  EXPECT_EQ((*follows)->Stat("up", Links::kFollow)->kind, EntryKind::kFolder);
  EXPECT_EQ((*follows)->Stat("up", Links::kRefuse)->kind, EntryKind::kLink);
  EXPECT_EQ((*follows)->Stat("gone", Links::kFollow).error().code, Code::kNotFound);
}

TEST_F(FilesTest, AFolderRenamesFromOneFolderIntoAnother) {
  ASSERT_TRUE(files_->MakeFolders(Path("in/a/b")).ok());
  ASSERT_TRUE(files_->MakeFolders(Path("in/to")).ok());
  std::filesystem::create_directory_symlink(Path("in/to"), Path("in/link"));
  const auto folder = files_->OpenFolder(Path("in"), Links::kRefuse);
  ASSERT_TRUE(folder.ok());
  ASSERT_TRUE((*folder)->Append("a/b/file", "x").ok());
  EXPECT_EQ((*folder)->Rename("a/b", "link/b").error().code, Code::kPermission);
  EXPECT_EQ((*folder)->Rename("link/b", "b").error().code, Code::kPermission);
  EXPECT_EQ((*folder)->Rename("a/gone", "to/gone").error().code, Code::kNotFound);
  ASSERT_TRUE((*folder)->Rename("a/b", "to/c").ok());
  EXPECT_EQ(ReadAll(Path("in/to/c/file")), "x");
  EXPECT_TRUE((*folder)->Remove("a").ok());  // empty now
}

TEST_F(FilesTest, AFoldersHandleOutlivesItsPath) {
  ASSERT_TRUE(files_->MakeFolders(Path("one")).ok());
  const auto folder = files_->OpenFolder(Path("one"), Links::kRefuse);
  ASSERT_TRUE(folder.ok());
  ASSERT_TRUE(files_->Rename(Path("one"), Path("two")).ok());
  ASSERT_TRUE((*folder)->Append("lines", "1\n").ok());
  ASSERT_TRUE((*folder)->Append("lines", "2\n").ok());
  EXPECT_EQ(ReadAll(Path("two/lines")), "1\n2\n");
  for (int round = 0; round < 2; ++round) {  // it can be listed again
    std::vector<std::string> names;
    ASSERT_TRUE((*folder)
                    ->Entries([&](const std::string& name, EntryKind) {
                      names.push_back(name);
                      return Status();
                    })
                    .ok());
    EXPECT_EQ(names, std::vector<std::string>{"lines"});
  }
}

TEST_F(FilesTest, WhoHasALockKeepsItUntilTheHandleGoes) {
  EXPECT_FALSE(files_->IsLocked(Path("lock")));
  auto lock = files_->Lock(Path("lock"));
  ASSERT_TRUE(lock.ok());
  EXPECT_TRUE(files_->IsLocked(Path("lock")));
  EXPECT_EQ(files_->Lock(Path("lock")).error().code, Code::kUnavailable);
  EXPECT_EQ(files_->Stat(Path("lock"))->id, (*lock)->Stat()->id);
  lock->reset();
  EXPECT_FALSE(files_->IsLocked(Path("lock")));
  std::filesystem::create_symlink("lock", Path("link"));
  EXPECT_FALSE(files_->Lock(Path("link")).ok());
}

}  // namespace
}  // namespace parallelrun
