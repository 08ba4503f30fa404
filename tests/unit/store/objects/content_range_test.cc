#include "store/objects/content_range.h"

#include <gtest/gtest.h>

namespace parallelrun::store {
namespace {

TEST(ContentRangeTest, WhatAServerSays) {
  const auto range = ParseContentRange("bytes 5-9/100");
  ASSERT_TRUE(range);
  EXPECT_EQ(range->first, 5U);
  EXPECT_EQ(range->last, 9U);
  EXPECT_EQ(range->total, 100U);
  const auto open = ParseContentRange("bytes 0-18446744073709551615/*");
  ASSERT_TRUE(open);
  EXPECT_EQ(open->last, UINT64_MAX);
  EXPECT_FALSE(open->total);
}

TEST(ContentRangeTest, AnythingElseIsNone) {
  for (const char* header :
       {"", "bytes", "bytes ", "bytes 5", "bytes 5-", "bytes 5-9", "bytes 5-9/", "bytes 9-5/100",
        "bytes */100", "bytes -5-9/100", "bytes 5-9/100 ", "bytes 5-9/-1", "bytes 5 -9/100",
        "bytes 5-18446744073709551616/*", "items 5-9/100"}) {
    EXPECT_FALSE(ParseContentRange(header)) << header;
  }
}

}  // namespace
}  // namespace parallelrun::store
