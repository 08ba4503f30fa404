// tests/unit/data/azure/*.yml through `parallelrun convert`: each sample's job and what it loses.
#include "azure/convert/convert.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "api/document.h"
#include "api/to_json.h"
#include "azure/fill_in.h"
#include "azure/read_job.h"
#include "tests/support/source_folder.h"

namespace parallelrun::azure {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

std::string AzureFolder() { return SourceFolder() + "tests/unit/data/azure/"; }

std::string Sample(const std::string& file) {
  std::ifstream in(AzureFolder() + file);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// As ConvertFile does it for a file of the folder.
Result<std::string> ReadSample(const std::string& file) {
  if (!std::filesystem::is_regular_file(AzureFolder() + file)) {
    return Error{Code::kNotFound, file + " is not there"};
  }
  return Sample(file);
}

Conversion Convert(const std::string& file) {
  return ConvertAzure(Sample(file),
                      {.file = file, .step = "", .code_prefix = "", .read = ReadSample});
}

std::string Text(const api::Problems& problems) {
  std::string text;
  for (const api::Problem& problem : problems)
    text += api::FormatProblem(problem, "azure.yml") + "\n";
  return text;
}

struct Case {
  const char* file;
  const char* spec;                 // merged into the job's spec, changes nothing
  std::vector<const char*> losses;  // "line: field: what", pieces of the report
};

const std::vector<Case>& Cases() {
  static const std::vector<Case> cases = {
      {"run_config.yml",
       R"json({"entryScript": "score.py", "code": {"path": "scoring"},
           "environment": {"image": "images.example/digits:1",
                           "env": [{"name": "MODEL", "value": "small"}]},
           "inputs": [{"name": "input", "files": {"volume": "input", "path": "."}}],
           "output": {"action": "AppendRow", "fileName": "digits.txt"},
           "miniBatchSize": "5", "errorThreshold": 10, "allowedFailedPercent": 12.5,
           "nodeCount": 2, "processCountPerNode": 3, "runInvocationTimeoutSeconds": 120,
           "runMaxTry": 4, "loggingLevel": "DEBUG"})json",
       {":1: warning: parallel_run_config: inputs, side inputs, output and arguments",
        ":6: warning: parallel_run_config.compute_target_name: "}},
      {"run_config_tabular.yml",
       R"json({"entryScript": "steps/iris.py", "code": {"path": "."},
           "environment": {"image": "registry.example/fill-in:1"},
           "inputs": [{"name": "input", "tabular": {"volume": "input", "format": "CSV"},
                       "partitionFormat": "{store}/{brand}/{}"}],
           "partitionKeys": ["store", "brand"], "output": {"action": "SummaryOnly"},
           "errorThreshold": -1})json",
       {":2: warning: parallel_run_config.environment: \"azureml:tables:3\" is registered",
        "parallel_run_config.partition_keys: where the keys stand",
        ":8: warning: parallel_run_config.allow_reuse: "}},
      {"parallel_component.yml",
       R"json({"entryScript": "score.py", "code": {"path": "src"},
           "arguments": ["--model", "$(sideInputs.label_model)", "--threshold", "0.5", "--title",
                         "two words", "--error_threshold", "5", "--resource_monitor_interva",
                         "20", "--summary", "$(output)/summary.json", "--plots", "$(output)",
                         "--rows", "$(output)/parallel_run_step.txt"],
           "inputs": [{"name": "images", "files": {"volume": "images"}}],
           "sideInputs": [{"name": "label_model", "volume": "label-model"}],
           "output": {"action": "AppendRow", "fileName": "parallel_run_step.txt"},
           "miniBatchSize": "10", "allowedFailedCount": 5, "processCountPerNode": 2,
           "runMaxTry": 3, "runInvocationTimeoutSeconds": 60, "sharedMemory": "2147483648",
           "errorThreshold": 5, "resourceMonitorIntervalSeconds": 20, "nodeCount": 1})json",
       {":7: warning: tags: ", ":24: warning: resources.instance_count: -1",
        ":17: warning: outputs.summary: \"azureml://datastores/main/paths/out/summary.json\" is a "
        "place in the cloud",
        "outputs.summary: a job has one output folder: this output is the file summary.json in it",
        "resources.instance_type: ", "task.environment.conda_file: ",
        "task.program_arguments: \"$[[--notes ${{inputs.notes}}]]\" has no value"}},
      {"pipeline_job.yml",
       R"json({"entryScript": "forecasting/main.py",
           "arguments": ["--bands", "4", "--prepared", "$(sideInputs.prepared)"],
           "environment": {"env": [{"name": "OMP_NUM_THREADS", "value": "1"}]},
           "inputs": [{"name": "sales", "tabular": {"volume": "sales", "path": "sales/2024"},
                       "partitionFormat": "{Store}/{Brand}/{}"}],
           "sideInputs": [{"name": "prepared", "path": "."}],
           "partitionKeys": ["Store", "Brand"], "errorThreshold": -1,
           "output": {"action": "AppendRow", "fileName": "forecast.csv"}})json",
       {":4: warning: settings.default_compute: ", ":14: warning: jobs.prepare: other steps",
        "jobs.forecast-all.outputs.rows: \"azureml://datastores/workspaceblobstore/paths/out/"
        "forecast.c...\" is a place in the cloud",
        ":19: warning: jobs.forecast-all.compute: ", "jobs.forecast-all.identity: ",
        "jobs.forecast-all.inputs.prepared: \"${{parent.jobs.prepare.outputs.folder}}\" is the "
        "output of another step"}},
      {"json_lines.yml",
       R"json({"entryScript": "answers.main", "code": {"path": "."},
           "inputs": [{"name": "prompts",
                       "jsonLines": {"volume": "prompts", "path": "prompts/all.jsonl"}}],
           "arguments": ["--amlbi_pf_enabled", "True", "--amlbi_pf_run_mode", "component",
                         "--amlbi_file_format", "jsonl", "--amlbi_mini_batch_rows", "1", "--to",
                         "$(output)/answers", "--stats", "$(output)/stats",
                         "--copy_logs_to_parent", "True"],
           "output": {"action": "SummaryOnly"}, "miniBatchSize": "20", "nodeCount": 2})json",
       {":10: warning: mystery: has no counterpart", ":5: warning: outputs.answers: a job has one",
        "task.code: \"git+https://code.example/answers\" is not a folder"}},
      {"sql_input.yml",
       R"json({"inputs": [{"name": "rows", "tabular": {"volume": "rows", "path": "rows"}}],
           "output": {"action": "SummaryOnly"}})json",
       {":3: warning: inputs.rows: \"azureml://datastores/azuresqldb/paths/rows\" looks like SQL "
        "data, which has no counterpart: export it to parquet files first"}},
      {"deployment.yml",
       R"json({"entryScript": "batch_driver.py", "code": {"path": "code"},
           "environment": {"image": "images.example/torch:1",
                           "env": [{"name": "AZUREML_BI_TEXT_COLUMN", "value": "words"}]},
           "sideInputs": [{"name": "model", "volume": "model"}],
           "output": {"action": "AppendRow", "fileName": "predictions.csv"},
           "miniBatchSize": "4", "processCountPerNode": 2, "runMaxTry": 2,
           "runInvocationTimeoutSeconds": 300, "errorThreshold": 7, "nodeCount": 2,
           "loggingLevel": "INFO"})json",
       {":3: warning: endpoint_name: ", ":5: warning: model: ", ":8: warning: compute: ",
        ":7: warning: environment.conda_file: "}},
      {"deployment_defaults.yml",
       R"json({"entryScript": "FILL_IN.py", "output": {"fileName": "predictions.csv"},
           "miniBatchSize": "10", "processCountPerNode": 1, "runMaxTry": 4,
           "runInvocationTimeoutSeconds": 30, "errorThreshold": -1,
           "sideInputs": [{"name": "model"}]})json",
       {"code_configuration: there is no scoring script", "environment: no environment is named"}},
      {"deployment_mlflow.yml",
       R"json({"entryScript": "FILL_IN.py", "nodeCount": 2, "miniBatchSize": "2",
           "sideInputs": [{"name": "model"}]})json",
       {"code_configuration: there is no scoring script"}},
      {"mltable.yml",
       R"json({"inputs": [
           {"name": "table", "tabular": {"volume": "table", "path": ".", "pattern": "iris.csv",
             "format": "CSV", "delimiter": ";", "encoding": "cp1252", "header": "None",
             "dtypes": {"zip": "text", "shop": "text"}}},
           {"name": "table-2", "tabular": {"volume": "table", "path": ".",
             "pattern": "more/*.csv", "delimiter": ";"}}],
           "miniBatchSize": "10240"})json",
       {":7: warning: jobs.predict.inputs.table.MLTable.filter: tables are read as they are: do it "
        "at the beginning of run()",
        "MLTable.convert_column_types: columns are integer, number, boolean or text"}},
      {"mltable_partitions.yml",
       R"json({"inputs": [{"name": "sales", "partitionFormat": "region={region}/{}",
             "tabular": {"volume": "sales", "path": "2024", "pattern": "region=*/*.parquet",
                         "format": "Parquet"}}],
           "partitionKeys": ["region"]})json",
       {"inputs.sales.MLTable.read_parquet.include_path_column: a row has no column with"}},
      {"mltable_files.yml",
       R"json({"inputs": [{"name": "images", "files": {"volume": "images", "path": ".",
                                                   "exclude": ["**/MLTable"]}}],
           "miniBatchSize": "5"})json",
       {}},
      {"component_step.yml",
       R"json({"entryScript": "digits.py", "code": {"path": "components/src"},
           "environment": {"image": "images.example/digits:3",
                           "env": [{"name": "MODEL", "value": "small"},
                                   {"name": "LEVEL", "value": "high"}]},
           "arguments": ["--model", "$(sideInputs.score_model)", "--threshold", "0.8"],
           "inputs": [{"name": "images", "files": {"volume": "images", "path": "digits"}}],
           "sideInputs": [{"name": "score_model", "volume": "score-model", "path": "digits.pkl"}],
           "output": {"action": "AppendRow", "fileName": "digits.csv"},
           "miniBatchSize": "5", "allowedFailedCount": 10, "nodeCount": 3,
           "processCountPerNode": 2, "runMaxTry": 6, "runInvocationTimeoutSeconds": 60})json",
       {":9: warning: jobs.predict.inputs.labels: is optional and has no value here, and is left"}},
      {"files_and_options.yml",
       R"json({"entryScript": "FILL_IN.py",
           "arguments": ["--weights", "$(sideInputs.weights)", "--vocabulary",
                         "$(sideInputs.registered)", "--stop", "$(sideInputs.stored)"],
           "inputs": [{"name": "images", "files": {"path": "."}}],
           "sideInputs": [{"name": "weights", "path": "weights.bin"},
                          {"name": "registered", "path": "FILL_IN"},
                          {"name": "stored", "path": "lists/stop.txt"}]})json",
       {"task.code: there is no entry script: fill in spec.entryScript",
        "inputs.extra: is optional and has no value here, and is left out"}},
  };
  return cases;
}

// `wanted` laid over `job`, lists item by item: equal to `job` when all of it is there.
json Overlaid(json job, const json& wanted) {
  if (wanted.is_object()) {
    for (const auto& [key, value] : wanted.items()) job[key] = Overlaid(job[key], value);
    return job;
  }
  if (wanted.is_array() && job.is_array() && job.size() == wanted.size()) {
    for (size_t i = 0; i < wanted.size(); ++i) job[i] = Overlaid(job[i], wanted[i]);
    return job;
  }
  return wanted;
}

TEST(Convert, EverySampleBecomesAJobThatReads) {
  for (const Case& one : Cases()) {
    SCOPED_TRACE(one.file);
    const Conversion conversion = Convert(one.file);
    ASSERT_FALSE(api::HasErrors(conversion.problems)) << Text(conversion.problems);
    const api::ParsedJob parsed = azure::ReadJob(conversion.yaml, {}, api::Target::kLocal);
    ASSERT_TRUE(parsed.ok()) << Text(parsed.problems) << conversion.yaml;
    const json spec = api::ToJson(parsed.job)["spec"];
    EXPECT_EQ(Overlaid(spec, json::parse(one.spec)), spec) << conversion.yaml;
    const std::string report = Text(conversion.problems);
    for (const char* loss : one.losses) EXPECT_THAT(report, HasSubstr(loss));
  }
}

// A cluster lacks only the code, which the command packs.
TEST(Convert, OnlyTheCodeKeepsTheJobFromACluster) {
  for (const Case& one : Cases()) {
    SCOPED_TRACE(one.file);
    const api::ParsedJob parsed = azure::ReadJob(Convert(one.file).yaml, {}, api::Target::kCluster);
    for (const api::Problem& problem : parsed.problems) {
      if (problem.severity == api::Problem::Severity::kWarning) continue;
      EXPECT_EQ(problem.field, "spec.code.path") << problem.what;
    }
  }
}

TEST(Convert, TheTableNamesEverySample) {
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(AzureFolder())) {
    files += entry.path().extension() == ".yml" ? 1U : 0U;
  }
  EXPECT_EQ(files, Cases().size());
}

TEST(Convert, TheFileListsWhatIsLost) {
  const Conversion conversion = Convert("sql_input.yml");
  EXPECT_THAT(conversion.yaml, HasSubstr("# Not carried over:\n#   sql_input.yml:"));
  EXPECT_THAT(conversion.yaml, HasSubstr("export it to parquet files first"));
  EXPECT_THAT(conversion.yaml, HasSubstr("fill-in-rows, readOnly: true}}  # FILL IN the claim"));
  EXPECT_THAT(
      Convert("pipeline_job.yml").yaml,
      HasSubstr("  # rows was azureml://datastores/workspaceblobstore/paths/out/forecast.csv\n"));
}

// Nobody's rows are those of the file that says where the rows are.
TEST(Convert, TheMLTableItselfIsNeverData) {
  EXPECT_THAT(Convert("mltable.yml").yaml, Not(HasSubstr("exclude")));  // *.csv leaves it out
  for (const char* path : {"no-table-here", "azureml:registered:1", "../out/of/here"}) {
    SCOPED_TRACE(path);
    const Conversion conversion =
        ConvertAzure("type: parallel\ninputs: {a: {type: mltable, path: \"" + std::string(path) +
                         "\", mode: direct}}\ninput_data: ${{inputs.a}}\n"
                         "task: {code: ., entry_script: s.py, environment: {image: \"i:1\"}}\n",
                     {.file = "a.yml", .step = "", .code_prefix = "", .read = ReadSample});
    const api::ParsedJob parsed = azure::ReadJob(conversion.yaml, {}, api::Target::kLocal);
    ASSERT_TRUE(parsed.ok()) << Text(parsed.problems) << conversion.yaml;
    EXPECT_EQ(parsed.job.spec.inputs[0].exclude, std::vector<std::string>{"**/MLTable"});
    EXPECT_THAT(Text(conversion.problems), HasSubstr("MLTable, which is not read"));
  }
}

// Its escapes may mean what no YAML file may hold as it is: the job was "not YAML".
TEST(Convert, WhatFilesHoldAsEscapesStaysThat) {
  const Conversion conversion = ConvertAzure(
      "type: parallel\ndescription: \"a\\x7F\\u0085b\"\n"
      "inputs: {a: {type: uri_folder, path: in}}\ninput_data: ${{inputs.a}}\n"
      "task: {code: ., entry_script: s.py, environment: {image: \"i:1\"},\n"
      "  program_arguments: \"--note a\\x7F!\"}\n",
      {.file = "a.yml", .step = "", .code_prefix = "", .read = ReadSample});
  const api::ParsedJob parsed = azure::ReadJob(conversion.yaml, {}, api::Target::kLocal);
  ASSERT_TRUE(parsed.ok()) << Text(parsed.problems) << conversion.yaml;
  EXPECT_EQ(parsed.job.spec.arguments, (std::vector<std::string>{"--note", "a\x7F!"}));
}

TEST(Convert, AnMLTableThatCannotBeReadIsALoss) {
  for (const char* table : {"- a\n", "", "paths: [\n", "a: 1\na: 2\n"}) {
    SCOPED_TRACE(table);
    const Conversion conversion = ConvertAzure(
        "type: parallel\ninputs: {a: {type: mltable, path: t}}\ninput_data: ${{inputs.a}}\n"
        "task: {code: ., entry_script: s.py, environment: {image: \"i:1\"}}\n",
        {.file = "a.yml", .step = "", .code_prefix = "", .read = [&](const std::string& path) {
           EXPECT_EQ(path, "t/MLTable");
           return Result<std::string>(std::string(table));
         }});
    EXPECT_THAT(Text(conversion.problems),
                HasSubstr(":2: warning: inputs.a: the MLTable cannot be read"));
    EXPECT_FALSE(conversion.yaml.empty());
  }
}

// The job was written with it, and then refused.
TEST(Convert, OfADelimitedTableOnlyWhatAJobTakesIsCarriedOver) {
  const struct {
    const char* options;
    const char* delimiter;
    const char* encoding;
    const char* loss;  // "": none
  } cases[] = {
      {"{delimiter: \"||||||||\"}", "||||||||", "utf-8", ""},
      {"{delimiter: '\\t'}", "\t", "utf-8", ""},
      {"{delimiter: \"\u00a7\", encoding: utf8bom}", "\u00a7", "utf-8-sig", ""},
      {"{delimiter: \"\u00a7\", encoding: ascii}", "\u00a7", "ascii", ""},
      {"{delimiter: \"|\", encoding: windows1252}", "|", "cp1252", ""},
      {"{delimiter: \"|||||||||\"}", "FILL_IN", "utf-8",
       "read_delimited.delimiter: \"|||||||||\" cannot separate columns here: write another one "
       "into the files, of 8 bytes at most"},
      {"{delimiter: \"\u20ac\u20ac\u20ac\"}", "FILL_IN", "utf-8", "cannot separate columns here"},
      {"{delimiter: '\",\"', encoding: latin1}", "FILL_IN", "latin-1",
       "cannot separate columns here"},
      {"{delimiter: \"|\\n\"}", "FILL_IN", "utf-8", "cannot separate columns here"},
      {"{delimiter: \"a\\0b\"}", "FILL_IN", "utf-8", "cannot separate columns here"},
      {"{delimiter: \"\u00a7\", encoding: windows1252}", "\u00a7", "utf-8",
       "has other bytes in \"cp1252\" than in utf-8, in which it is looked for: convert the files"},
      {"{encoding: UTF_16LE}", ",", "utf-8", "encoding: \"UTF_16LE\" cannot be cut into rows"},
  };
  for (const auto& one : cases) {
    SCOPED_TRACE(one.options);
    const std::string table = "paths: [{pattern: ./*.csv}]\ntransformations: [{read_delimited: " +
                              std::string(one.options) + "}]\n";
    const Conversion conversion = ConvertAzure(
        "type: parallel\ninputs: {a: {type: mltable, path: t}}\ninput_data: ${{inputs.a}}\n"
        "task: {code: ., entry_script: s.py, environment: {image: \"i:1\"}}\n",
        {.file = "a.yml", .step = "", .code_prefix = "", .read = [&](const std::string&) {
           return Result<std::string>(table);
         }});
    const api::ParsedJob parsed = azure::ReadJob(conversion.yaml, {}, api::Target::kLocal);
    ASSERT_TRUE(parsed.ok()) << Text(parsed.problems) << conversion.yaml;
    const api::TabularOptions& tabular = parsed.job.spec.inputs[0].tabular;
    EXPECT_EQ(tabular.delimiter, one.delimiter);
    EXPECT_EQ(tabular.encoding, one.encoding);
    const std::string report = Text(conversion.problems);
    if (std::string_view(one.loss).empty()) {
      EXPECT_THAT(report, Not(HasSubstr("read_delimited")));
    } else {
      EXPECT_THAT(report, HasSubstr(one.loss));
    }
    const bool open = tabular.delimiter == kFillIn;
    EXPECT_EQ(conversion.yaml.find("# FILL IN what separates the columns; ") != std::string::npos,
              open);
    std::vector<std::string> fields;
    for (const api::Problem& found : FindFillIns(api::ReadDocument(conversion.yaml).job)) {
      fields.push_back(found.field);
    }
    EXPECT_EQ(testing::Value(fields, testing::Contains("spec.inputs[0].tabular.delimiter")), open);
  }
}

TEST(Convert, PlacesOfAnMLTable) {
  const struct {
    const char* table;
    const char* path;
    const char* pattern;
    const char* format;
  } cases[] = {
      {"paths: [{folder: ./sub/}]", "sub", "", ""},
      {"paths: [{pattern: ./a/b/*.csv}]", ".", "a/b/*.csv", ""},
      {"paths: [{file: https://store.example/box/a/x.csv}]", "a/x.csv", "", ""},
      {"paths: [{pattern: azureml://datastores/s/paths/a/b/*.csv}]", "a/b", "*.csv", ""},
      {"paths: [{pattern: ../a/*.csv}]", ".", "a/*.csv", ""},
      {"paths: [{pattern: ./**/*.csv}]\n"
       "transformations: [{extract_columns_from_partition_format: {partition_format: "
       "'{Store}/{Brand}/{file_name}.{extension}'}}]",
       ".", "**/*.csv", "{Store}/{Brand}/{file_name}.{extension}"},
      {"paths: [{pattern: ./in/*/*.csv}]\n"
       "transformations: [{extract_columns_from_partition_format: '/{d}/{file}.csv'}]",
       "in", "*/*.csv", "{d}/{file}.csv"},
  };
  for (const auto& one : cases) {
    SCOPED_TRACE(one.table);
    const std::string table = std::string(one.table) + "\n";
    const Conversion conversion = ConvertAzure(
        "type: parallel\ninputs: {a: {type: mltable, path: t}}\ninput_data: ${{inputs.a}}\n"
        "task: {code: ., entry_script: s.py, environment: {image: \"i:1\"}}\n",
        {.file = "a.yml", .step = "", .code_prefix = "", .read = [&](const std::string&) {
           return Result<std::string>(table);
         }});
    const api::ParsedJob parsed = azure::ReadJob(conversion.yaml, {}, api::Target::kLocal);
    ASSERT_TRUE(parsed.ok()) << Text(parsed.problems) << conversion.yaml;
    const api::Input& input = parsed.job.spec.inputs[0];
    EXPECT_EQ(input.from.path, one.path);
    EXPECT_EQ(input.pattern, one.pattern);
    EXPECT_EQ(input.partition_format, one.format);
  }
}

TEST(Convert, AComponentOfARegistryIsNamedAsWhatItIs) {
  const struct {
    const char* component;
    const char* says;
  } cases[] = {
      {"azureml://registries/models/components/score_rows/versions/1.2",
       "is a component of the registry models, and not a file here: fetch it: az ml component "
       "show --name score_rows --version 1.2 --registry-name models > component.yml"},
      {"azureml:score_rows:3",
       "registered in a workspace, and not a file here: fetch it: az ml "
       "component show --name score_rows --version 3 > component.yml"},
      {"azureml:score_rows@latest", "show --name score_rows --label latest > component.yml"},
      {"components/absent.yml", "in a file of its own, which is not here"},
  };
  for (const auto& one : cases) {
    const Conversion conversion = ConvertAzure(
        "jobs:\n  a:\n    type: parallel\n    component: " + std::string(one.component) + "\n",
        {.file = "a.yml", .step = "", .code_prefix = "", .read = ReadSample});
    EXPECT_TRUE(conversion.yaml.empty());
    EXPECT_THAT(Text(conversion.problems), HasSubstr(":4: jobs.a.component: "));
    EXPECT_THAT(Text(conversion.problems), HasSubstr(one.says));
  }
}

TEST(Convert, WhatIsLeftToFillInIsFound) {
  const auto open = [](const std::string& yaml) {
    std::vector<std::string> fields;
    for (const api::Problem& problem : FindFillIns(api::ReadDocument(yaml).job)) {
      EXPECT_GT(problem.line, 0);
      fields.push_back(problem.field);
    }
    return fields;
  };
  const std::string yaml = Convert("files_and_options.yml").yaml;
  const std::vector<std::string> claims = {"spec.volumes[0].persistentVolumeClaim.claimName",
                                           "spec.volumes[1].persistentVolumeClaim.claimName",
                                           "spec.volumes[2].persistentVolumeClaim.claimName",
                                           "spec.volumes[3].persistentVolumeClaim.claimName",
                                           "spec.volumes[4].persistentVolumeClaim.claimName"};
  std::vector<std::string> all = claims;
  all.insert(all.begin(), "spec.entryScript");
  all.emplace_back("spec.sideInputs[1].path");
  EXPECT_EQ(open(yaml), all);
  EXPECT_THAT(open(Convert("deployment_mlflow.yml").yaml),
              testing::IsSupersetOf({"spec.entryScript", "spec.environment.image"}))
      << "nobody has written a script for an MLflow model";
  EXPECT_THAT(open("apiVersion: v1\nspec: {arguments: [--a, FILL_IN/x, fill-in-y, REFILL_IN, "
                   "FILL_INSIDE, --a=FILL_IN]}\n"),
              testing::ElementsAre("spec.arguments[1]", "spec.arguments[5]"));
  EXPECT_TRUE(open("a: [").empty());
}

constexpr char kOpenValues[] =
    "type: parallel\n"
    "inputs:\n"
    "  rows: {type: uri_folder, path: ./in}\n"
    "  workers: {type: integer}\n"
    "  limit: {type: integer}\n"
    "  note: {type: string, optional: true}\n"
    "  extra: {type: uri_folder, optional: true}\n"
    "input_data: ${{inputs.rows}}\n"
    "task:\n"
    "  code: .\n"
    "  entry_script: s.py\n"
    "  environment: {image: \"i:1\"}\n"
    "  program_arguments: >-\n"
    "    --process_count_per_node ${{inputs.workers}} --error_threshold=${{inputs.limit}}\n"
    "    --note 'a ${{inputs.note}} b' --extra ${{inputs.extra.path}} --again ${{inputs.workers}}\n"
    "    --plots ${{outputs.plots}} --odd ${{name of nothing}}\n";

// Such a job had no file at all: FILL_IN is not an integer.
TEST(Convert, AnOpenValueIsAPlaceholderWhateverItIsTheValueOf) {
  const Conversion conversion =
      ConvertAzure(kOpenValues, {.file = "a.yml", .step = "", .code_prefix = ""});
  const api::ParsedJob parsed = azure::ReadJob(conversion.yaml, {}, api::Target::kLocal);
  ASSERT_TRUE(parsed.ok()) << Text(parsed.problems) << conversion.yaml;
  EXPECT_EQ(
      parsed.job.spec.arguments,
      (std::vector<std::string>{"--process_count_per_node", "FILL_IN", "--error_threshold=FILL_IN",
                                "--note", "a FILL_IN b", "--extra", "FILL_IN", "--again", "FILL_IN",
                                "--plots", "FILL_IN", "--odd", "FILL_IN"}));
  EXPECT_FALSE(parsed.job.spec.process_count_per_node);
  EXPECT_FALSE(parsed.job.spec.error_threshold) << "the argument is to say it";
  const std::string report = Text(conversion.problems);
  // Once, with each place and what belongs there.
  EXPECT_THAT(report, HasSubstr("\"${{inputs.workers}}\" has no value here: replace FILL_IN in "
                                "spec.arguments[1], spec.arguments[8]: the integer workers\n"));
  EXPECT_EQ(report.find("inputs.workers"), report.rfind("inputs.workers"));
  EXPECT_THAT(report, HasSubstr("in spec.arguments[10]: $(output), or a path below it"));
  EXPECT_THAT(conversion.yaml, HasSubstr("- \"FILL_IN\"  # FILL IN: the integer workers\n"));
  EXPECT_THAT(conversion.yaml,
              HasSubstr("- \"--error_threshold=FILL_IN\"  # FILL IN: the integer limit\n"));
}

TEST(Convert, AnOptionalInputWithoutAValueSaysWhichAndWhatToDo) {
  const Conversion conversion =
      ConvertAzure(kOpenValues, {.file = "a.yml", .step = "", .code_prefix = ""});
  const std::string report = Text(conversion.problems);
  EXPECT_THAT(report,
              HasSubstr("\"${{inputs.note}}\" is optional and has no value here, and stands "
                        "outside of $[[ ]]: replace FILL_IN in spec.arguments[4]: the "
                        "string note; or remove it there, with the name before it\n"));
  EXPECT_THAT(report, HasSubstr("\"${{inputs.extra.path}}\" is optional and has no value here"));
  EXPECT_THAT(report, HasSubstr("in spec.arguments[6]: $(sideInputs.extra), with extra in "
                                "spec.sideInputs; or remove it there"));
}

// Values of others may hold what marks an open one while the words are cut.
TEST(Convert, NoValueIsTakenForAMark) {
  const Conversion conversion = ConvertAzure(
      "type: parallel\n"
      "inputs: {rows: {type: uri_folder, path: in}, odd: {type: string, default: "
      "\"\\x1f0\\x1f\"}}\n"
      "input_data: ${{inputs.rows}}\n"
      "task: {code: ., entry_script: s.py, environment: {image: \"i:1\"},\n"
      "       program_arguments: \"--a ${{inputs.odd}} --b ${{inputs.none}} \\x1f1\\x1f\"}\n",
      {.file = "a.yml", .step = "", .code_prefix = ""});
  const api::ParsedJob parsed = azure::ReadJob(conversion.yaml, {}, api::Target::kLocal);
  ASSERT_TRUE(parsed.ok()) << Text(parsed.problems) << conversion.yaml;
  EXPECT_EQ(parsed.job.spec.arguments, (std::vector<std::string>{"--a",
                                                                 "\x1f"
                                                                 "0\x1f",
                                                                 "--b", "FILL_IN",
                                                                 "\x1f"
                                                                 "1\x1f"}));
}

TEST(Convert, FoldersOfThisMachineAreToldByVolume) {
  const auto folders = [](const std::string& text) {
    std::string all;
    const Conversion conversion =
        ConvertAzure(text, {.file = "a.yml", .step = "", .code_prefix = "", .read = ReadSample});
    for (const VolumeFolder& one : conversion.volumes) {
      all += one.volume + "=" + one.folder + " ";
    }
    return all;
  };
  EXPECT_EQ(folders("type: parallel\n"
                    "inputs:\n"
                    "  a: {type: uri_folder, path: ./data/in/}\n"
                    "  b: {type: uri_file, path: ../lists/words.txt}\n"
                    "  c: {type: uri_file, path: words.txt}\n"
                    "  d: {type: uri_folder, path: azureml://datastores/a/paths/b/}\n"
                    "  e: {type: uri_folder}\n"
                    "input_data: ${{inputs.a}}\n"
                    "task: {code: ., entry_script: s.py, environment: {image: \"i:1\"}}\n"),
            "a=data/in b=../lists c=. d= e= ");
  EXPECT_EQ(folders(Sample("mltable.yml")), "table=iris-table ");
  EXPECT_EQ(folders("endpoint_name: e\nmodel: {path: ./heart/model}\n"),
            "input= model=./heart/model ");
}

TEST(Convert, OtherCommandsSayConvert) {
  for (const Case& one : Cases()) {
    EXPECT_THAT(SayConvert(Sample(one.file), one.file),
                HasSubstr(std::string("parallelrun convert ") + one.file));
    EXPECT_EQ(SayConvert(Convert(one.file).yaml, one.file), "");
  }
  for (const char* text :
       {"", "- a\n", "a: [\n", "a: 1\n", "apiVersion: v1\ntask: {}\n", "spec: {}\njobs: {}\n"}) {
    EXPECT_EQ(SayConvert(text, "a.yml"), "") << text;
  }
}

TEST(Convert, OddTextStaysOneValue) {
  const Conversion conversion = ConvertAzure(
      "type: parallel\n"
      "name: \"1 odd # name\"\n"
      "description: \"a: b # c\\n}d\"\n"
      "inputs: {a: {type: uri_folder, path: \"x\\n}: y\"}}\n"
      "input_data: ${{inputs.a}}\n"
      "task:\n"
      "  code: \"dir with: colon\"\n"
      "  entry_script: s.py\n"
      "  environment: {image: \"i:1\"}\n"
      "  program_arguments: \"--x 'a b' \\\"${{inputs.a}}/c\\\" --y \\\\\\\\ '' --z=$${{no}}\"\n",
      {.file = "odd\n.yml", .step = "", .code_prefix = "../src"});
  const api::ParsedJob parsed = azure::ReadJob(conversion.yaml, {}, api::Target::kLocal);
  ASSERT_TRUE(parsed.ok()) << Text(parsed.problems) << conversion.yaml;
  EXPECT_EQ(parsed.job.metadata.annotations.at("description"), "a: b # c\n}d");
  EXPECT_EQ(parsed.job.spec.code.path, "../src/dir with: colon");
  EXPECT_EQ(parsed.job.spec.arguments[1], "a b");
  EXPECT_EQ(parsed.job.spec.arguments[2], "$(inputs.a)/c");
}

// YAML 1.1 takes these words for booleans, and Azure ML's loader does not.
TEST(Convert, WordsThatYamlTakesForBooleansAreNames) {
  const Conversion conversion = ConvertAzure(
      "type: parallel\n"
      "name: off\n"
      "inputs:\n"
      "  y: {type: uri_folder, path: azureml://datastores/a/paths/y/}\n"
      "  n: {type: string, default: no}\n"
      "  on: {type: string, default: 007}\n"
      "  N: {type: string, default: .inf}\n"
      "input_data: ${{inputs.y}}\n"
      "partition_keys: [yes, 08]\n"
      "is_deterministic: Yes\n"
      "task:\n"
      "  code: src\n"
      "  entry_script: s.py\n"
      "  environment: {image: \"i:1\", environment_variables: {on: yes, NO: 1_000}}\n"
      "  program_arguments: --n ${{inputs.n}} --on ${{inputs.on}} --big ${{inputs.N}}\n",
      {.file = "a.yml", .step = "", .code_prefix = ""});
  const api::ParsedJob parsed = azure::ReadJob(conversion.yaml, {}, api::Target::kLocal);
  ASSERT_TRUE(parsed.ok()) << Text(conversion.problems) << Text(parsed.problems) << conversion.yaml;
  const api::JobSpec& spec = parsed.job.spec;
  EXPECT_EQ(parsed.job.metadata.name, "off");
  EXPECT_EQ(spec.inputs[0].name, "y");
  EXPECT_EQ(spec.arguments,
            (std::vector<std::string>{"--n", "no", "--on", "007", "--big", ".inf"}));
  EXPECT_EQ(spec.partition_keys, (std::vector<std::string>{"yes", "08"}));
  EXPECT_EQ(spec.environment.env, json::parse(R"([{"name": "on", "value": "yes"},
                                                  {"name": "NO", "value": "1_000"}])"));
  EXPECT_THAT(Text(conversion.problems), HasSubstr("is_deterministic: results of an earlier job"));
}

TEST(Convert, AStepIsChosenByName) {
  const std::string text =
      "jobs:\n"
      "  one: {type: parallel, task: {entry_script: one.py}}\n"
      "  two: {type: parallel, task: {entry_script: two.py}}\n";
  const Conversion open = ConvertAzure(text, {.file = "p.yml", .step = "", .code_prefix = ""});
  EXPECT_TRUE(open.yaml.empty());
  EXPECT_THAT(Text(open.problems),
              HasSubstr(":1: jobs: 2 steps are of type parallel: write --step one or two, or "
                        "--all-steps"));
  const Conversion two = ConvertAzure(text, {.file = "p.yml", .step = "two", .code_prefix = ""});
  EXPECT_THAT(two.yaml, HasSubstr("entryScript: \"two.py\""));
  const Conversion none = ConvertAzure(text, {.file = "p.yml", .step = "three", .code_prefix = ""});
  EXPECT_THAT(Text(none.problems), HasSubstr("no parallel step \"three\""));
}

TEST(Convert, AllParallelStepsBecomeJobs) {
  const std::string text =
      "jobs:\n"
      "  one: {type: parallel, task: {entry_script: one.py}}\n"
      "  between: {type: command}\n"
      "  two: {type: parallel, task: {entry_script: two.py}}\n"
      "  three: {type: parallel, component: \"azureml:three:1\"}\n";
  const auto all = ConvertAllSteps(text, {.file = "p.yml", .step = "", .code_prefix = ""});
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].step, "one");
  EXPECT_THAT(all[0].conversion.yaml, HasSubstr("entryScript: \"one.py\""));
  EXPECT_THAT(all[0].conversion.yaml, HasSubstr("jobs.between: other steps"));
  EXPECT_THAT(all[0].conversion.yaml, Not(HasSubstr("jobs.two"))) << "it has a file of its own";
  EXPECT_THAT(all[1].conversion.yaml, HasSubstr("name: two\n"));
  EXPECT_TRUE(all[2].conversion.yaml.empty()) << "the others are there all the same";
  EXPECT_THAT(Text(all[2].conversion.problems), HasSubstr("jobs.three.component: "));
  // Any other file has one job.
  EXPECT_EQ(
      ConvertAllSteps(Sample("deployment.yml"), {.file = "d.yml", .step = {}, .code_prefix = {}})
          .size(),
      1U);
  for (const char* none : {"jobs: {a: {type: command}}\n", "a: [\n", ""}) {
    const auto refused = ConvertAllSteps(none, {.file = "p.yml", .step = "", .code_prefix = ""});
    ASSERT_EQ(refused.size(), 1U);
    EXPECT_TRUE(api::HasErrors(refused[0].conversion.problems));
  }
}

// Nobody here knows whether they are parallel ones; the file said only that no step is.
TEST(Convert, StepsOfARegistryAreNamedWithWhatIsKnownOfThem) {
  const std::string answer =
      "  answer:\n"
      "    component: azureml://registries/models/components/batch_score/labels/latest\n"
      "    compute: azureml:gpu\n"
      "    inputs: {data: {type: uri_file, path: ./gsm8k.jsonl}, rows: 5}\n";
  const Conversion none =
      ConvertAzure("jobs:\n" + answer, {.file = "p.yml", .step = {}, .code_prefix = {}});
  EXPECT_TRUE(none.yaml.empty());
  const std::string report = Text(none.problems);
  EXPECT_THAT(report, HasSubstr("jobs.answer.component: "));
  EXPECT_THAT(report,
              HasSubstr("is a component of the registry models, and not a file here, which "
                        "may be a parallel one; what is known of the step: compute = "
                        "\"azureml:gpu\", inputs.data.type = \"uri_file\", inputs.data.path "
                        "= \"./gsm8k.jsonl\", inputs.rows = \"5\": fetch it: az ml component "
                        "show --name batch_score --label latest --registry-name models"));
  EXPECT_THAT(report, HasSubstr("no step is of type parallel"));
  // Beside one that can be converted, and where it is asked for by name.
  const std::string both =
      "jobs:\n" + answer + "  b: {type: parallel, task: {entry_script: b.py}}\n";
  EXPECT_THAT(ConvertAzure(both, {.file = "p.yml", .step = {}, .code_prefix = {}}).yaml,
              HasSubstr("jobs.answer.component: "));
  EXPECT_THAT(
      Text(ConvertAzure(both, {.file = "p.yml", .step = "answer", .code_prefix = {}}).problems),
      HasSubstr("what is known of the step: compute"));
}

TEST(Convert, RefusesWhatItCannotRead) {
  const struct {
    const char* text;
    const char* says;
  } cases[] = {
      {"", "the file is empty"},
      {"- a\n", "holds no map"},
      {"a: 1\n", "not a file of Azure ML"},
      {"a: 1\n---\nb: 2\n", "several documents"},
      {"a: [\n", ":"},
      {"task: {}\ntask: {}\n", "task"},
      {"pipeline: {steps: {}}\n", "convert the file that parallel_run_config names"},
      {"parallel_run_config: config.yml\n", "convert the file that it names"},
      {"jobs: {a: {type: command}}\n", "no step is of type parallel"},
      {"jobs: {a: {type: parallel, component: \"file:a.yml\"}}\n", "convert that file"},
      {"endpoint_name: e\ntype: pipeline\n", "convert the parallel steps"},
  };
  for (const auto& one : cases) {
    SCOPED_TRACE(one.text);
    const Conversion conversion =
        ConvertAzure(one.text, {.file = "a.yml", .step = "", .code_prefix = ""});
    EXPECT_TRUE(conversion.yaml.empty());
    EXPECT_TRUE(api::HasErrors(conversion.problems));
    EXPECT_THAT(Text(conversion.problems), HasSubstr(one.says));
  }
}

}  // namespace
}  // namespace parallelrun::azure
