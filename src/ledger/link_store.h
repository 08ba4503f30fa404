// Where the links of a ledger are (docs/ledger.md, "A ledger in a store"): numbered things, each
// made once and never changed. Every call blocks, and repeats what a later try may mend. Thread-
// safe. Errors: kUnavailable where a later try may succeed; else what the store says.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"

namespace parallelrun::ledger {

class LinkStore {
 public:
  virtual ~LinkStore() = default;

  // For messages.
  virtual std::string Location(uint64_t number) const = 0;
  // The numbers that are there, in any order; the newest may lack where a store is late.
  virtual Result<std::vector<uint64_t>> List() = 0;
  virtual Result<bool> IsThere(uint64_t number) = 0;
  // All its bytes; nothing where there is no such link.
  virtual Result<std::optional<std::string>> Read(uint64_t number) = 0;
  // Some of them, fewer where it ends before.
  virtual Result<std::optional<std::string>> ReadPart(uint64_t number, uint64_t offset,
                                                      size_t size) = 0;
  // Makes it where there is none. kStale: there is one, perhaps by an earlier try of this call;
  // kUnavailable: nobody knows, and it may still come to be there.
  virtual Status Create(uint64_t number, const std::string& bytes) = 0;

  // Somebody wants this epoch, and loses every number to the one before it, which gives way once it
  // has looked. Beside the links; said more than once, it is the same.
  virtual Status Announce(uint32_t epoch) = 0;
  virtual Result<bool> IsAnnounced(uint32_t epoch) = 0;
};

}  // namespace parallelrun::ledger
