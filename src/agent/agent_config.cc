#include "agent/agent_config.h"

#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "agent/processes/frames.h"
#include "base/config_file.h"
#include "base/random.h"
#include "base/version.h"
#include "job/gpu_slots.h"
#include "job/node_messages.h"
#include "job/pod_name.h"

namespace parallelrun {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxConfig = size_t{1} << 20;
constexpr uint64_t kLeastLogLimit = uint64_t{64} << 10;
constexpr uint64_t kMostSeconds = 366 * 86400;

// Reads members of one JSON object; the first that is missing or of another type is the error.
class Members {
 public:
  Members(const Json& object, std::string what) : object_(object), what_(std::move(what)) {
    if (!object_.is_object()) Fail("it is no JSON object");
  }

  std::string Text(const char* key) {
    const Json* value = Find(key, Json::value_t::string);
    return value == nullptr ? "" : value->get<std::string>();
  }
  std::string TextOr(const char* key, std::string missing) {
    return Has(key) ? Text(key) : std::move(missing);
  }
  uint64_t Unsigned(const char* key, uint64_t most) {
    const Json* value = Find(key, Json::value_t::number_unsigned);
    if (value == nullptr) return 0;
    const auto number = value->get<uint64_t>();
    if (number > most) Fail(fmt::format("\"{}\" is above {}", key, most));
    return number;
  }
  uint64_t UnsignedOr(const char* key, uint64_t most, uint64_t missing) {
    return Has(key) ? Unsigned(key, most) : missing;
  }
  Json ValueOr(const char* key, Json missing) {
    return Has(key) ? Value(key, missing.type()) : std::move(missing);
  }
  uint32_t U32(const char* key) { return static_cast<uint32_t>(Unsigned(key, UINT32_MAX)); }
  Json Value(const char* key, Json::value_t type) {
    const Json* value = Find(key, type);
    return value == nullptr ? Json(type) : *value;
  }
  void Fail(const std::string& why) {
    if (status_.ok()) status_ = Error{Code::kInvalid, what_ + ": " + why};
  }
  const Status& status() const { return status_; }

 private:
  bool Has(const char* key) const { return object_.is_object() && object_.contains(key); }
  const Json* Find(const char* key, Json::value_t type) {
    if (!status_.ok()) return nullptr;
    const auto it = object_.find(key);
    if (it != object_.end() && it->type() == type) return &*it;
    Fail(fmt::format("\"{}\" is missing or has the wrong type", key));
    return nullptr;
  }

  const Json& object_;
  std::string what_;
  Status status_;
};

Result<JobSettings> ParseJob(const Json& object, Registration& registration) {
  Members in(object, "the job in the coordinator's answer");
  JobSettings job;
  job.entry_script = in.Text("entryScript");
  for (const Json& argument : in.Value("arguments", Json::value_t::array)) {
    if (argument.is_string()) {
      job.arguments.push_back(argument.get<std::string>());
    } else {
      in.Fail("an argument is no string");
    }
  }
  job.output_folder = in.Text("outputFolder");
  job.output_action = in.Text("outputAction");
  job.logging_level = in.Text("loggingLevel");
  const Json environment = in.Value("environment", Json::value_t::object);
  for (const auto& [name, value] : environment.items()) {
    if (value.is_string()) {
      job.environment.emplace_back(name, value.get<std::string>());
    } else {
      in.Fail("an environment variable is no string");
    }
  }
  job.python = in.TextOr("python", "python3");
  if (job.python.empty()) job.python = "python3";
  job.image = in.TextOr("image", "");
  registration.processes = in.U32("processes");
  if (registration.processes == 0) in.Fail("\"processes\" is 0");
  registration.run_timeout =
      seconds(static_cast<int64_t>(in.Unsigned("runTimeoutSeconds", kMostSeconds)));
  registration.overhead_timeout =
      seconds(static_cast<int64_t>(in.Unsigned("overheadTimeoutSeconds", kMostSeconds)));
  if (object.contains("shutdownTimeoutSeconds")) {
    registration.shutdown_timeout =
        seconds(static_cast<int64_t>(in.Unsigned("shutdownTimeoutSeconds", kMostSeconds)));
  }
  registration.speculation = !object.contains("speculation") || object["speculation"] != false;
  for (const Json& store : in.ValueOr("stores", Json::array())) {
    Members of(store, "a store in the coordinator's answer");
    JobStore& known = job.stores.emplace_back(
        JobStore{of.Text("name"), of.Text("url"), of.Text("region"), of.Text("endpoint"), {}});
    const auto style = store.find("pathStyle");
    if (style != store.end() && style->is_boolean()) known.path_style = style->get<bool>();
    if (!of.status().ok()) return of.status().error();
  }
  job.cache_bytes = in.UnsignedOr("cacheBytes", UINT64_MAX, 0);
  const Json worker = in.ValueOr("worker", Json::object());
  job.worker = worker.dump();
  const auto async = worker.find("asyncMode");
  registration.append_row = job.output_action == "AppendRow";
  registration.async = async != worker.end() && *async == true;
  job.resource_monitor_interval = seconds(
      static_cast<int64_t>(in.UnsignedOr("resourceMonitorIntervalSeconds", kMostSeconds, 0)));
  job.log_limit = in.UnsignedOr("logLimitBytes", UINT64_MAX, job.log_limit);
  if (job.log_limit < kLeastLogLimit) job.log_limit = kLeastLogLimit;
  if (!in.status().ok()) return in.status().error();
  return job;
}

// Settings digests are hexadecimal text: JSON numbers of other programs end at 2^53.
bool ParseHex(const std::string& text, uint64_t& value) {
  if (text.empty() || text.size() > 16) return false;
  if (text.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos) return false;
  value = std::stoull(text, nullptr, 16);
  return true;
}

}  // namespace

Result<AgentConfig> ReadAgentConfig(const std::string& path) {
  const Result<std::string> text = ReadConfigFile(path, kMaxConfig);
  if (!text) return text.error();
  Json config = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!config.is_object() || !config.contains("nodeFile")) return ParseAgentConfig(*text);
  if (!config["nodeFile"].is_string()) {
    return Error{Code::kInvalid, path + ": \"nodeFile\" is no string"};
  }
  const std::string node_file = config["nodeFile"];
  const Result<std::string> node_text = ReadConfigFile(node_file, kMaxConfig);
  if (!node_text) return node_text.error();
  const Json node = Json::parse(*node_text, nullptr, /*allow_exceptions=*/false);
  if (!node.is_object()) return Error{Code::kInvalid, node_file + " is no JSON object"};
  config.update(node);
  return ParseAgentConfig(config.dump(-1, ' ', false, Json::error_handler_t::replace));
}

Result<AgentConfig> ParseAgentConfig(std::string_view json) {
  const Json parsed = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  Members in(parsed, "the agent's configuration");
  AgentConfig config;
  config.url = in.Text("url");
  config.token = in.Text("token");
  config.certificate_authority = in.TextOr("certificateAuthority", "");
  config.node = in.U32("node");
  config.code_folder = in.Text("codeFolder");
  config.work_folder = in.Text("workFolder");
  config.python_path = in.Text("pythonPath");
  if (!in.status().ok()) return in.status().error();
  return config;
}

Result<RegisterReply> ParseRegisterReply(std::string_view json) {
  const Json parsed = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  Members in(parsed, "the coordinator's answer to the registration");
  RegisterReply reply;
  reply.run_id = in.Text("runId");
  Registration& registration = reply.registration;
  registration.incarnation = {in.U32("epoch"), in.U32("incarnation")};
  if (!ParseHex(in.Text("settingsDigest"), registration.settings_digest)) {
    in.Fail("\"settingsDigest\" is not hexadecimal");
  }
  registration.first_process = in.U32("firstProcess");
  registration.lease = seconds(static_cast<int64_t>(in.Unsigned("leaseSeconds", kMostSeconds)));
  const Json job = in.Value("job", Json::value_t::object);
  if (!in.status().ok()) return in.status().error();
  Result<JobSettings> settings = ParseJob(job, registration);
  if (!settings) return settings.error();
  reply.job = std::move(*settings);
  return reply;
}

std::string RegisterBody(const std::string& run_id, uint32_t node, uint32_t processes) {
  static const std::string instance = RandomHex(8);  // tells two agents of one name apart
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  Json body{{"protocol", kNodeProtocol},        {"release", kVersion}, {"processes", processes},
            {"host", std::string(host.data())}, {"pid", getpid()},     {"instance", instance}};
  if (const uint64_t pod = PodNumber(host.data(), fmt::format("node-{}", node)); pod != 0)
    body["pod"] = pod;
  if (!run_id.empty()) body["runId"] = run_id;
  return body.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string StartBody(const JobSettings& job, uint32_t node, uint32_t process) {
  Json body = Json::parse(job.worker.empty() ? "{}" : job.worker);
  body.update(Json{{"release", kVersion},
                   {"entryScript", job.entry_script},
                   {"arguments", job.arguments},
                   {"process", ProcessName(process)},
                   {"node", node},
                   {"outputFolder", job.output_folder},
                   {"outputAction", job.output_action},
                   {"loggingLevel", job.logging_level},
                   {"image", job.image},
                   {"metrics", true},
                   {"headers", true},
                   {"stackSignal", kStackSignal}});
  return body.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::optional<std::vector<std::string>> FindGpus() {
  uint32_t found = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/dev", error)) {
    const std::string name = entry.path().filename();
    if (name.size() > 6 && name.starts_with("nvidia") &&
        name.find_first_not_of("0123456789", 6) == std::string::npos) {
      ++found;
    }
  }
  const auto variable = [](const char* name) -> std::optional<std::string_view> {
    const char* value = std::getenv(name);
    if (value == nullptr) return std::nullopt;
    return value;
  };
  return GpuDevices(variable("CUDA_VISIBLE_DEVICES"), variable("NVIDIA_VISIBLE_DEVICES"), found);
}

std::vector<std::string> WorkerEnvironment(const std::vector<std::string>& inherited,
                                           const JobSettings& job, const std::string& python_path,
                                           const GpuGrant& gpu) {
  std::map<std::string, std::string> variables;
  for (const std::string& entry : inherited) {
    const size_t equals = entry.find('=');
    if (equals != std::string::npos) variables[entry.substr(0, equals)] = entry.substr(equals + 1);
  }
  variables.emplace("AZ_BATCHAI_GPU_COUNT_FOUND", "0");  // scripts read it on any machine
  if (gpu.count) {
    variables["AZ_BATCHAI_GPU_COUNT_FOUND"] = std::to_string(*gpu.count);
    // Where they are used up, the contract wants no variable; where there are none, the node's
    // own, which hides them all, stays.
    if (*gpu.count > 0) variables.erase("CUDA_VISIBLE_DEVICES");
    if (gpu.device) variables["CUDA_VISIBLE_DEVICES"] = *gpu.device;
  }
  for (const auto& [name, value] : job.environment) variables[name] = value;
  variables["AZUREML_BI_OUTPUT_PATH"] = job.output_folder;
  std::string& path = variables["PYTHONPATH"];
  path += (path.empty() ? "" : ":") + python_path;  // last: the user's packages win
  std::vector<std::string> environment;
  environment.reserve(variables.size());
  for (const auto& [name, value] : variables) environment.push_back(name + "=" + value);
  return environment;
}

}  // namespace parallelrun
