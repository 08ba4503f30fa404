// `parallelrun verify`: whether a job's output still is what the job published.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/files.h"
#include "job/job_state.h"
#include "output/listed_files.h"

namespace parallelrun::cli {

// `path` is an output file, the folder that holds it, or a state folder. The exit status: 0 whole,
// 1 damaged, or never published, in words or as one JSON object; 2: there is no ledger to compare
// it with.
int VerifyOutput(const std::string& path, bool as_json);

// How an output is, beside what was published.
struct OutputCheck {
  std::string path;
  uint64_t rows = 0;  // with SummaryOnly: side files
  uint64_t bytes = 0;
  std::string trial;                              // what of the inputs it is of; empty: all
  std::string damage;                             // of the output itself; empty: it is whole
  std::optional<output::ListedFiles> side_files;  // where the job stages them, and it is whole

  bool whole() const { return damage.empty() && (!side_files || side_files->damaged == 0); }
};

// Of the job in that state folder, which must have published one; reads all of it.
Result<OutputCheck> CheckPublished(const Files& files, const std::string& state_folder,
                                   const job::JobState& state);
// For people, a line or two; and for programs (docs/cli.md).
std::string CheckText(const OutputCheck& check);
nlohmann::json CheckJson(const OutputCheck& check);

}  // namespace parallelrun::cli
