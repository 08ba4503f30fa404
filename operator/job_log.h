// Which job the log lines of a thread are about: `job` (namespace, name, uid) in JSON lines, a
// prefix in text ones. Thread-safe.
#pragma once

#include <string>

#include "base/log.h"

namespace parallelrun {

struct JobLabel {
  std::string name_space, name, uid;
};

// What this thread logs while it lives is about `label`, which must outlive it.
class JobLogScope {
 public:
  explicit JobLogScope(const JobLabel& label);
  ~JobLogScope();
  JobLogScope(const JobLogScope&) = delete;
  JobLogScope& operator=(const JobLogScope&) = delete;

 private:
  const JobLabel* before_;
};

// SetUpLogging (base/log.h), with the jobs.
void SetUpOperatorLogging(LogFormat format, LogLevel level);

}  // namespace parallelrun
