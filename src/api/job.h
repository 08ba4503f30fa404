// The ParallelRunJob as plain data: what a job file says, with every default filled in once it
// comes from ParseJob (parse.h). docs/job.md describes the fields. Sizes are bytes, paths are
// relative to their volume, normalised, "." for its root. Sub-objects that only Kubernetes
// interprets are carried through as JSON (null when absent).
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "api/data.h"
#include "base/time.h"

namespace parallelrun::api {

inline constexpr char kApiVersion[] = "parallelrun.dev/v1alpha1";
inline constexpr char kJobKind[] = "ParallelRunJob";

enum class CodeKind { kJobFolder, kConfigMap, kVolume, kImage, kFolder };
enum class ShortReturn { kKeep, kFail };
enum class LoggingLevel { kWarning, kInfo, kDebug };
enum class Profiling { kNone, kCProfile, kProfile };
enum class Disruption { kAllow, kAvoid, kBudget };
enum class OnOutputTaken { kWait, kFail };

struct JobMetadata {
  std::string name;
  std::string name_space;  // empty: not given
  std::string uid;         // only from an API server
  int64_t generation = 0;  // only from an API server
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;
  bool operator==(const JobMetadata&) const = default;
};

struct CodeSource {
  CodeKind kind = CodeKind::kJobFolder;  // kJobFolder: not given, the job file's folder (local)
  std::string name;                      // kConfigMap: the ConfigMap; kVolume: the volume
  // kVolume: in the volume; kImage: absolute, in the worker's image; kFolder: on the user's
  // machine, relative to the job file.
  std::string path;
  bool operator==(const CodeSource&) const = default;
};

struct Environment {
  std::string image;
  std::string python = "python3";
  std::string image_pull_policy;                                // empty: Kubernetes decides
  nlohmann::json env = nlohmann::json::array();                 // EnvVar
  nlohmann::json env_from = nlohmann::json::array();            // EnvFromSource
  nlohmann::json image_pull_secrets = nlohmann::json::array();  // {name}
  bool operator==(const Environment&) const = default;
};

// An ordinary Kubernetes volume, mounted at /mnt/<name>.
struct Volume {
  std::string name;
  std::string kind;       // "persistentVolumeClaim"; empty: --volume is to say what it is
  nlohmann::json source;  // what stands under `kind`
  bool operator==(const Volume&) const = default;
};

// What a node keeps of objects that its script reads.
struct CacheOptions {
  uint64_t size = uint64_t{10} << 30;  // bytes
  bool operator==(const CacheOptions&) const = default;
};

// The volume of the claim that a cluster makes of StateOptions::claim_template; nobody else's
// volume may have such a name.
inline constexpr char kStateVolume[] = "parallelrun-state";

struct StateOptions {
  // Default: <job>/state on the output's volume; empty when ephemeral. With a store the path is one
  // in the store, and the volume has what is of the coordinator's machine alone.
  VolumePath in;
  std::string store;  // one of stores: the ledger lies there
  bool ephemeral = false;
  nlohmann::json claim_template;  // {metadata, spec} of a PersistentVolumeClaim, or null
  bool operator==(const StateOptions&) const = default;
};

struct CoordinatorOptions {
  nlohmann::json resources;  // {requests, limits}
  nlohmann::json pod_template;
  int32_t restart_limit = 5;  // restarts without a new durable result
  bool operator==(const CoordinatorOptions&) const = default;
};

struct JobSpec {
  std::string entry_script;
  CodeSource code;
  std::vector<std::string> arguments;
  Environment environment;
  std::vector<Volume> volumes;
  std::vector<ObjectStore> stores;
  CacheOptions cache;
  std::vector<Input> inputs;  // all of one kind
  std::vector<SideInput> side_inputs;
  Output output;
  Logs logs;
  StateOptions state;
  int32_t node_count = 1;
  std::optional<int32_t> process_count_per_node;  // none: see processes.h
  int32_t processes_per_gpu = 1;
  uint64_t mini_batch_size = 0;  // files, bytes (tabular) or lines; default 10, 1 MiB, 10
  std::vector<std::string> partition_keys;
  int32_t rank_mini_batch_count = 0;  // above 0: mini-batches without input
  // None: not written. Any number may fail then too, but nobody has said so.
  std::optional<int32_t> error_threshold;       // items; -1: any number may fail
  std::optional<int32_t> allowed_failed_count;  // mini-batches
  std::optional<double> allowed_failed_percent;
  ShortReturn short_return = ShortReturn::kKeep;
  int32_t run_max_try = 3;
  bool isolate_failures = false;  // a mini-batch that used its tries is split, down to single items
  std::optional<bool> speculation;  // none: with AppendRow
  Duration run_invocation_timeout = seconds(60);
  Duration task_overhead_timeout = seconds(600);
  Duration progress_update_timeout{};    // default: 3 run_invocation_timeout + 30 s, at least 300 s
  std::optional<Duration> init_timeout;  // none: see InitTimeout in defaults.h
  Duration first_task_creation_timeout = seconds(600);
  Duration shutdown_timeout = seconds(300);
  LoggingLevel logging_level = LoggingLevel::kInfo;
  Duration resource_monitor_interval = seconds(600);  // zero: off
  Profiling profiling = Profiling::kNone;
  std::optional<int32_t> node_restart_limit;  // none: see NodeRestartLimit in defaults.h
  bool cancel = false;
  bool suspend = false;
  OnOutputTaken on_output_taken = OnOutputTaken::kWait;
  std::optional<Duration> active_deadline;
  std::optional<Duration> ttl_after_finished;
  bool delete_after_finished = false;
  std::string managed_by;
  std::optional<Duration> startup_deadline;
  nlohmann::json resources;  // of a node: {requests, limits}
  std::optional<uint64_t> shared_memory;
  Disruption disruption = Disruption::kAllow;
  nlohmann::json pod_template;  // {metadata, spec}
  CoordinatorOptions coordinator;
  bool operator==(const JobSpec&) const = default;
};

struct Job {
  JobMetadata metadata;
  JobSpec spec;
  bool operator==(const Job&) const = default;
};

}  // namespace parallelrun::api
