#include "job/ready_order.h"

#include <gtest/gtest.h>

namespace parallelrun::job {
namespace {

TEST(ReadyOrder, TheLowestComesFirst) {
  ReadyOrder ready;
  EXPECT_FALSE(ready.First());
  for (const BatchId id : {7, 5, 6, 5}) ready.Add(id);
  EXPECT_EQ(ready.size(), 3U);
  EXPECT_EQ(ready.First(), 5U);
  ready.Remove(5);
  ready.Remove(5);
  EXPECT_EQ(ready.First(), 6U);
  EXPECT_FALSE(ready.Contains(5));
  EXPECT_TRUE(ready.Contains(7));
}

TEST(ReadyOrder, PiecesGoBetweenWhatWasGrantedBeforeAndWhatNeverWas) {
  ReadyOrder ready;
  for (BatchId id = 0; id < 4; ++id) ready.Add(id);
  ready.Granted(0);
  ready.Granted(1);
  const BatchId piece = FirstPiece(0);
  ready.Add(piece);
  EXPECT_EQ(ready.First(), piece);
  ready.Add(1);
  EXPECT_EQ(ready.First(), 1U) << "it came back";
  ready.Granted(1);
  ready.Granted(piece);
  EXPECT_EQ(ready.First(), 2U);
  EXPECT_EQ(ready.size(), 2U);
}

}  // namespace
}  // namespace parallelrun::job
