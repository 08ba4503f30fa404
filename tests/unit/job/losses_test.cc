#include "job/losses.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace parallelrun::job {
namespace {

FailureRules Rules(Thresholds thresholds, bool append_row = true, bool short_return_fails = false) {
  return {thresholds, append_row, short_return_fails};
}

// What becomes of 2 items without an element, beside 10 failed ones of which 3 failed alone.
TEST(Losses, MissingItemsFailOnlyWhereTheJobSaysSo) {
  JobCounts counts;
  counts.items_missing = 2;
  counts.items_failed = 10;
  counts.items_isolated = 3;
  const struct {
    FailureRules rules;
    bool fail;
  } cases[] = {
      {Rules({}), false},
      {Rules({-1, {}, {}}), false},
      {Rules({{}, 0, 0.0}), false},
      {Rules({0, {}, {}}), true},
      {Rules({7, {}, {}}), true},
      {Rules({}, true, true), true},
      {Rules({-1, {}, {}}, true, true), true},
      {Rules({0, {}, {}}, false), false},
      {Rules({0, {}, {}}, false, true), false},
  };
  for (size_t i = 0; i < std::size(cases); ++i) {
    SCOPED_TRACE(i);
    const auto& [rules, fail] = cases[i];
    const Losses losses = CountLosses(counts, rules);
    EXPECT_EQ(losses.items, fail ? 12U : 10U);
    EXPECT_EQ(losses.missing, fail ? 2U : 0U);
    EXPECT_EQ(losses.reported, fail ? 0U : 2U);
    EXPECT_EQ(losses.isolated, 3U);
    EXPECT_EQ(rules.FailedOf(2, 0), fail ? 2U : 0U);
    EXPECT_EQ(rules.FailedOf(0, 0), 0U);
    EXPECT_EQ(rules.FailedOf(1, 1), fail ? 2U : 1U);
    EXPECT_EQ(rules.FailedOf(0, 2), 2U);
  }
}

TEST(Losses, AreAllowedByAThresholdThatSpeaksOfThem) {
  JobCounts whole;
  whole.items_failed = 10;
  JobCounts alone = whole;
  alone.items_isolated = 10;
  const auto allowed = [](const JobCounts& counts, Thresholds thresholds) {
    return CountLosses(counts, Rules(thresholds)).allowed;
  };
  EXPECT_TRUE(allowed({}, {}));
  EXPECT_FALSE(allowed(whole, {}));
  EXPECT_TRUE(allowed(whole, {-1, {}, {}}));
  EXPECT_TRUE(allowed(whole, {{}, -1, {}}));
  EXPECT_TRUE(allowed(whole, {{}, {}, 100.0}));
  EXPECT_TRUE(allowed(alone, {10, {}, {}}));
  EXPECT_FALSE(allowed(alone, {{}, 5, 100.0}));  // of mini-batches, none of which failed
  JobCounts skipped = whole;
  skipped.items_skipped = 1;
  EXPECT_FALSE(allowed(skipped, {}));
  EXPECT_FALSE(allowed(skipped, {{}, -1, 100.0}));
  EXPECT_TRUE(allowed(skipped, {-1, {}, {}}));
}

TEST(Losses, TheRulesAreWhatTheJobSays) {
  const FailureRules said = RulesOf(R"({"spec": {"errorThreshold": 5, "allowedFailedPercent": 2.5,
      "output": {"action": "SummaryOnly"}, "shortReturn": "Fail", "inputs": [{"name": "a"},
      {"name": "b", "allowEmpty": "Existing"}, {"name": "c", "allowEmpty": "Never"},
      {"name": "d", "allowEmpty": "Missing"}]}})");
  EXPECT_EQ(said.thresholds, (Thresholds{5, std::nullopt, 2.5}));
  EXPECT_FALSE(said.append_row);
  EXPECT_TRUE(said.short_return_fails);
  EXPECT_EQ(said.may_be_empty, "inputs[b], inputs[d]");
  for (const char* odd : {"{}", "no json", "[]", R"({"spec": 7})",
                          R"({"spec": {"errorThreshold": "5", "output": 1, "shortReturn": 2}})",
                          R"({"spec": {"inputs": [7, {"name": "a", "allowEmpty": true}]}})"}) {
    const FailureRules rules = RulesOf(odd);
    EXPECT_EQ(rules.thresholds, Thresholds()) << odd;
    EXPECT_TRUE(rules.append_row && !rules.short_return_fails) << odd;
    EXPECT_EQ(rules.may_be_empty, "") << odd;
  }
}

TEST(Losses, ThresholdsGoIntoAJobAndComeBack) {
  const Thresholds all{10, 20, 30.5};
  const std::string job = WithThresholds(R"({"kind":"x","spec":{"errorThreshold":1,"n":2}})", all);
  EXPECT_EQ(RulesOf(job).thresholds, all);
  EXPECT_EQ(nlohmann::json::parse(job)["spec"]["n"], 2);
  // What is not written stays so.
  EXPECT_EQ(RulesOf(WithThresholds("{}", {{}, 3, {}})).thresholds, (Thresholds{{}, 3, {}}));
}

TEST(Losses, ItemsForPeople) {
  JobCounts counts;
  counts.items_succeeded = 98;
  EXPECT_EQ(ItemsText(counts, CountLosses(counts, {})), "98 succeeded, 0 failed");
  counts.items_missing = 2;
  EXPECT_EQ(ItemsText(counts, CountLosses(counts, {})),
            "98 succeeded, 0 failed, 2 without an element");
}

}  // namespace
}  // namespace parallelrun::job
