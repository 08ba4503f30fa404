// `parallelrun ledger`: verifies the ledger of a job and prints what it says.
#pragma once

#include <string>

namespace parallelrun::cli {

// Reads `state_folder`; prints a summary, with `records` a line for each record before it. The exit
// status: 0 sound, 1 damaged or of another version, or the output is not what was published any
// more; 2 not there.
int PrintLedger(const std::string& state_folder, bool records);

}  // namespace parallelrun::cli
