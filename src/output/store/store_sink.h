// An object of a store as a sink: an upload is begun, noted beside the state, filled part by
// part, and completed on the condition that nobody else wrote meanwhile (docs/ledger.md,
// "Publishing to a store"). The upload is the token: whose upload was ended publishes nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "ledger/state_notes.h"
#include "output/output_claim.h"
#include "output/sink.h"
#include "store/write_store.h"

namespace parallelrun::output {

// By which a run knows its own output: it stands with the object, in marks.
struct OutputMark {
  uint64_t run_id = 0;
  uint32_t generation = 0;
  bool operator==(const OutputMark&) const = default;
};
store::Marks MarksOf(const OutputMark& mark);
// Nothing for an object that no run has made.
std::optional<OutputMark> MarkOf(const store::Marks& marks);

// What is to be done about what stands in the output's place. Pure.
struct StoreStep {
  enum class Kind : uint8_t {
    kIsThere,   // an epoch of this run has published already
    kComplete,  // on the condition that `expected` is still there
    kForeign,
  };
  Kind kind = Kind::kComplete;
  store::Expected expected;
  // What its bytes must be; where they are not it is foreign after all. Marks alone are not enough:
  // there are servers that leave them with the next object of that name.
  std::optional<job::Published> bytes;
  std::string why;  // of kForeign, or of what its bytes show to be so, behind the location
};
// `at_start`: what stood there when this epoch began.
StoreStep NextStep(const std::optional<store::Stored>& there, const OutputMark& own,
                   const store::Expected& at_start, const job::Published& written,
                   const Replaceable& replaceable);

struct StoreSinkOptions {
  std::string name;  // of the output in the store
  uint32_t epoch = 0;
  OutputMark mark;
  store::Expected at_start;
  HeldOutput held;                 // looked at once more right before the end
  std::function<Status()> newest;  // kStale when a newer epoch was claimed; any thread
};

// How what is there differs from what a run has published, in words that follow its name; "": not
// at all. Where size and mark are right, all of it is read; `step` is called after each MiB.
Result<std::string> DamageInStore(
    store::WriteStore& store, const std::string& name, const job::Published& published,
    const OutputMark& mark, const std::function<void()>& step = [] {});

// `notes`, beside the ledger, and `store` outlive the sink.
std::unique_ptr<Sink> MakeStoreSink(ledger::StateNotes& notes, store::WriteStore& store,
                                    StoreSinkOptions options);

}  // namespace parallelrun::output
