// What `parallelrun run` was asked for, made into a job that can start: the job file read and
// checked, every volume a folder, the code found.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "api/job.h"
#include "base/error.h"
#include "cli/run/quick_job.h"
#include "coordinator/start/layout.h"

namespace parallelrun::cli {

// Some of the input, to try a job on: at most one of the three.
struct SelectWords {
  std::optional<uint64_t> limit;   // items from the front
  std::optional<uint64_t> sample;  // files, chosen by their names
  std::vector<std::string> only;   // files

  bool some() const { return limit || sample || !only.empty(); }
};

struct RunRequest {
  std::vector<std::string> command;    // as it was typed, the program's name first
  std::string job_file;                // empty with `quick`
  std::optional<QuickJob> quick;       // a script in place of a job file
  std::vector<std::string> volumes;    // NAME=FOLDER
  std::string code;                    // folder; empty: what the job says
  std::string python;                  // of --python; empty: what the job says
  std::vector<std::string> overrides;  // spec.path=value
  std::optional<unsigned> nodes;
  bool resume = false;
  bool overwrite = false;
  bool retry_failed = false;
  bool page = false;            // served live, and its address printed
  bool allow_failures = false;  // losses are no exit status of their own
  bool detach = false;          // go on in the background
  bool events = false;          // on stdout, for programs; people read stderr then
  std::string progress;         // bar, plain or none; empty: as it fits
  bool quiet = false;           // says only what went wrong
  SelectWords select;
  bool dry_run = false;          // tell what a run would do, and write nothing
  bool keep_code = false;        // beside the ledger, since its own folder goes away
  bool ends_with_stdin = false;  // an end of standard input stops it
};

struct LocalJob {
  api::Job job;
  coordinator::Volumes volumes;
  coordinator::JobLayout layout;
  std::string code_folder;  // absolute; whether it is there, and the script, is not looked at
  std::string code_not_on;  // why that is not the volume that the job names for it; or empty
  std::string python_why;   // why spec.environment.python is what it is; empty: it was asked for
  uint32_t nodes = 1;
  uint32_t processes = 1;          // of each node
  std::string processes_source;    // where that number comes from
  std::vector<std::string> notes;  // for the user: warnings, fields that are ignored here
};

// All problems, one a line, ready to print; code kInvalid.
Result<LocalJob> PrepareJob(const RunRequest& request);

// The same, without a layout: volumes that are no folder here are no problem.
Result<LocalJob> ReadLocalJob(const RunRequest& request);

// `path`, which is relative to `base` or absolute, normalised and without a "/" at its end.
std::string Absolute(const std::filesystem::path& base, const std::string& path);

// The path of the entry script below `folder`, if that is one and holds it.
Result<std::string> CheckCode(const std::string& folder, const std::string& script);

// The same of a local job; where its code is on a volume that is no folder here, the error says so.
Result<std::string> CheckCode(const LocalJob& job);

// Whether `code_folder` is what the job names: not where a cluster has the code alone.
bool HasCodeHere(const LocalJob& job);

// Reads a whole job file; errors name it and say what a job file is.
Result<std::string> ReadJobFile(const std::string& path);

}  // namespace parallelrun::cli
