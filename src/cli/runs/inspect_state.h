// The ledger of a run of this machine, wherever it lies. Blocking I/O.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "base/files.h"
#include "ledger/ledger.h"

namespace parallelrun::cli {

// As ledger::Ledger::Inspect. One in a store is read with what the run has left of its job, and
// with the user's credentials.
Result<uint64_t> InspectState(const Files& files, const std::string& state_folder,
                              const ledger::Ledger::Visitor& visit);

}  // namespace parallelrun::cli
