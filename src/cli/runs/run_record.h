// What a local run leaves beside its ledger for the commands that come after it: what was run, from
// where, and how (docs/ledger.md, "run.json"). Blocking I/O.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/job.h"
#include "base/error.h"
#include "cli/run/local_job.h"
#include "coordinator/start/layout.h"

namespace parallelrun::cli {

struct RunRecord {
  std::vector<std::string> command;  // as it was typed, the program's name first
  std::string folder;                // absolute, that it was typed in
  std::string code;                  // absolute folder
  bool script_folder_first = false;  // on sys.path, as for a script without a job file
  api::Job job;
  coordinator::Volumes volumes;
};

// Replaces the one that is there, if any. What the record says is its owner's alone: arguments.
Status WriteRunRecord(const std::string& state_folder, const RunRecord& record);

// kNotFound: nobody has left one there. kInvalid: it cannot be read, which the message explains.
Result<RunRecord> ReadRunRecord(const std::string& state_folder);

// How the run's output is called: by the one file that was asked for, the URL of one in a store,
// else the output folder. Absolute.
std::string OutputOf(const RunRequest& request, const coordinator::JobLayout& layout);

// The state folder of the run whose output, output folder, log folder or state folder is `target`.
// kNotFound and kInvalid say what to give instead.
Result<std::string> FindStateFolder(const std::string& target);

}  // namespace parallelrun::cli
