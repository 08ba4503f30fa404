// What an agent is told: its configuration file, and the answer to its registration
// (docs/coordinator-api.md). Parsing is pure; ReadAgentConfig reads.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/core/agent_types.h"
#include "base/error.h"
#include "job/side_inputs.h"
#include "store/url_table.h"
#include "store/wished.h"

namespace parallelrun::agent {

struct AgentConfig {
  std::string url;
  std::string token;
  std::string certificate_authority;  // PEM file; "" without TLS
  uint32_t node = 0;
  std::string code_folder;
  std::string work_folder;
  std::string python_path;
};

// Where objects of inputs lie.
struct JobStore {
  std::string name;
  store::Wished wished;
  std::shared_ptr<store::UrlTable> urls;  // by which its objects are read; null: by keys
};

// What the agent needs of the job.
struct JobSettings {
  std::string entry_script;
  std::vector<std::string> arguments;
  std::string output_folder;
  std::string output_action;
  // With output.sideFiles: Staged the folder of all that processes write there; else empty.
  std::string staging = {};
  // Where side files go that are staged on this node's own disk, as the output lies in a store:
  // its URL; else empty.
  std::string side_store = {};
  std::string logging_level;
  std::vector<std::pair<std::string, std::string>> environment;
  std::string python;
  std::string image;                        // of the node, for messages; "": unknown
  std::vector<job::SideInput> side_inputs;  // that lie in stores
  std::vector<JobStore> stores;
  uint64_t cache_bytes = 0;  // of their objects, side inputs among them
  std::string worker;        // JSON object: more keys of the start frame
  uint32_t processes_per_gpu = 1;
  Duration resource_monitor_interval{0};   // 0: off
  uint64_t log_limit = uint64_t{1} << 30;  // bytes, of a process's stdout or stderr
};

struct RegisterReply {
  std::string run_id;
  Registration registration;
  JobSettings job;
};

// Reads the configuration file (or a pipe), at most 1 MiB, and the file that its "nodeFile" names.
Result<AgentConfig> ReadAgentConfig(const std::string& path);
Result<AgentConfig> ParseAgentConfig(std::string_view json);

// The job in that answer alone, as the coordinator makes it (coordinator/start/config.h).
Result<JobSettings> ParseJobSettings(std::string_view json);
Result<RegisterReply> ParseRegisterReply(std::string_view json);
// `processes` is 0 before the first answer has told it.
std::string RegisterBody(const std::string& run_id, uint32_t node, uint32_t processes);

// The job as a process hears it: with staged side files it has an output folder of its own, which
// no other process ever gets.
JobSettings ForProcess(const JobSettings& job, uint32_t process);

// The body of the start frame (docs/worker-protocol.md).
std::string StartBody(const JobSettings& job, uint32_t node, uint32_t process);

// What a worker process is told of GPUs.
struct GpuGrant {
  std::optional<size_t> count;  // of the node; nullopt when there is no sign of any
  std::optional<std::string> device;
};

// The GPUs of this machine, by its variables and device files.
std::optional<std::vector<std::string>> FindGpus();

// The whole environment of a worker process: `inherited` (NAME=value), then the job's, then what
// the contract promises.
std::vector<std::string> WorkerEnvironment(const std::vector<std::string>& inherited,
                                           const JobSettings& job, const std::string& python_path,
                                           const GpuGrant& gpu);

}  // namespace parallelrun::agent
