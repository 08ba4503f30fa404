// The names of things in a job (docs/ledger.md, "Names").
#pragma once

#include <compare>
#include <cstdint>

namespace parallelrun {

using BatchId = uint64_t;  // a mini-batch; dense from 0

// One lease. Only grows within a run.
struct Fence {
  uint32_t epoch = 0;
  uint64_t number = 0;
  auto operator<=>(const Fence&) const = default;  // NOLINT(modernize-use-nullptr)
};

// One registration of a node with a coordinator.
struct Incarnation {
  uint32_t epoch = 0;
  uint32_t number = 0;
  auto operator<=>(const Incarnation&) const = default;  // NOLINT(modernize-use-nullptr)
};

// Where bytes of the ledger lie: in the log of an epoch.
struct Place {
  uint32_t epoch = 0;
  uint64_t offset = 0;
  uint32_t length = 0;
};

// Why an attempt failed (docs/ledger.md). Stored: never renumber.
enum class Cause : uint8_t {
  kRun = 1,
  kRunTimeout = 2,
  kProcessEnded = 3,
  kOverheadTimeout = 4,
  kInput = 5,
};

}  // namespace parallelrun
