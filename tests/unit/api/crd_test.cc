// The schema in crds/ against src/api, both ways: the jobs of good_jobs.yaml hold every field of
// the schema, and src/api takes them; what the schema bounds, src/api bounds too.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "api/document.h"
#include "api/text.h"
#include "api/to_json.h"
#include "azure/predefined.h"
#include "azure/read_job.h"
#include "tests/support/source_folder.h"

namespace parallelrun::api {
namespace {

using nlohmann::json;
using Pointer = json::json_pointer;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kCrd[] = "crds/parallelrunjobs.parallelrun.dev.yaml";

std::string Text(const std::string& file) {
  std::ifstream in(SourceFolder() + file);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

json Yaml(const std::string& file) {
  const Document document = ReadForeignDocument(Text(file));
  for (const Problem& problem : document.problems) ADD_FAILURE() << FormatProblem(problem, file);
  return document.job.ToJson();
}

const json& Crd() {
  static const json crd = Yaml(kCrd);
  return crd;
}

const json& Schema() {
  static const json schema =
      Crd().at("spec").at("versions").at(0).at("schema").at("openAPIV3Schema");
  return schema;
}

const json& GoodJobs() {
  static const json jobs = Yaml("tests/unit/data/good_jobs.yaml").at("jobs");
  return jobs;
}

bool IsLoose(const json& schema) {
  return schema.value("x-kubernetes-preserve-unknown-fields", false);
}

// Every field of a schema, as "spec.inputs[].files.volume"; `visit` gets its schema too.
void EachField(const json& schema, const std::string& path,
               const std::function<void(const std::string&, const json&)>& visit) {
  if (schema.contains("items")) EachField(schema["items"], path + "[]", visit);
  if (schema.contains("additionalProperties")) visit(path + ".*", schema["additionalProperties"]);
  const json properties = schema.value("properties", json::object());
  for (const auto& [name, field] : properties.items()) {
    const std::string below = path.empty() ? name : path + "." + name;
    visit(below, field);
    EachField(field, below, visit);
  }
}

// Where `value` and a field of the schema meet.
struct Meeting {
  const json& schema;
  Pointer at;         // in the job
  std::string field;  // as messages name it
  std::string path;   // as EachField names it
};

void EachMeeting(const json& schema, const json& value, const Meeting& here,
                 const std::function<void(const Meeting&)>& visit) {
  if (!here.path.empty()) visit(here);
  if (schema.contains("items")) {
    for (size_t i = 0; i < value.size(); ++i) {
      EachMeeting(schema["items"], value[i],
                  {schema["items"], here.at / i, JoinPath(here.field, i), here.path + "[]"}, visit);
    }
  }
  if (!value.is_object() || IsLoose(schema)) return;
  const json properties = schema.value("properties", json::object());
  for (const auto& [name, inner] : value.items()) {
    const bool free = schema.contains("additionalProperties");
    ASSERT_TRUE(free || properties.contains(name))
        << "the schema has no " << here.path << "." << name;
    const json& below = free ? schema["additionalProperties"] : schema["properties"][name];
    const std::string path = free ? here.path + ".*" : JoinPath(here.path, name);
    EachMeeting(below, inner, {below, here.at / name, JoinPath(here.field, name), path}, visit);
  }
}

void EachMeeting(const json& job, const std::function<void(const Meeting&)>& visit) {
  const json& spec = Schema().at("properties").at("spec");
  EachMeeting(spec, job.at("spec"), {spec, Pointer("/spec"), "spec", "spec"}, visit);
}

Problems ProblemsOf(const json& job) { return azure::ReadJob(job, Target::kCluster).problems; }

// The messages about this field (or below it) when it has this value.
std::vector<std::string> With(json job, const Meeting& at, const json& value) {
  job[at.at] = value;
  std::vector<std::string> said;
  for (const Problem& problem : ProblemsOf(job)) {
    const bool about = problem.field.starts_with(at.field) || at.field.starts_with(problem.field);
    const bool error = problem.severity == Problem::Severity::kError;
    if (about && error) said.push_back(FormatProblem(problem, ""));
  }
  return said;
}

TEST(Crd, GoodJobsHoldEveryField) {
  std::set<std::string> known;
  EachField(Schema().at("properties").at("spec"), "spec",
            [&](const std::string& path, const json&) { known.insert(path); });
  std::set<std::string> used;
  for (const json& job : GoodJobs()) {
    const ParsedJob parsed = azure::ReadJob(job, Target::kCluster);
    for (const Problem& problem : parsed.problems) {
      EXPECT_EQ(problem.severity, Problem::Severity::kWarning) << FormatProblem(problem, "");
    }
    EachMeeting(job, [&](const Meeting& at) { used.insert(at.path); });
    // And what src/api writes is in the schema.
    EachMeeting(ToJson(parsed.job), [](const Meeting&) {});
  }
  for (const std::string& path : known) EXPECT_TRUE(used.contains(path)) << path;
}

TEST(Crd, BothKnowTheSameTypesAndBounds) {
  std::set<std::string> met;
  for (const json& job : GoodJobs()) {
    EachMeeting(job, [&](const Meeting& at) {
      if (!met.insert(at.path).second) return;
      SCOPED_TRACE(at.field);
      const json& schema = at.schema;
      const std::string type = schema.value("type", "");
      const bool text = type == "string" || schema.contains("x-kubernetes-int-or-string");
      const json wrong = text || type == "array" ? json::object() : json("text");
      if (at.path != "spec") {
        EXPECT_FALSE(With(job, at, wrong).empty());
      }
      for (const char* bound : {"minimum", "maximum"}) {
        if (!schema.contains(bound)) {
          EXPECT_FALSE(type == "integer" || type == "number") << "no " << bound;
          continue;
        }
        const int64_t edge = schema[bound];
        EXPECT_TRUE(With(job, at, edge).empty());
        EXPECT_FALSE(With(job, at, edge + (bound[1] == 'i' ? -1 : 1)).empty()) << bound;
      }
      if (schema.contains("enum")) {
        const std::vector<std::string> words = schema["enum"];
        for (const std::string& word : words) {
          EXPECT_THAT(With(job, at, word), Not(Contains(HasSubstr("is not one of"))));
        }
        const std::string all = "\"other\" is not one of " + OrList(words);
        EXPECT_THAT(With(job, at, "other"), Contains(::testing::EndsWith(all)));
      } else if (text) {
        const size_t most = schema.at("maxLength");
        const std::string edge(most, '1');
        EXPECT_THAT(With(job, at, edge), Not(Contains(HasSubstr("longer than"))));
        EXPECT_FALSE(With(job, at, edge + "1").empty());
      }
      if (schema.value("minLength", 0) > 0) {
        EXPECT_FALSE(With(job, at, "").empty());
      }
      if (type == "array") {
        const json item = job[at.at].empty() ? json("x") : job[at.at][0];
        json items = json::array();
        for (size_t i = schema.at("maxItems"); i > 0; --i) items.push_back(item);
        EXPECT_THAT(With(job, at, items), Not(Contains(HasSubstr("too many"))));
        items.push_back(item);
        EXPECT_THAT(With(job, at, items), Contains(HasSubstr("too many")));
      }
      const std::vector<std::string> required = schema.value("required", json::array());
      const json properties = schema.value("properties", json::object());
      for (const auto& [name, inner] : properties.items()) {
        const bool needed = std::find(required.begin(), required.end(), name) != required.end();
        // Rules over several fields require these.
        if (name == "inputs" || name == "partitionFormat") continue;
        if (name == "volume" && !needed) continue;
        json without = job[at.at];
        without.erase(name);
        const std::string says = JoinPath(at.field, name) + ": is required";
        const std::vector<std::string> said = With(job, at, without);
        EXPECT_EQ(needed, std::any_of(said.begin(), said.end(),
                                      [&](const std::string& problem) {
                                        return problem.starts_with(says);
                                      }))
            << says;
      }
    });
  }
}

TEST(Crd, DefaultsAreThoseOfTheApi) {
  json job = GoodJobs().at(1);
  job["spec"]["coordinator"] = json::object();
  job["spec"]["inputs"] = {{{"name", "rows"}, {"tabular", {{"volume", "data"}}}}};
  const json filled = ToJson(azure::ReadJob(job, Target::kCluster).job);
  size_t defaults = 0;
  EachField(Schema(), "", [&](const std::string& path, const json& schema) {
    if (!schema.contains("default")) return;
    ++defaults;
    std::string pointer = "/" + path;
    for (size_t at = 0; (at = pointer.find_first_of(".[", at)) != std::string::npos;) {
      pointer.replace(at, pointer[at] == '[' ? 2 : 1, pointer[at] == '[' ? "/0" : "/");
    }
    EXPECT_EQ(filled.value(Pointer(pointer), json()), schema["default"]) << path;
    // A field that is there wins over the argument that sets it.
    for (const std::string& field : azure::PredefinedFields()) EXPECT_NE(path, "spec." + field);
  });
  EXPECT_GT(defaults, 10U);
}

TEST(Crd, EverythingIsBoundedAndDescribed) {
  EachField(Schema(), "", [](const std::string& path, const json& schema) {
    SCOPED_TRACE(path);
    if (!path.ends_with(".*") && path != "metadata") {
      const std::string text = schema.value("description", "");
      EXPECT_FALSE(text.empty()) << "no description";
      EXPECT_LE(text.size(), 300U);
    }
    if (path.find('.') == std::string::npos) return;
    const std::string type = schema.value("type", "");
    if (type == "string") {
      EXPECT_TRUE(schema.contains("maxLength") || schema.contains("enum") ||
                  schema.value("format", "") == "date-time");
    }
    if (type == "array") {
      EXPECT_TRUE(schema.contains("maxItems"));
    }
    if (schema.contains("additionalProperties")) {
      EXPECT_TRUE(schema.contains("maxProperties"));
    }
  });
  EXPECT_LT(Crd().dump().size(), 100000U);
  // Charts would take them for a template.
  EXPECT_THAT(Text(kCrd), Not(HasSubstr("{{")));
}

TEST(Crd, NamesTheKindOfTheApi) {
  const json& spec = Crd().at("spec");
  EXPECT_EQ(spec["group"].get<std::string>() + "/" + spec["versions"][0]["name"].get<std::string>(),
            kApiVersion);
  EXPECT_EQ(spec["names"]["kind"], kJobKind);
}

}  // namespace
}  // namespace parallelrun::api
