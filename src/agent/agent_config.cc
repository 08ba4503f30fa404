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

#include "agent/job_keys.h"
#include "agent/processes/frames.h"
#include "base/config_file.h"
#include "base/hex.h"
#include "base/json.h"
#include "base/random.h"
#include "base/version.h"
#include "job/gpu_slots.h"
#include "job/node_messages.h"
#include "job/pod_name.h"
#include "job/side_list.h"

namespace parallelrun::agent {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxConfig = size_t{1} << 20;
constexpr uint64_t kMostSeconds = 366 * 86400;

}  // namespace

Result<AgentConfig> ReadAgentConfig(const std::string& path) {
  const Result<std::string> text = ReadConfigFile(path, kMaxConfig);
  if (!text) return text.error();
  Json config = ParseJson(*text).value_or(nullptr);
  Members in(config, path);
  if (!in.Has("nodeFile")) return ParseAgentConfig(*text);
  const std::string node_file = in.Text("nodeFile");
  if (!in.status().ok()) return in.status().error();
  const Result<std::string> node_text = ReadConfigFile(node_file, kMaxConfig);
  if (!node_text) return node_text.error();
  const std::optional<Json> node = ParseObject(*node_text);
  if (!node) return Error{Code::kInvalid, node_file + " is no JSON object"};
  config.update(*node);
  return ParseAgentConfig(config.dump(-1, ' ', false, Json::error_handler_t::replace));
}

Result<AgentConfig> ParseAgentConfig(std::string_view json) {
  const Json parsed = ParseJson(json).value_or(nullptr);
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
  const Json parsed = ParseJson(json).value_or(nullptr);
  Members in(parsed, "the coordinator's answer to the registration");
  RegisterReply reply;
  reply.run_id = in.Text("runId");
  Registration& registration = reply.registration;
  registration.incarnation = {in.U32("epoch"), in.U32("incarnation")};
  // As text: JSON numbers of other programs end at 2^53.
  const std::optional<uint64_t> digest = ParseHex(in.Text("settingsDigest"));
  if (!digest) in.Fail("\"settingsDigest\" is not hexadecimal");
  registration.settings_digest = digest.value_or(0);
  registration.first_process = in.U32("firstProcess");
  registration.lease = seconds(static_cast<int64_t>(in.Unsigned("leaseSeconds", kMostSeconds)));
  const Json job = in.Value("job", Json::value_t::object);
  if (!in.status().ok()) return in.status().error();
  Result<JobSettings> settings = ReadJobKeys(job, registration);
  if (!settings) return settings.error();
  reply.job = std::move(*settings);
  return reply;
}

Result<JobSettings> ParseJobSettings(std::string_view json) {
  Registration unused;
  return ReadJobKeys(ParseJson(json).value_or(nullptr), unused);
}

std::string RegisterBody(const std::string& run_id, uint32_t node, uint32_t processes) {
  static const std::string instance = RandomHex(8);  // tells two agents of one name apart
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  Json body{{"protocol", job::kNodeProtocol},   {"release", kVersion}, {"processes", processes},
            {"host", std::string(host.data())}, {"pid", getpid()},     {"instance", instance}};
  if (const uint64_t pod = job::PodNumber(host.data(), fmt::format("node-{}", node)); pod != 0)
    body["pod"] = pod;
  if (!run_id.empty()) body["runId"] = run_id;
  return body.dump(-1, ' ', false, Json::error_handler_t::replace);
}

JobSettings ForProcess(const JobSettings& job, uint32_t process) {
  JobSettings own = job;
  if (job.staging.empty()) return own;
  own.staging += "/" + ProcessName(process) + "-" + RandomHex(8);
  own.output_folder = own.staging + "/out";
  const std::string_view mark = job::kOutputMark;
  for (std::string& argument : own.arguments) {
    for (size_t at = argument.find(mark); at != std::string::npos; at = argument.find(mark, at)) {
      argument.replace(at, mark.size(), own.output_folder);
      at += own.output_folder.size();
    }
  }
  return own;
}

std::string StartBody(const JobSettings& job, uint32_t node, uint32_t process) {
  Json body = ParseObject(job.worker).value_or(Json::object());
  for (const JobKey& key : JobKeys()) {
    if (key.start) body[key.name] = key.start(job);
  }
  if (!job.staging.empty()) body["staging"] = job.staging;
  if (!job.side_store.empty()) body["sendsSideFiles"] = true;
  body.update(Json{{"release", kVersion},
                   {"process", ProcessName(process)},
                   {"node", node},
                   {"metrics", true},
                   {"headers", true},
                   {"stackSignal", kStackSignal}});
  return body.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::optional<std::vector<std::string>> FindGpus() {
  uint32_t found = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator it("/dev", error), end; !error && it != end;
       it.increment(error)) {  // ++ throws
    const std::string name = it->path().filename();
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
  return job::GpuDevices(variable("CUDA_VISIBLE_DEVICES"), variable("NVIDIA_VISIBLE_DEVICES"),
                         found);
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

}  // namespace parallelrun::agent
