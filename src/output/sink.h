// Where an output is published to. A `Sink` is one output: bytes are appended out of sight, and
// appear whole under its name, or never. What is above (publisher, server) knows bytes, tokens and
// three ends; names beside the output, renames, claims, and the requests of a store end here.
//
// Every call blocks, perhaps for as long as a volume hangs: never call one on a thread that takes
// decisions. One thread at a time. A writer may not outlive its sink.
//
// Errors: kNoSpace where there is no room, and kUnavailable where a store is away: a later try may
// succeed, and starts over; else what the volume or the store says.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "job/job_state.h"

namespace parallelrun::output {

enum class Committed : uint8_t {
  kDone,
  kStale,    // a newer epoch has ended this one's token: its output is not wanted any more
  kForeign,  // the name is somebody else's, or something that this run did not publish has it
};

struct Commit {
  Committed end = Committed::kDone;
  std::string why;        // of kStale and kForeign, in words, with what to do
  std::string set_aside;  // where what stood in the output's place is now; empty: nothing did
};

// What may stand in the output's place and is replaced.
struct Replaceable {
  bool whatever = false;               // a person has said so
  std::optional<job::Published> last;  // what this run published last: an earlier generation's
};

class Writer {
 public:
  // Lets go of what was not committed, which nobody ever sees. The token stays: Begin starts over.
  virtual ~Writer() = default;

  // Behind what was appended before. Some of it may be written on an error.
  virtual Status Append(std::string_view bytes) = 0;
  // The same of the output's index (docs/formats.md), which whoever sees the output can see too.
  virtual Status AppendIndex(std::string_view bytes) = 0;
  // Makes what was appended durable, then visible, in one step that either happens or does not.
  // `written` says what that is. To be called once: whoever does not know how that ended (a crash,
  // an answer that was lost) begins and commits the same bytes again, which is kDone, since what is
  // there by then is told from what others publish.
  virtual Result<Commit> End(const job::Published& written, const Replaceable& replaceable) = 0;
};

class Sink {
 public:
  virtual ~Sink() = default;

  // The output, as ledgers and people are told: "/out/rows.txt".
  virtual std::string Location() const = 0;
  // Bytes that can be written; nothing where that cannot be told or does not end.
  virtual Result<std::optional<uint64_t>> Room() = 0;
  // Starts, or starts over. `bytes` is about what will be appended. A sink publishes by a token,
  // which the next epoch ends before it decides anything (docs/ledger.md): so of two coordinators
  // that both believe in themselves, the older one fails here or in End, with kStale.
  virtual Result<std::unique_ptr<Writer>> Begin(uint64_t bytes) = 0;
};

}  // namespace parallelrun::output
