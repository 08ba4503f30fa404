#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/compare/batch_rows.h"

namespace parallelrun::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

TEST(Compare, MiniBatchesAreMetByTheirItems) {
  const RowsOfRun a = {{1, {0, 10, 5}}, {2, {1, 20, 5}}, {3, {2, 30, 5}}};
  const RowsOfRun b = {{2, {0, 20, 5}}, {3, {1, 31, 5}}, {4, {2, 40, 5}}};
  const RunDifferences found = CompareRuns(a, b);
  EXPECT_EQ(found.same, 1u);
  EXPECT_THAT(found.changed, ElementsAre(Pair(BatchRows{2, 30, 5}, BatchRows{1, 31, 5})));
  EXPECT_THAT(found.only_a, ElementsAre(BatchRows{0, 10, 5}));
  EXPECT_THAT(found.only_b, ElementsAre(BatchRows{2, 40, 5}));
}

TEST(Compare, RowsAreMetByTheirPlaces) {
  const RowChanges changes = CompareRows({"a", "b", "c"}, {"a", "x", "c", "d"});
  EXPECT_EQ(changes.changed, 1u);
  EXPECT_EQ(changes.added, 1u);
  EXPECT_EQ(changes.removed, 0u);
  EXPECT_EQ(changes.first_a, "b");
  EXPECT_EQ(changes.first_b, "x");
  const RowChanges fewer = CompareRows({"a", "b"}, {"a"});
  EXPECT_EQ(fewer.removed, 1u);
  EXPECT_EQ(fewer.changed, 0u);
  EXPECT_EQ(fewer.first_a, "b");
  EXPECT_EQ(fewer.first_b, "");
}

}  // namespace
}  // namespace parallelrun::cli
