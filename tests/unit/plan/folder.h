// A temporary folder with what the tests of the planner put into one.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "tests/support/temp_folder.h"

namespace parallelrun::plan {

class PlanFolder {
 public:
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
  const TempFolder temp_;
  const std::string path_ = temp_.path();
};

}  // namespace parallelrun::plan
