#include "agent/objects/parts.h"

#include <gtest/gtest.h>

#include <vector>

namespace parallelrun::agent {
namespace {

constexpr uint64_t kOnePart = Parts::kBytes;

TEST(PartsTest, OfAnObjectEachByteIsReadOnce) {
  for (const uint64_t length :
       {uint64_t{1}, kOnePart, kOnePart + 1, 5 * kOnePart - 1, 40 * kOnePart}) {
    Parts parts;
    parts.Add(7, {100, length});
    uint64_t at = 100;
    bool over = false;
    while (!over) {
      const auto part = parts.Next();
      ASSERT_TRUE(part);
      EXPECT_EQ(part->number, 7U);
      EXPECT_EQ(part->range.offset, at);
      EXPECT_GT(part->range.length, 0U);
      EXPECT_LE(part->range.length, kOnePart);
      at += part->range.length;
      const auto ended = parts.End(7, {});
      over = ended.has_value();
      if (over) {
        EXPECT_TRUE(ended->ok());
      }
    }
    EXPECT_EQ(at, 100 + length);
    EXPECT_FALSE(parts.Next());
  }
}

TEST(PartsTest, TheFirstObjectHasSeveralAtOnceAndTheNextOneTheRest) {
  Parts parts;
  parts.Add(1, {0, 100 * kOnePart});
  parts.Add(2, {0, 2 * kOnePart});
  for (size_t i = 0; i < Parts::kAtOnce; ++i) EXPECT_EQ(parts.Next()->number, 1U);
  EXPECT_EQ(parts.Next()->number, 2U);
  EXPECT_FALSE(parts.End(1, {}));
  EXPECT_EQ(parts.Next()->number, 1U) << "one place is free again";
  EXPECT_EQ(parts.Next()->number, 2U);
  EXPECT_FALSE(parts.Next());
  EXPECT_FALSE(parts.End(2, {})) << "its other part is still read";
  const auto ended = parts.End(2, {});
  ASSERT_TRUE(ended);
  EXPECT_TRUE(ended->ok());
}

TEST(PartsTest, TheFirstErrorEndsTheObjectWhenItsOtherPartsHaveEnded) {
  Parts parts;
  parts.Add(1, {0, 100 * kOnePart});
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(parts.Next());
  EXPECT_FALSE(parts.End(1, Error{Code::kStale, "first"}));
  EXPECT_FALSE(parts.Next()) << "the rest is of no use";
  EXPECT_FALSE(parts.End(1, Error{Code::kUnavailable, "second"}));
  const auto ended = parts.End(1, {});
  ASSERT_TRUE(ended);
  ASSERT_FALSE(ended->ok());
  EXPECT_EQ(ended->error().message, "first");
  // It may be tried again, under the same number.
  parts.Add(1, {0, kOnePart});
  ASSERT_TRUE(parts.Next());
  EXPECT_TRUE(parts.End(1, {})->ok());
}

}  // namespace
}  // namespace parallelrun::agent
