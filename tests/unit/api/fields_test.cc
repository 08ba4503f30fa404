// What is made from the table of fields.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "api/defaults.h"
#include "api/document.h"
#include "api/fields/explain.h"
#include "api/fields/made.h"
#include "api/fields/schema.h"
#include "api/fields/schema_yaml.h"
#include "api/fields/told.h"
#include "api/fields/walk.h"
#include "api/parse.h"
#include "api/to_json.h"
#include "tests/support/source_folder.h"

namespace parallelrun::api {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;
using ::testing::HasSubstr;

constexpr char kDefinition[] = "crds/parallelrunjobs.parallelrun.dev.yaml";

std::string Committed(const std::string& name) {
  std::ifstream file(SourceFolder() + name);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(Fields, WhatIsMadeOfThemIsCurrent) {
  for (const auto& [name, what] :
       std::map<std::string, std::string>{{kDefinition, "spec"},
                                          {"helm/parallelrun/files/crd.yaml", "spec"},
                                          {"docs/fields.md", "fields"}}) {
    const std::string text = Committed(name);
    const auto made = fields::WithMadeParts(text);
    ASSERT_TRUE(made.ok()) << made.error().message;
    EXPECT_THAT(text, HasSubstr("BEGIN made by script/fields: " + what));
    EXPECT_TRUE(*made == text) << name << " is not current: run script/fields";
  }
}

TEST(Fields, TheDefinitionHoldsWhatTheySay) {
  const json schema = ReadForeignDocument(Committed(kDefinition))
                          .job.ToJson()["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
  EXPECT_TRUE(schema["properties"]["spec"] == json(fields::SpecSchema()));
  const json& rules = schema["x-kubernetes-validations"];
  const json made = fields::JobRules();
  EXPECT_EQ(rules[rules.size() - 2], made[0]);
  EXPECT_EQ(rules[rules.size() - 1], made[1]);
}

// Ledgers hold it, and a job continues only where it is the same: good_jobs.jsonl was written
// before there was a table, and changes only where good_jobs.yaml does.
TEST(Fields, TheJsonOfAJobStaysAsItIs) {
  const json jobs =
      ReadForeignDocument(Committed("tests/unit/data/good_jobs.yaml")).job.ToJson()["jobs"];
  std::istringstream golden(Committed("tests/unit/data/good_jobs.jsonl"));
  for (const json& job : jobs) {
    std::string line;
    std::getline(golden, line);
    EXPECT_EQ(CanonicalText(ToJson(ReadJob(job, Target::kCluster).job)), line);
  }
}

// The tables of docs/job.md: the rows of one field, as "| `nodeCount` | integer | 1 | …".
std::map<std::string, std::string> DefaultsInTheDocument() {
  static const std::regex row(R"(\| `([A-Za-z.\[\]]+)`\*? \|[^|]*\| ?([^|]*?) ?\|)");
  std::map<std::string, std::string> defaults;
  std::istringstream page(Committed("docs/job.md"));
  for (std::string line; std::getline(page, line);) {
    std::smatch found;
    if (!std::regex_search(line, found, row, std::regex_constants::match_continuous)) continue;
    std::string value = found[2];
    std::erase(value, '`');
    defaults["spec." + found[1].str()] = value;
  }
  return defaults;
}

// Where they stand among others, and more is said of them than the table of all of them does.
TEST(Fields, TheDocumentHasTheirDefaults) {
  const auto documented = DefaultsInTheDocument();
  size_t compared = 0;
  fields::EachField([&](const std::string& path, const fields::Field& field, const fields::Field&) {
    if (!field.write) return;  // Kubernetes'
    const auto row = documented.find(path);
    const std::string value = fields::DefaultText(field);
    const bool constant = field.need == fields::Need::kNone && field.otherwise.empty() &&
                          value != "none" && value.find('{') == std::string::npos;
    if (row == documented.end() || !constant) return;
    ++compared;
    EXPECT_EQ(row->second, value) << path;
  });
  EXPECT_GT(compared, 15U);
}

TEST(Fields, AMadePartThatNobodyMakesOrThatHasNoEndIsRefused) {
  const std::string begin = "a\n# BEGIN made by script/fields: ";
  EXPECT_FALSE(fields::WithMadeParts(begin + "toys\n# END made\n").ok());
  EXPECT_FALSE(fields::WithMadeParts(begin + "spec\n").ok());
  const auto made = fields::WithMadeParts(begin + "spec\nold\n# END made\nb");
  ASSERT_TRUE(made.ok());
  EXPECT_THAT(*made, HasSubstr("\n# BEGIN made by script/fields: spec\ntype: object\n"));
  EXPECT_THAT(*made, HasSubstr("\n# END made\nb"));
  EXPECT_EQ(made->find("\nold\n"), std::string::npos);
}

TEST(Fields, YamlOfASchemaReadsBackUnchanged) {
  const std::string longer(60, 'x');
  const ordered_json schema = {
      {"plain", "As in a pod."},
      {"quoted",
       {"true", "a: b", "", " x", "x ", "1", "~", "#", "it's", "\"", "a\\b", "-", "None"}},
      {"folded", longer + " \"" + longer + "\": \\n " + longer},
      {"not folded", longer + "  " + longer},
      {"flat", {{"type", "string"}, {"enum", {"a", "b,c"}}, {"most", -1}, {"on", true}}},
      {"list", {{{"rule", longer + " " + longer}, {"message", "'m'"}}, {{"rule", "r"}}}}};
  const Document document = ReadForeignDocument(fields::SchemaYaml(schema, 2));
  EXPECT_TRUE(document.problems.empty());
  EXPECT_EQ(document.job.ToJson(), json(schema));
}

TEST(FieldsTold, WorkersHearOfWhatIsNotTheDefault) {
  JobSpec spec;
  EXPECT_EQ(fields::FieldsForWorkers(spec), json::object());
  spec.short_return = ShortReturn::kFail;
  spec.profiling = Profiling::kCProfile;
  spec.output.format = OutputFormat::kJsonl;
  spec.output.nan_as_null = true;
  spec.error_threshold = 3;  // is not theirs
  EXPECT_EQ(fields::FieldsForWorkers(spec), (json{{"shortReturn", "Fail"},
                                                  {"profiling", "cProfile"},
                                                  {"outputFormat", "jsonl"},
                                                  {"nanAsNull", true}}));
}

TEST(FieldsTold, WhatOnlyTheOperatorActsOnIsOnlyForClusters) {
  JobSpec spec;
  EXPECT_THAT(fields::FieldsOnlyForClusters(spec), ::testing::IsEmpty());
  spec.environment.image = "images.example/digits:1";
  spec.environment.env = json::array({{{"name", "A"}, {"value", "1"}}});
  spec.coordinator.pod_template = {{"metadata", {{"labels", {{"x", "y"}}}}}};
  spec.suspend = true;
  spec.shared_memory = 1;
  spec.ttl_after_finished = seconds(0);
  spec.node_count = 7;
  EXPECT_THAT(
      fields::FieldsOnlyForClusters(spec),
      ::testing::UnorderedElementsAre("environment.image", "coordinator.podTemplate", "suspend",
                                      "sharedMemory", "ttlSecondsAfterFinished"));
  // What is filled in is nobody's word.
  Job job;
  FillDefaults(job);
  EXPECT_THAT(fields::FieldsOnlyForClusters(job.spec), ::testing::IsEmpty());
  job.spec.coordinator.resources["limits"]["cpu"] = "2";
  EXPECT_THAT(fields::FieldsOnlyForClusters(job.spec),
              ::testing::ElementsAre("coordinator.resources"));
}

// Each that may change at any time and that the coordinator acts on, and no other; what is not
// given is told by the value that means the same.
TEST(FieldsTold, ARunningJobHearsOfAllThatMayChange) {
  JobSpec spec;
  const json none = fields::FieldsForRunningJob(spec);
  EXPECT_EQ(none, (json{{"nodeCount", 1},
                        {"errorThreshold", -1},
                        {"allowedFailedCount", -1},
                        {"allowedFailedPercent", 100}}));
  for (const auto& [name, value] : none.items()) {
    const Status right = fields::CheckForRunningJob(name, value);
    EXPECT_TRUE(right.ok()) << right.error().message;
    EXPECT_FALSE(fields::CheckForRunningJob(name, "5").ok()) << name;
    EXPECT_FALSE(fields::CheckForRunningJob(name, nullptr).ok()) << name;
    EXPECT_FALSE(fields::CheckForRunningJob(name, json::object()).ok()) << name;
  }
  spec.error_threshold = 5;
  spec.allowed_failed_percent = 12.5;
  EXPECT_EQ(fields::FieldsForRunningJob(spec)["errorThreshold"], 5);
  EXPECT_EQ(fields::FieldsForRunningJob(spec)["allowedFailedPercent"], 12.5);
  EXPECT_EQ(fields::CheckForRunningJob("errorThreshold", -2).error().code, Code::kInvalid);
  EXPECT_THAT(fields::CheckForRunningJob("errorThreshold", -2).error().message,
              HasSubstr("errorThreshold"));
  for (const char* name : {"runMaxTry", "suspend", "entryScript", "other"}) {
    EXPECT_EQ(fields::CheckForRunningJob(name, 5).error().code, Code::kNotFound) << name;
  }
}

}  // namespace
}  // namespace parallelrun::api
