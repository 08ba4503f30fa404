#include <gtest/gtest.h>

#include <string>

#include "plan/glob.h"

namespace parallelrun::plan {
namespace {

struct Case {
  const char* pattern;
  const char* path;
  bool matches;
};

TEST(PlanGlobTest, Matches) {
  const Case cases[] = {
      {"", "a", true},
      {"", "a/b", true},
      {"*", "a.png", true},
      {"*", "a/b.png", false},
      {"*.png", "x.png", true},
      {"*.png", "x.jpg", false},
      {"*.png", "a/x.png", false},
      {"*.png", ".png", true},
      {"**/*.png", "x.png", true},
      {"**/*.png", "a/x.png", true},
      {"**/*.png", "a/b/c/x.png", true},
      {"**/*.png", "a/b/c/x.jpg", false},
      {"a/**", "a/b", true},
      {"a/**", "a/b/c", true},
      {"a/**", "b/a/c", false},
      {"a/", "a/b/c", true},
      {"./a/*", "a/b", true},
      {"a/**/z", "a/z", true},
      {"a/**/z", "a/b/c/z", true},
      {"a/**/z", "a/b/c/y", false},
      {"**/b/**/d", "a/b/b/c/d", true},
      {"**/b/*/d", "b/b/c/d", true},
      {"**/b/c/d", "b/b/b/c/d", true},
      {"**/**/x", "x", true},
      {"**", "a/b/c", true},
      {"a**b", "axxb", true},
      {"a**b", "a/b", false},
      {"?.txt", "a.txt", true},
      {"?.txt", "ab.txt", false},
      {"?.txt", ".txt", false},
      {"?.txt", "\xC3\xA4.txt", true},  // one character, two bytes
      {"??.txt", "\xC3\xA4.txt", false},
      {"?.txt", "\xFF.txt", true},
      {"[a-c]x", "bx", true},
      {"[a-c]x", "dx", false},
      {"[!a-c]x", "dx", true},
      {"[^a-c]x", "ax", false},
      {"[]]x", "]x", true},
      {"[!]]x", "]x", false},
      {"[a-]x", "-x", true},
      {"[\xC3\xA0-\xC3\xBF]", "\xC3\xA4", true},
      {"*[!\xC3\xA4]", "\xC3\xA4", false},  // a star does not take half a character
      {"[*]", "*", true},
      {"[*]", "a", false},
      {"[a", "[a", true},
      {"a*b*c", "aXbYbZc", true},
      {"a*b*c", "aXbYbZ", false},
      {"part-*-of-*.csv", "part-1-of-2.csv", true},
      {"\\*", "\\x", true},  // no escapes
  };
  for (const Case& c : cases) {
    EXPECT_EQ(Glob(c.pattern).Matches(c.path), c.matches) << c.pattern << " on " << c.path;
  }
}

TEST(PlanGlobTest, MayMatchBelow) {
  const Case cases[] = {
      {"", "a", true},        {"*.png", "a", false},     {"**/*.png", "a/b", true},
      {"a/*.png", "a", true}, {"a/*.png", "b", false},   {"a/*.png", "a/b", false},
      {"a*/x", "abc", true},  {"a/**/x", "a/b/c", true}, {"a/**/x", "b", false},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(Glob(c.pattern).MayMatchBelow(c.path), c.matches) << c.pattern << " on " << c.path;
  }
}

TEST(PlanGlobTest, ManyStarsTakeNoExponentialTime) {
  std::string pattern;
  std::string folders;
  for (int i = 0; i < 60; ++i) pattern += "a*";
  for (int i = 0; i < 60; ++i) folders += "**/a/";
  const std::string name(5000, 'a');
  std::string path;
  for (int i = 0; i < 1000; ++i) path += "a/";
  EXPECT_TRUE(Glob(pattern).Matches(name));
  EXPECT_FALSE(Glob(pattern + "b").Matches(name));
  EXPECT_FALSE(Glob(folders + "b").Matches(path + "c"));
}

}  // namespace
}  // namespace parallelrun::plan
