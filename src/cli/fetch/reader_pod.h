// The pod that reads a volume of a job whose own pods are over, for as long as `parallelrun fetch`
// does. Pure.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "cli/fetch/wanted_files.h"

namespace parallelrun::cli {

inline constexpr char kReaderContainer[] = "reader";

struct ReaderRequest {
  std::string name;     // of the pod
  std::string volume;   // of the job
  int64_t seconds = 0;  // after which Kubernetes ends it, whatever becomes of this command
};

// `job` is the object, `coordinator` its last coordinator's pod, or null where none is left: then
// the pod is what the job's podTemplates make of a coordinator. One container of the job's runtime
// image, with that volume alone, read-only; no token, and no right that the coordinator had not. It
// has none of the labels by which the operator knows pods. kUnavailable: the job never began.
Result<nlohmann::json> ReaderPod(const nlohmann::json& job, const nlohmann::json& coordinator,
                                 const ReaderRequest& request);

// An hour, and for a large output as long as it takes at 1 MB/s.
int64_t ReaderSeconds(const WantedFiles& wanted);

// Of a pod as the API server has it: why it does not run yet, in words; "": it runs.
std::string WhyNotRunning(const nlohmann::json& pod);

}  // namespace parallelrun::cli
