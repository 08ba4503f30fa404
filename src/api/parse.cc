#include "api/parse.h"

#include <algorithm>
#include <limits>

#include "api/defaults.h"
#include "api/override.h"
#include "api/parse_parts.h"
#include "api/predefined.h"
#include "api/sizes.h"

namespace parallelrun {
namespace {

// What is made of it stays a name of 63: NAME-01234-node-4999-999999.
constexpr size_t kLongestJobName = 40;
constexpr int64_t kMaxTimeoutSeconds = 259200;  // three days, as in the contract
constexpr int64_t kNoLimit = std::numeric_limits<int32_t>::max();

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

void ReadEntryScript(const Value& value, std::string& out) {
  const auto text = value.NonEmptyString();
  if (!text) return;
  out = *text;
  const std::string mend =
      "write a file (score.py), a path (src/score.py) or a module (scoring.main) inside the code";
  if (text->front() == '/') return value.Error(Quoted(*text) + " is absolute", mend);
  const bool is_file = text->ends_with(".py");
  size_t at = 0;
  while (at <= text->size()) {
    const size_t end = std::min(text->find(is_file ? '/' : '.', at), text->size());
    const std::string part = text->substr(at, end - at);
    at = end + 1;
    const bool word = std::all_of(part.begin(), part.end(), [](char c) {
      return c == '_' || static_cast<unsigned char>(c) >= 0x80 || std::isalnum(c) != 0;
    });
    if (part.empty() || part == ".." || (!is_file && !word)) {
      return value.Error(Quoted(*text) + " is no Python file or module", mend);
    }
  }
}

void ReadArguments(const Value& list, std::vector<std::string>& out) {
  constexpr size_t kMaxCharacters = 4096;
  for (const Value& item :
       list.List(kMaxItems, "write at most 100; put more into a file beside the script")) {
    out.push_back(item.String(kMaxCharacters).value_or(""));
  }
}

void ReadSeconds(Fields& fields, const std::string& name, int64_t least, int64_t most,
                 Duration& out) {
  if (const auto value = fields.Take(name)) {
    if (const auto read = value->Integer(least, most)) out = seconds(*read);
  }
}

void ReadSeconds(Fields& fields, const std::string& name, int64_t least,
                 std::optional<Duration>& out) {
  Duration read{-1};
  ReadSeconds(fields, name, least, kNoLimit, read);
  if (read >= Duration::zero()) out = read;
}

void ReadMiniBatchSize(const Value& value, JobSpec& spec) {
  const bool is_integer = value.node.kind == Node::Kind::kInteger;
  const auto text = is_integer ? std::optional(value.node.text) : value.String(kMaxQuantity);
  if (!text) return;
  // An integer is what it is, however it was written (010 is 8).
  const auto size = ParseSize(is_integer ? std::to_string(value.node.integer) : *text);
  if (!size.ok()) return value.Error(size.error().message);
  const InputKind kind = spec.inputs.empty() ? InputKind::kFiles : spec.inputs[0].kind;
  if (size->has_unit && kind != InputKind::kTabular) {
    const bool files = kind == InputKind::kFiles;
    return value.Error(Quoted(*text) + " is in bytes, but for " +
                           (files ? "files it counts files" : "jsonLines it counts lines"),
                       "write a plain number, such as 10");
  }
  // With partitionKeys it decides nothing: a job must not differ by it.
  if (spec.partition_keys.empty()) spec.mini_batch_size = size->value;
}

void ReadPartitioning(Fields& fields, JobSpec& spec) {
  if (const auto keys = fields.Take("partitionKeys")) {
    constexpr size_t kMaxKeys = 32;
    spec.partition_keys = ReadNames(*keys, kMaxKeys, kMaxName);
    if (keys->node.kind == Node::Kind::kList && keys->node.items.empty()) {
      keys->Error("must not be empty", "name a key, or remove it");
    }
  }
  const auto size = fields.Take("miniBatchSize");
  if (size) ReadMiniBatchSize(*size, spec);
  if (size && !spec.partition_keys.empty()) {
    AddWarning(fields.problems(), size->path, "has no effect beside partitionKeys, which win",
               "remove one of them");
  }
}

void ReadFailureRules(Fields& fields, JobSpec& spec) {
  fields.To("errorThreshold", spec.error_threshold, -1);
  fields.To("allowedFailedCount", spec.allowed_failed_count, -1);
  if (const auto percent = fields.Take("allowedFailedPercent")) {
    spec.allowed_failed_percent = percent->Number(0, 100);
  }
  fields.ToEnum("shortReturn", spec.short_return);
  fields.To("runMaxTry", spec.run_max_try, 1);
  fields.To("isolateFailures", spec.isolate_failures);
  if (const auto value = fields.Take("speculation")) spec.speculation = value->Bool();
  const auto timeout = [&](const char* name, Duration& out) {
    ReadSeconds(fields, name, 1, kMaxTimeoutSeconds, out);
  };
  timeout("runInvocationTimeoutSeconds", spec.run_invocation_timeout);
  timeout("taskOverheadTimeoutSeconds", spec.task_overhead_timeout);
  // Its default, 3 run invocation time-outs and 30 s, may lie above three days.
  ReadSeconds(fields, "progressUpdateTimeoutSeconds", 1, 3 * kMaxTimeoutSeconds + 30,
              spec.progress_update_timeout);
  // Jobs in the wild give it six days.
  ReadSeconds(fields, "firstTaskCreationTimeoutSeconds", 1, kNoLimit,
              spec.first_task_creation_timeout);
  fields.To("nodeRestartLimit", spec.node_restart_limit, 0);
}

void ReadLifeCycle(Fields& fields, JobSpec& spec) {
  fields.To("cancel", spec.cancel);
  fields.To("suspend", spec.suspend);
  ReadSeconds(fields, "activeDeadlineSeconds", 1, spec.active_deadline);
  ReadSeconds(fields, "ttlSecondsAfterFinished", 0, spec.ttl_after_finished);
  ReadSeconds(fields, "startupDeadlineSeconds", 1, spec.startup_deadline);
  fields.To("deleteAfterFinished", spec.delete_after_finished);
  if (const auto value = fields.Take("managedBy")) {
    const auto text = value->NonEmptyString(kMaxName);
    if (text) spec.managed_by = *text;
    const size_t slash = text ? text->find('/') : 0;
    if (text && (slash == 0 || slash == std::string::npos || slash + 1 == text->size())) {
      value->Error(Quoted(*text) + " does not name a controller",
                   "write a domain and a name, such as kueue.x-k8s.io/multikueue");
    }
  }
  if (const auto value = fields.Take("allowReuse")) {
    if (value->Bool().value_or(false)) {
      value->Error("reuse of an earlier job's results is not available yet",
                   "remove it; output.ifExists: Resume continues a job");
    }
  }
}

void ReadNodes(Fields& fields, JobSpec& spec) {
  fields.To("nodeCount", spec.node_count, 0);
  fields.To("processCountPerNode", spec.process_count_per_node, 1);
  if (const auto value = fields.Take("resources")) spec.resources = ReadResources(*value);
  if (const auto value = fields.Take("sharedMemory")) {
    if (const auto bytes = ReadQuantity(*value, 1)) {
      spec.shared_memory = static_cast<uint64_t>(*bytes);
    }
  }
  if (const auto value = fields.Take("podTemplate")) spec.pod_template = ReadPodTemplate(*value);
  if (const auto value = fields.Take("coordinator")) ReadCoordinator(*value, spec.coordinator);
}

void ReadSpec(const Value& map, Target target, JobSpec& spec, std::vector<std::string>& notes) {
  Fields fields(map);
  if (const auto value =
          fields.Require("entryScript", "write the file with run(), as in score.py")) {
    ReadEntryScript(*value, spec.entry_script);
  }
  const std::string code_mend = "write code: {configMap: {name: NAME}}, or a volume or an image";
  const auto code =
      target == Target::kCluster ? fields.Require("code", code_mend) : fields.Take("code");
  if (code) ReadCode(*code, target, spec.code);
  if (const auto value = fields.Take("arguments")) ReadArguments(*value, spec.arguments);
  if (const auto value = target == Target::kCluster
                             ? fields.Require("environment", "write environment: {image: IMAGE}")
                             : fields.Take("environment")) {
    ReadEnvironment(*value, target, spec.environment);
  }
  if (const auto value = fields.Take("volumes")) ReadVolumes(*value, spec);
  fields.To("rankMiniBatchCount", spec.rank_mini_batch_count, 0);
  if (const auto value = fields.Take("inputs")) ReadInputs(*value, spec);
  if (const auto value = fields.Take("sideInputs")) ReadSideInputs(*value, spec);
  if (const auto value = fields.Require("output", "write output: {volume: VOLUME}")) {
    ReadOutput(*value, spec.output);
  }
  if (const auto value = fields.Take("logs")) ReadLogs(*value, spec.logs);
  if (const auto value = fields.Take("state")) ReadState(*value, spec.state);
  ReadNodes(fields, spec);
  ReadPartitioning(fields, spec);
  ReadFailureRules(fields, spec);
  ReadLifeCycle(fields, spec);
  fields.ToEnum("loggingLevel", spec.logging_level);
  fields.ToEnum("profiling", spec.profiling);
  ReadSeconds(fields, "resourceMonitorIntervalSeconds", 0, kNoLimit,
              spec.resource_monitor_interval);
  ApplyPredefined(fields.Present(PredefinedFields()), spec, map.problems, notes);
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

ParsedJob ParseJob(const Node& root, Target target) {
  ParsedJob parsed;
  const Value value{root, "", parsed.problems};
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
    ReadSpec(*spec, target, parsed.job.spec, parsed.notes);
  }
  fields.Take("status");  // the API server's own
  fields.Finish();
  FillDefaults(parsed.job);
  if (root.kind == Node::Kind::kMap && root.Find("spec") != nullptr) {
    CheckJob(parsed.job, target, parsed.problems);
  }
  PlaceProblems(root, parsed.problems);
  return parsed;
}

ParsedJob ReadJob(std::string_view text, const std::vector<std::string>& overrides, Target target) {
  ParsedJob parsed;
  Document document = ReadDocument(text);
  Problems problems = std::move(document.problems);
  if (!HasErrors(problems)) ApplyOverrides(overrides, document.job, problems);
  if (HasErrors(problems)) {
    parsed.problems = std::move(problems);
  } else {
    parsed = ParseJob(document.job, target);
  }
  parsed.notes.insert(parsed.notes.begin(), document.notes.begin(), document.notes.end());
  return parsed;
}

ParsedJob ReadJob(const nlohmann::json& object, Target target) {
  Document document = JsonDocument(object);
  if (!HasErrors(document.problems)) return ParseJob(document.job, target);
  ParsedJob parsed;
  parsed.problems = std::move(document.problems);
  return parsed;
}

}  // namespace parallelrun
