// tests/unit/data/bad_specs.yaml as the programs read jobs: every case is refused for its reason
// alone.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "api/document.h"
#include "azure/read_job.h"
#include "tests/support/source_folder.h"

namespace parallelrun::api {
namespace {

nlohmann::json Table() {
  std::ifstream file(SourceFolder() + "tests/unit/data/bad_specs.yaml");
  std::stringstream text;
  text << file.rdbuf();
  const Document document = ReadDocument(text.str());
  for (const Problem& problem : document.problems) ADD_FAILURE() << FormatProblem(problem, "table");
  return document.job.ToJson();
}

std::string All(const ParsedJob& parsed) {
  std::string text;
  for (const Problem& problem : parsed.problems) text += FormatProblem(problem, "job.yaml") + "\n";
  return text;
}

TEST(BadSpecs, TheBaseIsGood) {
  const ParsedJob parsed = azure::ReadJob(Table()["base"], Target::kCluster);
  EXPECT_TRUE(parsed.ok()) << All(parsed);
  EXPECT_TRUE(parsed.problems.empty()) << All(parsed);
}

TEST(BadSpecs, EachIsRefusedForItsReason) {
  const nlohmann::json table = Table();
  ASSERT_GT(table["cases"].size(), 80U);
  for (const nlohmann::json& one : table["cases"]) {
    SCOPED_TRACE(one["name"].get<std::string>());
    nlohmann::json job = table["base"];
    // A null removes; there is no other way to say so in a merge patch.
    job.merge_patch(one["patch"]);
    // Through text as well, so that every problem has its line.
    for (const ParsedJob& parsed : {azure::ReadJob(job, Target::kCluster),
                                    azure::ReadJob(job.dump(1), {}, Target::kCluster)}) {
      if (one["class"] == "cluster") {
        EXPECT_TRUE(parsed.ok()) << All(parsed);
        continue;
      }
      ASSERT_FALSE(parsed.ok());
      const std::string field = one["field"];
      const std::string says = one["says"];
      EXPECT_EQ(parsed.problems[0].field, field) << All(parsed);
      EXPECT_NE(FormatProblem(parsed.problems[0], "").find(says), std::string::npos) << All(parsed);
      EXPECT_EQ(parsed.problems.size(), 1U) << All(parsed);
    }
  }
}

}  // namespace
}  // namespace parallelrun::api
