// What follows from a coordinator's configuration, and what it tells agents of the job.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "coordinator/start/config.h"

namespace parallelrun {
namespace {

TEST(CoordinatorConfigTest, SpeculationIsOffWhereTheScriptsEffectsAreTheResult) {
  const struct {
    OutputAction action;
    std::optional<bool> asked;
    bool speculation;
  } cases[] = {{OutputAction::kAppendRow, std::nullopt, true},
               {OutputAction::kSummaryOnly, std::nullopt, false},
               {OutputAction::kAppendRow, false, false},
               {OutputAction::kSummaryOnly, true, true}};
  for (const auto& c : cases) {
    CoordinatorConfig config;
    config.job.spec.output.action = c.action;
    config.job.spec.speculation = c.asked;
    EXPECT_EQ(config.speculation(), c.speculation);
    const Result<std::string> told = AgentJob(config, {});
    ASSERT_TRUE(told.ok()) << told.error().message;
    EXPECT_EQ(nlohmann::json::parse(*told)["speculation"], c.speculation);
  }
}

}  // namespace
}  // namespace parallelrun
