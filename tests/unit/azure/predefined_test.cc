// Predefined program arguments (docs/job.md), and the flags that Azure ML reserves.
#include "azure/predefined.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "api/document.h"
#include "api/fields/sections.h"
#include "api/to_json.h"
#include "azure/read_job.h"
#include "azure/worker_flags.h"

namespace parallelrun::azure {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

api::ParsedJob Read(const std::vector<std::string>& arguments, const json& more = json::object()) {
  json job = {{"apiVersion", api::kApiVersion},
              {"kind", api::kJobKind},
              {"metadata", {{"name", "digits"}}},
              {"spec",
               {{"entryScript", "score.py"},
                {"volumes",
                 {{{"name", "data"}, {"hostPath", {{"path", "/data"}}}},
                  {{"name", "out"}, {"hostPath", {{"path", "/out"}}}}}},
                {"inputs", {{{"name", "images"}, {"files", {{"volume", "data"}}}}}},
                {"output", {{"volume", "out"}}}}}};
  job["spec"]["arguments"] = arguments;
  job["spec"].merge_patch(more);
  return azure::ReadJob(job, api::Target::kLocal);
}

WorkerFlags FlagsOf(const api::ParsedJob& parsed) {
  return WorkerFlagsOf(parsed.job.spec.arguments);
}

std::string Text(const api::ParsedJob& parsed) {
  std::string text;
  for (const api::Problem& problem : parsed.problems)
    text += api::FormatProblem(problem, "") + "\n";
  for (const std::string& note : parsed.notes) text += "note: " + note + "\n";
  return text;
}

const json kJsonLines = {{"inputs", {{{"name", "prompts"}, {"jsonLines", {{"volume", "data"}}}}}}};

TEST(Predefined, EachSetsItsField) {
  const struct {
    std::vector<std::string> arguments;
    const char* spec;
  } cases[] = {
      {{"--error_threshold", "5"}, R"({"errorThreshold": 5})"},
      {{"--error_threshold=7"}, R"({"errorThreshold": 7})"},
      {{"--error_threshold", "-1"}, R"({"errorThreshold": -1})"},
      {{"--error_threshold", "1", "--error_threshold", "2"}, R"({"errorThreshold": 2})"},
      {{"--allowed_failed_percent", "2.5"}, R"({"allowedFailedPercent": 2.5})"},
      {{"--task_overhead_timeout", "1200"}, R"({"taskOverheadTimeoutSeconds": 1200})"},
      {{"--progress_update_timeout", "3600"}, R"({"progressUpdateTimeoutSeconds": 3600})"},
      {{"--first_task_creation_timeout", "518400"},
       R"({"firstTaskCreationTimeoutSeconds": 518400})"},
      {{"--resource_monitor_interval", "0"}, R"({"resourceMonitorIntervalSeconds": 0})"},
      {{"--profiling_module", "cProfile"}, R"({"profiling": "cProfile"})"},
      {{"--process_count_per_node", "3"}, R"({"processCountPerNode": 3})"},
      {{"--rank_mini_batch_count", "12"}, R"({"rankMiniBatchCount": 12})"},
      {{"--rank_mini_batch_count", "-2"}, R"({"rankMiniBatchCount": 0})"},
      {{"--mine", "a", "--", "--error_threshold", "5"}, R"({"errorThreshold": null})"},
      {{"--mine", "-1", "--error_threshold", "5"}, R"({"errorThreshold": 5})"},
  };
  for (const auto& one : cases) {
    SCOPED_TRACE(json(one.arguments).dump());
    const api::ParsedJob parsed = Read(one.arguments);
    EXPECT_EQ(Text(parsed), "");
    json spec = api::ToJson(parsed.job)["spec"];
    const json before = spec;
    spec.merge_patch(json::parse(one.spec));
    EXPECT_EQ(spec, before);
    EXPECT_EQ(parsed.job.spec.arguments, one.arguments);
    // A second reading of the canonical form says nothing new.
    const api::ParsedJob again = azure::ReadJob(api::ToJson(parsed.job), api::Target::kLocal);
    EXPECT_EQ(Text(again), "");
    EXPECT_EQ(again.job, parsed.job);
  }
}

TEST(Predefined, WorkerFlagsFollowFromTheArguments) {
  EXPECT_EQ(FlagsOf(Read({})), WorkerFlags{});
  const api::ParsedJob parsed =
      Read({"--append_row_dataframe_header", "True", "--append_row_safe_output=true",
            "--amlbi_dataframe_mixed_types", "TRUE", "--amlbi_async_mode", "1",
            "--amlbi_pf_enabled", "True", "--amlbi_pf_run_mode", "component"});
  EXPECT_EQ(Text(parsed), "");
  const WorkerFlags all{.append_row_dataframe_header = true,
                        .append_row_safe_output = true,
                        .mixed_types = true,
                        .async_mode = true,
                        .component_mode = true};
  EXPECT_EQ(FlagsOf(parsed), all);
  EXPECT_EQ(azure::ReadJob(api::ToJson(parsed.job), api::Target::kLocal).job, parsed.job);
  EXPECT_EQ(FlagsOf(Read({"--append_row_dataframe_header", "False", "--amlbi_pf_run_mode",
                          "component", "--amlbi_pf_enabled", "false"})),
            WorkerFlags{});
}

TEST(Predefined, EachFieldIsInTheTable) {
  for (const std::string& name : PredefinedFields()) {
    const api::fields::FieldList& all = api::fields::SpecFields();
    const auto field = std::find_if(all.begin(), all.end(), [&](const api::fields::Field& known) {
      return known.name == name;
    });
    ASSERT_NE(field, all.end()) << name;
    // What is there wins over the argument, so the API server must not write the default.
    EXPECT_FALSE(field->server_fills) << name;
  }
}

TEST(Predefined, WrongValuesAreProblemsAtTheirItem) {
  const struct {
    std::vector<std::string> arguments;
    const char* says;
  } cases[] = {
      {{"--mine", "--error_threshold", "many"},
       "spec.arguments[2]: --error_threshold: \"many\" is not an integer: must be at least -1"},
      {{"--error_threshold=-2"}, "spec.arguments[0]: --error_threshold: -2 is out of range"},
      {{"--error_threshold", "99999999999999999999"}, "is out of range"},
      {{"--error_threshold", "5.0"}, "is not an integer"},
      {{"--error_threshold"}, "spec.arguments[0]: --error_threshold: has no value"},
      {{"--error_threshold", "--mine"}, "spec.arguments[0]: --error_threshold: has no value"},
      {{"--task_overhead_timeout", "0"}, "must be from 1 to 259200"},
      {{"--progress_update_timeout", "259201"}, "must be from 1 to 259200"},
      {{"--allowed_failed_percent", "101"}, "must be from 0 to 100"},
      {{"--allowed_failed_percent", "nan"}, "must be from 0 to 100"},
      {{"--resource_monitor_interval", "-1"}, "must be at least 0"},
      {{"--profiling_module", "yappi"}, "write cProfile or profile"},
      {{"--append_row_dataframe_header", "maybe"}, "write True or False"},
      {{"--process_count_per_node", "0"}, "must be at least 1"},
  };
  for (const auto& one : cases) {
    SCOPED_TRACE(json(one.arguments).dump());
    const api::ParsedJob parsed = Read(one.arguments);
    EXPECT_FALSE(parsed.ok());
    EXPECT_EQ(parsed.problems.size(), 1U) << Text(parsed);
    EXPECT_THAT(Text(parsed), HasSubstr(one.says));
  }
}

TEST(Predefined, TheFieldWinsWithAWarning) {
  const api::ParsedJob parsed = Read({"--error_threshold", "5"}, {{"errorThreshold", -1}});
  EXPECT_TRUE(parsed.ok());
  EXPECT_EQ(parsed.job.spec.error_threshold, -1);
  EXPECT_THAT(Text(parsed), HasSubstr("warning: spec.arguments[1]: --error_threshold 5 has no "
                                      "effect beside spec.errorThreshold, which wins"));
  EXPECT_EQ(Text(Read({"--error_threshold", "5"}, {{"errorThreshold", 5}})), "");
}

TEST(Predefined, ANullIsNoField) {
  // As text: a merge patch would take it away.
  api::Document document = api::ReadDocument(R"(
apiVersion: parallelrun.dev/v1alpha1
kind: ParallelRunJob
metadata: {name: digits}
spec:
  errorThreshold: null
  nodeCount: 2
  arguments:
    - --error_threshold
    - "5"
)");
  std::vector<std::string> notes;
  api::Problems problems;
  ApplyPredefined(document.job, problems, notes);
  const api::Node* const set = document.job.Find("spec")->Find("errorThreshold");
  ASSERT_NE(set, nullptr);
  EXPECT_EQ(set->integer, 5);
  // What is wrong with it is told where it was written.
  EXPECT_EQ(api::Locate(document.job, "spec.errorThreshold").line, 10);
  EXPECT_TRUE(problems.empty());
}

TEST(Predefined, OnlyAListOfArgumentsIsRead) {
  for (const char* text : {"spec: 1", "spec: {arguments: 1}", "[]", "spec: {}",
                           "spec: {arguments: [1, null, [a], {b: c}]}"}) {
    api::Node job = api::ReadForeignDocument(text).job;
    const json before = job.ToJson();
    api::Problems problems;
    std::vector<std::string> notes;
    ApplyPredefined(job, problems, notes);
    EXPECT_EQ(job.ToJson(), before) << text;
    EXPECT_TRUE(problems.empty()) << text;
  }
}

TEST(Predefined, AbbreviationsAsArgparseTakesThem) {
  const api::ParsedJob parsed = Read({"--resource_monitor_interva", "20"});
  EXPECT_EQ(parsed.job.spec.resource_monitor_interval, seconds(20));
  EXPECT_THAT(Text(parsed), HasSubstr("warning: spec.arguments[1]: --resource_monitor_interva is "
                                      "taken for --resource_monitor_interval"));
  // Ambiguous, and one whose value cannot be meant: the script's own.
  EXPECT_EQ(Text(Read({"--pro", "3"})), "");
  EXPECT_EQ(Text(Read({"--append", "True"})), "");
  const api::ParsedJob own = Read({"--task", "segmentation"});
  EXPECT_TRUE(own.ok());
  EXPECT_THAT(Text(own), HasSubstr("--task is taken for the script's own"));
}

TEST(Predefined, UnknownInternalFlagsAreNamed) {
  const api::ParsedJob parsed = Read({"--amlbi_turbo", "1"});
  EXPECT_TRUE(parsed.ok());
  EXPECT_THAT(Text(parsed), HasSubstr("warning: spec.arguments[0]: --amlbi_turbo is not known"));
  EXPECT_THAT(Text(Read({"--resume_from", "run1"})),
              HasSubstr("write spec.output.ifExists: Resume"));
}

TEST(Predefined, FlagsWithoutMeaningGetOneNote) {
  const api::ParsedJob parsed =
      Read({"--copy_logs_to_parent", "True", "--push_metrics_to_parent", "True"});
  EXPECT_EQ(Text(parsed),
            "note: spec.arguments: --copy_logs_to_parent, --push_metrics_to_parent have no meaning "
            "here and change nothing; the script still gets them\n");
}

TEST(Predefined, ReservedNamesAndTheLeadingDash) {
  const api::ParsedJob parsed = Read({"model.pkl", "--mini_batch_size", "4", "--output", "x"});
  EXPECT_TRUE(parsed.ok());
  EXPECT_EQ(parsed.problems.size(), 2U) << Text(parsed);
  EXPECT_THAT(Text(parsed), HasSubstr("spec.arguments[0]: \"model.pkl\" does not start with"));
  EXPECT_THAT(Text(parsed), HasSubstr("spec.arguments[1]: --mini_batch_size sets nothing for the "
                                      "job: write spec.miniBatchSize"));
}

TEST(Predefined, JsonLines) {
  const std::vector<std::string> rows = {"--amlbi_file_format", "jsonl", "--amlbi_mini_batch_rows",
                                         "3"};
  const api::ParsedJob parsed = Read(rows, kJsonLines);
  EXPECT_EQ(Text(parsed), "");
  EXPECT_EQ(parsed.job.spec.mini_batch_size, 3U);
  EXPECT_EQ(azure::ReadJob(api::ToJson(parsed.job), api::Target::kLocal).job, parsed.job);

  json sized = kJsonLines;
  sized["miniBatchSize"] = 20;
  EXPECT_EQ(Read(rows, sized).job.spec.mini_batch_size, 20U);
  EXPECT_THAT(Text(Read(rows, sized)), HasSubstr("which wins"));
  EXPECT_EQ(Text(Read({"--amlbi_mini_batch_rows", "1"}, sized)), "");

  EXPECT_THAT(Text(Read(rows)),
              HasSubstr("warning: spec.arguments[1]: --amlbi_file_format asks for JSON lines"));
  EXPECT_THAT(Text(Read({"--amlbi_file_format", "csv"})), HasSubstr("csv is not known here"));
  EXPECT_THAT(Text(Read({"--amlbi_pf_run_mode", "batch"})), HasSubstr("known is component"));
}

}  // namespace
}  // namespace parallelrun::azure
