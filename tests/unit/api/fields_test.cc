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
#include "api/fields/made.h"
#include "api/fields/schema.h"
#include "api/fields/schema_yaml.h"
#include "api/fields/tables.h"
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
                                          {"docs/fields.md", "fields"},
                                          {"docs/job.md", "rows of "}}) {
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

// Which table it stands in is said on the page: a new field would be in none. What the kinds of an
// input have alike stands there once.
TEST(Fields, EachHasItsRowAmongOthersInTheDocument) {
  const std::string page = Committed("docs/job.md");
  const std::regex kind(R"((\| `inputs\[\]\.)[A-Za-z]+\.)");
  fields::EachField([&](const std::string& path, const fields::Field& field, const fields::Field&) {
    if (!field.write || path == "spec.coordinator") return;  // Kubernetes'; in parts
    const std::string row = "| `" + path.substr(std::string("spec.").size()) + "` |";
    EXPECT_TRUE(page.find(row) != std::string::npos ||
                page.find(std::regex_replace(row, kind, "$1*.")) != std::string::npos)
        << path << ": name it in a mark of docs/job.md, then run script/fields";
  });
}

TEST(Fields, ATableHasTheRowsThatAreAskedForAndWhatLiesBelow) {
  const auto table = fields::RowsOf("nodeCount, output.order,environment.image , logs");
  ASSERT_TRUE(table.ok()) << table.error().message;
  EXPECT_EQ(
      *table,
      "| field | type | default | where | |\n|---|---|---|---|---|\n"
      "| `nodeCount` | integer, at least 0 | 1 | cluster | Nodes (pods) that work on the job. "
      "May change while it runs, as by `kubectl scale`. |\n"
      "| `output.order` | one of MiniBatch or Completion | MiniBatch | local | MiniBatch: the "
      "order of the input. Completion: the order in which mini-batches ended. |\n"
      "| `environment.image` | text, at most 1,024 characters | required in a cluster | "
      "cluster | Any image with python3 (3.8 or newer), and pandas if the input is tabular. "
      "|\n"
      "| `logs` | object |  | local | Where the log tree goes; NAME/logs on the output's "
      "volume if not given. |\n"
      "| `logs.volume` | text, at most 63 characters | the output's | local | One of "
      "spec.volumes. |\n"
      "| `logs.store` | text, at most 63 characters | none | local | In place of a volume: one of "
      "spec.stores. Each run of the job has a prefix of its own there, below path. |\n"
      "| `logs.path` | path, at most 1,024 characters | NAME/logs | local | Folder, relative "
      "to the volume, or prefix of keys below the store's URL. |\n");
  EXPECT_EQ(fields::RowsOf("nodeCount, node").error().code, Code::kNotFound);
}

TEST(Fields, ATableSaysOnceWhatTheKindsOfAnInputHaveAlike) {
  const auto table = fields::RowsOf("inputs");
  ASSERT_TRUE(table.ok()) << table.error().message;
  for (const char* once : {"| `inputs[].*.path` |", "| `inputs[].*.exclude` |",
                           "| `inputs[].files.access` |", "| `inputs[].tabular.header` |"}) {
    const size_t at = table->find(once);
    ASSERT_NE(at, std::string::npos) << once;
    EXPECT_EQ(table->find(once, at + 1), std::string::npos) << once;
  }
  for (const char* other : {"files.path", "tabular.path", "jsonLines.path"}) {
    EXPECT_EQ(table->find(other), std::string::npos) << other;
  }
  // What a pod has is not told again.
  EXPECT_EQ(fields::RowsOf("volumes")->find("volumes[]"), std::string::npos);
}

TEST(Fields, AMadePartThatNobodyMakesOrThatHasNoEndIsRefused) {
  const std::string begin = "a\n# BEGIN made by script/fields: ";
  EXPECT_FALSE(fields::WithMadeParts(begin + "toys\n# END made\n").ok());
  EXPECT_FALSE(fields::WithMadeParts(begin + "rows of toys\n# END made\n").ok());
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

TEST(FieldsTold, NodesHearOfTheirsWhateverTheyAre) {
  JobSpec spec;
  EXPECT_EQ(fields::FieldsForNodes(spec), (json{{"entryScript", ""},
                                                {"image", ""},
                                                {"python", "python3"},
                                                {"outputAction", "AppendRow"},
                                                {"loggingLevel", "INFO"},
                                                {"runTimeoutSeconds", 60},
                                                {"overheadTimeoutSeconds", 600},
                                                {"shutdownTimeoutSeconds", 300},
                                                {"processesPerGpu", 1},
                                                {"resourceMonitorIntervalSeconds", 600},
                                                {"cacheBytes", uint64_t{10} << 30}}));
  spec.entry_script = "score.py";
  spec.environment.image = "images.example/i:1";
  spec.output.action = OutputAction::kSummaryOnly;
  spec.cache.size = uint64_t{1} << 60;  // no double holds what is beside it
  const json told = fields::FieldsForNodes(spec);
  EXPECT_EQ(told["entryScript"], "score.py");
  EXPECT_EQ(told["image"], "images.example/i:1");
  EXPECT_EQ(told["outputAction"], "SummaryOnly");
  EXPECT_EQ(told["cacheBytes"].get<uint64_t>(), uint64_t{1} << 60);
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
  spec.error_threshold = 7;
  EXPECT_THAT(
      fields::FieldsOnlyForClusters(spec),
      ::testing::UnorderedElementsAre("environment.image", "coordinator.podTemplate", "suspend",
                                      "sharedMemory", "ttlSecondsAfterFinished"));
  // What is filled in is nobody's word.
  Job job;
  FillDefaults(job, Target::kLocal);
  EXPECT_THAT(fields::FieldsOnlyForClusters(job.spec), ::testing::IsEmpty());
  job.spec.coordinator.resources["limits"]["cpu"] = "2";
  EXPECT_THAT(fields::FieldsOnlyForClusters(job.spec),
              ::testing::ElementsAre("coordinator.resources"));
}

// Marked so in the table, at any depth: others than the operator act on them in a cluster, or on
// what they lie in here.
TEST(FieldsTold, WhatChangesNothingInALocalRunIsOnlyForClusters) {
  const auto of = [](const auto& change) {
    JobSpec spec;
    change(spec);
    return fields::FieldsOnlyForClusters(spec);
  };
  using ::testing::ElementsAre;
  EXPECT_THAT(of([](JobSpec& spec) { spec.node_count = 7; }), ElementsAre("nodeCount"));
  EXPECT_THAT(of([](JobSpec& spec) { spec.cancel = true; }), ElementsAre("cancel"));
  EXPECT_THAT(of([](JobSpec& spec) { spec.state.ephemeral = true; }),
              ElementsAre("state.ephemeral"));
  EXPECT_THAT(of([](JobSpec& spec) { spec.output.mount_on_nodes = false; }),
              ElementsAre("output.mountOnNodes"));
  EXPECT_THAT(of([](JobSpec& spec) { spec.output.file_name = "scores.csv"; }),
              ::testing::IsEmpty());
  // Of a list once, whichever of its items say it.
  EXPECT_THAT(of([](JobSpec& spec) {
                spec.side_inputs.resize(3);
                spec.side_inputs[1].mount_path = "/models";
                spec.side_inputs[2].mount_path = "/words";
              }),
              ElementsAre("sideInputs[].mountPath"));
  // The whole in place of its parts.
  EXPECT_THAT(of([](JobSpec& spec) {
                spec.stores.resize(2);
                spec.stores[0].region = "eu-west-1";
                spec.stores[1].credentials.secret_name = "reader";
                spec.stores[1].credentials.session_token = "token";
              }),
              ElementsAre("stores[].credentials"));
}

TEST(FieldsTold, AClaimOfTheStateIsOnlyForClusters) {
  Job job;
  job.spec.output.store = "results";
  FillDefaults(job, Target::kLocal);
  EXPECT_THAT(fields::FieldsOnlyForClusters(job.spec), ::testing::IsEmpty());
  job.spec.state.claim_template["spec"]["resources"]["requests"]["storage"] = "20Gi";
  EXPECT_THAT(fields::FieldsOnlyForClusters(job.spec),
              ::testing::ElementsAre("state.volumeClaimTemplate"));
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
  EXPECT_EQ(none.dump(), R"({"allowedFailedCount":-1,"allowedFailedPercent":100,)"
                         R"("errorThreshold":-1,"nodeCount":1})");
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
