// The ways of a field of the job to who acts on it, end to end: what the coordinator tells a node,
// what the agent reads of it and tells its processes, and what these look for. Each side names a
// field once; here they are held to each other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "agent/job_keys.h"
#include "api/fields/walk.h"
#include "coordinator/start/config.h"
#include "coordinator/start/layout.h"
#include "tests/support/source_folder.h"

namespace parallelrun::cli {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

std::string SourceText(const std::string& name) {
  std::ifstream file(SourceFolder() + name);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string WorkerSources() {
  std::string all;
  const std::string folder = "worker-image/python/parallelrun/worker";
  for (const auto& entry : std::filesystem::directory_iterator(SourceFolder() + folder)) {
    if (entry.path().extension() != ".py") continue;
    all += SourceText(folder + "/" + entry.path().filename().string());
  }
  return all;
}

TEST(ToldFields, AgentsReadWhatCoordinatorsTell) {
  std::set<std::string> told;
  // Without side files that are staged neither is told, and else one, by where the output is.
  for (const char* store : {"", "results"}) {
    coordinator::JobLayout layout;
    layout.staging_folder = "/out/staged";
    layout.output_store = store;
    const Result<std::string> text =
        coordinator::AgentJob(coordinator::CoordinatorConfig(), layout);
    ASSERT_TRUE(text.ok()) << text.error().message;
    const json job = json::parse(*text);
    for (const auto& [key, value] : job.items()) told.insert(key);
  }
  std::set<std::string> read;
  for (const agent::JobKey& key : agent::JobKeys()) {
    if (key.name == "logLimitBytes") continue;  // only tests tell it: no job asks for less
    EXPECT_TRUE(read.insert(key.name).second) << key.name;
  }
  EXPECT_EQ(told, read);
}

TEST(ToldFields, TheDocumentsNameThem) {
  const std::string page = SourceText("docs/coordinator-api.md");
  for (const agent::JobKey& key : agent::JobKeys()) {
    EXPECT_THAT(page, HasSubstr("`" + key.name + "`"));
  }
}

TEST(ToldFields, WorkerProcessesLookForWhatTheyHear) {
  const std::string sources = WorkerSources();
  const std::string page = SourceText("docs/worker-protocol.md");
  for (const agent::JobKey& key : agent::JobKeys()) {
    if (!key.start) continue;
    EXPECT_NE(sources.find('"' + key.name + '"'), std::string::npos) << key.name;
    EXPECT_NE(page.find(key.name), std::string::npos) << key.name;
  }
  size_t heard = 0;
  api::fields::EachField(
      [&](const std::string& path, const api::fields::Field& field, const api::fields::Field&) {
        if (field.worker_name.empty()) return;
        ++heard;
        EXPECT_NE(sources.find('"' + field.worker_name + '"'), std::string::npos) << path;
        EXPECT_NE(page.find("| `" + field.worker_name + "` |"), std::string::npos) << path;
      });
  EXPECT_GT(heard, 0U);
}

}  // namespace
}  // namespace parallelrun::cli
