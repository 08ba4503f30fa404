// The ledger's records (docs/ledger.md). Plain data; text and rows are views into the bytes that
// were decoded, or into the caller's memory when encoding. Their bytes: record_codec.h.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

#include "job/attempt_result.h"
#include "job/ids.h"
#include "job/plan_chunk.h"

namespace parallelrun::job {

struct SealRecord {
  uint32_t predecessor = 0;  // epoch; 0: none
  uint64_t length = 0;       // bytes of the predecessor's log that count
  uint64_t digest = 0;       // of the history up to there
};

struct SettingsRecord {
  uint32_t generation = 0;
  int64_t wall_us = 0;
  uint64_t code_digest = 0;
  std::string_view resource_uid;
  std::string_view plan_settings;  // JSON: what decides which items an id means
  std::string_view job;            // JSON: the whole job, canonical
  // A person has let the run replace whatever is in its output's place; absent in older ledgers.
  bool may_replace = false;
};

struct PlanEndRecord {
  uint64_t batches = 0;
  uint64_t items = 0;
};

struct RowsRecord {
  BatchId id = 0;
  Fence fence;
  std::string_view rows;
};

struct ResultRecord : AttemptResult {
  BatchId id = 0;
  Fence fence;
  uint32_t node = 0;
  uint32_t process = 0;
  std::string_view rows;
};

// What a failed attempt means for its mini-batch. Stored: never renumber.
enum class AttemptEnd : uint8_t {
  kAgain = 0,  // it has tries left
  kFinal = 1,  // it has failed
  kSplit = 2,  // its two pieces take its place
};

struct FailedRecord : AttemptResult {
  BatchId id = 0;
  Fence fence;
  uint32_t node = 0;
  uint32_t process = 0;
  Cause cause = Cause::kRun;
  AttemptEnd end = AttemptEnd::kAgain;
  std::string_view kind;     // of the worker protocol, or the cause's name
  std::string_view message;  // at most 4 KiB
  std::string_view log;      // path below the log tree
  OutputRanges output{};
};

// The line that DataFrame rows begin with, once in the output; the first one counts.
struct HeaderRecord {
  std::string_view line;  // with its line end
};

struct LostRecord {
  BatchId id = 0;
  Fence fence;
};

// Of a mini-batch with a loss: `run()` has begun, or it was handed back without a loss.
struct StartedRecord {
  BatchId id = 0;
  Fence fence;
  bool begun = true;
};

// How the columns of an input are read, in every mini-batch of it: in front of its first chunk.
struct TypesRecord {
  uint32_t input = 0;
  std::string_view types;  // JSON
};

// `most` of those that were held at one death only: any number, as yet.
inline constexpr uint32_t kHeldOnce = UINT32_MAX - 1;

// Mini-batches that a node held when it died. A node that holds one of them holds `most` from now
// on, so that the one that ends nodes is alone after a few deaths.
struct CompanyRecord {
  uint32_t most = 1;  // never 0
  std::vector<BatchId> ids;
};

// Right in front of the result with the same fence: items that the worker left out as unreadable.
// They are failed items, although their mini-batch succeeds.
struct SkippedRecord {
  BatchId id = 0;
  Fence fence;
  uint32_t items = 0;
};

// How a process ended whose script has a shutdown(). Stored: never renumber.
enum class ProcessEnd : uint8_t {
  kOpen = 1,    // it has not, as far as is known
  kClosed = 2,  // shutdown() has returned
  kFailed = 3,  // it raised
  kCutOff = 4,  // it took too long, or the node had no more time for it
  kLost = 5,    // the process was gone before its shutdown() had ended
};

struct ShutdownRecord {
  uint32_t node = 0;
  uint32_t process = 0;
  ProcessEnd end = ProcessEnd::kOpen;
  std::string_view message;  // at most 4 KiB
  std::string_view log;      // path below the log tree
};

// The results of a process are void: a person has them run again.
struct AgainRecord {
  struct Result {
    BatchId id = 0;
    uint32_t items_succeeded = 0;  // as the void result said
    uint32_t row_count = 0;
  };
  uint32_t node = 0;
  uint32_t process = 0;
  std::vector<Result> results;
};

// Records from this type on may be passed over by a program that does not know them; one below it
// changes what a ledger means.
inline constexpr uint8_t kFirstUnknownType = 128;

enum class Outcome : uint8_t { kSucceeded = 1, kFailed = 2 };

struct VerdictRecord {
  Outcome outcome = Outcome::kSucceeded;
  int64_t wall_us = 0;
  std::string_view reason;   // CamelCase, for machines
  std::string_view message;  // for people
};

struct PublishedRecord {
  std::string_view path;
  uint64_t bytes = 0;
  uint64_t rows = 0;
  std::array<uint8_t, 32> sha256{};
};

// Of a type that this program does not know, and may pass over: it changes nothing of what the
// other records mean (docs/ledger.md, "Formats").
struct UnknownRecord {
  uint8_t type = kFirstUnknownType;  // not below that
  std::string_view body;
};

// The order is that of the type numbers, from 1; the last one says its own.
using Record = std::variant<SealRecord, SettingsRecord, PlanChunkRecord, PlanEndRecord, RowsRecord,
                            ResultRecord, FailedRecord, LostRecord, VerdictRecord, PublishedRecord,
                            HeaderRecord, StartedRecord, TypesRecord, CompanyRecord, SkippedRecord,
                            ShutdownRecord, AgainRecord, UnknownRecord>;

}  // namespace parallelrun::job
