// The agent's copy of the code.
#include "agent/code_copy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/support/temp_folder.h"

namespace parallelrun::agent {
namespace {

using ::testing::HasSubstr;

namespace fs = std::filesystem;

TEST(AgentCodeCopy, CopiesWhatAScriptNeeds) {
  const TempFolder t;
  t.Write("code/score.py", "print(1)\n");
  t.Write("code/pkg/deep/mod.py", std::string(300'000, '#'));
  t.Write("code/run.sh", "#!/bin/sh\n");
  t.Write("code/empty", "");
  chmod(t.path("code/run.sh").c_str(), 0555);
  t.Write("code/.git/config", "secret");
  t.Write("code/pkg/__pycache__/x.pyc", "x");
  t.Write("code/logs/old.txt", "x");
  t.Write("outside/data.txt", "far");
  fs::create_symlink("pkg/deep/mod.py", t.path("code/inside"));
  fs::create_symlink("../outside/data.txt", t.path("code/outside"));
  fs::create_symlink("nowhere", t.path("code/dangling"));
  mkfifo(t.path("code/pipe").c_str(), 0600);
  // A work folder within the code root is not copied into itself.
  const std::string work = t.path("code/work");
  const Status status = CopyCode(t.path("code"), work);
  ASSERT_TRUE(status.ok()) << status.error().message;

  EXPECT_EQ(t.Read("code/work/score.py"), "print(1)\n");
  EXPECT_EQ(t.Read("code/work/pkg/deep/mod.py").size(), 300'000U);
  EXPECT_EQ(fs::read_symlink(work + "/inside"), "pkg/deep/mod.py");
  EXPECT_EQ(t.Read("code/work/outside"), "far");
  EXPECT_TRUE(fs::is_symlink(work + "/dangling"));
  EXPECT_EQ(fs::file_size(work + "/empty"), 0U);
  struct stat info {};
  stat((work + "/run.sh").c_str(), &info);
  EXPECT_EQ(info.st_mode & 0777, 0755U);
  for (const char* name : {".git", "pkg/__pycache__", "logs/old.txt", "pipe", "work"}) {
    EXPECT_FALSE(fs::exists(work + "/" + name)) << name;
  }
  EXPECT_TRUE(fs::is_directory(work + "/logs"));
  ASSERT_TRUE(LinkOutputs(work, t.path("out/put")).ok());
  t.Write("code/work/outputs/x", "1");
  EXPECT_EQ(t.Read("out/put/x"), "1");
  // What is linked already is left alone: its volume may hang.
  fs::remove_all(t.path("out/put"));
  ASSERT_TRUE(LinkOutputs(work, t.path("out/put")).ok());
  EXPECT_FALSE(fs::exists(t.path("out/put")));
  ASSERT_TRUE(LinkOutputs(work, t.path("out/other")).ok());
  EXPECT_EQ(fs::read_symlink(work + "/outputs"), t.path("out/other"));
}

TEST(AgentCodeCopy, RefusesWhatIsTooBigOrTaken) {
  const TempFolder t;
  t.Write("code/a", std::string(3 << 20, 'x'));
  t.Write("code/b", "x");
  const Status big = CopyCode(t.path("code"), t.path("w1"), {2 << 20, 100});
  ASSERT_FALSE(big.ok());
  EXPECT_EQ(big.error().code, Code::kInvalid);
  EXPECT_THAT(big.error().message, HasSubstr("3.0 MiB"));
  EXPECT_FALSE(CopyCode(t.path("code"), t.path("w2"), {100 << 20, 1}).ok());
  EXPECT_EQ(CopyCode(t.path("code"), t.path("code")).error().code, Code::kExists);
  EXPECT_EQ(CopyCode(t.path("none"), t.path("w3")).error().code, Code::kNotFound);
}

}  // namespace
}  // namespace parallelrun::agent
