#include "coordinator/start/config.h"

#include <spdlog/fmt/fmt.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "api/arguments.h"
#include "api/enums.h"
#include "azure/read_job.h"
#include "azure/worker_flags.h"
#include "base/config_file.h"
#include "base/escape.h"
#include "base/version.h"

namespace parallelrun {
namespace {

using nlohmann::json;

constexpr size_t kMaxConfigBytes = size_t{4} << 20;
constexpr size_t kNodeConnections = 4;  // a node keeps three: reports, parked calls, logs

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
  HttpServerOptions http;
  if (listen.contains("fd") && listen["fd"].is_number_unsigned()) {
    http.listen_fd = listen["fd"].get<int>();
    return http;
  }
  if (!listen.contains("address") || !listen["address"].is_string()) {
    return Wrong("listen", "needs fd, or address as HOST:PORT");
  }
  if (const Status parsed = ParseAddress("listen.address", listen["address"], http); !parsed.ok()) {
    return parsed.error();
  }
  http.tls_chain_file = listen.value("certificate", "");
  http.tls_key_file = listen.value("privateKey", "");
  if (http.tls_chain_file.empty() != http.tls_key_file.empty()) {
    return Wrong("listen", "certificate and privateKey come together");
  }
  return http;
}

uint64_t WholeSeconds(Duration duration) {
  return static_cast<uint64_t>(std::chrono::ceil<seconds>(duration).count());
}

const char* LevelName(LoggingLevel level) {
  switch (level) {
    case LoggingLevel::kWarning: return "WARNING";
    case LoggingLevel::kInfo: return "INFO";
    case LoggingLevel::kDebug: return "DEBUG";
  }
  return "INFO";
}

// Keys of the start frame that the agent passes on unread (docs/worker-protocol.md).
json WorkerKeys(const Job& job, const JobLayout& layout) {
  const azure::WorkerFlags flags = azure::WorkerFlagsOf(job.spec.arguments);
  const std::string& name_space = job.metadata.name_space;
  json worker = {{"runId", (name_space.empty() ? "local" : name_space) + "." + job.metadata.name},
                 {"asyncMode", flags.async_mode},
                 {"appendRowDataframeHeader", flags.append_row_dataframe_header},
                 {"appendRowSafeOutput", flags.append_row_safe_output},
                 {"componentMode", flags.component_mode},
                 {"mixedTypes", flags.mixed_types},
                 {"shortReturn", EnumWord(job.spec.short_return)}};
  for (const SideInput& side : job.spec.side_inputs) {
    const auto path = layout.placeholders.find("sideInputs." + side.name);
    if (path == layout.placeholders.end()) continue;
    worker["sideInputs"][side.name] = path->second;
    if (side.name == "model") worker["modelFolder"] = path->second;
  }
  if (job.spec.output.format != OutputFormat::kText) {
    worker["outputFormat"] = EnumWord(job.spec.output.format);
    worker["nanAsNull"] = job.spec.output.nan_as_null;
  }
  if (job.spec.profiling == Profiling::kCProfile) worker["profiling"] = "cProfile";
  if (job.spec.profiling == Profiling::kProfile) worker["profiling"] = "profile";
  return worker;
}

// In a pod a side input may be mounted at a path of its own.
JobLayout OnNodes(const CoordinatorConfig& config, JobLayout layout) {
  for (const SideInput& side : config.job.spec.side_inputs) {
    if (config.in_pod() && !side.mount_path.empty()) {
      layout.placeholders["sideInputs." + side.name] = side.mount_path;
    }
  }
  return layout;
}

// What it does not know beside the job is passed over: an operator may be newer.
Result<CoordinatorConfig> FromObject(const json& object) {
  CoordinatorConfig config;
  try {
    ParsedJob parsed = azure::ReadJob(object.at("job"), Target::kLocal);
    if (!parsed.ok()) {
      std::string problems = "configuration: job:";
      for (const Problem& problem : parsed.problems)
        problems += "\n" + FormatProblem(problem, "job");
      return Error{Code::kInvalid, problems};
    }
    config.job = std::move(parsed.job);
    for (const auto& [name, folder] : object.at("volumes").items()) {
      config.volumes[name] = folder.get<std::string>();
    }
    config.key = object.at("key").get<std::string>();
    Result<HttpServerOptions> http = ParseListen(object.at("listen"));
    if (!http.ok()) return http.error();
    config.http = std::move(*http);
    if (const std::string address = object.value("metricsListen", ""); !address.empty()) {
      const Status metrics = ParseAddress("metricsListen", address, config.metrics_http.emplace());
      if (!metrics.ok()) return metrics.error();
      LimitPublicPort(*config.metrics_http);
    }
    config.resource_uid = object.at("resourceUid").get<std::string>();
    config.resume = object.value("resume", false);
    config.overwrite = object.value("overwrite", false);
    config.retry_failed = object.value("retryFailed", false);
    const std::string digest = object.value("codeDigest", std::string("0"));
    const char* end = digest.data() + digest.size();
    if (const auto read = std::from_chars(digest.data(), end, config.code_digest, 16);
        read.ec != std::errc() || read.ptr != end) {
      return Wrong("codeDigest", "must be 1 to 16 hexadecimal digits");
    }
    config.script_folder_first = object.value("scriptFolderFirst", false);
    config.nodes = object.at("nodes").get<uint32_t>();
    config.http.max_connections =
        std::max(config.http.max_connections, kNodeConnections * config.nodes);
    config.processes = object.at("processes").get<uint32_t>();
    config.termination_message = object.value("terminationMessage", "");
    config.ownerless_limit = seconds(object.value("ownerlessSeconds", uint32_t{24 * 3600}));
  } catch (const std::exception& e) {
    return Error{Code::kInvalid, std::string("configuration: ") + e.what()};
  }
  if (config.key.size() < 32) return Wrong("key", "needs at least 32 characters");
  return config;
}

}  // namespace

Result<CoordinatorConfig> ParseConfig(const std::string& text) {
  const json object = json::parse(text, nullptr, false);
  if (!object.is_object()) return Error{Code::kInvalid, "configuration: not a JSON object"};
  Result<CoordinatorConfig> config = FromObject(object);
  if (config.ok()) return config;
  // An operator that was upgraded writes for the image that a job began with.
  const auto release = object.find("release");
  if (release == object.end() || !release->is_string() || *release == kVersion) return config;
  const std::string writer = Printable(release->get<std::string>(), 40);
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

Result<std::string> AgentJob(const CoordinatorConfig& config, const JobLayout& mounted) {
  const JobLayout layout = OnNodes(config, mounted);
  const JobSpec& spec = config.job.spec;
  const Result<std::vector<std::string>> arguments =
      ScriptArguments(config.job, layout.placeholders);
  if (!arguments.ok()) return arguments.error();
  json environment = json::object();
  for (const json& entry : spec.environment.env) {
    // In a pod, and with valueFrom, they are the kubelet's business, which also fills in $(NAME).
    // Locally a variable with valueFrom comes from the caller's shell.
    if (!config.in_pod() && entry.contains("value"))
      environment[entry.at("name").get<std::string>()] = entry.at("value");
  }
  json worker = WorkerKeys(config.job, layout);
  if (config.script_folder_first) worker["scriptFolderFirst"] = true;
  json stores = json::array();
  for (const ObjectStore& store : spec.stores) {
    json& told = stores.emplace_back(json{{"name", store.name},
                                          {"url", store.url},
                                          {"region", store.region},
                                          {"endpoint", store.endpoint}});
    if (store.path_style) told["pathStyle"] = *store.path_style;
  }
  const json job = {
      {"entryScript", spec.entry_script},
      {"arguments", *arguments},
      {"outputFolder", layout.output_folder},
      {"outputAction",
       spec.output.action == OutputAction::kAppendRow ? "AppendRow" : "SummaryOnly"},
      {"loggingLevel", LevelName(spec.logging_level)},
      {"processes", config.processes},
      {"runTimeoutSeconds", WholeSeconds(spec.run_invocation_timeout)},
      {"overheadTimeoutSeconds", WholeSeconds(spec.task_overhead_timeout)},
      {"shutdownTimeoutSeconds", WholeSeconds(spec.shutdown_timeout)},
      {"speculation", config.speculation()},
      {"environment", environment},
      {"python", spec.environment.python},
      {"resourceMonitorIntervalSeconds", WholeSeconds(spec.resource_monitor_interval)},
      {"image", config.in_pod() ? spec.environment.image : ""},
      {"stores", stores},
      {"cacheBytes", spec.cache.size},
      {"worker", worker},
  };
  return job.dump();
}

}  // namespace parallelrun
