// Steps 1 and 2 of "Claiming an epoch" (docs/ledger.md): a log of one's own, and the token without
// which nothing is published. Blocking I/O, no state.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/files.h"
#include "coordinator/ledger/ledger.h"
#include "coordinator/ledger/log_format.h"

namespace parallelrun {

struct ClaimedEpoch {
  LogHeader header;
  std::unique_ptr<File> log;  // holds the header, durably
  std::string token_path;     // empty with SummaryOnly
};

// kStale: a higher epoch appeared meanwhile; kCorrupt: a log is missing; kInvalid: the file system
// cannot create a file exclusively, or the ledger has an unknown format.
Result<ClaimedEpoch> ClaimEpoch(Files& files, const LedgerOptions& options);

// The folder that holds the logs.
std::string EpochsFolder(const std::string& state_folder);

// The highest epoch with a log there; 0: none. Other names do not count. kCorrupt: one below it is
// missing; kNotFound: there is no such folder.
Result<uint32_t> HighestEpoch(const Files& files, const std::string& epochs_folder);

// kStale when the log after that of `epoch` is there.
Status CheckNewestEpoch(const Files& files, const std::string& epochs_folder, uint32_t epoch);

}  // namespace parallelrun
