// Whether the Python on this machine can run the script: its version, the modules that it lacks,
// and what is wrong with the script, which is parsed and never executed. One process of that Python
// finds it out (worker-image/python/parallelrun/preflight.py) while this one does other work. From
// the main thread only (agent/processes/spawn.h).
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/job.h"
#include "base/fd.h"
#include "cli/run/local_job.h"

namespace parallelrun::cli {

struct PythonProblem {
  std::string part;  // "python" or "script"
  std::string text;
  bool operator==(const PythonProblem&) const = default;
};

struct PythonReport {
  std::string version;  // "3.11.2"; "": it did not answer
  std::string program;  // as it calls itself
  std::vector<PythonProblem> problems;
};

// What preflight.py has answered, in all that came from standard output: an interpreter that
// greets, by its sitecustomize or a wrapper, prints more than the answer. Nothing: it is not whole.
// Pure.
std::optional<PythonReport> ReadPythonReport(std::string_view printed);

class PythonCheck {
 public:
  // `script` lies below the code folder ("": none was found, so none is looked at).
  PythonCheck(const LocalJob& job, const RunRequest& request, const std::string& script,
              const std::string& python_package);
  ~PythonCheck();
  PythonCheck(const PythonCheck&) = delete;
  PythonCheck& operator=(const PythonCheck&) = delete;

  // Waits for the answer. One that does not come within 20 s is no problem: the workers will tell.
  // Nor is one that has not come when `stop`, a file descriptor, is readable.
  PythonReport Finish(int stop = -1);

 private:
  const std::string python_;
  pid_t pid_ = 0;
  Fd answer_;
  Fd errors_;  // a file in memory: what it says when it cannot start
  std::optional<std::string> cannot_start_;
};

}  // namespace parallelrun::cli
