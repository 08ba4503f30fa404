#include "store/file_path.h"

#include <gtest/gtest.h>

#include <string>

namespace parallelrun::store {
namespace {

TEST(FilePath, IsBelowItsFolder) {
  for (const char* good : {"a", "a/b", ".a", "a..b", "...", " ", "\n"}) {
    EXPECT_TRUE(IsFilePath(good)) << good;
  }
  for (const char* bad : {"", "/a", "a/", "a//b", ".", "..", "a/../b", "./a", "a/."}) {
    EXPECT_FALSE(IsFilePath(bad)) << bad;
  }
  EXPECT_FALSE(IsFilePath(std::string_view("a\0b", 3)));
  EXPECT_TRUE(IsFilePath(std::string(255, 'a') + "/" + std::string(255, 'b')));
  EXPECT_FALSE(IsFilePath("a/" + std::string(256, 'b')));
}

}  // namespace
}  // namespace parallelrun::store
