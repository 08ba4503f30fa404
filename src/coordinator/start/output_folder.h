// What is there of the output before a run begins. Of a job whose script writes its own results
// (SummaryOnly) that is whatever lies in the output folder: a new run would write its own among it.
// Blocking I/O.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "coordinator/start/config.h"
#include "coordinator/start/earlier_run.h"
#include "coordinator/start/layout.h"

namespace parallelrun {

// What is no result of an earlier run; absolute paths.
struct OwnPlaces {
  std::vector<std::string> folders;  // of the job, with all that lies in them
  std::vector<std::string> made;     // what the job makes before it begins: counts by what is in it
};

// The first name that is found of something else, relative to the folder; empty: nothing is there.
// Goes no deeper than the job's own folders do, and follows no link.
Result<std::string> FirstOfOthers(const Files& files, const std::string& output_folder,
                                  const OwnPlaces& own);

// Fills in what DecideStart must know of it.
Status LookAtOutput(const CoordinatorConfig& config, const JobLayout& layout, const Files& files,
                    NewRun& run);

}  // namespace parallelrun
