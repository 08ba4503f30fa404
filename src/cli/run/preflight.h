// What can be known before anything is started: whether the Python can run the script, whether the
// input is there, and whether output, logs and state can be written. All that is wrong is told in
// one list. It reads names, at most some thousands, and writes nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/run/local_job.h"
#include "cli/run/python_check.h"

namespace parallelrun::cli {

// The input as far as it was looked at.
struct InputSize {
  uint64_t files = 0;
  uint64_t bytes = 0;
  bool more = false;  // there is more than that
};

// Adds what the input holds; "", or what is wrong with it, without its name. What only a listing
// to the end can tell is left to the coordinator.
std::string CheckInput(const plan::PlanInput& input, InputSize& size);

// Those of the job's layout, each problem with the input's name.
std::vector<std::string> CheckInputs(const LocalJob& job, const RunRequest& request,
                                     InputSize& size);

// Output, logs and state: free, writable, and room for a beginning.
std::vector<std::string> CheckOutput(const LocalJob& job, const RunRequest& request);

// What of a job file can be seen from here: its code, the script, and the inputs on hostPath
// volumes. For the job as ReadLocalJob makes it.
std::vector<std::string> CheckJobFile(LocalJob job);

// "3.4 MB".
std::string Bytes(uint64_t bytes);

// "Python 3.11.2 (/usr/bin/python3); 120 input files, 3.4 MB".
std::string Facts(const LocalJob& job, const PythonReport& python, const InputSize& size);

// The one list. `problems` is not empty.
std::string ListOf(const std::vector<std::string>& problems);

}  // namespace parallelrun::cli
