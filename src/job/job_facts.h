// What the ledger says of a job as a whole. Plain data.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "job/records.h"

namespace parallelrun::job {

// Pieces are not counted as mini-batches: the whole one is, once.
struct JobCounts {
  uint64_t planned = 0;  // mini-batches
  uint64_t succeeded = 0;
  uint64_t failed = 0;
  uint64_t split = 0;        // neither, so far
  uint64_t pieces_open = 0;  // not settled
  uint64_t items_planned = 0;
  uint64_t items_succeeded = 0;
  uint64_t items_missing = 0;   // run() returned no element for them: of results
  uint64_t items_failed = 0;    // of failed mini-batches and pieces, and the skipped ones
  uint64_t items_isolated = 0;  // of those failed: items of pieces
  uint64_t items_skipped = 0;   // of those failed: left out of results
  uint64_t rows = 0;
  uint64_t lost = 0;  // that failed as kLostTooOften, pieces too
};

// The kind of the failed attempt that ends a mini-batch whose node died too often.
inline constexpr std::string_view kLostTooOften = "LostTooOften";

struct Verdict {
  Outcome outcome = Outcome::kSucceeded;
  std::string reason;
  std::string message;
};

struct Published {
  std::string path;
  uint64_t bytes = 0;
  uint64_t rows = 0;
  std::array<uint8_t, 32> sha256{};
};

struct Settings {
  uint32_t generation = 0;
  int64_t wall_us = 0;
  uint64_t code_digest = 0;
  std::string resource_uid;
  std::string plan_settings;
  std::string job;
  bool may_replace = false;
};

}  // namespace parallelrun::job
