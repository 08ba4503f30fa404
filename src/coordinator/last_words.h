// What a coordinator leaves behind when it ends, where Kubernetes looks for it
// (docs/coordinator-api.md, "terminationMessage"). Thread-safe.
#pragma once

#include <cstddef>
#include <string>

#include "base/files.h"

namespace parallelrun::coordinator {

// Exit codes of the coordinator (docs/coordinator-api.md).
enum class CoordinatorExit {
  kSucceeded = 0,
  kFailed = 1,
  kCannotStart = 2,
  kDrained = 3,
  kSuperseded = 4,
  kDiskFailed = 5,
  kNotPublished = 6,  // something that is not this run's is in the output's place
};

// The kubelet keeps this much of a container's termination message.
inline constexpr size_t kMaxLastWords = 4096;

// JSON of at most kMaxLastWords bytes, whatever the texts in it: of the answer to /v1/progress and
// why the coordinator ended early ("": it did not), or of why it could not start. Pure.
std::string LastWordsJson(const std::string& progress, const std::string& ended);
std::string LastErrorJson(const std::string& message);

// Overwrites `path` in place: the kubelet mounts that file, so a rename onto it would fail. Nothing
// for ""; what fails is logged.
void LeaveLastWords(Files& files, const std::string& path, const std::string& words);

}  // namespace parallelrun::coordinator
