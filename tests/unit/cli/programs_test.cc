#include "cli/run/programs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace parallelrun::cli {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ProgramsTest : public testing::Test {
 protected:
  ProgramsTest() {
    std::string name = "/tmp/programs_test-XXXXXX";
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    for (const char* program : {"parallelrun", "parallelrun-coordinator", "parallelrun-agent"}) {
      File(std::string("bin/") + program);
    }
  }
  ~ProgramsTest() override { fs::remove_all(folder_); }

  void File(const std::string& name) {
    fs::create_directories((fs::path(folder_) / name).parent_path());
    std::ofstream(fs::path(folder_) / name) << "x";
  }

  std::string folder_;
};

TEST_F(ProgramsTest, OfABuildStartByThemselves) {
  File("lib/parallelrun/python/start_worker.py");
  const Result<Programs> programs = ProgramsAround(folder_ + "/bin/parallelrun");
  ASSERT_TRUE(programs.ok());
  EXPECT_THAT(programs->loader, IsEmpty());
  EXPECT_EQ(programs->python_package, folder_ + "/lib/parallelrun/python");
  EXPECT_THAT(programs->Command(programs->agent, {"guard"}),
              ElementsAre(folder_ + "/bin/parallelrun-agent", "guard"));
}

TEST_F(ProgramsTest, OfABundleStartByItsLoader) {
  File("lib/ld.so");
  File("python/start_worker.py");
  const Result<Programs> programs = ProgramsAround(folder_ + "/lib/ld.so");
  ASSERT_TRUE(programs.ok());
  EXPECT_EQ(programs->python_package, folder_ + "/python");
  EXPECT_THAT(programs->Command(programs->coordinator, {"--config", "c"}),
              ElementsAre(folder_ + "/lib/ld.so", "--library-path", folder_ + "/lib",
                          folder_ + "/bin/parallelrun-coordinator", "--config", "c"));
}

TEST_F(ProgramsTest, WhatIsMissingIsNamed) {
  const Result<Programs> programs = ProgramsAround(folder_ + "/bin/parallelrun");
  ASSERT_FALSE(programs.ok());
  EXPECT_THAT(programs.error().message, HasSubstr(folder_ + "/lib/parallelrun/python is missing"));
}

}  // namespace
}  // namespace parallelrun::cli
