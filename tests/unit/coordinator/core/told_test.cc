#include "coordinator/core/told.h"

#include <gtest/gtest.h>

namespace parallelrun::coordinator {
namespace {

job::ProcessEvent MetricEvent(uint32_t process, std::string_view number, std::string_view json) {
  return {process, job::ProcessEvent::Kind::kMetric, json, number};
}

TEST(Told, AMetricThatIsToldAgainCountsOnceForItsProcess) {
  Told told(false);
  told.AddMetric(0, MetricEvent(0, "1", "{\"loss\":1}"));
  told.AddMetric(0, MetricEvent(0, "1", "{\"loss\":1}"));
  told.AddMetric(0, MetricEvent(1, "1", "{\"loss\":2}"));
  told.AddMetric(1, MetricEvent(0, "1", "{\"loss\":3}"));
  told.AddMetric(0, MetricEvent(0, "x", "{\"loss\":4}"));  // no number: as if told before
  const std::vector<Told::Metric> metrics = told.TakeMetrics();
  ASSERT_EQ(metrics.size(), 3U);
  EXPECT_EQ(metrics[2].node, 1U);
  EXPECT_EQ(metrics[2].json, "{\"loss\":3}");
  EXPECT_TRUE(told.TakeMetrics().empty());
}

TEST(Told, WhatIsHeldAndFinishedIsRefusedOnceAsWhatCameOfIt) {
  Told told(false);
  const job::LeaseName name{4, {1, 2}};
  told.Refuse(0, 0, {1, 1},
              {{name, RefusedReport::Kind::kLease, RefusalReason::kLeased},
               {{5, {1, 3}}, RefusedReport::Kind::kLease, RefusalReason::kExpired},
               {name, RefusedReport::Kind::kResult, RefusalReason::kSettled}});
  EXPECT_EQ(told.refusals().count(RefusalReason::kLeased), 0U);
  EXPECT_EQ(told.refusals().count(RefusalReason::kSettled), 1U);
  EXPECT_EQ(told.refusals().count(RefusalReason::kExpired), 1U);
}

TEST(Told, OfAnIncarnationThatIsNotInForceAllIsRefusedButWhatItHandsBack) {
  Told told(false);
  job::ExchangeRequest request;
  job::Finished done;
  request.finished = {done, done, done};
  request.finished[0].kind = job::Finished::Kind::kReturned;
  request.finished[1].kind = job::Finished::Kind::kFailed;
  told.RefuseAll(0, request);
  EXPECT_EQ(told.refusals().count(RefusalReason::kStale), 2U);
}

TEST(Told, TheRateIsOfWhatIsSettled) {
  Told told(false);
  const WorkInstant now{seconds(1000)};
  for (uint64_t i = 0; i <= 10; ++i) told.Observe({2 * i, 1, 1}, now + seconds(1) * i);
  EXPECT_DOUBLE_EQ(told.rate().PerSecond(), 2.0);
}

}  // namespace
}  // namespace parallelrun::coordinator
