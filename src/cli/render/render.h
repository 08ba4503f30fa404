// `parallelrun render`: a job file as what a cluster takes. Code on this machine becomes an
// immutable ConfigMap named after its content, so that the same files always give the same text.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace parallelrun::cli {

struct RenderRequest {
  std::string job_file;                // "-": standard input, as a file of the current folder
  std::string code;                    // folder; empty: what the job says
  std::vector<std::string> overrides;  // spec.path=value
};

struct RenderedJob {
  std::string text;  // YAML: the ConfigMap, if there is one, and the job
  std::string name;
  std::string name_space;          // empty: not given
  std::vector<std::string> notes;  // for the user
  bool losses_allowed = false;     // one of its thresholds speaks of items that fail
};

// All problems, one a line, ready to print; code kInvalid or kNotFound.
Result<RenderedJob> RenderJob(const RenderRequest& request);

// Prints it to stdout, notes to stderr; returns the exit status.
int PrintRendered(const RenderRequest& request);

}  // namespace parallelrun::cli
