// Step 3 of "Claiming an epoch" (docs/ledger.md): which bytes of which logs are the history of a
// job, and its replay. Blocking I/O, no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/files.h"
#include "ledger/ledger.h"
#include "ledger/log_reader.h"

namespace parallelrun::ledger {

struct History {
  job::SealRecord seal;  // with which the claiming epoch counts this history
  uint64_t run_id = 0;
  bool has_settings = false;
  // Encoded records that lie whole in the predecessor's log but may not be durable there: the
  // claiming epoch writes them again, right behind its seal.
  std::string copied;
  uint32_t copied_records = 0;
};

// Replays what counts below `epoch`, which is claimed. `run_id` is that of a history without a
// seal. Records that will be copied are visited with the place of the copy.
Result<History> ReplayHistory(const Files& files, const std::string& epochs_folder, uint32_t epoch,
                              uint64_t run_id, const Ledger::Visitor& visit);

// The run id that the newest log below `epoch` with a header goes by.
Result<std::optional<uint64_t>> RunIdBelow(const Files& files, const std::string& epochs_folder,
                                           uint32_t epoch);

// Size of an encoded seal.
inline constexpr uint32_t kSealSize = 25;
// Where in the log of the claiming epoch the copied records begin.
inline constexpr uint64_t kCopiedAt = kLogHeaderSize + kGroupHeaderSize + kSealSize;

}  // namespace parallelrun::ledger
