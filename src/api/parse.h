// From a job file to a Job: types, ranges, names, one-of and cross-field rules, with all problems
// at once, each with its field, line and mend. Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/document.h"
#include "api/job.h"
#include "api/problem.h"

namespace parallelrun {

// Where the job shall run: a cluster needs an image and code that it can reach; a local run takes
// the job file's folder for code, and no image.
enum class Target { kLocal, kCluster };

struct ParsedJob {
  Job job;            // with all defaults; of use only when ok()
  Problems problems;  // errors and warnings, in file order
  std::vector<std::string> notes;
  bool ok() const { return !HasErrors(problems); }
};

// Reads a job file (YAML or JSON), applies `overrides` ("spec.nodeCount=2", override.h) and
// checks the result.
ParsedJob ReadJob(std::string_view text, const std::vector<std::string>& overrides, Target target);

// An object as the API server gives it.
ParsedJob ReadJob(const nlohmann::json& object, Target target);

// Checks a tree that was read.
ParsedJob ParseJob(const Node& root, Target target);

}  // namespace parallelrun
