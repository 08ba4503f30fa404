// A temporary folder with what the tests of the planner put into one.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace parallelrun {

class PlanFolder {
 public:
  PlanFolder() {
    std::string made = std::filesystem::temp_directory_path() / "parallelrun-plan-XXXXXX";
    EXPECT_NE(mkdtemp(made.data()), nullptr);
    path_ = made;
  }
  ~PlanFolder() { std::filesystem::remove_all(path_); }
  PlanFolder(const PlanFolder&) = delete;
  PlanFolder& operator=(const PlanFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }

  // Writes a file and makes its folders.
  std::string Write(std::string_view name, std::string_view content = "") const {
    const std::filesystem::path file = *this / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << content;
    return file;
  }
  void Link(const std::string& target, std::string_view name) const {
    const std::filesystem::path link = *this / name;
    std::filesystem::create_directories(link.parent_path());
    ASSERT_EQ(symlink(target.c_str(), link.c_str()), 0);
  }

 private:
  std::string path_;
};

}  // namespace parallelrun
