// A v1 ParallelRunConfig, and a batch deployment.
#include <algorithm>
#include <cctype>

#include "api/text.h"
#include "azure/convert/common.h"

namespace parallelrun::azure {

Draft ReadRunConfig(const api::Node& root, const std::string& name) {
  Draft draft{.source = "a ParallelRunConfig", .name = JobNameFrom(name)};
  Section top(&root, "", draft);
  Section config = top.Map("parallel_run_config");
  if (!config.there()) {
    draft.Refuse("parallel_run_config", "is not a map of settings",
                 "convert the file that it names, or write the settings out");
    return draft;
  }
  draft.Lose("parallel_run_config",
             "inputs, side inputs, output and arguments stand in the ParallelRunStep, not here",
             "fill in spec.inputs, spec.sideInputs and spec.arguments");
  if (const std::string own = config.Text("name"); !own.empty()) draft.name = JobNameFrom(own);
  draft.description = config.Text("description");
  ReadCode(config.Text("source_directory"), config.Text("entry_script"),
           config.PathOf("source_directory"), draft);
  ReadAzureEnvironment(config.Take("environment"), config.PathOf("environment"), draft);
  ReadVariables(config.Take("environment_variables"), config.PathOf("environment_variables"),
                draft);
  draft.append = api::Squashed(config.Text("output_action")) != "summaryonly";
  draft.file_name = config.Text("append_row_file_name");
  ReadAzureKeys(config.Take("partition_keys"), config.PathOf("partition_keys"), "", draft);
  const std::string size = config.Text("mini_batch_size");
  const bool bytes = !size.empty() && std::isalpha(static_cast<unsigned char>(size.back())) != 0;
  if (bytes) draft.kind = api::InputKind::kTabular;
  if (draft.partition_keys.empty()) draft.mini_batch_size = size;
  const auto integer = [&](const char* key, const char* field, int64_t least) {
    SetInteger(config.Text(key), config.PathOf(key), field, least, 0, draft);
  };
  integer("node_count", "nodeCount", 1);
  integer("process_count_per_node", "processCountPerNode", 1);
  integer("error_threshold", "errorThreshold", -1);
  integer("allowed_failed_count", "allowedFailedCount", -1);
  SetPercent(config.Text("allowed_failed_percent"), config.PathOf("allowed_failed_percent"),
             "allowedFailedPercent", draft);
  integer("run_max_try", "runMaxTry", 1);
  integer("run_invocation_timeout", "runInvocationTimeoutSeconds", 1);
  SetLevel(config.Text("logging_level"), config.PathOf("logging_level"), draft);
  config.Pass({"input_format"});
  LoseCloud(config);
  config.Finish();
  top.Finish();
  draft.inputs = {{"input", ".", "the dataset of the ParallelRunStep"}};
  return draft;
}

namespace {

// Settings of a deployment stand below "settings", and before that stood at the top.
std::string Either(Section& settings, Section& top, const std::string& key, std::string& field) {
  const std::string text = settings.Text(key);
  const std::string old = top.Text(key);
  field = text.empty() ? top.PathOf(key) : settings.PathOf(key);
  return text.empty() ? old : text;
}

void ReadModel(const api::Node* model, const std::string& field, Draft& draft) {
  if (model == nullptr) return;
  const api::Node* const path = model->kind == api::Node::Kind::kMap ? model->Find("path") : model;
  const std::string address = path != nullptr ? path->text : "";
  DraftData side{.name = "model", .path = PathInStorage(address), .comment = "was " + address};
  if (!address.empty() && !IsElsewhere(address)) side.folder = address;
  draft.side_inputs.push_back(std::move(side));
  draft.Lose(field, "models are not fetched from a workspace",
             "put the model's folder on the volume of the side input model, which is "
             "AZUREML_MODEL_DIR");
}

}  // namespace

Draft ReadBatchDeployment(const api::Node& root, const std::string& name) {
  Draft draft{.source = "a batch deployment", .name = JobNameFrom(name)};
  Section top(&root, "", draft);
  if (top.Text("type") == "pipeline") {
    draft.Refuse("type", "a deployment of a pipeline runs no entry script of its own",
                 "convert the parallel steps of the pipeline");
    return draft;
  }
  if (const std::string own = top.Text("name"); !own.empty()) draft.name = JobNameFrom(own);
  draft.description = top.Text("description");
  Section code = top.Map("code_configuration");
  const std::string script = code.Text("scoring_script");
  const std::string folder = code.Text("code");
  if (!script.empty()) {
    ReadCode(folder, script, code.PathOf("code"), draft);
  } else {
    // No name for it is made up: whoever wrote that file into the job would look for it.
    if (!folder.empty() && !IsElsewhere(folder)) draft.code = folder;
    draft.Lose("code_configuration",
               "there is no scoring script: Azure ML makes one for MLflow models",
               "write one with init() and run(mini_batch), which loads the model from "
               "AZUREML_MODEL_DIR, and name it in spec.entryScript");
  }
  code.Finish();
  ReadModel(top.Take("model"), "model", draft);
  ReadAzureEnvironment(top.Take("environment"), "environment", draft);
  ReadVariables(top.Take("environment_variables"), "environment_variables", draft);

  Section resources = top.Map("resources");
  Section settings = top.Map("settings");
  std::string field;
  ReadVariables(settings.Take("environment_variables"), "settings.environment_variables", draft);
  const std::string nodes = Either(settings, resources, "instance_count", field);
  SetInteger(nodes, field, "nodeCount", 1, 0, draft);
  resources.Lose("instance_type", "machine types of the cloud are not carried over",
                 "write spec.resources, and spec.podTemplate.spec.nodeSelector");
  resources.Pass({"properties"});
  resources.Finish();
  // What this kind of file has for default differs from a job's, and is written out.
  const auto integer = [&](const char* key, const char* otherwise, const char* target,
                           int64_t least) {
    const std::string text = Either(settings, top, key, field);
    SetInteger(text.empty() ? otherwise : text,
               text.empty() ? "default of batch deployments" : field, target, least, 0, draft);
  };
  integer("max_concurrency_per_instance", "1", "processCountPerNode", 1);
  integer("error_threshold", "", "errorThreshold", -1);
  Section retry = settings.Map("retry_settings");
  Section old_retry = top.Map("retry_settings");
  const std::string retries = Either(retry, old_retry, "max_retries", field);
  SetInteger(retries.empty() ? "3" : retries,
             retries.empty() ? "default of batch deployments (3 retries)" : field, "runMaxTry", 0,
             1, draft);
  const std::string timeout = Either(retry, old_retry, "timeout", field);
  SetInteger(timeout.empty() ? "30" : timeout,
             timeout.empty() ? "default of batch deployments" : field,
             "runInvocationTimeoutSeconds", 1, 0, draft);
  retry.Finish();
  old_retry.Finish();
  const std::string level = Either(settings, top, "logging_level", field);
  SetLevel(level, field, draft);
  const std::string size = Either(settings, top, "mini_batch_size", field);
  draft.mini_batch_size = size.empty() ? "10" : size;
  draft.append = api::Squashed(Either(settings, top, "output_action", field)) != "summaryonly";
  const std::string file_name = Either(settings, top, "output_file_name", field);
  draft.file_name = file_name.empty() ? "predictions.csv" : file_name;
  settings.Finish();

  top.Lose("endpoint_name", "a job has no address to invoke",
           "start one job for each invocation: parallelrun run, or kubectl create");
  top.Pass({"default", "properties"});
  LoseCloud(top);
  top.Finish();
  draft.inputs = {{"input", ".", "the data of the invocation"}};
  return draft;
}

}  // namespace parallelrun::azure
