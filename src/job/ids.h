// The names of things in a job (docs/ledger.md, "Names").
#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace parallelrun::job {

// A mini-batch; dense from 0, below 2³². One that is split becomes pieces, which are mini-batches
// of their own: their id is that of the whole one plus k·2³², where k is the place in the tree of
// halves (the whole one is 1, the halves of k are 2k and 2k + 1).
using BatchId = uint64_t;

constexpr bool IsPiece(BatchId id) { return id >> 32 != 0; }
constexpr BatchId WholeOf(BatchId id) { return id & 0xffff'ffff; }
constexpr BatchId FirstPiece(BatchId id) {
  return WholeOf(id) + ((IsPiece(id) ? id >> 32 : 1) * 2 << 32);
}
constexpr BatchId SecondPiece(BatchId id) { return FirstPiece(id) + (BatchId{1} << 32); }
// Items of the first piece; the second one gets the others.
constexpr uint32_t FirstPieceItems(uint32_t items) { return items - items / 2; }
// False at the lowest level of the tree that ids have room for.
constexpr bool HasPieces(BatchId id) { return id >> 63 == 0; }

// For people: "7", and "7/3" for a piece.
inline std::string MiniBatchText(BatchId id) {
  const std::string whole = std::to_string(WholeOf(id));
  return IsPiece(id) ? whole + "/" + std::to_string(id >> 32) : whole;
}

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
  bool operator==(const Place&) const = default;
};

// Where the words of an attempt are on its process's stdout and stderr: bytes from and to. All zero
// where that is not known.
struct OutputRanges {
  uint64_t stdout_begin = 0;
  uint64_t stdout_end = 0;
  uint64_t stderr_begin = 0;
  uint64_t stderr_end = 0;
  bool known() const { return stdout_end != 0 || stderr_end != 0; }
  bool operator==(const OutputRanges&) const = default;
};

// Why an attempt failed (docs/ledger.md). Stored: never renumber.
enum class Cause : uint8_t {
  kRun = 1,
  kRunTimeout = 2,
  kProcessEnded = 3,
  kOverheadTimeout = 4,
  kInput = 5,
  kMisfit = 6,
};

}  // namespace parallelrun::job
