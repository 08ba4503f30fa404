// Which uploads the epochs of a state have begun: the token of an output in a store is its upload,
// and a note of it in `uploads/` lets a later epoch end it (docs/ledger.md, "Publishing to
// a store"). Blocking I/O, no state.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "ledger/state_notes.h"
#include "store/write_store.h"

namespace parallelrun::output {

// The uploads of an output and of its index.
struct NotedUploads {
  std::string output;  // the location of what the first is to become
  std::string id;
  std::string index_id;
};

// Durable when it returns.
Status NoteUploads(ledger::StateNotes& notes, uint32_t epoch, const NotedUploads& uploads);

// Ends what epochs up to `last` have noted, and then forgets it. What was noted for another output
// than `name` of this store stays, since it can become no part of this one.
Status EndNotedUploads(ledger::StateNotes& notes, uint32_t last, store::WriteStore& store,
                       const std::string& name);

}  // namespace parallelrun::output
