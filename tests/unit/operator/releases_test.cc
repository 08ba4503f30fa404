// An operator goes on with jobs that it began as an earlier release: what it writes for their
// coordinators, which stay as they were, and what it reads of them.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "api/parse.h"
#include "base/time.h"
#include "coordinator/start/config.h"
#include "operator/credentials.h"
#include "tests/support/source_folder.h"

namespace parallelrun::operators {
namespace {

using nlohmann::json;

constexpr char kKept[] = "tests/unit/data/release_0_1_0/coordinator.json";

json Kept() {
  std::stringstream text;
  text << std::ifstream(SourceFolder() + kKept).rdbuf();
  return json::parse(text.str(), nullptr, false);
}

// What the operator writes today for the job of that file.
json Written(const api::Job& job) {
  OperatorKey key;
  key.bytes = std::string(32, 'k');
  const JobIdentity identity{"team", "digits", "4f6a0f0e-0000-4000-8000-000000000001",
                             WallTime(seconds(1'795'252'500))};
  const Result<JobCredentials> credentials = DeriveCredentials(key, identity, identity.created);
  EXPECT_TRUE(credentials.ok());
  AccessContent content;
  content.job = job;
  content.nodes = content.highest_nodes = 2;
  return json::parse(AccessSecretData(*credentials, identity, content).at("coordinator.json"));
}

TEST(ReleaseTest, ACoordinatorReadsWhatTheOperatorOf010Wrote) {
  const Result<coordinator::CoordinatorConfig> config = coordinator::ParseConfig(Kept().dump());
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->nodes, 2U);
  EXPECT_EQ(config->job.spec.inputs.size(), 2U);
}

TEST(ReleaseTest, OfAJobThatUsesNothingNewTheOperatorWritesWhatThatOf010Wrote) {
  const json kept = Kept();
  const api::ParsedJob parsed = api::ReadJob(kept["job"], api::Target::kCluster);
  ASSERT_TRUE(parsed.ok()) << api::FormatProblem(parsed.problems.front(), "job");
  const json written = Written(parsed.job);
  for (const auto& [key, value] : kept.items()) EXPECT_TRUE(written.contains(key)) << key;
  if (written["job"] == kept["job"]) return;
  const std::filesystem::path now = std::filesystem::temp_directory_path() / "coordinator.json";
  std::ofstream(now) << written.dump(1) << "\n";
  ADD_FAILURE() << json::diff(kept["job"], written["job"]).dump(1)
                << "\na coordinator of 0.1.0 refuses a field that it does not know: make the field "
                   "UnlessInitial. Until 0.1.0 is released, "
                << now << " may be kept as " << kKept;
}

}  // namespace
}  // namespace parallelrun::operators
