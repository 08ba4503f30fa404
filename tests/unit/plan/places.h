// Where the tests of the planner put their inputs: a folder of this machine, or objects in memory,
// with the same calls, so that one test runs on both.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "plan/input_store.h"
#include "tests/support/disk_files.h"
#include "tests/support/memory_store.h"
#include "tests/unit/plan/folder.h"

namespace parallelrun::plan {

class FolderPlace : public PlanFolder {
 public:
  static constexpr const char* kStore = "";  // as plans name it

  // A file with the bytes of `original`, at once where the file system can do that.
  void WriteSame(std::string_view name, const std::string& original) const {
    std::filesystem::create_hard_link(original, *this / name);
  }
  void Remove(std::string_view name) const { std::filesystem::remove(*this / name); }
  OpenStore Stores() { return FolderStores(DiskFiles()); }
};

class MemoryPlace {
 public:
  static constexpr const char* kStore = "memory";

  std::string path() const { return "memory://in"; }
  std::string operator/(std::string_view name) const { return path() + "/" + std::string(name); }
  std::string Write(std::string_view name, std::string content = "") {
    objects_.Put(*this / name, std::move(content));
    return *this / name;
  }
  void WriteSame(std::string_view name, const std::string& original) {
    objects_.Put(*this / name, *objects_.At(original)->bytes);
  }
  void Remove(std::string_view name) { objects_.Remove(*this / name); }
  OpenStore Stores() {
    return [this](const PlanInput& input) { return objects_.Open(input.root, input.stop); };
  }

 private:
  MemoryObjects objects_;
};

using Places = ::testing::Types<FolderPlace, MemoryPlace>;

}  // namespace parallelrun::plan
