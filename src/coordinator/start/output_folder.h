// What is there of the output before a run begins. Of a job whose script writes its own results
// (SummaryOnly) that is whatever lies in the output folder: a new run would write its own among it.
// Blocking I/O.
#pragma once

#include <string>

#include "base/error.h"
#include "base/files.h"
#include "coordinator/start/config.h"
#include "coordinator/start/earlier_run.h"
#include "coordinator/start/layout.h"
#include "output/own_places.h"
#include "output/result_manifest.h"

namespace parallelrun::coordinator {

output::OwnPlaces OwnPlacesOf(const CoordinatorConfig& config, const JobLayout& layout);

// The first name that is found of something else, relative to the folder; empty: nothing is there.
// Goes no deeper than the job's own folders do, and follows no link.
Result<std::string> FirstOfOthers(const Files& files, const std::string& output_folder,
                                  const output::OwnPlaces& own);

// Fills in what DecideStart must know of it.
Status LookAtOutput(const CoordinatorConfig& config, const JobLayout& layout, const Files& files,
                    NewRun& run);

// Before anybody writes there. A run that begins with an empty history: removes what an earlier run
// has left, and notes what stays; also where its first coordinator ended before it could. One that
// goes on: notes what has come since it ended. What a person should know; empty when there is
// nothing. What cannot be done is told in the log: the run can do without.
std::string BeginResults(bool with_nothing, const JobLayout& layout, const output::OwnPlaces& own,
                         const Files& files, output::ResultManifest& manifest);

}  // namespace parallelrun::coordinator
