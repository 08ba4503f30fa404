// The status of a ParallelRunJob as plain data (docs/operator.md has its shape). It is what people
// read, and the operator's only memory: what a plan must know of the past stands here or on a pod.
// Nothing in it grows with mini-batches. Pure; any thread.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "reasons/reason.h"

namespace parallelrun::operators {

enum class Truth { kUnknown, kFalse, kTrue };

struct Condition {
  std::string type;
  Truth status = Truth::kUnknown;
  std::string reason;   // CamelCase, for programs
  std::string message;  // at most kMaxMessage characters
  int64_t observed_generation = 0;
  WallTime since{};  // lastTransitionTime: moves only when `status` does
  bool operator==(const Condition&) const = default;
};

inline constexpr size_t kMaxMessage = 1024;

// Types of conditions, in the order in which they are listed.
inline constexpr const char* kConditionTypes[] = {"Accepted", "Suspended",   "NodesReady",
                                                  "Complete", "Failed",      "FailureTarget",
                                                  "Finished", "Reconciling", "Stalled"};

// Of a job that has succeeded, when all of it went well; otherwise the coordinator's own word
// stands there, as for lost items.
inline constexpr reasons::Reason kCompleted("Completed");
inline constexpr reasons::Reason kCompletedWithFailures("CompletedWithFailures");

struct NodeCounts {
  int32_t desired = 0;
  int32_t ready = 0;
  int64_t restarts = 0;       // that the job itself caused
  int64_t against_limit = 0;  // of these, while no other node worked; nodeRestartLimit judges them
  int64_t disruptions = 0;    // preemption, eviction, lost hosts, memory of a whole container
  bool operator==(const NodeCounts&) const = default;
};

struct ProgressStatus {
  std::optional<int64_t> total;  // mini-batches; none until the listing has ended
  int64_t succeeded = 0;
  int64_t failed = 0;
  int64_t running = 0;
  std::optional<int64_t> items_total;
  int64_t items_succeeded = 0;
  int64_t items_failed = 0;
  bool listing_done = false;
  int64_t per_second = 0;  // mini-batches, rounded
  std::optional<WallTime> estimated_completion;
  int32_t percent = 0;
  WallTime updated{};  // when these figures were written; writes are 10 s apart
  bool operator==(const ProgressStatus&) const = default;
};

struct DistinctFailure {
  std::string kind, message;
  int64_t count = 0;
  int64_t mini_batch = -1;  // -1: of none, as where init() failed
  int64_t node = 0;
  std::string process, log;
  bool operator==(const DistinctFailure&) const = default;
};

struct FailureStatus {
  std::string reason, message;          // of the job; empty while it has not failed
  std::vector<DistinctFailure> errors;  // at most 5, most frequent first
  bool operator==(const FailureStatus&) const = default;
};

struct OutputStatus {
  std::string path;
  int64_t rows = 0, bytes = 0;
  std::string sha256;
  bool operator==(const OutputStatus&) const = default;
};

// What the job runs with; fixed at its start.
struct EffectiveStatus {
  int32_t process_count_per_node = 0;
  std::string process_count_source;
  std::string image;              // the worker's, by digest once a node has started
  std::string runtime_image;      // ParallelRun's own, pinned for all the job's pods
  std::string code_digest;        // hexadecimal; empty without code.configMap
  bool one_host = false;          // a claim lets all pods run on one host only
  uint16_t coordinator_port = 0;  // of all the job's coordinators; 0: not chosen yet
  bool operator==(const EffectiveStatus&) const = default;
};

struct UsageStatus {
  int64_t node_seconds = 0, gpu_seconds = 0;
  WallTime until{};  // what is counted in
  bool operator==(const UsageStatus&) const = default;
};

struct DisplayStatus {  // for `kubectl get`
  std::string status, done, failed, nodes, eta;
  bool operator==(const DisplayStatus&) const = default;
};

// What the operator knows of coordinators that are gone.
struct CoordinatorStatus {
  int64_t incarnation = 0;         // the pod last looked at
  int64_t container_restarts = 0;  // of that pod, counted in already
  int64_t restarts = 0;            // all of them
  int64_t fruitless = 0;           // since `settled` last grew; restartLimit judges these
  int64_t settled = 0;             // durable results: mini-batches succeeded or failed
  bool operator==(const CoordinatorStatus&) const = default;
};

struct JobStatus {
  int64_t observed_generation = 0;
  std::string phase;
  std::vector<Condition> conditions;
  std::optional<WallTime> start_time, completion_time;
  std::optional<WallTime> ready_time;  // of the first node that got ready
  // When only the job and its result were left, ttlSecondsAfterFinished after its end.
  std::optional<WallTime> cleanup_time;
  NodeCounts nodes;
  std::optional<ProgressStatus> progress;
  std::optional<FailureStatus> failure;
  std::optional<OutputStatus> output;
  EffectiveStatus effective;
  UsageStatus usage;
  std::string logs, url;
  std::string warning;  // what has come up while it ran
  int32_t replicas = 0;
  std::string selector;
  DisplayStatus display;
  int64_t highest_incarnation = 0;   // no pod that has run had a higher one
  int32_t highest_node_count = 0;    // nodeRestartLimit is taken from it
  std::vector<std::string> counted;  // ended pods, as INDEX-INCARNATION, that nodes.* hold already
  CoordinatorStatus coordinator;
  bool operator==(const JobStatus&) const = default;

  const Condition* Find(std::string_view type) const;
  bool Is(std::string_view type) const;  // its condition is True
  bool Over() const { return Is("Complete") || Is("Failed"); }
};

// Sets a condition; `since` moves to `now` only when its status changes. Cuts the message.
void SetCondition(JobStatus& status, std::string_view type, Truth truth, std::string_view reason,
                  std::string_view message, int64_t generation, WallTime now);

// What it cannot read is left at its default: a status is never a reason to stop.
JobStatus ParseStatus(const nlohmann::json& status);
nlohmann::json ToJson(const JobStatus& status);

// "2026-11-21T09:00:00Z", also with a fraction; nothing when it is malformed or not UTC.
std::optional<WallTime> ParseRfc3339(std::string_view text);

// At most `bytes` of UTF-8 text, cut between characters, ending in "..." when cut.
std::string Shortened(std::string_view text, size_t bytes);

}  // namespace parallelrun::operators
