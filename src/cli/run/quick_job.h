// The job file for `parallelrun run score.py --input IN --output OUT`, which has none; and what
// `parallelrun init` writes. Pure but for the current folder.
#pragma once

#include <string>
#include <vector>

#include "cli/run/quick_input.h"
#include "cli/run/quick_output.h"

namespace parallelrun::cli {

struct QuickJob {
  std::string script;       // path of the entry script, below `code`
  std::string code;         // absolute folder
  QuickInput input;         // at least one source
  std::string allow_empty;  // of all inputs, as a job file has it; empty: none may be
  QuickOutput output;
  std::string mini_batch_size;         // empty: the default
  std::vector<std::string> arguments;  // of the script
  unsigned processes = 1;
};

// YAML text, for a job file in `job_folder` (absolute).
std::string QuickJobYaml(const QuickJob& job, const std::string& job_folder);

// What the user typed that has become that field of it, as "--mini-batch-size"; "": nothing.
std::string TypedAs(const QuickJob& job, const std::string& field);

}  // namespace parallelrun::cli
