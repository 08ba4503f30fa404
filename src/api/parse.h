// From a job file to a Job: types, ranges, names, one-of and cross-field rules, with all problems
// at once, each with its field, line and mend. Pure; any thread.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "api/arguments.h"
#include "api/document.h"
#include "api/job.h"
#include "api/problem.h"

namespace parallelrun::api {

// Where the job shall run: a cluster needs an image and code that it can reach; a local run takes
// the job file's folder for code, and no image.
enum class Target { kLocal, kCluster };

struct ParsedJob {
  Job job;            // with all defaults; of use only when ok()
  Problems problems;  // errors and warnings, in file order
  std::vector<std::string> notes;
  bool ok() const { return !HasErrors(problems); }
};

// What a program makes of a job file beyond the fields: the words of another system.
struct Dialect {
  // Changes the tree before it is read. What it finds stands in the file's order with the rest.
  std::function<void(Node& job, Problems& problems, std::vector<std::string>& notes)> translate;
  // What to write in place of a field that is not known; "": nothing comes to mind.
  std::function<std::string(std::string_view name)> mend;
  // How placeholders in spec.arguments may be written too.
  PlaceholderForms placeholders = {};
};

// Reads a job file (YAML or JSON), applies `overrides` ("spec.nodeCount=2", override.h) and
// checks the result.
ParsedJob ReadJob(std::string_view text, const std::vector<std::string>& overrides, Target target,
                  const Dialect& dialect = {});

// An object as the API server gives it.
ParsedJob ReadJob(const nlohmann::json& object, Target target, const Dialect& dialect = {});

// Checks a tree that was read.
ParsedJob ParseJob(Node root, Target target, const Dialect& dialect = {});

}  // namespace parallelrun::api
