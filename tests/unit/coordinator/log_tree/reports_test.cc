#include "coordinator/log_tree/reports.h"

#include <gtest/gtest.h>

#include "base/time.h"

namespace parallelrun::coordinator {
namespace {

TEST(Reports, S17TheOverviewIsANewFileEachDayUtc) {
  const WallTime midnight(seconds(1795219200));
  EXPECT_EQ(OverviewName(midnight - milliseconds(1)), "job_progress_overview.20261120.txt");
  EXPECT_EQ(OverviewName(midnight), "job_progress_overview.20261121.txt");
  EXPECT_EQ(OverviewName(midnight + seconds(86'399)), "job_progress_overview.20261121.txt");
}

}  // namespace
}  // namespace parallelrun::coordinator
