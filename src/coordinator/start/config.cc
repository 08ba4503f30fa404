#include "coordinator/start/config.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "api/arguments.h"
#include "api/enums.h"
#include "api/fields/told.h"
#include "api/store_users.h"
#include "azure/read_job.h"
#include "azure/script_arguments.h"
#include "azure/worker_flags.h"
#include "base/config_file.h"
#include "base/escape.h"
#include "base/hex.h"
#include "base/json.h"
#include "base/version.h"
#include "job/side_list.h"
#include "output/side_files.h"
#include "store/object_stores.h"

namespace parallelrun::coordinator {
namespace {

using nlohmann::json;

constexpr size_t kMaxConfigBytes = size_t{4} << 20;
constexpr char kOwnOutputs[] = "/var/lib/parallelrun/outputs";
// A node keeps three, for reports, parked calls and logs, and two more where it sends side files.
constexpr size_t kNodeConnections = 6;

Error Wrong(const std::string& key, const std::string& why) {
  return {Code::kInvalid, "configuration: " + key + ": " + why};
}

// "HOST:PORT", with an IPv6 address in brackets; ":PORT" is every address.
Status ParseAddress(const std::string& key, const std::string& address, HttpServerOptions& http) {
  const size_t colon = address.rfind(':');
  const std::string port = colon == std::string::npos ? "" : address.substr(colon + 1);
  if (port.empty() || port.size() > 5 ||
      port.find_first_not_of("0123456789") != std::string::npos || std::stoul(port) > 65535) {
    return Wrong(key, "\"" + address + "\" is not HOST:PORT");
  }
  http.host = address.substr(0, colon);
  if (http.host.starts_with('[') && http.host.ends_with(']')) {
    http.host = http.host.substr(1, http.host.size() - 2);
  }
  http.port = static_cast<uint16_t>(std::stoul(port));
  return {};
}

Result<HttpServerOptions> ParseListen(const json& listen) {
  Members in(listen, "configuration: listen");
  HttpServerOptions http;
  if (in.Has("fd")) {
    http.listen_fd = static_cast<int>(in.Unsigned("fd", INT32_MAX));
    if (!in.status().ok()) return in.status().error();
    return http;
  }
  if (!in.Has("address")) return Wrong("listen", "needs fd, or address as HOST:PORT");
  const std::string address = in.Text("address");
  http.tls_chain_file = in.TextOr("certificate", "");
  http.tls_key_file = in.TextOr("privateKey", "");
  if (!in.status().ok()) return in.status().error();
  if (const Status parsed = ParseAddress("listen.address", address, http); !parsed.ok()) {
    return parsed.error();
  }
  if (http.tls_chain_file.empty() != http.tls_key_file.empty()) {
    return Wrong("listen", "certificate and privateKey come together");
  }
  return http;
}

// Keys of the start frame that the agent passes on unread (docs/worker-protocol.md).
json WorkerKeys(const api::Job& job, const JobLayout& layout) {
  const azure::WorkerFlags flags = azure::WorkerFlagsOf(job.spec.arguments);
  const std::string& name_space = job.metadata.name_space;
  json worker = {{"runId", (name_space.empty() ? "local" : name_space) + "." + job.metadata.name},
                 {"asyncMode", flags.async_mode},
                 {"appendRowDataframeHeader", flags.append_row_dataframe_header},
                 {"appendRowSafeOutput", flags.append_row_safe_output},
                 {"componentMode", flags.component_mode},
                 {"mixedTypes", flags.mixed_types}};
  worker.update(api::fields::FieldsForWorkers(job.spec));
  for (const api::SideInput& side : job.spec.side_inputs) {
    const auto path = layout.placeholders.find("sideInputs." + side.name);
    if (path == layout.placeholders.end()) continue;
    worker["sideInputs"][side.name] = path->second;
    if (side.name == "model") worker["modelFolder"] = path->second;
  }
  return worker;
}

// What is elsewhere on a node than it is for the coordinator.
JobLayout OnNodes(const CoordinatorConfig& config, JobLayout layout) {
  // With an output in a store no volume is for what the script writes itself.
  if (config.in_pod() && !layout.output_store.empty()) layout.output_folder = kOwnOutputs;
  // Each process has one of its own.
  if (!layout.staging_folder.empty()) layout.placeholders["output"] = job::kOutputMark;
  // In a pod a side input may be mounted at a path of its own.
  for (const api::SideInput& side : config.job.spec.side_inputs) {
    if (config.in_pod() && !side.mount_path.empty()) {
      layout.placeholders["sideInputs." + side.name] = side.mount_path;
    }
  }
  return layout;
}

Result<api::Selection> SelectionOf(const json& object) {
  Members in(object, "configuration: selection");
  api::Selection selection;
  if (object.contains("limit")) selection.limit = in.Unsigned("limit", UINT64_MAX);
  const json files = in.ValueOr("files", json::object());
  if (object.contains("files")) selection.files.emplace();
  for (const auto& [input, digests] : files.items()) {
    std::vector<uint64_t>& chosen = (*selection.files)[input];
    for (const json& digest : digests) {
      if (!digest.is_number_unsigned()) return Wrong("selection.files." + input, "is no digest");
      chosen.push_back(digest.get<uint64_t>());
    }
    std::sort(chosen.begin(), chosen.end());
  }
  if (!in.status().ok()) return in.status().error();
  return selection;
}

// What it does not know beside the job is passed over: an operator may be newer.
Result<CoordinatorConfig> FromObject(const json& object) {
  Members in(object, "configuration");
  CoordinatorConfig config;
  const json job = in.Value("job", json::value_t::object);
  const json volumes = in.Value("volumes", json::value_t::object);
  const json store_keys = in.ValueOr("storeKeys", json::object());
  const json code_files = in.ValueOr("codeFiles", json::object());
  const auto read_texts = [](const json& from, const char* key,
                             std::map<std::string, std::string>& texts) -> Status {
    for (const auto& [name, text] : from.items()) {
      if (!text.is_string()) return Wrong(fmt::format("{}.{}", key, name), "is no text");
      texts[name] = text.get<std::string>();
    }
    return {};
  };
  if (Status s = read_texts(volumes, "volumes", config.volumes); !s.ok()) return s.error();
  if (Status s = read_texts(store_keys, "storeKeys", config.store_keys); !s.ok()) return s.error();
  if (Status s = read_texts(code_files, "codeFiles", config.code_files); !s.ok()) return s.error();
  config.installation = in.TextOr("installation", "");
  config.key = in.Text("key");
  const json listen = in.Value("listen", json::value_t::object);
  const std::string metrics_address = in.TextOr("metricsListen", "");
  config.resource_uid = in.Text("resourceUid");
  config.resume = in.BooleanOr("resume", false);
  config.overwrite = in.BooleanOr("overwrite", false);
  config.retry_failed = in.BooleanOr("retryFailed", false);
  const json selection = in.ValueOr("selection", json::object());
  const std::string digest = in.TextOr("codeDigest", "0");
  config.script_folder_first = in.BooleanOr("scriptFolderFirst", false);
  config.nodes = in.U32("nodes");
  config.processes = in.U32("processes");
  config.termination_message = in.TextOr("terminationMessage", "");
  config.page = in.BooleanOr("page", false);
  config.presign = in.BooleanOr("presign", false);
  const auto most_life = static_cast<uint64_t>(ToSeconds(store::kUrlLife));
  config.url_life = seconds(in.UnsignedOr("urlSeconds", most_life, most_life));
  config.ownerless_limit = seconds(in.UnsignedOr("ownerlessSeconds", UINT32_MAX, 24 * 3600));
  if (!in.status().ok()) return in.status().error();

  api::ParsedJob parsed = azure::ReadJob(job, api::Target::kLocal);
  if (!parsed.ok()) {
    std::string problems = "configuration: job:";
    for (const api::Problem& problem : parsed.problems)
      problems += "\n" + api::FormatProblem(problem, "job");
    return Error{Code::kInvalid, problems};
  }
  config.job = std::move(parsed.job);
  Result<api::Selection> taken = SelectionOf(selection);
  if (!taken.ok()) return taken.error();
  config.selection = std::move(*taken);
  Result<HttpServerOptions> http = ParseListen(listen);
  if (!http.ok()) return http.error();
  config.http = std::move(*http);
  config.http.max_connections =
      std::max(config.http.max_connections, kNodeConnections * config.nodes);
  if (!metrics_address.empty()) {
    const Status metrics =
        ParseAddress("metricsListen", metrics_address, config.metrics_http.emplace());
    if (!metrics.ok()) return metrics.error();
    LimitPublicPort(*config.metrics_http);
  }
  const std::optional<uint64_t> code_digest = ParseHex(digest);
  if (!code_digest) return Wrong("codeDigest", "must be 1 to 16 hexadecimal digits");
  config.code_digest = *code_digest;
  if (config.key.size() < 32) return Wrong("key", "needs at least 32 characters");
  return config;
}

}  // namespace

Result<CoordinatorConfig> ParseConfig(const std::string& text) {
  const std::optional<json> object = ParseObject(text);
  if (!object) return Error{Code::kInvalid, "configuration: not a JSON object"};
  Result<CoordinatorConfig> config = FromObject(*object);
  if (config.ok()) return config;
  // An operator that was upgraded writes for the image that a job began with.
  const std::string release = lenient::Text(*object, "release");
  if (release.empty() || release == kVersion) return config;
  const std::string writer = Printable(release, 40);
  return Error{
      config.error().code,
      fmt::format("{}\nparallelrun {} wrote this, and this is parallelrun {}: use {}, or a "
                  "later one, or what both know",
                  config.error().message, writer, kVersion, writer)};
}

Result<CoordinatorConfig> ReadConfig(const std::string& path) {
  const Result<std::string> text = ReadConfigFile(path, kMaxConfigBytes);
  if (!text.ok()) return text.error();
  return ParseConfig(*text);
}

bool NodesReadByUrls(const CoordinatorConfig& config, const api::ObjectStore& store) {
  return config.presign && store::SignsUrls(store.url) &&
         api::NodesFetchFrom(config.job.spec, store.name) && !store.node_credentials;
}

std::string OutputFileOf(const CoordinatorConfig& config) {
  const api::Output& output = config.job.spec.output;
  return output.action == api::OutputAction::kAppendRow ? output.file_name : "";
}

Result<std::string> AgentJob(const CoordinatorConfig& config, const JobLayout& mounted,
                             const std::vector<job::SideInput>& side_inputs) {
  const JobLayout layout = OnNodes(config, mounted);
  const api::JobSpec& spec = config.job.spec;
  if (layout.stages && azure::WorkerFlagsOf(spec.arguments).async_mode) {
    return Error{Code::kInvalid,
                 "spec.output.sideFiles: Staged takes the files of a mini-batch when its run() has "
                 "returned, and async mode has several at once: remove it, or --amlbi_async_mode"};
  }
  const Result<std::vector<std::string>> arguments =
      azure::ScriptArguments(config.job, layout.placeholders);
  if (!arguments.ok()) return arguments.error();
  json environment = json::object();
  for (const json& entry : spec.environment.env) {
    // In a pod, and with valueFrom, they are the kubelet's business, which also fills in $(NAME).
    // Locally a variable with valueFrom comes from the caller's shell.
    const json& value = lenient::At(entry, "value");
    if (!config.in_pod() && !value.is_null()) environment[lenient::Text(entry, "name")] = value;
  }
  json worker = WorkerKeys(config.job, layout);
  if (config.script_folder_first) worker["scriptFolderFirst"] = true;
  if (!layout.staging_folder.empty()) {
    worker["outputFolders"] = api::FoldersOfOutput(spec.arguments, azure::Placeholders());
    worker["reservedNames"] =
        output::ReservedNames(OutputFileOf(config), !layout.output_store.empty());
  }
  json stores = json::array();
  for (const api::ObjectStore& store : spec.stores) {
    if (!api::NodesFetchFrom(spec, store.name)) continue;
    json& told = stores.emplace_back(json{{"name", store.name},
                                          {"url", store.url},
                                          {"region", store.region},
                                          {"endpoint", store.endpoint}});
    if (store.path_style) told["pathStyle"] = *store.path_style;
    if (NodesReadByUrls(config, store)) {
      told["byUrls"] = true;
      continue;
    }
    const store::KeyFiles& keys = layout.stores.at(store.name).keys;
    if (!keys.folder.empty()) told["keys"] = {{"folder", keys.folder}, {"of", keys.of}};
  }
  json job = api::fields::FieldsForNodes(spec);
  // A local run does not start the image.
  if (!config.in_pod()) job["image"] = "";
  job.update(json{{"arguments", *arguments},
                  {"outputFolder", layout.output_folder},
                  {"processes", config.processes},
                  {"speculation", config.speculation()},
                  {"environment", environment},
                  {"sideInputs", job::SideInputsJson(side_inputs)},
                  {"stores", stores},
                  {"worker", worker}});
  if (!layout.staging_folder.empty()) {
    // In a store they are staged on each node's own disk.
    const std::string& published = layout.published_path;
    job[layout.output_store.empty() ? "staging" : "sideStore"] =
        layout.output_store.empty() ? layout.staging_folder
                                    : published.substr(0, published.rfind('/'));
  }
  return job.dump();
}

}  // namespace parallelrun::coordinator
