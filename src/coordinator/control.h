// The body of PUT /v1/control (docs/coordinator-api.md). Pure, thread-safe.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "job/losses.h"
#include "reasons/reason.h"

namespace parallelrun::coordinator {

// What Kubernetes calls the end of a container that needed more memory than it may have.
inline constexpr reasons::Reason kOutOfMemory("OOMKilled");

// A pod that was evicted for a limit of its own on the disk. What a host does that runs short is
// told by another word.
inline constexpr char kOwnDiskFull[] = "Evicted";

// The pod of a node has ended.
struct PodEnd {
  uint32_t node = 0;
  uint64_t incarnation = 0;  // the pod's number, of the whole job
  std::string reason;        // "OOMKilled", "Killed", "Evicted", …
  int32_t exit_code = 0;
};

// What is absent is left as it is.
struct ControlRequest {
  std::optional<uint64_t> generation;
  nlohmann::json spec = nlohmann::json::object();  // fields that are said anew, each of them right
  bool drain = false;
  bool cancel = false;
  std::vector<PodEnd> pod_ends;

  // A number that is in force already changes nothing, whether it was written or is the default.
  job::Thresholds ChangedFrom(const job::Thresholds& before) const;
};

// kInvalid names the key that is wrong.
Result<ControlRequest> ParseControl(const std::string& body);

}  // namespace parallelrun::coordinator
