#include "api/to_json.h"

#include <cmath>

#include "api/enums.h"

namespace parallelrun {
namespace {

using nlohmann::json;

int64_t Seconds(Duration duration) { return std::chrono::duration_cast<seconds>(duration).count(); }

// Whole numbers without a fraction, so that 100 stays 100.
json NumberJson(double number) {
  if (number == std::trunc(number)) return static_cast<int64_t>(number);
  return number;
}

json PlaceJson(const VolumePath& place) { return {{"volume", place.volume}, {"path", place.path}}; }

json CodeJson(const CodeSource& code) {
  switch (code.kind) {
    case CodeKind::kJobFolder: return nullptr;
    case CodeKind::kConfigMap: return {{"configMap", {{"name", code.name}}}};
    case CodeKind::kVolume: return {{"volume", code.name}, {"path", code.path}};
    case CodeKind::kImage: return {{"image", {{"path", code.path}}}};
    case CodeKind::kFolder: return {{"path", code.path}};
  }
  return nullptr;
}

json EnvironmentJson(const Environment& environment) {
  json out = {{"python", environment.python}};
  if (!environment.image.empty()) out["image"] = environment.image;
  if (!environment.image_pull_policy.empty()) {
    out["imagePullPolicy"] = environment.image_pull_policy;
  }
  if (!environment.env.empty()) out["env"] = environment.env;
  if (!environment.env_from.empty()) out["envFrom"] = environment.env_from;
  if (!environment.image_pull_secrets.empty()) {
    out["imagePullSecrets"] = environment.image_pull_secrets;
  }
  return out;
}

json OutputJson(const Output& output) {
  json out = PlaceJson(output.to);
  out["action"] = EnumWord(output.action);
  out["fileName"] = output.file_name;
  out["order"] = EnumWord(output.order);
  out["ifExists"] = EnumWord(output.if_exists);
  out["mountOnNodes"] = output.mount_on_nodes;
  return out;
}

json MetadataJson(const JobMetadata& metadata) {
  json out = {{"name", metadata.name}};
  if (!metadata.name_space.empty()) out["namespace"] = metadata.name_space;
  if (!metadata.uid.empty()) out["uid"] = metadata.uid;
  if (metadata.generation != 0) out["generation"] = metadata.generation;
  if (!metadata.labels.empty()) out["labels"] = metadata.labels;
  if (!metadata.annotations.empty()) out["annotations"] = metadata.annotations;
  return out;
}

void AddData(const JobSpec& spec, json& out) {
  for (const Volume& volume : spec.volumes) {
    out["volumes"].push_back({{"name", volume.name}, {volume.kind, volume.source}});
  }
  for (const Input& input : spec.inputs) out["inputs"].push_back(ToJson(input));
  for (const SideInput& input : spec.side_inputs) {
    json side = PlaceJson(input.from);
    side["name"] = input.name;
    if (!input.mount_path.empty()) side["mountPath"] = input.mount_path;
    out["sideInputs"].push_back(std::move(side));
  }
  out["output"] = OutputJson(spec.output);
  out["logs"] = PlaceJson(spec.logs);
  out["state"] = spec.state.ephemeral ? json{{"ephemeral", true}} : PlaceJson(spec.state.in);
  out["rankMiniBatchCount"] = spec.rank_mini_batch_count;
  if (spec.partition_keys.empty()) {
    out["miniBatchSize"] = std::to_string(spec.mini_batch_size);
  } else {
    out["partitionKeys"] = spec.partition_keys;
  }
}

void AddRules(const JobSpec& spec, json& out) {
  if (spec.error_threshold) out["errorThreshold"] = *spec.error_threshold;
  if (spec.allowed_failed_count) out["allowedFailedCount"] = *spec.allowed_failed_count;
  if (spec.allowed_failed_percent) {
    out["allowedFailedPercent"] = NumberJson(*spec.allowed_failed_percent);
  }
  out["shortReturn"] = EnumWord(spec.short_return);
  out["runMaxTry"] = spec.run_max_try;
  out["isolateFailures"] = spec.isolate_failures;
  if (spec.speculation) out["speculation"] = *spec.speculation;
  out["runInvocationTimeoutSeconds"] = Seconds(spec.run_invocation_timeout);
  out["taskOverheadTimeoutSeconds"] = Seconds(spec.task_overhead_timeout);
  out["progressUpdateTimeoutSeconds"] = Seconds(spec.progress_update_timeout);
  out["firstTaskCreationTimeoutSeconds"] = Seconds(spec.first_task_creation_timeout);
  out["loggingLevel"] = EnumWord(spec.logging_level);
  out["resourceMonitorIntervalSeconds"] = Seconds(spec.resource_monitor_interval);
  out["profiling"] = EnumWord(spec.profiling);
  if (spec.node_restart_limit) out["nodeRestartLimit"] = *spec.node_restart_limit;
}

void AddLifeCycle(const JobSpec& spec, json& out) {
  out["cancel"] = spec.cancel;
  out["suspend"] = spec.suspend;
  out["deleteAfterFinished"] = spec.delete_after_finished;
  const auto add = [&](const char* name, const std::optional<Duration>& duration) {
    if (duration) out[name] = Seconds(*duration);
  };
  add("activeDeadlineSeconds", spec.active_deadline);
  add("ttlSecondsAfterFinished", spec.ttl_after_finished);
  add("startupDeadlineSeconds", spec.startup_deadline);
  if (!spec.managed_by.empty()) out["managedBy"] = spec.managed_by;
}

void AddPods(const JobSpec& spec, json& out) {
  out["nodeCount"] = spec.node_count;
  if (spec.process_count_per_node) out["processCountPerNode"] = *spec.process_count_per_node;
  if (!spec.resources.is_null()) out["resources"] = spec.resources;
  if (spec.shared_memory) out["sharedMemory"] = std::to_string(*spec.shared_memory);
  if (!spec.pod_template.is_null()) out["podTemplate"] = spec.pod_template;
  out["coordinator"] = {{"restartLimit", spec.coordinator.restart_limit}};
  if (!spec.coordinator.resources.is_null()) {
    out["coordinator"]["resources"] = spec.coordinator.resources;
  }
  if (!spec.coordinator.pod_template.is_null()) {
    out["coordinator"]["podTemplate"] = spec.coordinator.pod_template;
  }
}

// What is not said is the default: plans of before have none of it.
void AddTyping(const TabularOptions& tabular, json& out) {
  for (const auto& [column, type] : tabular.dtypes) out["dtypes"][column] = EnumWord(type);
  if (!tabular.na_values.empty()) out["naValues"] = tabular.na_values;
  if (!tabular.keep_default_na) out["keepDefaultNa"] = false;
  if (tabular.skip_rows > 0) out["skipRows"] = tabular.skip_rows;
  if (!tabular.comment.empty()) out["comment"] = tabular.comment;
  if (!tabular.escape.empty()) out["escape"] = tabular.escape;
  if (tabular.bad_rows != BadRows::kFail) out["badRows"] = EnumWord(tabular.bad_rows);
}

}  // namespace

json ToJson(const Input& input) {
  json from = PlaceJson(input.from);
  if (!input.pattern.empty()) from["pattern"] = input.pattern;
  if (!input.exclude.empty()) from["exclude"] = input.exclude;
  if (input.kind == InputKind::kTabular) {
    from["format"] = EnumWord(input.tabular.format);
    if (input.tabular.typing != Typing::kOnce) from["typing"] = EnumWord(input.tabular.typing);
    if (input.tabular.format != TabularFormat::kParquet) {
      from["delimiter"] = input.tabular.delimiter;
      from["header"] = EnumWord(input.tabular.header);
      from["encoding"] = input.tabular.encoding;
      from["quotedNewlines"] = input.tabular.quoted_newlines;
      AddTyping(input.tabular, from);
    }
  }
  json out = {{"name", input.name}};
  out[std::string(EnumWord(input.kind))] = std::move(from);
  if (!input.partition_format.empty()) out["partitionFormat"] = input.partition_format;
  return out;
}

json ToJson(const Job& job) {
  json spec = {{"entryScript", job.spec.entry_script}};
  if (const json code = CodeJson(job.spec.code); !code.is_null()) spec["code"] = code;
  if (!job.spec.arguments.empty()) spec["arguments"] = job.spec.arguments;
  spec["environment"] = EnvironmentJson(job.spec.environment);
  AddData(job.spec, spec);
  AddRules(job.spec, spec);
  AddLifeCycle(job.spec, spec);
  AddPods(job.spec, spec);
  return {{"apiVersion", kApiVersion},
          {"kind", kJobKind},
          {"metadata", MetadataJson(job.metadata)},
          {"spec", std::move(spec)}};
}

std::string CanonicalText(const json& json) {
  return json.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace parallelrun
