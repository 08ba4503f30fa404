#include "job/result_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace parallelrun::job {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr Fence kOwn{1, 7};
constexpr Fence kOther{1, 8};

ResultRecord ResultOf(BatchId id, const Fence& fence, std::string_view rows = "") {
  ResultRecord result;
  result.id = id;
  result.fence = fence;
  result.rows = rows;
  return result;
}

TEST(ResultPartsTest, RowsStayInOrderWithTheirResult) {
  ResultParts parts;
  EXPECT_THAT(parts.Places(3), IsEmpty());
  const Place first{1, 100, 10};
  const Place second{1, 200, 5};
  parts.Add(RowsRecord{3, kOwn, ""}, first, false);
  parts.Add(RowsRecord{3, kOwn, ""}, second, false);
  EXPECT_EQ(parts.Bytes(3, kOwn), 15U);
  EXPECT_EQ(parts.Bytes(3, kOther), 0U);
  EXPECT_EQ(parts.Bytes(4, kOwn), 0U);
  EXPECT_EQ(parts.Complete(ResultOf(3, kOwn)), 0U);
  EXPECT_THAT(parts.Places(3), ElementsAre(first, second));
  parts.Forget(3);
  EXPECT_THAT(parts.Places(3), IsEmpty());
}

TEST(ResultPartsTest, AnAttemptThatWasGivenUpLeavesNothing) {
  ResultParts parts;
  parts.Add(RowsRecord{3, kOwn, ""}, {1, 100, 10}, false);
  parts.Add(RowsRecord{3, kOther, ""}, {1, 200, 5}, false);
  EXPECT_EQ(parts.Bytes(3, kOwn), 0U) << "the later one took its place";
  EXPECT_EQ(parts.Bytes(3, kOther), 5U);
  EXPECT_EQ(parts.Complete(ResultOf(3, kOwn)), 0U);
  EXPECT_THAT(parts.Places(3), IsEmpty());
}

TEST(ResultPartsTest, WhatWasLeftOutIsOfTheResultWithItsFence) {
  ResultParts parts;
  parts.Add(SkippedRecord{3, kOwn, 2});
  parts.Add(SkippedRecord{4, kOther, 5});
  parts.Add(SkippedRecord{5, kOwn, 6});
  EXPECT_EQ(parts.Complete(ResultOf(3, kOwn)), 2U);
  EXPECT_EQ(parts.Complete(ResultOf(3, kOwn)), 0U) << "told once";
  EXPECT_EQ(parts.Complete(ResultOf(4, kOwn)), 0U);
  EXPECT_EQ(parts.Complete(ResultOf(4, kOther)), 0U) << "it is gone";
  parts.Forget(5);
  EXPECT_EQ(parts.Complete(ResultOf(5, kOwn)), 0U);
}

TEST(ResultPartsTest, TheLineOfSideFilesMayComeInParts) {
  ResultParts parts;
  EXPECT_EQ(parts.TakeSideFiles(ResultOf(3, kOwn, "[1]\nrow\n")), "[1]");
  parts.Add(RowsRecord{3, kOwn, "[2,"}, {1, 100, 3}, true);
  parts.Add(RowsRecord{3, kOwn, "3]\nro"}, {1, 200, 5}, true);
  EXPECT_EQ(parts.TakeSideFiles(ResultOf(3, kOther, "[4]\n")), "[4]") << "of another attempt";
  EXPECT_EQ(parts.TakeSideFiles(ResultOf(3, kOwn, "w\n")), "[2,3]");
  EXPECT_EQ(parts.TakeSideFiles(ResultOf(4, kOwn, "no end")), "");
}

}  // namespace
}  // namespace parallelrun::job
