// sys/job_report of the log tree: processed_mini-batches.csv, a row for each attempt, and its sums
// by node and by process. Made from the ledger, streamed: memory grows with the processes only.
#pragma once

#include <string>

#include "base/error.h"
#include "coordinator/log_tree/log_folder.h"
#include "job/job_state.h"
#include "job/losses.h"
#include "ledger/ledger.h"

namespace parallelrun::coordinator {

// Reads the ledger, of which `state` is what it says, and writes the three files into
// sys/job_report of `folder`.
Status WriteBatchReports(const ledger::Ledger& ledger, const job::JobState& state,
                         const job::FailureRules& rules, const LogFolder& folder);

// A field of a CSV file: quoted where needed, and never something that a spreadsheet would take for
// a formula.
std::string CsvField(std::string_view text);

}  // namespace parallelrun::coordinator
