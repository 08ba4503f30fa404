#include "base/http/target.h"

#include <gtest/gtest.h>

namespace parallelrun {
namespace {

using Segments = std::vector<std::string>;

TEST(PathSegments, SplitsAndDecodes) {
  const auto segments = PathSegments("/v1/logs/a%20b%2B");
  ASSERT_TRUE(segments.ok());
  EXPECT_EQ(*segments, (Segments{"v1", "logs", "a b+"}));
  EXPECT_EQ(*PathSegments("/"), Segments{});
  EXPECT_EQ(*PathSegments("/..."), Segments{"..."});
}

TEST(PathSegments, RefusesWhatCouldMeanAnotherPlace) {
  for (const char* path : {"", "a", "//", "/a/", "/a//b", "/.", "/..", "/a/../b", "/%2e%2E", "/%2f",
                           "/a%2Fb", "/%00", "/%", "/%4", "/%zz", "/a%"}) {
    const auto segments = PathSegments(path);
    ASSERT_FALSE(segments.ok()) << path;
    EXPECT_EQ(segments.error().code, Code::kInvalid);
  }
}

TEST(PathSegments, ShowsHostilePathsSafely) {
  const auto segments = PathSegments(std::string_view("/\x1b[2J\n/..", 8));
  ASSERT_FALSE(segments.ok());
  EXPECT_EQ(segments.error().message.find('\x1b'), std::string::npos);
}

TEST(QueryParameter, FindsTheFirst) {
  EXPECT_EQ(QueryParameter("a=1&b=x%26y+z&a=2&flag", "a"), "1");
  EXPECT_EQ(QueryParameter("a=1&b=x%26y+z&a=2&flag", "b"), "x&y z");
  EXPECT_EQ(QueryParameter("a=1&flag", "flag"), "");
  EXPECT_EQ(QueryParameter("x%41=v=w", "xA"), "v=w");
  EXPECT_EQ(QueryParameter("a=1", "c"), std::nullopt);
  EXPECT_EQ(QueryParameter("", "a"), std::nullopt);
  EXPECT_EQ(QueryParameter("a=%4", "a"), std::nullopt);
}

TEST(PercentEncode, ReversesDecode) {
  std::string all;
  for (int i = 0; i < 256; ++i) all.push_back(static_cast<char>(i));
  const std::string encoded = PercentEncode(all);
  EXPECT_EQ(PercentDecode(encoded), all);
  EXPECT_EQ(PercentEncode("a/b c~"), "a%2Fb%20c~");
}

TEST(PercentEncode, OfSegmentsLeavesTheSlashesBetweenThem) {
  EXPECT_EQ(PercentEncodeSegments("a b/c+d%20/ü?#&"), "a%20b/c%2Bd%2520/%C3%BC%3F%23%26");
  EXPECT_EQ(PercentEncodeSegments("/a//b/"), "/a//b/");
  EXPECT_EQ(PercentEncodeSegments(""), "");
}

TEST(PercentDecode, OfAFormTakesAPlusForASpace) {
  EXPECT_EQ(FormDecode("a+b%2B+"), "a b+ ");
  EXPECT_EQ(PercentDecode("a+b"), "a+b");
  EXPECT_EQ(FormDecode("+%4"), std::nullopt);
}

}  // namespace
}  // namespace parallelrun
