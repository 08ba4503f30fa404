#include "api/parse.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "api/defaults.h"
#include "api/fields/read.h"
#include "api/fields/sections.h"
#include "api/override.h"
#include "api/parse_parts.h"

namespace parallelrun::api {
namespace {

// What is made of it stays a name of 63: NAME-01234-node-4999-999999.
constexpr size_t kLongestJobName = 40;

bool IsJobName(const std::string& name) {
  return name.size() >= 3 && name.size() <= kLongestJobName && IsDnsLabel(name) && name[0] >= 'a';
}

void ReadMetadata(const Value& map, JobMetadata& metadata) {
  Fields fields(map);
  if (const auto name = fields.Require("name")) {
    const auto text = name->String();
    if (text) metadata.name = *text;
    if (text && !IsJobName(*text)) {
      name->Error(Quoted(*text) + " cannot name a job",
                  "write 3 to 40 lower-case letters, digits and \"-\", a letter first and no \"-\" "
                  "last");
    }
  }
  fields.To("namespace", metadata.name_space, kMaxName);
  if (const auto labels = fields.Take("labels")) metadata.labels = ReadLabels(*labels);
  if (const auto notes = fields.Take("annotations")) {
    constexpr size_t kMaxAnnotation = 1 << 18;
    metadata.annotations = ReadAnnotations(*notes, kMaxAnnotation);
  }
  fields.To("uid", metadata.uid);
  if (const auto generation = fields.Take("generation")) {
    metadata.generation = generation->Integer(0, std::numeric_limits<int64_t>::max()).value_or(0);
  }
  // The API server's own.
  for (const char* name :
       {"creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "finalizers",
        "generateName", "managedFields", "ownerReferences", "resourceVersion", "selfLink"}) {
    fields.Take(name);
  }
  fields.Finish();
}

// Positions come from the paths; in file order, those without a line last.
void PlaceProblems(const Node& root, Problems& problems) {
  for (Problem& problem : problems) {
    const Position at = Locate(root, problem.field);
    problem.line = at.line;
    problem.column = at.column;
    if (at.flag) problem.flag = *at.flag;
  }
  const auto order = [](const Problem& problem) {
    return problem.line > 0 ? problem.line : std::numeric_limits<int>::max();
  };
  std::stable_sort(problems.begin(), problems.end(),
                   [&](const Problem& a, const Problem& b) { return order(a) < order(b); });
}

}  // namespace

ParsedJob ParseJob(Node root, Target target, const Dialect& dialect) {
  ParsedJob parsed;
  Problems translated;
  if (dialect.translate) dialect.translate(root, translated, parsed.notes);
  const Value value{root, "", parsed.problems, &dialect.mend};
  Fields fields(value);
  const auto expect = [&](const char* name, const std::string& wanted) {
    const auto found = fields.Require(name, "write " + std::string(name) + ": " + wanted);
    if (found) ReadWord(*found, {wanted});
  };
  expect("apiVersion", kApiVersion);
  expect("kind", kJobKind);
  if (const auto metadata = fields.Require("metadata", "write metadata: {name: NAME}")) {
    ReadMetadata(*metadata, parsed.job.metadata);
  }
  if (const auto spec = fields.Require("spec")) {
    fields::ReadObject(*spec, fields::SpecFields(), &parsed.job.spec, target);
  }
  std::move(translated.begin(), translated.end(), std::back_inserter(parsed.problems));
  fields.Take("status");  // the API server's own
  fields.Finish();
  FillDefaults(parsed.job, target);
  if (root.kind == Node::Kind::kMap && root.Find("spec") != nullptr) {
    CheckJob(parsed.job, target, dialect.placeholders, parsed.problems);
  }
  PlaceProblems(root, parsed.problems);
  return parsed;
}

ParsedJob ReadJob(std::string_view text, const std::vector<std::string>& overrides, Target target,
                  const Dialect& dialect) {
  ParsedJob parsed;
  Document document = ReadDocument(text);
  Problems problems = std::move(document.problems);
  if (!HasErrors(problems)) ApplyOverrides(overrides, document.job, problems);
  if (HasErrors(problems)) {
    parsed.problems = std::move(problems);
  } else {
    parsed = ParseJob(std::move(document.job), target, dialect);
  }
  parsed.notes.insert(parsed.notes.begin(), document.notes.begin(), document.notes.end());
  return parsed;
}

ParsedJob ReadJob(const nlohmann::json& object, Target target, const Dialect& dialect) {
  Document document = JsonDocument(object);
  if (!HasErrors(document.problems)) return ParseJob(std::move(document.job), target, dialect);
  ParsedJob parsed;
  parsed.problems = std::move(document.problems);
  return parsed;
}

}  // namespace parallelrun::api
