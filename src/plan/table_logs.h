// Tables of Delta Lake and Iceberg keep a log of which of their files count. Read plainly, all
// files together give rows that were removed, so that such a table is refused wherever it lies: the
// listing of every store is asked, not the store.
#pragma once

#include "plan/planner.h"

namespace parallelrun::plan {

// `open`, but what is opened for an input of tables lists no table that has a log, and no part of
// one: a part is as wrong as the whole. Its listings end with kInvalid there, before any name where
// the root or a folder above it has the log, else where the log's folder is met. What nobody may
// look into is taken for none. Who names the log's folder in `exclude` means it.
OpenStore RefusingTableLogs(OpenStore open);

}  // namespace parallelrun::plan
