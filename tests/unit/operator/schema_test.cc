// The check of the served schema, on the CustomResourceDefinition of this release.
#include "operator/schema_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "api/document.h"
#include "operator/status/status.h"
#include "tests/support/source_folder.h"

namespace parallelrun::operators {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::IsEmpty;

// The schema as the API server would serve it.
json Served() {
  std::ifstream file(SourceFolder() + "crds/parallelrunjobs.parallelrun.dev.yaml");
  std::stringstream text;
  text << file.rdbuf();
  const api::Document document = api::ReadForeignDocument(text.str());
  EXPECT_TRUE(document.problems.empty());
  const json definition = document.job.ToJson();
  json schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
  schema["x-kubernetes-group-version-kind"] = {
      {{"group", "parallelrun.dev"}, {"version", "v1alpha1"}, {"kind", "ParallelRunJob"}}};
  return {{"components", {{"schemas", {{"dev.parallelrun.v1alpha1.ParallelRunJob", schema}}}}}};
}

json& Properties(json& openapi, const char* path) {
  return openapi["components"]["schemas"]["dev.parallelrun.v1alpha1.ParallelRunJob"]
                [json::json_pointer(path)];
}

TEST(SchemaCheck, ThisReleasesDefinitionHasEverything) {
  EXPECT_THAT(MissingFields(Served()), IsEmpty());
}

// Whether one of its rules is this text, or holds it.
bool HasRule(const json& schema, const std::string& text) {
  const json rules = schema.value("x-kubernetes-validations", json::array());
  return std::any_of(rules.begin(), rules.end(), [&](const json& one) {
    return one["rule"].get<std::string>().find(text) != std::string::npos;
  });
}

// A rule at a field holds its value; whether it comes or goes is held by one at the top, which is
// not asked while the status is written.
TEST(SchemaCheck, EveryFieldOfTheSpecMayChangeOrIsHeld) {
  json openapi = Served();
  const json& top = Properties(openapi, "");
  const json& spec = top["properties"]["spec"];
  const std::set<std::string> may_change = {"nodeCount",
                                            "suspend",
                                            "cancel",
                                            "errorThreshold",
                                            "allowedFailedCount",
                                            "allowedFailedPercent",
                                            "resources",
                                            "podTemplate",
                                            "activeDeadlineSeconds",
                                            "ttlSecondsAfterFinished"};
  const std::set<std::string> required = spec["required"];
  for (const auto& [name, schema] : spec["properties"].items()) {
    if (may_change.contains(name)) continue;
    EXPECT_TRUE(HasRule(schema, "self == oldSelf")) << name;
    if (required.contains(name) || schema.contains("default")) continue;
    EXPECT_TRUE(HasRule(top, "has(self.spec." + name + ") == has(oldSelf.spec." + name + ")"))
        << name;
  }
  EXPECT_TRUE(HasRule(spec["properties"]["cancel"], "!oldSelf || self"));
  for (const json& rule : top["x-kubernetes-validations"]) {
    const std::string text = rule["rule"];
    if (text.find("self.spec") == std::string::npos) continue;
    // Not evaluated when the status is written: one is of a new job only, the other of a changed
    // one.
    EXPECT_TRUE(text.starts_with("has(self.status) || ") ||
                text.starts_with("has(self.status) != has(oldSelf.status) || has(self.status) && "
                                 "self.status != oldSelf.status ||"))
        << text;
  }
}

// The API server prunes what the schema lacks, without a word.
void ExpectKnown(const json& schema, const json& value, const std::string& path) {
  if (value.is_array()) {
    ASSERT_TRUE(schema.contains("items")) << path;
    for (const json& item : value) ExpectKnown(schema["items"], item, path + "[]");
  }
  if (!value.is_object()) return;
  for (const auto& [key, below] : value.items()) {
    const json properties = schema.value("properties", json::object());
    if (properties.contains(key)) {
      ExpectKnown(properties[key], below, path + "." + key);
    } else {
      ADD_FAILURE() << "the schema has no " << path << "." << key;
    }
  }
}

TEST(SchemaCheck, TheDefinitionHasEverythingThatIsWritten) {
  const WallTime now(seconds(1'000'000));
  JobStatus status;
  status.phase = "Running";
  SetCondition(status, "Accepted", Truth::kTrue, "Valid", "x", 1, now);
  status.start_time = status.completion_time = status.ready_time = now;
  status.cleanup_time = now;
  status.progress.emplace();
  status.progress->total = status.progress->items_total = 1;
  status.progress->estimated_completion = status.progress->updated = now;
  status.failure = FailureStatus{"R", "m", {{"ValueError", "m", 1, 2, 3, "process001", "log"}}};
  status.output.emplace();
  status.effective = {2, "spec", "image", "runtime", "digest", true, 8443};
  status.usage.until = now;
  status.logs = status.url = status.selector = "x";
  status.counted = {"0-1"};
  const json written = ToJson(status);
  EXPECT_EQ(written.size(), 22U) << "a new field: set it here too";
  json served = Served();
  ExpectKnown(Properties(served, "/properties/status"), written, "status");
}

TEST(SchemaCheck, AnOlderDefinitionIsNoticed) {
  json openapi = Served();
  Properties(openapi, "/properties/spec/properties").erase("startupDeadlineSeconds");
  Properties(openapi, "/properties/status/properties").erase("counted");
  EXPECT_THAT(MissingFields(openapi), ElementsAre("spec.startupDeadlineSeconds", "status.counted"));
}

// As of a list's items, and with all that it has said once.
TEST(SchemaCheck, AFieldOfAListAndAnObjectAreNoticed) {
  json openapi = Served();
  json& spec = Properties(openapi, "/properties/spec/properties");
  spec["inputs"]["items"]["properties"]["tabular"]["properties"].erase("skipRows");
  spec.erase("coordinator");
  EXPECT_THAT(MissingFields(openapi),
              ElementsAre("spec.inputs[].tabular.skipRows", "spec.coordinator"));
}

TEST(SchemaCheck, ANewerOneIsFine) {
  json openapi = Served();
  Properties(openapi, "/properties/spec/properties")["later"] = {{"type", "string"}};
  EXPECT_THAT(MissingFields(openapi), IsEmpty());
}

TEST(SchemaCheck, OneThatPrunesNothingIsFine) {
  json openapi = Served();
  json& spec = Properties(openapi, "/properties/spec");
  spec = {{"type", "object"}, {"x-kubernetes-preserve-unknown-fields", true}};
  EXPECT_THAT(MissingFields(openapi), IsEmpty());
}

TEST(SchemaCheck, WhatIsNotThereAtAllIsSaid) {
  EXPECT_THAT(MissingFields(json::object()), ElementsAre("kind ParallelRunJob"));
  EXPECT_THAT(MissingFields(json::array({1})), ElementsAre("kind ParallelRunJob"));
  json openapi = Served();
  openapi["components"]["schemas"] = {{"x", 5}, {"y", {{"type", "object"}}}};
  EXPECT_THAT(MissingFields(openapi), ElementsAre("kind ParallelRunJob"));
}

}  // namespace
}  // namespace parallelrun::operators
