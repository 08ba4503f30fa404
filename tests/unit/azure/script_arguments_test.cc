// What the script finds in sys.argv: placeholders as Azure ML writes them, and its driver's flags.
#include "azure/script_arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "api/to_json.h"
#include "azure/read_job.h"

namespace parallelrun::azure {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

api::ParsedJob ReadWith(const std::vector<std::string>& arguments, const json& more) {
  json job = {{"apiVersion", api::kApiVersion},
              {"kind", api::kJobKind},
              {"metadata", {{"name", "digits"}}},
              {"spec",
               {{"entryScript", "score.py"},
                {"volumes",
                 {{{"name", "data"}, {"hostPath", {{"path", "/data"}}}},
                  {{"name", "out"}, {"hostPath", {{"path", "/out"}}}}}},
                {"inputs", {{{"name", "images"}, {"files", {{"volume", "data"}}}}}},
                {"sideInputs", {{{"name", "model"}, {"volume", "data"}, {"path", "model"}}}},
                {"output", {{"volume", "out"}}}}}};
  job["spec"]["arguments"] = arguments;
  job["spec"].merge_patch(more);
  return azure::ReadJob(job, api::Target::kLocal);
}

const std::map<std::string, std::string> kPaths = {
    {"inputs.images", "/mnt/data"}, {"sideInputs.model", "/models"}, {"output", "/mnt/out/o"}};

std::vector<std::string> Argv(const std::vector<std::string>& arguments,
                              const json& more = json::object()) {
  const api::ParsedJob parsed = ReadWith(arguments, more);
  const auto argv = ScriptArguments(parsed.job, kPaths);
  if (!argv.ok()) return {argv.error().message};
  return *argv;
}

TEST(ScriptArguments, TheUsersAndThenTheSystems) {
  EXPECT_THAT(Argv({"--error_threshold", "5", "--from", "$(inputs.images)/a"}),
              ElementsAre("--error_threshold", "5", "--from", "/mnt/data/a", "--output",
                          "/mnt/out/o", "--output_uri_file", "/mnt/out/o/parallel_run_step.txt",
                          "--append_row_file_name", "parallel_run_step.txt", "--logging_level",
                          "INFO", "--input_asset_images", "/mnt/data"));
  EXPECT_THAT(Argv({}, {{"output", {{"action", "SummaryOnly"}}}, {"loggingLevel", "DEBUG"}}),
              ElementsAre("--output", "/mnt/out/o", "--logging_level", "DEBUG",
                          "--input_asset_images", "/mnt/data"));
}

TEST(ScriptArguments, TheUsersOwnFlagIsNotShadowed) {
  const json summary = {{"output", {{"action", "SummaryOnly"}}}};
  // Given by the user too: his stands alone.
  EXPECT_THAT(
      Argv({"--output=here", "--logging_level", "x"}, summary),
      ElementsAre("--output=here", "--logging_level", "x", "--input_asset_images", "/mnt/data"));
  // argparse takes --output for an abbreviation of --output_dir, and the last one wins.
  EXPECT_THAT(Argv({"--output_dir", "d"}, summary),
              ElementsAre("--output", "/mnt/out/o", "--output_dir", "d", "--logging_level", "INFO",
                          "--input_asset_images", "/mnt/data"));
  // What follows "--" is no flag.
  EXPECT_THAT(Argv({"--a", "--", "b"}, summary),
              ElementsAre("--a", "--output", "/mnt/out/o", "--logging_level", "INFO",
                          "--input_asset_images", "/mnt/data", "--", "b"));
}

TEST(ScriptArguments, AnUnknownPlaceholderIsAnError) {
  api::Job job = ReadWith({}, json::object()).job;
  job.spec.arguments = {"$(inputs.nothing)"};
  const auto argv = ScriptArguments(job, kPaths);
  ASSERT_FALSE(argv.ok());
  EXPECT_THAT(argv.error().message, HasSubstr("$(inputs.nothing)"));
}

TEST(ScriptArguments, PlaceholdersAsAzureWritesThem) {
  const struct {
    const char* text;
    const char* result;
  } good[] = {
      {"${{inputs.images}}", "/mnt/data"},
      {"a=${{ inputs.images }}:$(output)", "a=/mnt/data:/mnt/out/o"},
      {"${{ inputs.model }}/x", "/models/x"},
      {"${{sideInputs.model}}", "/models"},
      {"$${{inputs.images}}", "${{inputs.images}}"},
      {"$$(output)", "$(output)"},
      {"${{unclosed}", "${{unclosed}"},
      {"${HOME}", "${HOME}"},
  };
  for (const auto& [text, result] : good) {
    EXPECT_EQ(ReadWith({"--weights", text}, json::object()).problems.size(), 0U) << text;
    const std::vector<std::string> argv = Argv({"--weights", text});
    ASSERT_GT(argv.size(), 1U);
    EXPECT_EQ(argv[1], result);
  }
}

TEST(ScriptArguments, WhatTheJobDoesNotHaveIsSaidWhenItIsRead) {
  for (const char* text : {"${{inputs.nothing}}", "${{outputs.x}}", "${{}}", "$(inputs.model)"}) {
    const api::ParsedJob parsed = ReadWith({"--weights", text}, json::object());
    ASSERT_EQ(parsed.problems.size(), 1U) << text;
    EXPECT_EQ(parsed.problems[0].field, "spec.arguments[1]");
    EXPECT_THAT(parsed.problems[0].what, HasSubstr(text));
    EXPECT_THAT(parsed.problems[0].mend, HasSubstr("$(sideInputs.model)"));
  }
}

TEST(ScriptArguments, AnOutputInAStoreIsNoFolderForThem) {
  const json in_store = {{"stores", {{{"name", "rows"}, {"url", "s3://rows"}}}},
                         {"output", {{"volume", nullptr}, {"store", "rows"}}},
                         {"logs", {{"volume", "out"}}},
                         {"state", {{"volume", "out"}}}};
  for (const char* text : {"$(output)", "--to=$( output )/x", "${{output}}", "${{ output }}/x"}) {
    const api::ParsedJob parsed = ReadWith({text}, in_store);
    ASSERT_EQ(parsed.problems.size(), 1U) << text;
    EXPECT_EQ(parsed.problems[0].field, "spec.arguments");
    EXPECT_THAT(parsed.problems[0].what, HasSubstr("is a folder for the script"));
  }
  for (const char* text : {"$$(output)", "$${{output}}", "--x=output"}) {
    EXPECT_EQ(ReadWith({text}, in_store).problems.size(), 0U) << text;
  }
}

// A coordinator reads what the command or the operator has read and written.
TEST(ScriptArguments, AJobThatIsWrittenAndReadAgainHasTheSame) {
  const std::vector<std::string> arguments = {"${{inputs.model}}", "$${{x}}", "$$(x)", "$(output)"};
  const api::ParsedJob first = ReadWith(arguments, json::object());
  EXPECT_EQ(first.job.spec.arguments, arguments);
  const api::ParsedJob second = azure::ReadJob(api::ToJson(first.job), api::Target::kLocal);
  EXPECT_EQ(second.problems.size(), 0U);
  EXPECT_EQ(second.job, first.job);
}

}  // namespace
}  // namespace parallelrun::azure
