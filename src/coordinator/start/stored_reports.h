// The reports of a run whose output lies in a store, out of its log tree and beside the output.
// Blocking I/O.
#pragma once

#include "base/error.h"
#include "coordinator/log_tree/log_folder.h"
#include "output/store/store_reports.h"
#include "store/write_store.h"

namespace parallelrun::coordinator {

// What cannot be put there is told, and keeps the others from it only where the store is away, or a
// newer epoch has begun.
Status PutStoredReports(store::WriteStore& store, const LogFolder& logs,
                        const output::ReportOptions& options);

}  // namespace parallelrun::coordinator
