// What the folder of a run on this machine knows of a ledger in a store: where it is, and how far
// it was when this machine saw it last. Blocking I/O, no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/files.h"

namespace parallelrun::ledger {

struct ChainNote {
  std::string place;    // URL of the folder that holds the chain
  uint32_t epoch = 0;   // the newest that this machine has claimed; 0: none yet
  uint64_t run_id = 0;  // when it did
  bool operator==(const ChainNote&) const = default;
};

// Nothing where there is none; kCorrupt: it is damaged.
Result<std::optional<ChainNote>> ReadChainNote(const Files& files, const std::string& state_folder);
// Durable when it returns.
Status WriteChainNote(Files& files, const std::string& state_folder, const ChainNote& note);

}  // namespace parallelrun::ledger
