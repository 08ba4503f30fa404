// The tracebacks in the error logs of a log tree, for the reports and for `parallelrun failures`.
// Blocking I/O; keeps one log in memory, and reads none above 64 MiB.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "coordinator/log_tree/log_folder.h"
#include "job/ids.h"

namespace parallelrun::coordinator {

class ErrorLogs {
 public:
  explicit ErrorLogs(LogFolder folder) : folder_(std::move(folder)) {}

  // Of one attempt, found by the heading that the worker gives it; at most 64 KiB. "" when it is
  // not there. `log` is below the folder.
  std::string Traceback(const std::string& log, job::BatchId id, uint32_t attempt);

 private:
  void Open(const std::string& log);

  const LogFolder folder_;
  std::string log_;
  std::string text_;
};

}  // namespace parallelrun::coordinator
